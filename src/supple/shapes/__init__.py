"""Public names of obstacle shapes: half-spaces, spheres, boxes, capsules, cylinders and closed surfaces.

The code is in `scene/shapes/`.
"""

from supple.scene.shapes.analytic_shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere
from supple.scene.shapes.surface_shapes import SurfaceSequence, SurfaceShape

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Plane",
    "Shape",
    "Sphere",
    "SurfaceSequence",
    "SurfaceShape",
]
