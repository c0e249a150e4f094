"""Renderer-independent contents of a picture: colored triangles, shadows and contact points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.collision import distances_to
from supple.collision.obstacles.render_meshes import obstacle_triangles
from supple.contact.weak_contact import WeakContact
from supple.model.model import Model, Step
from supple.view.camera import Camera
from supple.view.fields import Field
from supple.view.renderers.ground import Shadow, shadow_of
from supple.view.renderers.light import shade
from supple.view.renderers.surface import Surface, surface_of


@dataclass(frozen=True, eq=False)
class Paint:
    """Colored triangles, before lighting.

    Attributes:
        points: (c, 3) corners [m].
        triangles: (k, 3) triangles.
        normals: (c, 3) unit normals.
        colors: (c, 3) colors from 0 to 1.
        divided: True if triangles are parts of the surface's triangles.
    """

    points: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    divided: bool = False

    def shade_colors(self, camera: Camera) -> np.ndarray:
        """(c, 3) colors under the light of a camera."""
        return shade(self.colors, self.normals, camera.axes)

    def separate_corners(self) -> Paint:
        """Divide each triangle among its corners; adjacent corner colors then stay separate.

        Each part spans a corner, the midpoints of two edges and the centroid.
        """
        corners, count = self.triangles, len(self.triangles)
        if (self.colors[corners] == self.colors[corners[:, :1]]).all():
            return self
        second, third = np.roll(corners, -1, axis=1), np.roll(corners, -2, axis=1)

        def parts(values: np.ndarray) -> np.ndarray:
            a, b, c = values[corners], values[second], values[third]
            each = np.stack([a, (a + b) / 2, (a + b + c) / 3, (a + c) / 2], axis=2)
            return each.reshape(-1, 3)

        normals = parts(self.normals)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        pair = np.array([[0, 1, 2], [0, 2, 3]])
        triangles = (4 * np.arange(3 * count)[:, None, None] + pair).reshape(-1, 3)
        colors = np.repeat(self.colors[corners.ravel()], 4, axis=0)
        return Paint(parts(self.points), triangles, normals, colors, divided=True)


@dataclass(frozen=True, eq=False)
class Drawing:
    """Deformed surface and annotations of one picture.

    Attributes:
        surface: Surface.
        points: (c, 3) corners of the surface [m].
        paint: Colored triangles.
        pins: (p, 3) pinned points [m].
        rollers: (q, 3) points pinned along some directions only [m].
        links: (l, 2, 3) end points of each attachment [m].
        shadow: Shadow on the ground, or None.
        obstacles: Points (o, 3) [m] and triangles (t, 3).
        contacts: (c, 3) contact points [m].
        lines: (f, 2, 3) end points of the field's lines, such as fibers [m].
    """

    surface: Surface
    points: np.ndarray
    paint: Paint
    pins: np.ndarray
    rollers: np.ndarray
    links: np.ndarray
    shadow: Shadow | None
    obstacles: tuple[np.ndarray, np.ndarray]
    contacts: np.ndarray
    lines: np.ndarray


def make_drawing(
    model: Model,
    positions: np.ndarray,
    field: Field,
    limits: tuple[float, float],
    step: Step | None = None,
    ground: float | None = None,
    time: float = np.inf,
    thickness: float = 0.0,
) -> Drawing:
    """Assemble the picture of a model, colored by a field.

    Vertices with non-finite positions are drawn at the center of the others.

    Args:
        model: Model.
        positions: (n, 3) vertex positions [m].
        field: Field.
        limits: Values at the ends of the color bar.
        step: Time step, for fields that depend on it.
        ground: Height y of the ground [m], or None.
        time: Time of moving obstacles [s].
        thickness: Factor by which cloth thickness is drawn; 0 for an infinitely thin surface.
    """
    surface = surface_of(model, thickness)
    finite = np.isfinite(positions).all(axis=1)
    if not finite.all():
        middle = positions[finite].mean(axis=0) if finite.any() else np.zeros(3)
        positions = np.where(finite[:, None], positions, middle)
    points = surface.corners(positions)
    colors = surface.values(field.paint(field.values(model, positions, step), limits), field.separate)
    paint = Paint(points, surface.triangles, surface.normals(points), colors)
    return Drawing(
        surface=surface,
        points=points,
        paint=paint.separate_corners() if field.separate else paint,
        pins=points[surface.pin_corners[~surface.rolling]],
        rollers=points[surface.pin_corners[surface.rolling]],
        links=attachment_lines(model, positions),
        shadow=None if ground is None else shadow_of(points, surface.triangles, ground),
        obstacles=obstacle_triangles(model.obstacles, time, points),
        contacts=contact_points(model, positions, time),
        lines=np.empty((0, 2, 3)) if field.lines is None else field.lines(model, positions),
    )


def attachment_lines(model: Model, positions: np.ndarray) -> np.ndarray:
    """(l, 2, 3) ends of the attachments [m]: the constrained point and its anchor; without contacts."""
    contacts = {k for k, dynamic_term in model.dynamic_terms if isinstance(dynamic_term, WeakContact)}
    ends = [term.ends(positions) for k, term in enumerate(model.terms) if k not in contacts]
    return np.concatenate([np.empty((0, 2, 3)), *ends])


MAX_CONTACT_DISTANCE = 1e-4
"""Largest distance of a contact vertex from an obstacle, relative to the mean edge length."""


def contact_points(model: Model, positions: np.ndarray, time: float) -> np.ndarray:
    """Contact points with obstacles and between bodies.

    Args:
        model: Model.
        positions: (n, 3) vertex positions [m].
        time: Time of moving obstacles [s].

    Returns:
        (c, 3) points [m].
    """
    points = [np.empty((0, 3))]
    if model.obstacles is not None:
        distance, _, _ = distances_to(model.obstacles.shapes(time), positions)
        points.append(positions[np.abs(distance) <= MAX_CONTACT_DISTANCE * model.mean_edge])
    for _, dynamic_term in model.dynamic_terms:
        points.append(dynamic_term.contact_points(positions))
    return np.concatenate(points)
