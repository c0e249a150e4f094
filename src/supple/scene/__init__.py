"""Scenes, described in Python or TOML files, and model construction."""

from supple.scene.bodies import Body, VertexSet
from supple.scene.build import build_model
from supple.scene.cloth import Cloth
from supple.scene.constraints.motions import Keyframes, Motion, Rotate, Scale, Translate, Twist
from supple.scene.contact_settings import Contact, FrictionPair
from supple.scene.errors import SceneError, SceneFileError
from supple.scene.files.loader import SceneFile, load_scene
from supple.scene.files.scene_table import scene_schema
from supple.scene.loads.ramps import Ramp
from supple.scene.regions import Region
from supple.scene.scene import Scene
from supple.scene.shapes.analytic_shapes import Box, Capsule, Cylinder, Plane, Sphere
from supple.scene.shapes.obstacle import Obstacle
from supple.scene.shapes.surface_shapes import SurfaceSequence, SurfaceShape
from supple.scene.variations import Variation
from supple.scene.viscosity import KelvinVoigt, Maxwell, Rayleigh

__all__ = [
    "Body",
    "Box",
    "Capsule",
    "Cloth",
    "Contact",
    "Cylinder",
    "FrictionPair",
    "KelvinVoigt",
    "Keyframes",
    "Maxwell",
    "Motion",
    "Obstacle",
    "Plane",
    "Ramp",
    "Rayleigh",
    "Region",
    "Rotate",
    "Scale",
    "Scene",
    "SceneError",
    "SceneFile",
    "SceneFileError",
    "Sphere",
    "SurfaceSequence",
    "SurfaceShape",
    "Translate",
    "Twist",
    "Variation",
    "VertexSet",
    "build_model",
    "load_scene",
    "scene_schema",
]
