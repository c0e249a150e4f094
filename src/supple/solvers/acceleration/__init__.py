"""Accelerations of sweeps, one file each: options that are checked, and the run that makes use of them.

They belong to methods whose sweep takes u to a better u and remembers nothing else: PBNG. Element-wise
methods keep the forces of their elements beside u, which would no longer be those of a u that something else
has moved."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from supple.checks import closest, one_of, shown
from supple.problem import Problem
from supple.solvers.acceleration.acceleration import Acceleration, AccelerationRun, Unaccelerated, accelerate
from supple.solvers.acceleration.anderson import Anderson
from supple.solvers.acceleration.chebyshev import Chebyshev, PaperChebyshev
from supple.solvers.acceleration.sor import SOR, PaperSOR

ACCELERATIONS: dict[str, type[Acceleration]] = {
    kind.kind: kind for kind in (SOR, Chebyshev, Anderson, PaperSOR, PaperChebyshev)
}
"""Every acceleration by the name it has in scene files and on the command line; "none" is none of them."""


def acceleration_of(given: Any) -> Acceleration | None:
    """An acceleration from itself, from its name, or from a table such as {"kind": "anderson", "window": 10};
    None and "none" for none."""
    if given is None or isinstance(given, Acceleration):
        return given
    if isinstance(given, Mapping):
        return _of_table(given)
    if isinstance(given, type) and issubclass(given, Acceleration):
        raise TypeError(f"an acceleration has its options in brackets: supple.{given.__name__}()")
    name = one_of("acceleration", given, ("none", *ACCELERATIONS))
    return None if name == "none" else ACCELERATIONS[name]()


def _of_table(table: Mapping[str, Any]) -> Acceleration | None:
    options = dict(table)
    if "kind" not in options:
        raise ValueError(f"acceleration names its kind, as in {{ kind = 'anderson' }}; got {shown(table)}")
    kind = one_of("the kind of acceleration", options.pop("kind"), ("none", *ACCELERATIONS))
    known = [] if kind == "none" else [option.name for option in fields(ACCELERATIONS[kind])]  # type: ignore[arg-type]
    for name in options.keys() - known:
        raise ValueError(f"the acceleration {kind!r} has no option {name!r}; {closest(str(name), known)}")
    return None if kind == "none" else ACCELERATIONS[kind](**options)


def begin_acceleration(acceleration: Acceleration | None, problem: Problem) -> AccelerationRun:
    """Put an acceleration to work on a problem, from the problem's present u."""
    return Unaccelerated() if acceleration is None else acceleration.begin(problem)


__all__ = [
    "ACCELERATIONS",
    "SOR",
    "Acceleration",
    "AccelerationRun",
    "Anderson",
    "Chebyshev",
    "PaperChebyshev",
    "PaperSOR",
    "accelerate",
    "acceleration_of",
    "begin_acceleration",
]
