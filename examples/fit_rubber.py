"""Ogden's and Gent's rubber fitted to Treloar's measurements of 1944, with a plot: rubber.png."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import supple
from supple.materials import stress

# Stretch and nominal stress [MPa] of vulcanized rubber, pulled along one and along two directions
# (Treloar, Trans. Faraday Soc. 40, 1944; as tabulated by Steinmann, Hossain and Possart, 2012).
UNIAXIAL = np.array([
    (1.12, 0.14), (1.24, 0.23), (1.39, 0.32), (1.61, 0.41), (1.89, 0.50), (2.17, 0.58), (2.42, 0.67),
    (3.01, 0.85), (3.58, 1.04), (4.03, 1.21), (4.76, 1.58), (5.36, 1.94), (5.76, 2.29), (6.16, 2.67),
    (6.40, 3.02), (6.62, 3.39), (6.87, 3.75), (7.05, 4.12), (7.16, 4.47), (7.27, 4.85), (7.43, 5.21),
    (7.50, 5.57), (7.61, 6.30),
])  # fmt: skip
BIAXIAL = np.array([
    (1.06, 0.16), (1.14, 0.26), (1.31, 0.44), (1.42, 0.51), (1.69, 0.65), (1.94, 0.77), (2.49, 0.96),
    (3.03, 1.24), (3.43, 1.45), (3.75, 1.72), (4.03, 1.96), (4.26, 2.22), (4.44, 2.43),
])  # fmt: skip
BULK = 1e5  # [MPa]: without effect on deformations at constant volume


def nominal(material: supple.materials.Material, stretch: float, directions: int) -> float:
    """The stress of a body that keeps its volume and has free sides: P₁ - P₃ λ₃/λ₁ has no pressure."""
    free = stretch**-0.5 if directions == 1 else stretch**-2
    sides = (stretch, free, free) if directions == 1 else (stretch, stretch, free)
    P = stress(material, (sides[0], 0.0, 0.0, 0.0, sides[1], 0.0, 0.0, 0.0, sides[2]))
    return P[0] - P[8] * free / stretch


def gent(x: np.ndarray) -> supple.materials.Material:
    return supple.materials.Gent(shear_modulus=np.exp(x[0]), limit=np.exp(x[1]), bulk_modulus=BULK)


def ogden(x: np.ndarray) -> supple.materials.Material:
    """Exponents are Ogden's own; moduli of a sign that makes each term stable."""
    a, b, c = np.exp(x)
    return supple.Ogden(mu1=a, alpha1=1.3, mu2=b, alpha2=5.0, mu3=-c, alpha3=-2.0, bulk_modulus=BULK)


def misfit(material: supple.materials.Material) -> np.ndarray:
    return np.array([
        (nominal(material, stretch, directions) - measured) / (0.1 + measured)
        for directions, data in ((1, UNIAXIAL), (2, BIAXIAL))
        for stretch, measured in data
    ])  # fmt: skip


FITS = {"Ogden": (ogden, np.log([0.6, 0.001, 0.01])), "Gent": (gent, np.log([0.3, 90.0]))}
"""How materials are made of numbers, and the numbers at the start."""


def fitted(kind: Callable, start: np.ndarray) -> supple.materials.Material:
    """A trial that is infinite at some stretch of the data is one to leave."""
    return kind(least_squares(lambda x: np.nan_to_num(misfit(kind(x)), nan=1e3), start, diff_step=1e-4).x)


def main(folder: Path = Path()) -> dict[str, supple.materials.Material]:
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(*UNIAXIAL.T, "o", label="uniaxial, Treloar 1944", color="#444444")
    axes.plot(*BIAXIAL.T, "s", label="equibiaxial, Treloar 1944", color="#999999")
    fits = {name: fitted(*how) for name, how in FITS.items()}
    for (name, material), color in zip(fits.items(), ("#2f6fde", "#d9622b"), strict=True):
        error = np.sqrt(np.mean(misfit(material) ** 2))
        print(f"{name}: {material}, off by {100 * error:.0f} % [moduli in MPa]")
        for directions, line, most in ((1, "-", 7.6), (2, "--", 4.5)):
            stretches = np.linspace(1, most, 80)
            stresses = [nominal(material, s, directions) for s in stretches]
            axes.plot(stretches, stresses, line, color=color, label=name if directions == 1 else None)
    axes.set(xlabel="stretch", ylabel="nominal stress [MPa]", ylim=(0, 6.5))
    axes.legend(frameon=False)
    figure.savefig(folder / "rubber.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    return fits


if __name__ == "__main__":
    main()
