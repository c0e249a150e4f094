"""What a surface can be coloured by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.meshes.measures import volumes
from supple.model import Model
from supple.view.style import PALE_TO_DEEP, RED_TO_BLUE


@dataclass(frozen=True)
class Field:
    """A number for each vertex of a model. label has the unit; centre: the value in the middle of a
    diverging colour map, None for one that runs from the lowest to the highest value."""

    label: str
    colours: tuple[str, ...]
    values: Callable[[Model, np.ndarray], np.ndarray]
    centre: float | None = None

    @property
    def colour_map(self) -> Any:
        """Matplotlib's Colormap of these colours."""
        from matplotlib.colors import LinearSegmentedColormap

        return LinearSegmentedColormap.from_list("supple", self.colours)

    def limits(self, values: np.ndarray) -> tuple[float, float]:
        """Values at the two ends of the colour bar, never equal."""
        low, high = float(values.min()), float(values.max())
        if self.centre is not None:
            reach = max(high - self.centre, self.centre - low, 1e-3)
            return self.centre - reach, self.centre + reach
        low = min(low, 0.0)
        return low, high if high > low else low + 1.0


def displacement(model: Model, positions: np.ndarray) -> np.ndarray:
    """|x - X| [m]"""
    return np.linalg.norm(positions - model.rest, axis=1)


def volume_ratio(model: Model, positions: np.ndarray) -> np.ndarray:
    """Volume of the tetrahedra around each vertex over their volume at rest."""
    now, rest = (
        np.bincount(model.tets.ravel(), np.repeat(volumes(points, model.tets), 4), model.vertices)
        for points in (positions, model.rest)
    )
    return now / rest


FIELDS = {
    "displacement": Field("displacement [m]", PALE_TO_DEEP, displacement),
    "volume_ratio": Field("volume ratio J", RED_TO_BLUE, volume_ratio, centre=1.0),
}
"""Every field by the name it has on the command line."""


def field_named(name: str) -> Field:
    if name not in FIELDS:
        raise ValueError(f"colour_by must be one of {', '.join(FIELDS)}, got {name!r}")
    return FIELDS[name]
