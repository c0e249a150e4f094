"""Contact with obstacles (shapes, signed distances, Coulomb contact law) and between surfaces."""

from supple.collision.obstacles.contact_planes import Friction, Planes, plane_contact_at
from supple.collision.obstacles.friction_cone import add_reactions, project_to_cone, solve_with_contact
from supple.collision.obstacles.obstacles import Obstacles
from supple.collision.obstacles.signed_distance import (
    Shapes,
    advect,
    advect_previous,
    distance,
    distances_to,
    nearest,
    nearest_planes,
)

__all__ = [
    "Friction",
    "Obstacles",
    "Planes",
    "Shapes",
    "add_reactions",
    "advect",
    "advect_previous",
    "distance",
    "distances_to",
    "nearest",
    "nearest_planes",
    "plane_contact_at",
    "project_to_cone",
    "solve_with_contact",
]
