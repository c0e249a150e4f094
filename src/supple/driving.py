"""Inputs of a `Stepper`: forces, pin positions and states, converted and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.checks import LARGEST, LONGEST, each, finite_rows, shown
from supple.model import Model
from supple.scene import Scene
from supple.scene.variations import Vertices, forces_on, pins_at
from supple.simulate import sound
from supple.state import State
from supple.words import counted

Forces = ArrayLike | Mapping[Vertices, ArrayLike]
"""Forces [N] accepted by a stepper: an array, or a dictionary of vertices or bodies with forces."""
Pins = ArrayLike | Mapping[Vertices, Any]
"""Pin positions [m] accepted by a stepper: an array, or a dictionary of vertices or bodies with positions or
motions."""


@dataclass(frozen=True, eq=False)
class Driving:
    """Converter of stepper inputs: forces, pin positions, states.

    Attributes:
        scene: Scene.
        model: Model of the scene.
        copies: Batch size, None without a batch axis.
        dtype: Working precision of states.
    """

    scene: Scene
    model: Model
    copies: int | None
    dtype: np.dtype[Any]

    def forces(self, given: Forces | None) -> np.ndarray | None:
        """Convert forces to (n, 3) or (copies, n, 3) [N]."""
        if isinstance(given, Mapping):
            return forces_on(self.scene, self.model, given)
        return None if given is None else self.rows("forces [N]", given)

    def pins(self, given: Pins | None, time: float) -> np.ndarray | None:
        """Positions of the k pinned vertices at a time [s]: (k, 3) or (copies, k, 3) [m]."""
        if isinstance(given, Mapping):
            return pins_at(self.scene, self.model, given, time)
        if given is None:
            return None
        return self.rows("pins [m]", given, len(self.model.pinned), LONGEST, "pinned vertex")

    def rows(
        self,
        what: str,
        values: ArrayLike,
        count: int | None = None,
        limit: float = LARGEST,
        per: str = "vertex",
    ) -> np.ndarray:
        """Copy an array of finite vectors (count, 3), with an optional leading batch axis."""
        count = self.model.vertices if count is None else count
        return finite_rows(what, values, count, limit=limit, copies=self.copies, per=per).copy()

    def states(self, given: State | Sequence[State]) -> list[State]:
        """Check states, one per batch member, and round them to the working precision."""
        wanted = "a supple.State" if self.copies is None else f"a list of {self.copies} states"
        what = f"the state of this stepper is {wanted}, as stepper.state gives it"
        states = [given] if isinstance(given, State) else list(each(given, what))
        if not all(isinstance(one, State) for one in states):
            raise TypeError(f"{what}; got {shown(given)}")
        if len(states) != (self.copies or 1):
            raise ValueError(f"{what}; got {counted(len(states), 'state')}")
        return [self.rounded(sound(one, self.model)) for one in states]

    def rounded(self, state: State) -> State:
        """Copy a state in working precision."""
        u, v = state.displacements.astype(self.dtype), state.velocities.astype(self.dtype)
        return replace(state, displacements=u, velocities=v)

    def chosen(self, copies: Sequence[int]) -> list[int]:
        """Check the indices of selected batch members."""
        chosen = np.asarray(copies)
        if self.copies is None:
            raise ValueError("this stepper has no copies; reset() without copies starts it again")
        if (
            chosen.ndim != 1
            or (chosen.size and chosen.dtype.kind not in "iu")
            or not np.all((chosen >= 0) & (chosen < self.copies))
        ):
            raise ValueError(f"copies are numbers from 0 to {self.copies - 1}, got {shown(copies)}")
        return [int(k) for k in chosen]
