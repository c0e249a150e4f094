"""Position-based simulation of hyperelastic solids: equilibria you can trust, at C++ speed, from pip."""

from supple.compare import Comparison, Trial, compare
from supple.equilibria import equilibria
from supple.inspection import inspect
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
    SceneFile,
    SceneFileError,
    Translate,
    Twist,
    Variation,
    VertexSet,
    build_model,
    load_scene,
    scene_schema,
)
from supple.simulate import Frame, Result, equilibrium, simulate
from supple.solvers import BPXPBD, FPXPBD, GPBD, PBD, PBNG, XPBD, BlockXPBD, Newton

__version__ = "0.1.0"

__all__ = [
    "BPXPBD",
    "FPXPBD",
    "GPBD",
    "PBD",
    "PBNG",
    "XPBD",
    "BlockXPBD",
    "Body",
    "Comparison",
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
    "SceneFile",
    "SceneFileError",
    "StVK",
    "StableNeoHookean",
    "TetMesh",
    "Translate",
    "Trial",
    "Twist",
    "Variation",
    "VertexSet",
    "ball",
    "bar",
    "block",
    "build_model",
    "compare",
    "equilibria",
    "equilibrium",
    "inspect",
    "load_mesh",
    "load_scene",
    "save_mesh",
    "scene_schema",
    "simulate",
    "torus",
]
