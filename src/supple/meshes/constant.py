"""What meshes have in common: they never change."""

from __future__ import annotations

from typing import Any

import numpy as np


class Constant:
    """Attributes that begin with an underscore are given, and their arrays read-only, those in dictionaries
    too; all others are computed
    of them. Only the former are pickled and copied."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            for array in value.values() if isinstance(value, dict) else (value,):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
        self.__dict__.update(state)
