"""Public names of supple, imported on first access."""

from supple.api.batch import equilibria
from supple.api.batch_stepper import BatchFrame
from supple.api.compare import Comparison, Trial, compare
from supple.api.inspect import inspect
from supple.api.simulate import Frame, Result, equilibrium, simulate
from supple.api.stepper import Stepper
from supple.config.backend import Backend
from supple.config.stop import StopCriteria
from supple.datasets import dataset
from supple.gradients import (
    Gradient,
    GradientReport,
    MotionGradient,
    NoGradientError,
    gradient,
    gradients,
    motion_gradient,
)
from supple.io import save_frames
from supple.kernels import select
from supple.materials import (
    ArrudaBoyce,
    Corotated,
    Direction,
    Fung,
    Gent,
    Hencky,
    HolzapfelGasserOgden,
    LinearElastic,
    LogNeoHookean,
    Material,
    MooneyRivlin,
    Muscle,
    NeoHookean,
    Ogden,
    OrthotropicStVK,
    Pa,
    Parameter,
    PlaneStressCorotated,
    PlaneStressNeoHookean,
    PlaneStressStVK,
    PlasticHencky,
    PlasticStVK,
    StableNeoHookean,
    StVK,
    TransverseStVK,
    WovenStVK,
    Yeoh,
    grown,
    measured,
    measured_density,
    register_material,
)
from supple.meshes import (
    MeshError,
    TetMesh,
    TriMesh,
    ball,
    bar,
    block,
    disc,
    fibers_between,
    load_mesh,
    load_surface,
    merge_meshes,
    pillow,
    save_mesh,
    select_tets,
    sheet,
    sphere,
    tetrahedralize,
    torus,
    tube,
    weld,
)
from supple.meshes.skinning import Embedding, embed, surface_of
from supple.model.state import State
from supple.postprocess.evaluate import evaluate
from supple.postprocess.evaluation import Evaluation
from supple.postprocess.modes import Mode
from supple.runs.present import export, film, open_run, picture, report_page
from supple.scene import (
    Body,
    Box,
    Capsule,
    Cloth,
    Contact,
    Cylinder,
    FrictionPair,
    KelvinVoigt,
    Keyframes,
    Maxwell,
    Obstacle,
    Plane,
    Ramp,
    Rayleigh,
    Region,
    Rotate,
    Scale,
    Scene,
    SceneError,
    SceneFile,
    SceneFileError,
    Sphere,
    SurfaceSequence,
    SurfaceShape,
    Translate,
    Twist,
    Variation,
    VertexSet,
    build_model,
    load_scene,
    scene_schema,
)
from supple.solve.report import History, Outcome, Report
from supple.solvers import (
    BPXPBD,
    FPXPBD,
    GPBD,
    MPBNG,
    PBD,
    PBNG,
    SOR,
    XPBD,
    Anderson,
    BlockXPBD,
    Chebyshev,
    Hybrid,
    Newton,
    PaperChebyshev,
    PaperSOR,
    register_solver,
)
from supple.terms import CreasedBending, Fabric, HingeBending, IsometricBending, load_fabric
