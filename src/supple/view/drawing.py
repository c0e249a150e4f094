"""What a picture shows, ready for any renderer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.model import Model
from supple.view.camera import Camera
from supple.view.fields import Field, Step
from supple.view.ground import Shadow, shadow_of
from supple.view.light import shade
from supple.view.surface import Surface, surface_of


@dataclass(frozen=True, eq=False)
class Drawing:
    """The deformed surface of all bodies: points (c, 3) [m] of its corners, normals (c, 3), colours (c, 3)
    from 0 to 1 before any light falls on them; pins (p, 3) [m]; links (l, 2, 3) [m], the two ends of each
    attachment; the shadow on the ground, None without a ground."""

    surface: Surface
    points: np.ndarray
    normals: np.ndarray
    colours: np.ndarray
    pins: np.ndarray
    links: np.ndarray
    shadow: Shadow | None

    def lit(self, camera: Camera) -> np.ndarray:
        """(c, 3) colours in the light of a camera."""
        return shade(self.colours, self.normals, camera.axes)


def drawing(
    model: Model,
    positions: np.ndarray,
    field: Field,
    limits: tuple[float, float],
    step: Step | None = None,
    ground: float | None = None,
) -> Drawing:
    """A model at positions (n, 3) [m] coloured by a field between limits; ground: its height y [m]. Vertices
    whose positions are not finite are drawn in the middle of the others."""
    surface = surface_of(model)
    finite = np.isfinite(positions).all(axis=1)
    if not finite.all():
        middle = positions[finite].mean(axis=0) if finite.any() else np.zeros(3)
        positions = np.where(finite[:, None], positions, middle)
    points = surface.corners(positions)
    colours = field.paint(field.values(model, positions, step), limits)
    return Drawing(
        surface=surface,
        points=points,
        normals=surface.normals(points),
        colours=surface.values(colours),
        pins=points[surface.pin_corners],
        links=links_of(model, positions),
        shadow=None if ground is None else shadow_of(points, surface.triangles, ground),
    )


def links_of(model: Model, positions: np.ndarray) -> np.ndarray:
    """(l, 2, 3) ends of the attachments: the vertex that is held, and the point that it is held by."""
    return np.concatenate([np.empty((0, 2, 3)), *(term.ends(positions) for term in model.terms)])
