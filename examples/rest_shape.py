"""Find the rest shape of a soft bar that is straight under gravity: rest_shape.png."""

from itertools import permutations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import supple


def bar(mesh: supple.TetMesh, points: np.ndarray, wall: np.ndarray) -> tuple[supple.Scene, supple.scene.Body]:
    scene = supple.Scene(gravity=(0, -9.81, 0))
    rest = supple.TetMesh(points, mesh.tets)
    body = scene.add_solid(rest, supple.StableNeoHookean(young=3e5, poisson=0.4), density=400)
    scene.pin(body.where(wall))
    return scene, body


def smoothing(mesh: supple.TetMesh) -> np.ndarray:
    """(n, n) (I + 0.3 L)⁻¹ with the Laplacian L of the edges: it lets vertices move along with their
    neighbors, without which a search along gradients turns elements inside out."""
    L = np.zeros((mesh.n_vertices, mesh.n_vertices))
    for a, b in permutations(range(4), 2):
        L[mesh.tets[:, a], mesh.tets[:, b]] = -1
    np.fill_diagonal(L, -L.sum(axis=1))
    return np.linalg.inv(np.eye(len(L)) + 0.3 * L)


def main(cells: tuple[int, int, int] = (12, 3, 3), folder: Path = Path()) -> float:
    wanted = supple.block(cells, size=(1, 0.2, 0.2))
    wall = np.flatnonzero(wanted.points[:, 0] <= 0)
    free = np.flatnonzero(wanted.points[:, 0] > 0)
    smooth = 0.03 * smoothing(wanted)[np.ix_(free, free)]
    misfits: list[float] = []
    shapes: dict[str, np.ndarray] = {}

    def misfit(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        """½ |x - wanted|² and its derivatives by what the rest positions are smoothed from."""
        points = wanted.points.copy()
        points[free] += smooth @ unknown.reshape(-1, 3)
        scene, _ = bar(wanted, points, wall)
        found = supple.gradient(supple.equilibrium(scene), lambda x: x - wanted.points)
        shapes.setdefault("straight at rest", found.positions)
        shapes["found"], shapes["its rest shape"] = found.positions, points
        misfits.append(float(np.abs(found.positions - wanted.points).max()))
        return 0.5 * ((found.positions - wanted.points) ** 2).sum(), (smooth.T @ found.rest[free]).ravel()

    options = {"maxiter": 80, "ftol": 0, "gtol": 1e-9}
    minimize(misfit, np.zeros(3 * len(free)), jac=True, method="L-BFGS-B", options=options)
    print(f"no vertex is further than {1e3 * min(misfits):.3f} mm from where it is wanted")
    print(f"{len(misfits)} equilibria; a bar that is straight at rest hangs {1e3 * misfits[0]:.0f} mm down")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.3, 1), layout="constrained")
    for (label, points), color in zip(shapes.items(), ("#bbbbbb", "#2f6fde", "#d9622b"), strict=True):
        side = points[np.abs(wanted.points[:, 2]) < 1e-9]
        left.plot(side[:, 0], side[:, 1], ".", color=color, ms=4, label=label)
    left.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
    left.legend(frameon=False, loc="lower left")
    right.semilogy(misfits, color="#2f6fde")
    right.set(xlabel="equilibrium", ylabel="largest distance to wanted [m]")
    figure.savefig(folder / "rest_shape.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return min(misfits) / misfits[0]


if __name__ == "__main__":
    main()
