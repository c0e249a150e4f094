"""Obstacles that are small against the edges of what they may meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.contact.faces import thicknesses
from supple.face_contact import with_face_contact
from supple.model import Model
from supple.scene.contact import edges_of
from supple.scene.obstacles import obstacles_of

if TYPE_CHECKING:
    from supple.scene.scene import Scene

SMALL = 1.5
"""Mean edges of a surface: what is thinner may pass it between vertices. An edge across a right angle cuts
that by e/√8, which is half of the way to the middle of what is √2 e thick."""


def with_faces_kept_out(scene: Scene, model: Model) -> Model:
    """The model with faces that are kept out of obstacles which are small against the edges of a body; a grid
    knows vertices only."""
    if model.obstacles is None or model.grid is not None:
        return model
    edges = np.array([float(edges_of(body).mean()) for body in scene.bodies])
    small = thicknesses(model.obstacles.shapes(0.0)) < SMALL * edges.max()
    if not small.any():
        return model
    return with_face_contact(model, small.astype(np.int32), float(edges.mean()))


def small_obstacles(scene: Scene) -> list[str]:
    """A sentence for each obstacle and each body through whose faces it may pass."""
    obstacles = obstacles_of(scene)
    if obstacles is None:
        return []
    thick = thicknesses(obstacles.shapes(0.0))
    sizes = {name: float(thick[obstacles.obstacle == k].min()) for k, name in enumerate(obstacles.names)}
    return [
        f"obstacle {name!r} is {size:.2g} m thick, and {body.name!r} has edges of {edge:.2g} m: springs "
        "keep faces out of it, which give way; edges below "
        f"{0.5 * size:.2g} m would feel it with their vertices"
        for body in scene.bodies
        for edge in [float(edges_of(body).mean())]
        for name, size in sizes.items()
        if size < SMALL * edge
    ]
