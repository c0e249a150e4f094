"""A model as it stands: what follows its vertices, for positions that no solve has just led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.model import Model, with_term


@dataclass(frozen=True)
class _There:
    """What pressures and cables look at of a problem."""

    model: Model
    positions: np.ndarray
    noted: dict[int, Any] = field(default_factory=dict)

    @property
    def following(self) -> _There:
        return self


def standing_at(
    model: Model, x: np.ndarray, time: float, remembered: Mapping[str, np.ndarray] | None = None
) -> Model:
    """The model with the pressures and cables of a time [s], and the contacts of bodies that there are with
    vertices at positions x (n, 3); where they rub, those that a state remembers, or else as if nothing had
    moved yet."""
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
