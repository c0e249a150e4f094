"""Twist and stretch a block, and find the shape in which all forces balance."""

import supple


def main(cells: int = 31, angle: float = 1.0) -> supple.Result:
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), supple.Corotated(young=1e5, poisson=0.3), density=10)
    left, right = body.where(lambda X: X[:, 0] <= 0), body.where(lambda X: X[:, 0] >= 1)
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=angle)
    scene.pin(left)
    scene.pin(right, motion=turn + supple.Translate((0.3, 0, 0)))

    result = supple.equilibrium(scene, solver=supple.PBNG(acceleration="chebyshev"), tolerance=1e-4)
    print(result.report)
    return result


if __name__ == "__main__":
    main()
