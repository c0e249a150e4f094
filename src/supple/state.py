"""What changes in the course of a motion, complete: from it a step goes on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """displacements (n, 3) from rest [m] and velocities (n, 3) [m/s] in the precision of the solve;
    remembered: what earlier steps have left behind, as plastic strains of elements and contacts that stick,
    by name, float64 (m, k).

    Positions in float64 are not enough to go on from: u = x - X, rounded, is not the u that led to x.
    """

    displacements: np.ndarray
    velocities: np.ndarray
    remembered: Mapping[str, np.ndarray] = field(default_factory=dict)
