"""Complete state of a motion, from which time stepping continues exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """State of a motion.

    Displacements are stored because float64 positions are not sufficient to continue: u = x - X, rounded, is
    not the u that led to x.

    Attributes:
        displacements: (n, 3) displacements from rest [m], in the precision of the solve.
        velocities: (n, 3) velocities [m/s], in the precision of the solve.
        history: History variables by name, such as plastic strains and sticking contacts, float64 (m, k).
    """

    displacements: np.ndarray
    velocities: np.ndarray
    history: Mapping[str, np.ndarray] = field(default_factory=dict)
