"""Obstacles that are small relative to surface edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.collision.obstacles.face_distance import thicknesses, widths
from supple.contact.faces import with_face_contact
from supple.model.model import Model
from supple.scene.contact_settings import edges_of
from supple.scene.shapes.obstacles import obstacles_of

if TYPE_CHECKING:
    from supple.scene.scene import Scene

SMALL = 1.5
"""Size in mean edges e of a surface below which an obstacle may pass between vertices.

An edge across a right-angled corner cuts off e/√8, half of the way to the middle of an obstacle that is √2 e
thick. The same limit applies to the width of obstacles that springs keep faces out of: vertices rest on a
wide plate, and additional springs would push them off.
"""


def with_small_obstacle_contact(scene: Scene, model: Model) -> Model:
    """Add face contact for obstacles that are small relative to surface edges.

    Models on a grid are unchanged, since a grid detects vertices only.
    """
    if model.obstacles is None or model.grid is not None:
        return model
    edges = np.array([float(edges_of(body).mean()) for body in scene.bodies])
    small = widths(model.obstacles.shapes(0.0)) < SMALL * edges.max()
    if not small.any():
        return model
    return with_face_contact(model, small.astype(np.int32), float(edges.mean()))


def small_obstacles(scene: Scene) -> list[str]:
    """Describe obstacles that may pass through body faces, one sentence per pair."""
    obstacles = obstacles_of(scene)
    if obstacles is None:
        return []
    shapes, longest = obstacles.shapes(0.0), max(float(edges_of(body).mean()) for body in scene.bodies)
    thick, has_springs = thicknesses(shapes), widths(shapes) < SMALL * longest
    return [
        f"obstacle {name!r} is {size:.2g} m thick, and {body.name!r} has edges of {edge:.2g} m: {how}; edges "
        f"below {0.5 * size:.2g} m would feel it with their vertices"
        for body in scene.bodies
        for edge in [float(edges_of(body).mean())]
        for k, name in enumerate(obstacles.names)
        for own in [obstacles.obstacle == k]
        for size in [float(thick[own].min())]
        for how in [SPRINGS_ADVICE if has_springs[own].all() else RIM_ADVICE]
        if size < SMALL * edge
    ]


SPRINGS_ADVICE = "springs keep faces out of it, which give way"
RIM_ADVICE = "its rim may pass between vertices, which reports tell"
