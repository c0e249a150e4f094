"""Evaluation of dynamic terms at given positions, outside of a solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.model import Model, with_term


@dataclass(frozen=True)
class _There:
    """Minimal substitute of a problem for the update of pressures and cables."""

    model: Model
    positions: np.ndarray
    noted: dict[int, Any] = field(default_factory=dict)

    @property
    def following(self) -> _There:
        return self


def standing_at(
    model: Model, x: np.ndarray, time: float, remembered: Mapping[str, np.ndarray] | None = None
) -> Model:
    """Return a model with all dynamic terms updated to given positions.

    Args:
        model: Model.
        x: (n, 3) positions [m].
        time: Time [s].
        remembered: History variables of a state, which contain frictional contacts; without them, contacts
            have zero slip.
    """
    for index, follower in model.followers:
        if hasattr(follower, "standing"):
            term = follower.standing(model, x, time)
        elif hasattr(follower, "at"):
            term = follower.at(model, x, remembered or {})
        else:
            term = follower.follow(_There(model, x), time)
        if term is not None:
            model = with_term(model, index, term)
    return model
