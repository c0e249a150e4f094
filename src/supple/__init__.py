"""Position-based simulation of hyperelastic solids: equilibria you can trust, at C++ speed, from pip."""

from supple.compare import Comparison, Trial, compare
from supple.embedding import Embedding, embed, surface_of
from supple.equilibria import equilibria
from supple.inspection import inspect
from supple.io import export, save_frames
from supple.materials import Corotated, LinearElastic, LogNeoHookean, NeoHookean, StableNeoHookean, StVK
from supple.meshes import (
    MeshError,
    TetMesh,
    TriMesh,
    ball,
    bar,
    block,
    load_mesh,
    load_surface,
    save_mesh,
    tetrahedralise,
    torus,
)
from supple.report import History, Outcome, Report
from supple.scene import (
    Body,
    Keyframes,
    Ramp,
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
from supple.showing import film, open_run, picture, report_page
from supple.simulate import Frame, Result, equilibrium, simulate
from supple.solvers import BPXPBD, FPXPBD, GPBD, PBD, PBNG, XPBD, BlockXPBD, Newton
from supple.state import State
from supple.stepper import Frames, Stepper

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
    "Embedding",
    "Frame",
    "Frames",
    "History",
    "Keyframes",
    "LinearElastic",
    "LogNeoHookean",
    "MeshError",
    "NeoHookean",
    "Newton",
    "Outcome",
    "Ramp",
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
    "State",
    "Stepper",
    "TetMesh",
    "Translate",
    "TriMesh",
    "Trial",
    "Twist",
    "Variation",
    "VertexSet",
    "ball",
    "bar",
    "block",
    "build_model",
    "compare",
    "embed",
    "equilibria",
    "equilibrium",
    "export",
    "film",
    "inspect",
    "load_mesh",
    "load_scene",
    "load_surface",
    "open_run",
    "picture",
    "report_page",
    "save_frames",
    "save_mesh",
    "scene_schema",
    "simulate",
    "surface_of",
    "tetrahedralise",
    "torus",
]
