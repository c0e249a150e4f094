"""Contact with obstacles (shapes, signed distances, Coulomb contact law) and between surfaces."""

from supple.collision.obstacles.contact_planes import Friction, Planes, touch_of
from supple.collision.obstacles.friction_cone import allowed, respond, support
from supple.collision.obstacles.obstacles import Obstacles
from supple.collision.obstacles.signed_distance import (
    Shapes,
    carried,
    carried_before,
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
    "allowed",
    "carried",
    "carried_before",
    "distance",
    "distances_to",
    "nearest",
    "nearest_planes",
    "respond",
    "support",
    "touch_of",
]
