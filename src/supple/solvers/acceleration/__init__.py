"""Accelerations of sweeps, one module each: validated options, and the run that applies them.

They apply to methods whose sweep maps u to a better u without other state: PBNG. Element-wise methods also
store the forces of their elements, which would be inconsistent with an accelerated u.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from supple.problem import Problem
from supple.solvers.acceleration.acceleration import (
    Acceleration,
    AccelerationRun,
    Unaccelerated,
    accelerate,
)
from supple.solvers.acceleration.anderson import Anderson
from supple.solvers.acceleration.chebyshev import Chebyshev, PaperChebyshev
from supple.solvers.acceleration.sor import SOR, PaperSOR
from supple.support.arguments import check_choice, format_value, suggest_name

ACCELERATIONS: dict[str, type[Acceleration]] = {
    kind.kind: kind for kind in (SOR, Chebyshev, Anderson, PaperSOR, PaperChebyshev)
}
"""Accelerations by their name in scene files and on the command line; "none" disables acceleration."""


def acceleration_of(given: Any) -> Acceleration | None:
    """Return the acceleration for a value of the option `acceleration`.

    Args:
        given: An acceleration, its name, a table such as {"kind": "anderson", "window": 10}, or None or
            "none" for no acceleration.

    Raises:
        TypeError: The value is an acceleration class instead of an instance.
        ValueError: Unknown kind or option.
    """
    if given is None or isinstance(given, Acceleration):
        return given
    if isinstance(given, Mapping):
        return _from_table(given)
    if isinstance(given, type) and issubclass(given, Acceleration):
        raise TypeError(f"acceleration must be an instance, supple.{given.__name__}(), got the class")
    name = check_choice("acceleration", given, ("none", *ACCELERATIONS))
    return None if name == "none" else ACCELERATIONS[name]()


def _from_table(table: Mapping[str, Any]) -> Acceleration | None:
    options = dict(table)
    if "kind" not in options:
        raise ValueError(
            f"acceleration must contain its kind, as in {{ kind = 'anderson' }}; got {format_value(table)}"
        )
    kind = check_choice("the kind of acceleration", options.pop("kind"), ("none", *ACCELERATIONS))
    known = [] if kind == "none" else [option.name for option in fields(ACCELERATIONS[kind])]  # type: ignore[arg-type]
    for name in options.keys() - known:
        raise ValueError(
            f"the acceleration {kind!r} has no option {name!r}; {suggest_name(str(name), known)}"
        )
    return None if kind == "none" else ACCELERATIONS[kind](**options)


def begin_acceleration(acceleration: Acceleration | None, problem: Problem) -> AccelerationRun:
    """Begin the acceleration of sweeps at the problem's present u."""
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
