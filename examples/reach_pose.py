"""Find the activations of four muscles that bring the tip of an arm to its goal: pose.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import supple

GOAL = np.array([0.75, 0.3])  # x and y [m] of the middle of the tip; at rest (1, 0.1)


def arm(
    cells: tuple[int, int, int], activation: np.ndarray
) -> tuple[supple.Scene, supple.scene.Body, np.ndarray]:
    """An arm of muscles above and below, near the wall and near the tip; and which of them a tet is of."""
    mesh = supple.block(cells, size=(1, 0.2, 0.2))
    x, y, _ = mesh.points[mesh.tets].mean(axis=1).T
    muscle = 2 * (x > 0.5) + (y > 0.1)
    material = supple.materials.Muscle(
        young=3e4, poisson=0.4, strength=1.5e5, fiber=(1, 0, 0), activation=activation[muscle]
    )
    scene = supple.Scene(gravity=(0, -9.81, 0))
    body = scene.add_solid(mesh, material, density=100)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene, body, muscle


def main(cells: tuple[int, int, int] = (12, 4, 3), folder: Path = Path()) -> float:
    tip = np.flatnonzero(arm(cells, np.zeros(4))[1].points[:, 0] >= 1)
    start: np.ndarray | None = None
    distances: list[float] = []

    def away(activation: np.ndarray) -> tuple[float, np.ndarray]:
        """½ |tip - goal|² and its derivatives by the activations."""
        nonlocal start
        scene, body, muscle = arm(cells, activation)
        result = supple.equilibrium(scene, initial=start, tolerance=1e-6)
        missing = result.positions[tip, :2].mean(axis=0) - GOAL
        by_positions = np.zeros_like(result.positions)
        by_positions[tip, :2] = missing / len(tip)
        found = supple.gradient(result, by_positions)
        start = found.positions
        distances.append(float(np.linalg.norm(missing)))
        return 0.5 * missing @ missing, np.bincount(muscle, found.body(body).activation, 4)

    begin = np.full(4, 0.1)
    fit = minimize(away, begin, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * 4, options={"ftol": 1e-14})
    names = ("below, wall", "above, wall", "below, tip", "above, tip")
    print(", ".join(f"{name} {a:.2f}" for name, a in zip(names, fit.x, strict=True)))
    print(f"{1e3 * distances[-1]:.2f} mm from the goal after {len(distances)} equilibria")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.3, 1), layout="constrained")
    _, body, _ = arm(cells, begin)
    side = body.mesh.surface
    for points, color, label in ((body.points, "#bbbbbb", "at rest"), (start, "#2f6fde", "found")):
        left.triplot(points[:, 0], points[:, 1], side, color=color, lw=0.4, label=label)
    left.plot(*GOAL, "o", color="#d9622b", label="goal")
    left.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
    handles, labels = left.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))  # triplot has two lines of each
    left.legend(named.values(), named.keys(), frameon=False, loc="upper left")
    right.semilogy(distances, color="#2f6fde")
    right.set(xlabel="equilibrium", ylabel="distance of the tip to its goal [m]")
    figure.savefig(folder / "pose.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return distances[-1]


if __name__ == "__main__":
    main()
