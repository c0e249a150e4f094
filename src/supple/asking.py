"""What a call asks for: a scene or a scene file, a solver or its name, when to stop and where to start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from supple.checks import LARGEST, closest, finite_rows, flag, one_of, shown, thread_count
from supple.kernels.device import DEVICES, check_device
from supple.model import Model
from supple.problem import check_precision
from supple.scene import Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solvers import SOLVERS, Solver, default_solver
from supple.solving import Stop, make_stop

DEFAULT_TOLERANCE = 1e-4
"""The imbalance to reach where nothing says when to stop."""


class Unsaid(Enum):
    """The default of an argument for which None is an answer, too."""

    UNSAID = "unsaid"

    def __repr__(self) -> str:
        return "unsaid"


UNSAID = Unsaid.UNSAID

Tolerance = float | None | Unsaid
"""The imbalance to reach; None for none. Unsaid, it is what the scene file says, or else 1e-4."""


@dataclass(frozen=True, eq=False)
class Request:
    """scene: with its bodies, or the model of it; file: what says the rest where the call does not."""

    scene: Scene | Model
    file: SceneFile | None
    solver: Solver
    stop: Stop

    def start(self, given: Any, model: Model) -> np.ndarray | None:
        """Positions (n, 3) [m] to begin from, of the call or of the file; None for the rest positions."""
        if given is None and self.file is not None:
            return self.file.start_positions(model)
        return given

    def velocities(self, start: Any, model: Model, first_frame: int = 1) -> np.ndarray | None:
        """Velocities (n, 3) [m/s] that a motion begins with, for the `start` of the call: the file's where
        its positions are the start, else the scene's, which only the first frame has; None for none."""
        saved = self.file.start_velocities(model) if start is None and self.file is not None else None
        if saved is not None:
            return finite_rows("velocities", saved, model.vertices, limit=LARGEST)
        return model.velocities if first_frame == 1 else None


def request(
    scene: Any,
    solver: Any,
    tolerance: Tolerance,
    max_iterations: int | None,
    time_budget: float | None,
    always_tolerance: bool = False,
    models: bool = False,
) -> Request:
    """What a call asks for. always_tolerance: an unsaid tolerance is the default also beside other limits,
    unless it is a file's to say. models: whether a model serves as a scene."""
    file = scene if isinstance(scene, SceneFile) else None
    chosen = scene if models and isinstance(scene, Model) else scene_of(scene)
    method = method_of(solver, file)
    tolerance, max_iterations, time_budget = limits(file, tolerance, max_iterations, time_budget)
    if tolerance is UNSAID:
        unlimited = all(limit is None for limit in (max_iterations, time_budget, method.iterations))
        tolerance = DEFAULT_TOLERANCE if unlimited or (always_tolerance and file is None) else None
    return Request(chosen, file, method, make_stop(method, tolerance, max_iterations, time_budget))


def limits(
    file: SceneFile | None, tolerance: Tolerance, max_iterations: int | None, time_budget: float | None
) -> tuple[Tolerance, int | None, float | None]:
    """When to stop, as the call says, and as the file says where the call does not."""
    if file is None:
        return tolerance, max_iterations, time_budget
    return (
        file.stop.tolerance or UNSAID if tolerance is UNSAID else tolerance,
        file.stop.max_iterations if max_iterations is None else max_iterations,
        file.stop.time_budget if time_budget is None else time_budget,
    )


def method_of(solver: Any, file: SceneFile | None = None) -> Solver:
    """A solver, from itself or from its name; None is the file's, or the default."""
    if solver is None:
        return default_solver() if file is None else SOLVERS[file.solver.method](**file.solver.options)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"there is no solver {solver!r}; {closest(solver, SOLVERS)}")
        return SOLVERS[solver]()
    if isinstance(solver, type) and solver in SOLVERS.values():
        raise TypeError(f"a solver has its options in brackets: supple.{solver.__name__}()")
    if isinstance(solver, type) or not all(hasattr(solver, name) for name in ("name", "begin", "iterations")):
        raise TypeError(
            f"a solver is for example supple.PBNG() or 'pbng'; got {shown(solver)}. "
            f"There are {', '.join(SOLVERS)}"
        )
    return solver


def check_circumstances(
    precision: str,
    device: str,
    threads: int | None,
    history: bool = False,
    watch: Callable | None = None,
    progress: Callable | None = None,
) -> None:
    """Refuse what no call can be run with, before anything is built."""
    check_device(one_of("device", device, DEVICES))
    check_precision(one_of("precision", precision, ("float32", "float64")))
    thread_count(threads)
    flag("history", history)
    for name, function in (("watch", watch), ("progress", progress)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function to call, got {shown(function)}")
