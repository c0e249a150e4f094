"""What acts on vertices of a scene: pins that hold and move them, and loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.scene.bodies import VertexSet
from supple.scene.pickling import picklable
from supple.scene.ramps import AnyRamp

AnyMotion = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Pin:
    """Vertices whose positions are prescribed; without a motion they stay at rest. directions (d, 3), or
    (k, d, 3) for each vertex: those along which they are, None for all. name: of its reaction."""

    on: VertexSet
    motion: AnyMotion | None
    directions: np.ndarray | None = None
    name: str = "pin"

    def __getstate__(self) -> dict[str, Any]:
        whose = f"pinned vertices of {self.on.body.name!r}"
        return self.__dict__ | {"motion": picklable(self.motion, whose)}


@dataclass(frozen=True, eq=False)
class Load:
    """Forces (k, 3) [N] on vertices, constant or of which a ramp says what part acts."""

    on: VertexSet
    force: np.ndarray
    ramp: AnyRamp | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"a load on {self.on.body.name!r}", "ramp")}
