"""The rest shape of a soft bar that is straight when it hangs out of a wall under gravity: rest_shape.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import supple


def bar(mesh: supple.TetMesh, points: np.ndarray, wall: np.ndarray) -> tuple[supple.Scene, supple.Body]:
    scene = supple.Scene(gravity=(0, -9.81, 0))
    rest = supple.TetMesh(points, mesh.tets)
    body = scene.add_solid(rest, supple.StableNeoHookean(young=8e4, poisson=0.4), density=400)
    scene.pin(body.where(wall))
    return scene, body


def main(cells: tuple[int, int, int] = (12, 3, 3), folder: Path = Path()) -> float:
    wanted = supple.bar(cells, size=(1, 0.2, 0.2))
    wall = np.flatnonzero(wanted.points[:, 0] <= 0)
    free = np.flatnonzero(wanted.points[:, 0] > 0)
    misfits: list[float] = []
    shapes: dict[str, np.ndarray] = {}

    def misfit(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        """½ |x - wanted|² and its derivatives by the rest positions of all vertices beside the wall."""
        points = wanted.points.copy()
        points[free] = unknown.reshape(-1, 3)
        scene, _ = bar(wanted, points, wall)
        found = supple.gradient(supple.equilibrium(scene), lambda x: x - wanted.points)
        shapes.setdefault("straight at rest", found.positions)
        shapes["found"], shapes["its rest shape"] = found.positions, points
        misfits.append(float(np.abs(found.positions - wanted.points).max()))
        return 0.5 * ((found.positions - wanted.points) ** 2).sum(), found.rest[free].ravel()

    minimize(
        misfit, wanted.points[free].ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": 60, "ftol": 0, "gtol": 1e-7},
    )  # fmt: skip
    print(f"no vertex is further than {1e3 * misfits[-1]:.3f} mm from where it is wanted")
    print(f"{len(misfits)} equilibria; a bar that is straight at rest hangs {1e3 * misfits[0]:.0f} mm down")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.3, 1))
    for (label, points), colour in zip(shapes.items(), ("#bbbbbb", "#2f6fde", "#d9622b"), strict=True):
        side = points[np.abs(wanted.points[:, 2]) < 1e-9]
        left.plot(side[:, 0], side[:, 1], ".", color=colour, ms=4, label=label)
    left.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
    left.legend(frameon=False)
    right.semilogy(misfits, color="#2f6fde")
    right.set(xlabel="equilibrium", ylabel="largest distance to where it is wanted [m]")
    figure.savefig(folder / "rest_shape.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return misfits[-1] / misfits[0]


if __name__ == "__main__":
    main()
