"""Estimate Young's moduli of the parts of a bar from measured positions under gravity: moduli.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import supple

TRUE = np.array([8e4, 3e4, 1.2e5, 5e4])  # [Pa], from the wall to the tip


def bar(cells: tuple[int, int, int], young: np.ndarray) -> tuple[supple.Scene, supple.scene.Body, np.ndarray]:
    """A bar that sticks out of a wall, a modulus for each quarter of it, and the quarter of every tet."""
    mesh = supple.block(cells, size=(1, 0.2, 0.2))
    centers = mesh.points[mesh.tets].mean(axis=1)
    part = np.minimum((len(young) * centers[:, 0]).astype(int), len(young) - 1)
    scene = supple.Scene(gravity=(0, -9.81, 0))
    body = scene.add_solid(mesh, supple.NeoHookean(young=young[part], poisson=0.4), density=400)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene, body, part


def main(cells: tuple[int, int, int] = (16, 3, 3), noise: float = 1e-3, folder: Path = Path()) -> np.ndarray:
    truth = supple.equilibrium(bar(cells, TRUE)[0], tolerance=1e-8).positions
    seen = truth + noise * np.random.default_rng(0).normal(size=truth.shape)  # [m]
    tried: list[np.ndarray] = []

    def misfit(logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        """½ |x - seen|² and its derivatives by the logarithms of the moduli."""
        young = np.exp(logarithms)
        tried.append(young)
        scene, body, part = bar(cells, young)
        found = supple.gradient(supple.equilibrium(scene), lambda x: x - seen)
        by_young = np.bincount(part, found.body(body).young)
        return 0.5 * ((found.positions - seen) ** 2).sum(), by_young * young

    start = np.log(np.full(len(TRUE), 6e4))
    fit = minimize(misfit, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    found = np.exp(fit.x)
    for k, (young, true) in enumerate(zip(found, TRUE, strict=True)):
        print(f"part {k}: {young:,.0f} Pa, in truth {true:,.0f} Pa")
    print(f"{len(tried)} equilibria and as many gradients")

    figure, axes = plt.subplots(figsize=(6, 3.6))
    for k, color in enumerate(("#2f6fde", "#d9622b", "#3a9a57", "#8a4fbf")):
        axes.plot([young[k] / 1e3 for young in tried], color=color, label=f"part {k}")
        axes.axhline(TRUE[k] / 1e3, color=color, ls=":", lw=1)
    axes.set(xlabel="equilibrium", ylabel="Young's modulus [kPa]", yscale="log")
    axes.set_yticks([30, 50, 80, 120], ["30", "50", "80", "120"])
    axes.set_yticks([], minor=True)
    axes.legend(frameon=False, ncol=2)
    figure.savefig(folder / "moduli.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return found


if __name__ == "__main__":
    main()
