"""Position-based simulation of hyperelastic solids: equilibria you can trust, at C++ speed, from pip."""

from supple.materials import Corotated, LinearElastic, LogNeoHookean, NeoHookean, StableNeoHookean, StVK
from supple.meshes import MeshError, TetMesh, ball, bar, block, load_mesh, save_mesh, torus
from supple.report import History, Outcome, Report
from supple.scene import (
    Body,
    Keyframes,
    Rotate,
    Scale,
    Scene,
    SceneError,
    SceneFileError,
    Translate,
    Twist,
    VertexSet,
    build_model,
    load_scene,
)
from supple.simulate import Frame, Result, equilibrium, simulate
from supple.solvers import PBNG, Newton

__version__ = "0.1.0"

__all__ = [
    "PBNG",
    "Body",
    "Corotated",
    "Frame",
    "History",
    "Keyframes",
    "LinearElastic",
    "LogNeoHookean",
    "MeshError",
    "NeoHookean",
    "Newton",
    "Outcome",
    "Report",
    "Result",
    "Rotate",
    "Scale",
    "Scene",
    "SceneError",
    "SceneFileError",
    "StVK",
    "StableNeoHookean",
    "TetMesh",
    "Translate",
    "Twist",
    "VertexSet",
    "ball",
    "bar",
    "block",
    "build_model",
    "equilibrium",
    "load_mesh",
    "load_scene",
    "save_mesh",
    "simulate",
    "torus",
]
