"""Immutable base class of meshes."""

from __future__ import annotations

from typing import Any

import numpy as np


class Constant:
    """Base class of immutable objects with lazily computed properties.

    Attributes with a leading underscore are input; their arrays, including those in dictionaries, are
    read-only. All other attributes are computed from them. Only the input is pickled and copied.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            for array in value.values() if isinstance(value, dict) else (value,):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
        self.__dict__.update(state)
