"""Dynamic terms: energy terms whose stencils or values change during a solve, such as contacts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from supple.terms import Term

if TYPE_CHECKING:
    from supple.model.model import Model


class DynamicTerm(ABC):
    """Update rule of a term of a model; `Model.dynamic_terms` pairs it with the index of its term."""

    every: int | None = None
    """Iterations between updates within a step; None to update at the beginning of each step only."""

    intersection_free: ClassVar[bool] = False
    """True for intersection-free contact with step bounds, see `IntersectionFreeTerm`."""

    resolves_faces: ClassVar[bool] = False
    """True for contact that keeps obstacles out of faces; its classes have `contact_force`, `face_forces` and
    `obstacle_contacts`."""

    is_follower_load: ClassVar[bool] = False
    """True for forces f(u) without energy; their classes have `load_stiffness`, ∂f/∂u."""

    caveat: ClassVar[str | None] = None
    """Limitation of error estimates that reports state."""

    @abstractmethod
    def update(self, problem: Any, time: float) -> Term | None:
        """Return the term with the stencils at the present state.

        The result may depend only on the state of the problem, on the time, and on the data in
        `problem.dynamic_terms.step_cache`, which is cleared at the beginning of a step. A motion continued
        from a saved state is then identical to an uninterrupted one.

        Args:
            problem: `Problem` at its present state.
            time: End of the step [s].

        Returns:
            The updated term; None to keep the present stencils.
        """

    def evaluate_at(
        self, model: Model, x: np.ndarray, time: float, history: Mapping[str, np.ndarray]
    ) -> Term | None:
        """Return the term at given positions, outside of a solve.

        Args:
            model: Model.
            x: (n, 3) positions [m].
            time: Time [s].
            history: History variables of a state, which contain frictional contacts; without them, contacts
                have zero slip.

        Returns:
            The updated term; None to keep the present stencils.
        """
        return self.update(_ModelAtPositions(model, x), time)

    def contact_points(self, x: np.ndarray) -> np.ndarray:
        """(c, 3) contact points [m] at positions x (n, 3) [m]; none for terms other than contact."""
        return np.empty((0, 3))


class IntersectionFreeTerm(DynamicTerm):
    """Dynamic term of intersection-free contact, with step bounds on the vertices (`TrustRegion`)."""

    intersection_free = True

    @abstractmethod
    def set_step_bounds(self, problem: Any) -> None:
        """Set step bounds around the present positions."""

    @abstractmethod
    def advance_bodies(self, problem: Any) -> None:
        """Move every body from the centers of its step bounds toward u, up to the first contact."""

    @abstractmethod
    def limit_step(self, problem: Any, start: np.ndarray) -> None:
        """Move u back along the straight path from the vectors `start` until it is free of intersections."""


@dataclass(frozen=True)
class _ModelAtPositions:
    """The part of a problem that the default of `DynamicTerm.evaluate_at` needs."""

    model: Model
    positions: np.ndarray
    step_cache: dict[int, Any] = field(default_factory=dict)

    @property
    def dynamic_terms(self) -> _ModelAtPositions:
        return self
