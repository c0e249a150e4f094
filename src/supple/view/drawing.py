"""What a picture shows, ready for any renderer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from supple.meshes.surface import boundary
from supple.model import Model
from supple.view.fields import Field


@dataclass(frozen=True, eq=False)
class Drawing:
    """The deformed surface of all bodies: points (n, 3) [m], triangles (k, 3), values (n,) of a field, and
    the ids of the points that are pinned."""

    points: np.ndarray
    triangles: np.ndarray
    values: np.ndarray
    pinned: np.ndarray
    field: Field

    @cached_property
    def limits(self) -> tuple[float, float]:
        return self.field.limits(self.values)


def drawing(model: Model, positions: np.ndarray, field: Field) -> Drawing:
    triangles = boundary(model.tets)
    used, corners = np.unique(triangles, return_inverse=True)
    return Drawing(
        points=positions[used],
        triangles=corners.reshape(-1, 3),
        values=field.values(model, positions)[used],
        pinned=np.flatnonzero(np.isin(used, model.pinned)),
        field=field,
    )
