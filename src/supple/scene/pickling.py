"""Pickling of motions and ramps, including user functions, for other processes."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any


class _ByValue:
    """A function that pickle cannot import by name; cloudpickle stores its code."""

    def __init__(self, function: Any, whose: str, what: str) -> None:
        self.function, self.whose, self.what = function, whose, what

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            cloudpickle = import_module("cloudpickle")
        except ImportError:
            raise pickle.PicklingError(
                f"The {self.what} of {self.whose} cannot be pickled: {self.function!r}. Define it "
                "with `def` or `class` at the top of a module, not as a lambda or inside a "
                "function; or install cloudpickle."
            ) from None
        return cloudpickle.loads, (cloudpickle.dumps(self.function),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.function


def picklable(function: Any, whose: str, what: str = "motion") -> Any:
    """Return a motion or ramp in picklable form; unpickling restores the original."""
    try:
        pickle.dumps(function)
    except Exception:  # the type of the exception depends on the object
        return _ByValue(function, whose, what)
    return function
