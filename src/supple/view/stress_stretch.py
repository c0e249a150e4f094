"""Stress-stretch curves of materials in uniaxial tension and compression."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import root

from supple.materials import Material, psi, stress
from supple.materials.parameters import is_per_element
from supple.view.plots import plot_axes, save
from supple.view.style import LIGHT, SMALL_SIZE, Theme

STRETCHES = np.linspace(0.6, 2.0, 57)


def uniaxial_stress(material: Material, stretches: np.ndarray = STRETCHES) -> np.ndarray:
    """Nominal stress of a bar under uniaxial stretch with free sides.

    Args:
        material: Material; with parameters per element, the first element is used.
        stretches: (k,) stretches along x.

    Returns:
        (k,) stresses [Pa]; NaN without equilibrium, for example beyond a material's limit.
    """
    one = type(material)._make(value[0] if is_per_element(value) else value for value in material)
    stresses = np.full(len(stretches), np.nan)
    rest = int(np.argmin(np.abs(stretches - 1)))
    for order in (range(rest, len(stretches)), range(rest - 1, -1, -1)):
        sides = np.ones(2)
        for k in order:
            solution = root(partial(_sides, one, float(stretches[k])), sides)
            if (
                not solution.success
                or not (solution.x > 0).all()
                or not _is_finite(one, stretches[k], solution.x)
            ):
                break
            sides = solution.x
            stresses[k] = _stress(one, stretches[k], sides)[0]
    return stresses


def _stress(material: Material, along: float, sides: np.ndarray) -> np.ndarray:
    """Diagonal of P at F = diag(along, sides) [Pa]."""
    F = (float(along), 0.0, 0.0, 0.0, float(sides[0]), 0.0, 0.0, 0.0, float(sides[1]))
    try:
        return np.array(stress(material, F), float)[[0, 4, 8]]
    except (ValueError, ZeroDivisionError, OverflowError):
        return np.full(3, np.nan)


def _is_finite(material: Material, along: float, sides: np.ndarray) -> bool:
    """True for finite energy; beyond a barrier, stresses may be finite without a finite energy."""
    F = (float(along), 0.0, 0.0, 0.0, float(sides[0]), 0.0, 0.0, 0.0, float(sides[1]))
    try:
        return bool(np.isfinite(psi(material, F)))
    except (ValueError, ZeroDivisionError, OverflowError):
        return False


def _sides(material: Material, along: float, sides: np.ndarray) -> Any:
    at = _stress(material, along, sides)[1:]
    return np.where(np.isfinite(at), at, 1e12)


def stretch_plot(
    path: str | os.PathLike[str],
    materials: Mapping[str, Material],
    *,
    title: str = "",
    size: tuple[int, int] = (1600, 1000),
    theme: Theme = LIGHT,
) -> None:
    """Plot the nominal stress [Pa] of materials against the stretch into a PNG file, with a legend.

    The stress is that of bars with free sides, at stretches from 0.6 to 2.

    Args:
        path: PNG file.
        materials: Materials by their name in the legend.
        title: Title.
        size: Width and height [pixels].
        theme: Colors.
    """
    from matplotlib import colormaps

    axes = plot_axes(size, title, "nominal stress of bars with free sides", theme)
    last = max(len(materials) - 1, 1)
    for k, (name, material) in enumerate(materials.items()):
        curve, color = uniaxial_stress(material), colormaps["viridis"](0.9 * k / last)
        axes.plot(STRETCHES, curve, color=color, linewidth=1.4, label=name)
    axes.set_xlabel("stretch")
    axes.set_ylabel("P [Pa]")
    axes.axhline(0, color=theme.faded, linewidth=0.6)
    legend = axes.legend(fontsize=SMALL_SIZE, frameon=False, ncol=2, labelcolor=theme.ink)
    legend.set_zorder(5)
    save(axes, path)
