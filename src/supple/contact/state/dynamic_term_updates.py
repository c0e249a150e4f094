"""Dynamic terms: updates of their stencils during a solve, and evaluation at positions outside of a solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.obstacles.rigid_body import Coupling, Response
from supple.contact.state.friction_state import friction_state_of, frictional_terms, owners
from supple.contact.state.obstacle_contact import measure_rigid
from supple.model.dynamic_term import IntersectionFreeTerm
from supple.model.model import Model, with_term
from supple.problem.diagnostics import stiffness_of

if TYPE_CHECKING:
    from supple.problem.problem import Problem


RIGID_CORRECTION_INTERVAL = 10
"""Iterations between corrections of rigid bodies."""


class DynamicTerms:
    """Schedule and step data of the dynamic terms of a problem.

    Attributes:
        step_cache: Data that dynamic terms recorded since the step began, by term index.
        condense: Function that computes the stiffness of soft bodies at rigid ones. None if a solver
            keeps state other than displacements, or on a GPU.
        beginning: True if the present update is the one at the beginning of a step.
        balanced: True if all forces appear balanced at the present update.
        residual: Residual at the present update [N], inf if unknown.
        rigid_bodies_at_rest: False if rigid bodies in contact with faces moved in the last update. The
            residual of sliding contacts need not show that motion.
        friction_states: Friction state at the beginning of the step, by index of the contact term.
        restored_friction: Friction state of barriers from a restored state, by term index, until a step
            begins.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._time, self._iterations = problem, math.inf, 0
        periods = [
            dynamic_term.every
            for _, dynamic_term in problem.model.dynamic_terms
            if dynamic_term.every is not None
        ]
        self.step_cache: dict[int, Any] = {}
        if problem.contacts.rigid:
            periods.append(RIGID_CORRECTION_INTERVAL)
        self._every = min(periods, default=None)
        self.condense: Callable[[Problem, Sequence[Coupling]], list[Response] | None] | None = None
        self.beginning = True
        self.balanced = False
        self.residual = math.inf
        self.rigid_bodies_at_rest = True
        self.friction_states: dict[int, Any] = {}
        self.restored_friction: dict[int, np.ndarray] = {}

    @property
    def has_friction(self) -> bool:
        """True if obstacles or bodies have friction; forces then have no potential."""
        return self._problem.contacts.has_friction or self.has_body_friction

    @property
    def has_body_friction(self) -> bool:
        """True if contact between bodies has friction."""
        return bool(frictional_terms(self._problem.model))

    def finish_step(self) -> bool:
        """Finish a step: move obstacles to their targets and correct rigid bodies by the present forces.

        Returns:
            True if any moved.
        """
        pending, self._iterations = self._iterations, 0
        moved = self._problem.trust_region.finish()
        if pending > 0 and self._correct_rigid_bodies():
            measure_rigid(self._problem.contacts, *self._rigid_contact_forces())
            return True
        return moved

    def record_friction(self) -> None:
        """Record friction states at the beginning of a step, before anything moves."""
        problem = self._problem
        for index in frictional_terms(problem.model):
            term: Any = problem.model.terms[index]
            u = problem.states.vectors(problem.u)[0].astype(float)
            rows = self.restored_friction.pop(index, None)
            self.friction_states[index] = friction_state_of(
                term, problem.positions, u, owners(problem.model), rows
            )

    def begin_step(self, time: float) -> None:
        """Update the stencils at the beginning of the step that ends at a time [s]."""
        if self._problem.model.dynamic_terms or self._problem.contacts.rigid:
            self._time, self._iterations = time, 0
            self._problem.follower_loads.time = time
            self._update(True)

    @property
    def _intersection_free(self) -> Iterator[IntersectionFreeTerm]:
        return (f for _, f in self._problem.model.dynamic_terms if f.intersection_free)

    @property
    def _face_contacts(self) -> list[Any]:
        """Dynamic terms that keep faces out of obstacles."""
        return [f for _, f in self._problem.model.dynamic_terms if f.resolves_faces]

    def set_step_bounds(self) -> None:
        """Set step bounds around the present positions."""
        for dynamic_term in self._intersection_free:
            dynamic_term.set_step_bounds(self._problem)

    def advance_bodies(self) -> None:
        """Move bodies from the centers of their step bounds along their inertial motion, up to contact."""
        for dynamic_term in self._intersection_free:
            dynamic_term.advance_bodies(self._problem)

    def limit_step(self, start: np.ndarray) -> None:
        """Shorten the straight path from the vectors `start` to u until it is free of intersections."""
        for dynamic_term in self._intersection_free:
            dynamic_term.limit_step(self._problem, start)

    @property
    def updates_within_steps(self) -> bool:
        """True if stencils are updated within steps."""
        return self._every is not None

    def clamp_to_update(self, iterations: int) -> int:
        """Clamp an iteration count to the next update."""
        return iterations if self._every is None else max(1, min(iterations, self._every - self._iterations))

    def count_and_update(self, iterations: int, balanced: bool = False, residual: float = math.inf) -> bool:
        """Count iterations, and update the stencils if due.

        An update is due after its period, if the forces appear balanced, or if the step bounds are used up.

        Args:
            iterations: Number of iterations made.
            balanced: True if the forces appear balanced.
            residual: Residual [N].

        Returns:
            True if stencils were changed or obstacles moved.
        """
        if self._every is None:
            return False
        self._iterations += iterations
        if self._iterations == 0 or not (
            balanced or self._iterations >= self._every or self._problem.trust_region.needs_update
        ):
            return False
        self._iterations = 0
        self.balanced, self.residual = balanced, residual
        return self._update(False)

    def count_iterations(self, iterations: int) -> None:
        """Count the last iterations of a step, after which only `finish_step` updates."""
        self._iterations += iterations

    def _update(self, beginning: bool) -> bool:
        if self._problem.batch_size > 1:
            raise ValueError(
                "scenes with contact between bodies or with rigid bodies cannot be solved as a batch; "
                "omit batch_size, or solve the variations one after the other"
            )
        self.beginning = beginning
        changed = not beginning and self._correct_rigid_bodies()
        self.rigid_bodies_at_rest = not (changed and self._face_contacts)
        if beginning:
            self.step_cache.clear()
        for index, dynamic_term in self._problem.model.dynamic_terms:
            term = dynamic_term.update(self._problem, self._time) if beginning or dynamic_term.every else None
            if term is not None:
                self._problem.refresh(index, term)
                changed = True
        return self._problem.trust_region.advance_obstacles() or changed

    def _correct_rigid_bodies(self) -> bool:
        """Correct the positions of rigid bodies; return True if any moved."""
        problem = self._problem
        contacts = problem.contacts
        if not contacts.rigid:
            return False
        stiffness, others = self._rigid_contact_forces()
        if self.condense is None or problem.trust_region:
            return contacts.correct_rigid_bodies(stiffness, others)
        start = problem.u.copy()
        moved = contacts.correct_rigid_bodies(stiffness, others, partial(self.condense, problem))
        if moved and not problem.balance().finite:  # the soft bodies moved too far
            problem.device.assign(problem.u, start)
            contacts.condensed.disable()
            contacts.detect()
        return moved

    def _rigid_contact_forces(self) -> tuple[np.ndarray, list[list[Any]]]:
        """Stiffness (n,) [N/m] of the vertices, and face contact forces on each rigid body."""
        problem = self._problem
        problem.balance()
        stiffness, rigid = stiffness_of(problem.diagnostics), problem.contacts.rigid
        return stiffness, [
            [f.contact_force(problem, motion.body.row, stiffness) for f in self._face_contacts]
            for motion in rigid
        ]


def evaluate_dynamic_terms(
    model: Model, x: np.ndarray, time: float, history: Mapping[str, np.ndarray] | None = None
) -> Model:
    """Return a model with all dynamic terms updated to given positions.

    Args:
        model: Model.
        x: (n, 3) positions [m].
        time: Time [s].
        history: History variables of a state, which contain frictional contacts; without them, contacts
            have zero slip.
    """
    for index, dynamic_term in model.dynamic_terms:
        term = dynamic_term.evaluate_at(model, x, time, history or {})
        if term is not None:
            model = with_term(model, index, term)
    return model
