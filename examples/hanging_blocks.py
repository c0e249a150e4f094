"""Hang a soft block from another one by springs that are far stiffer than both."""

import supple


def main(cells: int = 10) -> tuple[supple.Result, float]:
    soft = supple.Corotated(young=1000, poisson=0.3)
    scene = supple.Scene(gravity=(0, -9.81, 0))
    upper = scene.add_solid(supple.block(cells, origin=(0, 1.2, 0)), soft, density=10, name="upper")
    lower = scene.add_solid(supple.block(cells), soft, density=10, name="lower")
    top, bottom = upper.where(lambda X: X[:, 1] >= 2.2), upper.where(lambda X: X[:, 1] <= 1.2)
    scene.pin(top)
    scene.attach(lower.where(lambda X: X[:, 1] >= 1), bottom, stiffness=1e8)  # paired in order, 0.2 m apart

    result = supple.equilibrium(scene, tolerance=1e-4)
    lowest = float(result.positions_of(lower)[:, 1].min())
    print(result.report)
    print(f"the lower block ends at a height of {lowest:.3f} m")
    return result, lowest


if __name__ == "__main__":
    main()
