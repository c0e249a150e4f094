"""Position-based simulation of hyperelastic solids and cloth: equilibria you can trust, fast, from pip."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supple._public import *  # noqa: F403
    from supple._public import inspect as inspect
    from supple._public import select as select

__version__ = "0.1.0"

__all__ = [
    "BPXPBD",
    "FPXPBD",
    "GPBD",
    "MPBNG",
    "PBD",
    "PBNG",
    "SOR",
    "XPBD",
    "Anderson",
    "ArrudaBoyce",
    "Backend",
    "BatchFrame",
    "BlockXPBD",
    "Body",
    "Box",
    "Capsule",
    "Chebyshev",
    "Cloth",
    "Comparison",
    "Contact",
    "Corotated",
    "CreasedBending",
    "Cylinder",
    "Direction",
    "Embedding",
    "Evaluation",
    "Fabric",
    "Frame",
    "FrictionPair",
    "Fung",
    "Gent",
    "Gradient",
    "GradientReport",
    "Hencky",
    "HingeBending",
    "History",
    "HolzapfelGasserOgden",
    "Hybrid",
    "IsometricBending",
    "KelvinVoigt",
    "Keyframes",
    "LinearElastic",
    "LogNeoHookean",
    "Material",
    "Maxwell",
    "MeshError",
    "Mode",
    "MooneyRivlin",
    "MotionGradient",
    "Muscle",
    "NeoHookean",
    "Newton",
    "NoGradientError",
    "Obstacle",
    "Ogden",
    "OrthotropicStVK",
    "Outcome",
    "Pa",
    "PaperChebyshev",
    "PaperSOR",
    "Parameter",
    "Plane",
    "PlaneStressCorotated",
    "PlaneStressNeoHookean",
    "PlaneStressStVK",
    "PlasticHencky",
    "PlasticStVK",
    "Ramp",
    "Rayleigh",
    "Region",
    "Report",
    "Result",
    "Rotate",
    "Scale",
    "Scene",
    "SceneError",
    "SceneFile",
    "SceneFileError",
    "Sphere",
    "StVK",
    "StableNeoHookean",
    "State",
    "Stepper",
    "StopCriteria",
    "SurfaceSequence",
    "SurfaceShape",
    "TetMesh",
    "Translate",
    "TransverseStVK",
    "TriMesh",
    "Trial",
    "Twist",
    "Variation",
    "VertexSet",
    "WovenStVK",
    "Yeoh",
    "ball",
    "bar",
    "block",
    "build_model",
    "compare",
    "dataset",
    "disc",
    "embed",
    "equilibria",
    "equilibrium",
    "evaluate",
    "export",
    "fibers_between",
    "film",
    "gradient",
    "gradients",
    "grown",
    "load_fabric",
    "load_mesh",
    "load_scene",
    "load_surface",
    "measured",
    "measured_density",
    "merge_meshes",
    "motion_gradient",
    "open_run",
    "picture",
    "pillow",
    "register_material",
    "register_solver",
    "report_page",
    "save_frames",
    "save_mesh",
    "scene_schema",
    "select_tets",
    "sheet",
    "simulate",
    "sphere",
    "surface_of",
    "tetrahedralize",
    "torus",
    "tube",
    "weld",
]


BY_NAME = ("inspect", "select")
"""Public names that equal names of the standard library, which `from supple import *` must not replace."""

DOORS = ("data", "jax", "torch")
"""Submodules that need optional libraries, or are slow to import."""


class _Package(ModuleType):
    """Package module that imports public names on first access.

    The command line's help needs none of them, and importing the numerical libraries takes a second. Public
    functions take precedence over submodules of the same name, such as `compare`; the names in `DOORS` are
    submodules.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # requested by Python itself
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in DOORS:
            try:
                return import_module(f"supple.{name}")
            except ImportError as error:  # hasattr(supple, "jax") is False without JAX
                raise AttributeError(str(error), name=name, obj=self) from error
        public = import_module("supple._public")
        self.__dict__.update({known: getattr(public, known) for known in (*__all__, *BY_NAME)})
        if name not in self.__dict__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self.__dict__[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore submodules that the import system would bind to a public name, such as `compare`."""
        if not (name in (*__all__, *BY_NAME) and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Public names, without submodules whose library is not installed."""
        own = {name for name in self.__dict__ if name.startswith("__")}
        return sorted({*own, *__all__, *BY_NAME, *filter(_is_installed, DOORS)})


def _is_installed(door: str) -> bool:
    """True if a `DOORS` submodule has its library installed; `data` needs none."""
    return door == "data" or find_spec(door) is not None


sys.modules[__name__].__class__ = _Package
