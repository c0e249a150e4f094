"""Pins: Dirichlet conditions on vertices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.scene.bodies import VertexSet
from supple.scene.pickling import picklable

AnyMotion = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Pin:
    """Vertices with prescribed positions.

    Attributes:
        on: Pinned vertices.
        motion: Prescribed motion, None for vertices at rest.
        directions: Constrained directions (d, 3), or (k, d, 3) per vertex; None for all.
        name: Name of its reaction force.
    """

    on: VertexSet
    motion: AnyMotion | None
    directions: np.ndarray | None = None
    name: str = "pin"

    def __getstate__(self) -> dict[str, Any]:
        whose = f"pinned vertices of {self.on.body.name!r}"
        return self.__dict__ | {"motion": picklable(self.motion, whose)}
