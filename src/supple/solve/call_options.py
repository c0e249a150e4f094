"""Options of public calls: scene, solver, termination criteria, compute settings and initial positions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar, get_type_hints

import numpy as np

from supple.config.backend import Backend
from supple.config.stop_criteria import DEFAULT_POSITION_TOLERANCE, DEFAULT_TOLERANCE, StopCriteria
from supple.model.model import Model
from supple.scene import Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solvers import SOLVERS, Solver, default_solver, find_solver
from supple.support.arguments import (
    MAX_MAGNITUDE,
    check_flag,
    check_vectors,
    comma_list,
    format_value,
    suggest_name,
)

P = ParamSpec("P")
T = TypeVar("T")


class BackendOptions(TypedDict, total=False):
    """Keywords of computing functions: `backend` or its single fields."""

    backend: Backend | None
    device: str
    precision: str
    threads: int | None


class Options(BackendOptions, total=False):
    """Keywords of solving functions: those of `BackendOptions`, plus `stop` or its single fields.

    Omitted keywords take the value of the scene file, or else the default.
    """

    stop: StopCriteria | None
    tolerance: float | None
    max_iterations: int | None
    time_limit: float | None
    position_tolerance: float | None


LIMITS = tuple(option.name for option in fields(StopCriteria))
"""Names of the limits in a `StopCriteria`."""
BACKEND_DEFAULTS = {option.name: option.default for option in fields(Backend)}
"""Default values of the fields of `Backend`, by name."""


def takes_options(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: check option keywords and list them in the function's signature.

    Unknown keywords raise a `TypeError` with a suggestion. Editors read the keywords from the type, but
    `help` and notebooks read them from the signature only.

    Args:
        function: Function with `**options: Unpack[Options]` or `Unpack[BackendOptions]`.

    Returns:
        The decorated function.
    """
    signature = inspect.signature(function)
    *named, rest = signature.parameters.values()
    hints = get_type_hints(Options if rest.annotation == "Unpack[Options]" else BackendOptions)
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter(n, keyword, default=BACKEND_DEFAULTS.get(n), annotation=h) for n, h in hints.items()
    ]
    title = function.__qualname__.removesuffix(".__init__")
    known = [parameter.name for parameter in (*named, *own)]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs.keys() - known:
            raise TypeError(f"{title}() has no keyword {name!r}; {suggest_name(name, known)}")
        return function(*args, **kwargs)

    call.__signature__ = signature.replace(parameters=[*named, *own])  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True, eq=False)
class Request:
    """Resolved options of one call.

    Attributes:
        scene: Scene with its bodies, or its model.
        file: Scene file, which provides the values that the call omits; None without one.
        solver: Solver.
        stop: Termination criteria.
        backend: Device, precision and threads.
    """

    scene: Scene | Model
    file: SceneFile | None
    solver: Solver
    stop: StopCriteria
    backend: Backend

    def initial(self, given: Any, model: Model) -> np.ndarray | None:
        """Initial positions (n, 3) [m] of the call, or else of the scene file; None means rest positions."""
        if given is None and self.file is not None:
            return self.file.initial_positions(model)
        return given

    def velocities(self, initial: Any, model: Model, first_frame: int = 1) -> np.ndarray | None:
        """Initial velocities of a motion.

        Args:
            initial: The `initial` argument of the call. If None, a scene file with initial positions also
                provides their velocities.
            model: Model.
            first_frame: Number of the first frame. The scene's own velocities apply to frame 1 only.

        Returns:
            (n, 3) velocities [m/s], or None.
        """
        saved = self.file.initial_velocities(model) if initial is None and self.file is not None else None
        if saved is not None:
            return check_vectors("velocities", saved, model.vertices, limit=MAX_MAGNITUDE)
        return model.velocities if first_frame == 1 else None


def resolve_request(
    scene: Any, solver: Any, options: Options, always_tolerance: bool = False, models: bool = False
) -> Request:
    """Resolve the options of a call.

    Args:
        scene: Scene, scene file, or model.
        solver: Solver, its name, or None.
        options: Keywords of the call.
        always_tolerance: Apply the default tolerance also if only the solver's own `iterations` limit a
            solve; in motions these are a fixed number per step. The default distance is then added as well.
        models: Accept a model in place of a scene.

    Returns:
        The resolved request.
    """
    file = scene if isinstance(scene, SceneFile) else None
    chosen = scene if models and isinstance(scene, Model) else scene_of(scene)
    method = resolve_solver(solver, file)
    backend = resolve_backend(options)
    method.check_support(backend.device, backend.precision)
    stop = resolve_stop(options, file, method, always_tolerance)
    return Request(
        chosen,
        file,
        method,
        add_position_tolerance(stop, options, file) if always_tolerance else stop,
        backend,
    )


def resolve_stop(
    options: Options, file: SceneFile | None, solver: Solver, always_tolerance: bool = False
) -> StopCriteria:
    """Resolve termination criteria: call, scene file, solver iterations, default tolerance.

    Args:
        options: Keywords of the call. A `stop` replaces all other limits; single limits are combined with
            those of the file.
        file: Scene file, or None.
        solver: Solver, whose `iterations` are the limit if neither call nor file sets one.
        always_tolerance: Apply the default tolerance also if only the solver's own iterations limit the
            solve.

    Returns:
        The limits. The default tolerance applies in addition to a limit on iterations or time; only
        `tolerance=None` in the call, or `tolerance = false` in the file, disables it.

    Raises:
        ValueError: The tolerance is disabled and nothing else ends the solve.
    """
    stop = get_limits(options, file)
    if options.get("stop") is not None:
        return stop.with_defaults(solver)
    if stop.tolerance is None and not _without_tolerance(options, file):
        if always_tolerance or not stop.is_unlimited:
            stop = replace(stop, tolerance=DEFAULT_TOLERANCE)
    elif stop.is_unlimited and solver.iterations is None:
        raise ValueError(
            "no termination criterion: give a tolerance, max_iterations, a time_limit, or "
            "iterations of the solver"
        )
    return stop.with_defaults(solver)


def get_limits(options: Options, file: SceneFile | None = None) -> StopCriteria:
    """Limits given by call and scene file, without defaults.

    A `stop` replaces all other limits; single limits are combined with those of the file.
    """
    given = _given_options(options, LIMITS, unless=("max_iterations", "time_limit"))
    stop = options.get("stop")
    if stop is None:
        of_file = {} if file is None else {name: getattr(file.stop, name) or None for name in LIMITS}
        return StopCriteria(**of_file | given)
    if not isinstance(stop, StopCriteria):
        raise TypeError(
            f"stop must be for example supple.StopCriteria(tolerance=1e-4), got {format_value(stop)}"
        )
    _refuse_both("stop", "supple.StopCriteria", given)
    return stop


def _without_tolerance(options: Options, file: SceneFile | None) -> bool:
    """True if the call, or else the scene file, disables the tolerance."""
    if "tolerance" in options:
        return options["tolerance"] is None
    return file is not None and file.stop.tolerance is False


def add_position_tolerance(
    stop: StopCriteria, options: Options, file: SceneFile | None = None
) -> StopCriteria:
    """Add the default distance to the limits of an equilibrium solve.

    Limits stay unchanged without a tolerance, or if the call or the file sets or disables the distance, or if
    the call has a `stop`.
    """
    is_set = (
        stop.position_tolerance is not None
        or "position_tolerance" in options
        or options.get("stop") is not None
    )
    is_set = is_set or (file is not None and file.stop.position_tolerance is False)
    return (
        stop
        if is_set or stop.tolerance is None
        else replace(stop, position_tolerance=DEFAULT_POSITION_TOLERANCE)
    )


def resolve_backend(options: BackendOptions) -> Backend:
    """Return the compute settings of a call; unavailable devices raise a `ValueError`."""
    given = _given_options(options, BACKEND_DEFAULTS, unless=("threads",))
    backend = options.get("backend")
    if backend is None:
        backend = Backend(**given)
    elif not isinstance(backend, Backend):
        raise TypeError(
            f"backend must be for example supple.Backend(device='cuda'), got {format_value(backend)}"
        )
    else:
        _refuse_both("backend", "supple.Backend", given)
    backend.check_available()
    return backend


def _given_options(
    options: Mapping[str, Any], names: Iterable[str], unless: tuple[str, ...]
) -> dict[str, Any]:
    """Return given options with these names; None values of names in `unless` are dropped."""
    given = {name: options[name] for name in names if name in options}
    return {name: value for name, value in given.items() if value is not None or name not in unless}


def _refuse_both(name: str, kind: str, given: Mapping[str, Any]) -> None:
    """Raise an error if single options accompany the object that contains them."""
    if given:
        raise ValueError(f"give either {name}={kind}(...) or {', '.join(given)}, not both")


def resolve_solver(solver: Any, file: SceneFile | None = None) -> Solver:
    """Return a solver given as object or name; None means the scene file's solver, or the default."""
    if solver is None:
        return default_solver() if file is None else SOLVERS[file.solver.method](**file.solver.options)
    if isinstance(solver, str):
        kind, chosen = find_solver(solver)
        return kind(**chosen)
    if isinstance(solver, type) and issubclass(solver, Solver):
        raise TypeError(f"a solver must be an instance, supple.{solver.__name__}(), not a class")
    if not isinstance(solver, Solver):
        raise TypeError(
            "a solver must be for example supple.PBNG() or 'pbng', or a subclass instance of "
            f"supple.solvers.Solver; got {format_value(solver)}. There are {comma_list(SOLVERS)}"
        )
    return solver


def check_callbacks(
    record_history: bool = False,
    callback: Callable[..., None] | None = None,
    progress: Callable[..., None] | None = None,
) -> None:
    """Validate history flag and callbacks before any set-up."""
    check_flag("record_history", record_history)
    for name, function in (("callback", callback), ("progress", progress)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function to call, got {format_value(function)}")
