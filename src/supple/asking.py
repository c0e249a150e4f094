"""What a call asks for: a scene or a scene file, a solver or its name, when to stop, how to compute, where to
start."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar, get_type_hints

import numpy as np

from supple.checks import LARGEST, closest, finite_rows, flag, listed, shown
from supple.compute import Compute
from supple.model import Model
from supple.scene import Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solvers import SOLVERS, Solver, default_solver
from supple.stop import DEFAULT_DISTANCE, DEFAULT_TOLERANCE, Stop

P = ParamSpec("P")
T = TypeVar("T")


class Circumstances(TypedDict, total=False):
    """The keywords of every call that computes something: `compute`, or what it consists of, one by one."""

    compute: Compute | None
    device: str
    precision: str
    threads: int | None


class Options(Circumstances, total=False):
    """The keywords of every call that solves something: `stop`, too, or what it consists of. What is left out
    is what a scene file says, else the default."""

    stop: Stop | None
    tolerance: float | None
    max_iterations: int | None
    time_budget: float | None
    distance: float | None


LIMITS = tuple(option.name for option in fields(Stop))
COMPUTE = {option.name: option.default for option in fields(Compute)}


def takes_options(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function with `**options: Unpack[Options]`, or `Unpack[Circumstances]`, refuse other keywords by
    a suggestion, and show these in its signature: editors find them in the type, `help` and notebooks only
    there."""
    signature = inspect.signature(function)
    *named, rest = signature.parameters.values()
    hints = get_type_hints(Options if rest.annotation == "Unpack[Options]" else Circumstances)
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(n, keyword, default=COMPUTE.get(n), annotation=h) for n, h in hints.items()]
    title = function.__qualname__.removesuffix(".__init__")
    known = [parameter.name for parameter in (*named, *own)]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs.keys() - known:
            raise TypeError(f"{title}() has no keyword {name!r}; {closest(name, known)}")
        return function(*args, **kwargs)

    call.__signature__ = signature.replace(parameters=[*named, *own])  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True, eq=False)
class Request:
    """scene: with its bodies, or the model of it; file: what says the rest where the call does not."""

    scene: Scene | Model
    file: SceneFile | None
    solver: Solver
    stop: Stop
    compute: Compute

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
    scene: Any, solver: Any, options: Options, always_tolerance: bool = False, models: bool = False
) -> Request:
    """What a call asks for. always_tolerance: the default tolerance also holds where nothing but the solver's
    own `iterations` limits a solve, which are a fixed number per step in motions. models: whether a model
    serves as a scene."""
    file = scene if isinstance(scene, SceneFile) else None
    chosen = scene if models and isinstance(scene, Model) else scene_of(scene)
    method = method_of(solver, file)
    compute = compute_of(options)
    method.refuse_unable(compute.device, compute.precision)
    stop = resolved_stop(options, file, method, always_tolerance)
    return Request(chosen, file, method, arriving(stop, options, file) if always_tolerance else stop, compute)


def resolved_stop(
    options: Options, file: SceneFile | None, solver: Solver, always_tolerance: bool = False
) -> Stop:
    """When a solve ends, by the call, its scene file, the solver's iterations and the default tolerance.

    Args:
        options: The keywords of the call. A `stop` is all that is said; single limits stand beside the
            file's.
        file: The scene file, if there is one.
        solver: Its `iterations` are the limit where neither call nor file names a number.
        always_tolerance: The default tolerance holds also beside the solver's own iterations alone.

    Returns:
        The limits. A limit on iterations or time comes on top of the default tolerance: only
        `tolerance=None` in the call, or `tolerance = false` in the file, switches it off.

    Raises:
        ValueError: The tolerance is switched off and nothing else ends the solve.
    """
    stop = stop_of(options, file)
    if options.get("stop") is not None:
        return stop.completed(solver)
    if stop.tolerance is None and not _without_tolerance(options, file):
        if always_tolerance or not stop.open:
            stop = replace(stop, tolerance=DEFAULT_TOLERANCE)
    elif stop.open and solver.iterations is None:
        raise ValueError(
            "nothing says when to stop: give a tolerance, max_iterations, a time_budget, "
            "or iterations to the solver"
        )
    return stop.completed(solver)


def stop_of(options: Options, file: SceneFile | None = None) -> Stop:
    """The limits of a call and its scene file, without defaults: a `stop` is all of them, single limits
    stand beside those of the file."""
    said = _said(options, LIMITS, unless=("max_iterations", "time_budget"))
    stop = options.get("stop")
    if stop is None:
        of_file = {} if file is None else {name: getattr(file.stop, name) or None for name in LIMITS}
        return Stop(**of_file | said)
    if not isinstance(stop, Stop):
        raise TypeError(f"stop is for example supple.Stop(tolerance=1e-4), got {shown(stop)}")
    _refuse_both("stop", "supple.Stop", said)
    return stop


def _without_tolerance(options: Options, file: SceneFile | None) -> bool:
    """True where the call, or else the file, switches the tolerance off."""
    if "tolerance" in options:
        return options["tolerance"] is None
    return file is not None and file.stop.tolerance is False


def arriving(stop: Stop, options: Options, file: SceneFile | None = None) -> Stop:
    """Of a solve for an equilibrium: with the default distance beside a tolerance, unless a distance, or a
    whole `stop`, was said."""
    said = stop.distance is not None or "distance" in options or options.get("stop") is not None
    said = said or (file is not None and file.stop.distance is False)
    return stop if said or stop.tolerance is None else replace(stop, distance=DEFAULT_DISTANCE)


def compute_of(options: Circumstances) -> Compute:
    """How to compute, as the call says; refuses devices that cannot be used."""
    said = _said(options, COMPUTE, unless=("threads",))
    compute = options.get("compute")
    if compute is None:
        compute = Compute(**said)
    elif not isinstance(compute, Compute):
        raise TypeError(f"compute is for example supple.Compute(device='cuda'), got {shown(compute)}")
    else:
        _refuse_both("compute", "supple.Compute", said)
    compute.refuse_absent()
    return compute


def _said(options: Mapping[str, Any], names: Iterable[str], unless: tuple[str, ...]) -> dict[str, Any]:
    """Those of the options with these names that are there; unless: where None says nothing."""
    given = {name: options[name] for name in names if name in options}
    return {name: value for name, value in given.items() if value is not None or name not in unless}


def _refuse_both(name: str, kind: str, said: Mapping[str, Any]) -> None:
    if said:
        raise ValueError(
            f"give either {name}={kind}(...) or {', '.join(said)}, not both: put all of it into the {name}"
        )


def method_of(solver: Any, file: SceneFile | None = None) -> Solver:
    """A solver, from itself or from its name; None is the file's, or the default."""
    if solver is None:
        return default_solver() if file is None else SOLVERS[file.solver.method](**file.solver.options)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"there is no solver {solver!r}; {closest(solver, SOLVERS)}")
        return SOLVERS[solver]()
    if isinstance(solver, type) and issubclass(solver, Solver):
        raise TypeError(f"a solver has its options in brackets: supple.{solver.__name__}()")
    if not isinstance(solver, Solver):
        raise TypeError(
            "a solver is for example supple.PBNG() or 'pbng', or of a class of your own derived from "
            f"supple.solvers.Solver; got {shown(solver)}. There are {listed(SOLVERS)}"
        )
    return solver


def check_watching(
    history: bool = False,
    watch: Callable[..., None] | None = None,
    progress: Callable[..., None] | None = None,
) -> None:
    """Refuse what cannot be called, before anything is built."""
    flag("history", history)
    for name, function in (("watch", watch), ("progress", progress)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function to call, got {shown(function)}")
