"""Position-based simulation of hyperelastic solids and cloth, with error estimates."""

import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import supple.datasets as datasets
    import supple.gradients as gradients
    import supple.io as io
    import supple.loads as loads
    import supple.materials as materials
    import supple.meshes as meshes
    import supple.motions as motions
    import supple.scene as scene
    import supple.shapes as shapes
    import supple.solvers as solvers
    import supple.view as view
    from supple._public import *  # noqa: F403
    from supple._public import inspect as inspect
    from supple._public import where as where

__version__ = "0.1.0"

__all__ = [
    "BPXPBD",
    "FPXPBD",
    "GPBD",
    "MPBNG",
    "PBD",
    "PBNG",
    "XPBD",
    "Backend",
    "BatchFrame",
    "BlockXPBD",
    "Box",
    "Capsule",
    "Comparison",
    "Contact",
    "Corotated",
    "CreasedBending",
    "Cylinder",
    "Embedding",
    "Evaluation",
    "Fabric",
    "Frame",
    "HingeBending",
    "History",
    "Hybrid",
    "IsometricBending",
    "IterationInfo",
    "KelvinVoigt",
    "Keyframes",
    "Maxwell",
    "Mode",
    "MooneyRivlin",
    "NeoHookean",
    "Newton",
    "Ogden",
    "Outcome",
    "Plane",
    "Rayleigh",
    "Report",
    "Result",
    "Rotate",
    "Scale",
    "Scene",
    "SceneError",
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
    "TriMesh",
    "Trial",
    "Twist",
    "Variation",
    "animate",
    "ball",
    "block",
    "compare",
    "dataset",
    "embed",
    "equilibria",
    "equilibrium",
    "evaluate",
    "export",
    "gradient",
    "load_fabric",
    "load_mesh",
    "load_run",
    "load_scene",
    "render",
    "sheet",
    "show_versions",
    "simulate",
    "visible_surface",
    "where",
    "write_report",
]

if TYPE_CHECKING:
    __all__ += [
        "datasets",
        "gradients",
        "io",
        "loads",
        "materials",
        "meshes",
        "motions",
        "scene",
        "shapes",
        "solvers",
        "view",
    ]


NAMES_OUTSIDE_STAR_IMPORT = ("inspect",)
"""Public names that equal names of the standard library, which `from supple import *` must not replace."""

OPTIONAL_SUBMODULES = ("data", "jax", "torch")
"""Submodules that need optional libraries, or are slow to import."""

NAMESPACES = (
    "datasets",
    "gradients",
    "io",
    "loads",
    "materials",
    "meshes",
    "motions",
    "scene",
    "shapes",
    "solvers",
    "view",
)
"""Packages with all public names of a subject, of which `supple` itself repeats the most frequent ones."""


class _Package(ModuleType):
    """Package module that imports public names on first access.

    The command line's help needs none of them, and importing the numerical libraries takes a second. Public
    functions take precedence over submodules of the same name, such as `compare`; the names in
    `OPTIONAL_SUBMODULES` and `NAMESPACES` are submodules.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # requested by Python itself
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in NAMESPACES:
            return import_module(f"supple.{name}")
        if name in OPTIONAL_SUBMODULES:
            try:
                return import_module(f"supple.{name}")
            except ImportError as error:  # hasattr(supple, "jax") is False without JAX
                raise AttributeError(str(error), name=name, obj=self) from error
        public = import_module("supple._public")
        self.__dict__.update(
            {known: getattr(public, known) for known in (*__all__, *NAMES_OUTSIDE_STAR_IMPORT)}
        )
        if name not in self.__dict__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self.__dict__[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore submodules that the import system would bind to a public name, such as `compare`.

        Namespaces list their public names only.
        """
        if name in (*NAMESPACES, *OPTIONAL_SUBMODULES) and isinstance(value, ModuleType):
            vars(value)["__dir__"] = partial(_public_names, value)
        if not (name in (*__all__, *NAMES_OUTSIDE_STAR_IMPORT) and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Public names, without submodules whose library is not installed."""
        own = {name for name in self.__dict__ if name.startswith("__")}
        return sorted(
            {
                *own,
                *__all__,
                *NAMES_OUTSIDE_STAR_IMPORT,
                *NAMESPACES,
                *filter(_is_installed, OPTIONAL_SUBMODULES),
            }
        )


def _public_names(namespace: ModuleType) -> list[str]:
    """Names that `dir()` shows for a namespace: `__all__` and dunder attributes."""
    return sorted({*namespace.__all__, *(name for name in vars(namespace) if name.startswith("__"))})


def _is_installed(submodule: str) -> bool:
    """True if the library of an optional submodule is installed; `data` needs none."""
    return submodule == "data" or find_spec(submodule) is not None


sys.modules[__name__].__class__ = _Package
