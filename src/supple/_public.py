"""Public names of supple, imported on first access."""

from supple import datasets, gradients, io, loads, materials, meshes, motions, scene, shapes, solvers, view
from supple.api.batch_stepper import (
    BatchFrame,
)
from supple.api.compare import (
    Comparison,
    Trial,
    compare,
)
from supple.api.equilibria import (
    equilibria,
)
from supple.api.inspect import (
    inspect,
)
from supple.api.simulate import (
    Frame,
    Result,
    equilibrium,
    simulate,
)
from supple.api.stepper import (
    Stepper,
)
from supple.config.backend import (
    Backend,
)
from supple.config.stop_criteria import (
    StopCriteria,
)
from supple.datasets import (
    dataset,
)
from supple.gradients import (
    gradient,
)
from supple.io.machine import (
    show_versions,
)
from supple.kernels import (
    where,
)
from supple.materials import (
    Corotated,
    MooneyRivlin,
    NeoHookean,
    Ogden,
    StableNeoHookean,
    StVK,
)
from supple.meshes import (
    TetMesh,
    TriMesh,
    ball,
    block,
    load_mesh,
    sheet,
)
from supple.meshes.skinning import (
    Embedding,
    embed,
    visible_surface,
)
from supple.model.state import (
    State,
)
from supple.postprocess.evaluate import (
    evaluate,
)
from supple.postprocess.evaluation import (
    Evaluation,
)
from supple.postprocess.modes import (
    Mode,
)
from supple.runs.present import (
    animate,
    export,
    load_run,
    render,
    write_report,
)
from supple.scene import (
    Box,
    Capsule,
    Contact,
    Cylinder,
    KelvinVoigt,
    Keyframes,
    Maxwell,
    Plane,
    Rayleigh,
    Rotate,
    Scale,
    Scene,
    SceneError,
    Sphere,
    SurfaceSequence,
    SurfaceShape,
    Translate,
    Twist,
    Variation,
    load_scene,
)
from supple.solve.report import (
    History,
    IterationInfo,
    Outcome,
    Report,
)
from supple.solvers import (
    BPXPBD,
    FPXPBD,
    GPBD,
    MPBNG,
    PBD,
    PBNG,
    XPBD,
    BlockXPBD,
    Hybrid,
    Newton,
)
from supple.terms import (
    CreasedBending,
    Fabric,
    HingeBending,
    IsometricBending,
    load_fabric,
)
