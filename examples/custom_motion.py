"""Drive pinned vertices with a function of your own, through a body that is softer in the middle."""

import numpy as np

import supple


def wave(X: np.ndarray, t: float) -> np.ndarray:
    """Lift the end of the bar and lower it again, once a second."""
    return X + np.array([0, 0.5 * np.sin(2 * np.pi * t), 0])


def main(cells: tuple[int, int, int] = (24, 6, 6), frames: int = 20) -> list[supple.Frame]:
    mesh = supple.block(cells, size=(4, 1, 1))
    middle = np.abs(mesh.points[mesh.tets].mean(axis=1)[:, 0] - 2) < 0.5
    stiffness = np.where(middle, 1e4, 1e6)  # one Young's modulus for each tetrahedron

    scene = supple.Scene(gravity=(0, 0, 0), dt=1 / frames, frames=frames)
    bar = scene.add_solid(mesh, supple.Corotated(young=stiffness, poisson=0.3))
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    scene.pin(bar.where(lambda X: X[:, 0] >= 4), motion=wave)

    found = []
    for frame in supple.simulate(scene, solver=supple.Newton(), tolerance=1e-6):
        print(f"{frame.time:.2f} s: {frame.report.iterations} iterations, {frame.report.energy:.3g} J")
        found.append(frame)
    return found


if __name__ == "__main__":
    main()
