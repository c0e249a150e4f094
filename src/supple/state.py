"""What changes in the course of a motion, complete: from it a step goes on as if nothing had happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """displacements (n, 3) from rest [m] and velocities (n, 3) [m/s] in the precision of the solve.

    Positions in float64 are not enough to go on from: u = x - X, rounded, is not the u that led to x.
    """

    displacements: np.ndarray
    velocities: np.ndarray

    def __post_init__(self) -> None:
        for name in ("displacements", "velocities"):
            values = getattr(self, name)
            if values.shape != self.displacements.shape or values.ndim != 2 or values.shape[1] != 3:
                raise ValueError(
                    "a state has displacements and velocities of one shape (n, 3), got "
                    f"{self.displacements.shape} and {self.velocities.shape}"
                )
            if not np.isfinite(values).all():
                raise ValueError(f"the {name} of a state have NaN or infinite values")
