"""Contact with obstacles (shapes, signed distances, Coulomb contact law) and between surfaces."""

from supple.contact.coulomb import allowed, respond, support
from supple.contact.obstacles import Obstacles
from supple.contact.planes import Friction, Planes, touch_of
from supple.contact.shapes import (
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
