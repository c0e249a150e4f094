"""What a picture shows, ready for any renderer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.meshes.surface import boundary
from supple.model import Model
from supple.view.fields import Field


@dataclass(frozen=True, eq=False)
class Drawing:
    """The deformed surface of all bodies: points (n, 3) [m], triangles (k, 3), values (n,) of a field, the
    ids of the points that are pinned, and the values at the ends of the colour bar."""

    points: np.ndarray
    triangles: np.ndarray
    values: np.ndarray
    pinned: np.ndarray
    field: Field
    limits: tuple[float, float]


def drawing(model: Model, positions: np.ndarray, field: Field) -> Drawing:
    triangles = boundary(model.tets)
    used, corners = np.unique(triangles, return_inverse=True)
    values = field.values(model, positions)[used]
    return Drawing(
        points=positions[used],
        triangles=corners.reshape(-1, 3),
        values=values,
        pinned=np.flatnonzero(np.isin(used, model.pinned)),
        field=field,
        limits=field.limits(values),
    )
