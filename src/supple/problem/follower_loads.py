"""Tractions of a problem that turn with their surface: their forces at u, and their load stiffness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model.model import with_term

if TYPE_CHECKING:
    from supple.problem.problem import Problem
    from supple.terms import Term


class FollowerLoads:
    """Forces f(u) of tractions that follow their surface; terms of the model hold them between updates.

    Held forces have the energy -f · u. The equilibrium of f(u) may be a saddle of that energy, or have none
    nearby: Newton's method needs the load stiffness K = ∂f/∂u.

    Attributes:
        indices: Indices of their terms in the model.
        time: Time [s] at which ramps are evaluated.
        fraction: Part of all follower loads that acts; below 1 in the load steps of a solver.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self.time, self.fraction = problem, math.inf, 1.0
        self._loads = {
            index: dynamic_term
            for index, dynamic_term in problem.model.dynamic_terms
            if dynamic_term.is_follower_load
        }
        self.indices = list(self._loads)

    def __bool__(self) -> bool:
        return bool(self.indices)

    @property
    def without_contact(self) -> bool:
        """True if there are follower loads, and no contacts change the problem meanwhile."""
        problem = self._problem
        others = len(problem.model.dynamic_terms) > len(self.indices) and any(
            dynamic_term.every for k, dynamic_term in problem.model.dynamic_terms if k not in self._loads
        )
        return bool(self) and not (others or problem.contacts or problem.trust_region)

    def set_term(self, index: int, term: Term) -> None:
        """Replace the held forces of a term."""
        problem = self._problem
        problem.device.wait()
        problem.model = with_term(problem.model, index, term)
        problem.layout.model = with_term(problem.layout.model, index, term)
        problem.layout.set_force(index, term.force)  # type: ignore[attr-defined]

    def copy_from(self, other: FollowerLoads) -> None:
        """Take the held forces and the time of another problem of the same terms."""
        self.time, self.fraction = other.time, other.fraction
        for index in self.indices:
            self.set_term(index, other._problem.model.terms[index])

    def sync(self) -> None:
        """Hold the forces of the present positions."""
        if self.indices:
            x = self._problem.positions
            for index, load in self._loads.items():
                term: Any = self._problem.model.terms[index]
                self.set_term(index, replace(term, force=self.fraction * load.forces(x, self.time)))

    @property
    def magnitude(self) -> float:
        """Norm of all forces that follow [N] at the present positions, at the whole load."""
        x = self._problem.positions
        forces = [load.forces(x, self.time) for load in self._loads.values()]
        return math.sqrt(sum(float(np.square(force).sum()) for force in forces))

    def stiffness(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the triangles (k, 3) of every load, and K of each: blocks (k, 3, 3, 3) [N/m], the derivative
        of the force on any of its corners with respect to the position of each corner."""
        x = self._problem.positions
        for load in self._loads.values():
            triangles, blocks = load.load_stiffness(x, self.time)
            yield triangles, self.fraction * blocks
