"""Let a bar that is held at one end fall and swing: backward Euler, 30 frames a second."""

import supple


def main(cells: tuple[int, int, int] = (20, 5, 5), frames: int = 60) -> list[float]:
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False)
    bar = scene.add_solid(
        supple.block(cells, size=(4, 1, 1)), supple.Corotated(young=1e5, poisson=0.4), density=100
    )
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    tip = bar.where(lambda X: X[:, 0] >= 4).vertices

    heights = []
    for frame in supple.simulate(scene, solver=supple.PBNG(iterations=40), dt=1 / 30, frames=frames):
        heights.append(float(frame.positions[tip, 1].mean()))
        print(
            f"{frame.time:.2f} s: tip at {heights[-1]:+.3f} m, relative residual "
            f"{frame.report.relative_residual:.1e}"
        )
    return heights


if __name__ == "__main__":
    main()
