"""What somebody else's loop gives to a stepper: forces, pins and states, read and checked."""

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
Pins = ArrayLike | Mapping[Vertices, Any]


@dataclass(frozen=True, eq=False)
class Driving:
    """What is given to the copies of a scene, None for one without copies, whose states have a dtype."""

    scene: Scene
    model: Model
    copies: int | None
    dtype: np.dtype[Any]

    def forces(self, given: Forces | None) -> np.ndarray | None:
        """(n, 3) [N], or (copies, n, 3)."""
        if isinstance(given, Mapping):
            return forces_on(self.scene, self.model, given)
        return None if given is None else self.rows("forces [N]", given)

    def pins(self, given: Pins | None, time: float) -> np.ndarray | None:
        """Where the k pinned vertices are at a time [s]: (k, 3) [m], or (copies, k, 3)."""
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
        """An array of its own of (count, 3) finite numbers; with copies it may have a leading axis."""
        count = self.model.vertices if count is None else count
        return finite_rows(what, values, count, limit=limit, copies=self.copies, per=per).copy()

    def states(self, given: State | Sequence[State]) -> list[State]:
        """One for each copy."""
        wanted = "a supple.State" if self.copies is None else f"a list of {self.copies} states"
        what = f"the state of this stepper is {wanted}, as stepper.state gives it"
        states = [given] if isinstance(given, State) else list(each(given, what))
        if not all(isinstance(one, State) for one in states):
            raise TypeError(f"{what}; got {shown(given)}")
        if len(states) != (self.copies or 1):
            raise ValueError(f"{what}; got {counted(len(states), 'state')}")
        return [self.rounded(sound(one, self.model)) for one in states]

    def rounded(self, state: State) -> State:
        """A state of its own in the precision of the problem."""
        u, v = state.displacements.astype(self.dtype), state.velocities.astype(self.dtype)
        return replace(state, displacements=u, velocities=v)

    def chosen(self, copies: Sequence[int]) -> list[int]:
        """The numbers of some of the copies."""
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
