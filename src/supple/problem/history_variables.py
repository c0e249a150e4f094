"""History variables: evolving material parameters, such as plastic strain, and friction states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.state.friction_state import (
    CONTACTS,
    check_contacts,
    contacts_from_state,
    contacts_to_state,
    frictional_terms,
    rows_from,
)
from supple.materials import evolving
from supple.model.model import Model
from supple.support.arguments import format_value, to_floats

if TYPE_CHECKING:
    from supple.problem.problem import Problem


RIGID = "rigid"
"""Name of the history of rigid bodies: (k, 18) center, axes, velocity and spin of each."""

ACCELERATION, PREVIOUS_STEP, AFFINE = "acceleration", "earlier", "affine"
"""Names of the history of integrators and of grids.

ACCELERATION (n, 3) [m/s²] for second-order rules; PREVIOUS_STEP (n, 7) displacements [m] and
velocities [m/s] of the previous step and its size [s]; AFFINE (n, 9) velocity gradients of grids [1/s].
"""

LATE_PIN_TIME = "pins"
"""Name of the motion time [s] at which late pinned vertices are under intersection-free contact, (1, 1)."""

UNSOLVED = "unsolved"
"""Name of the time [s] of the first unconverged frame of a second-order rule, (1, 1).

Later frames continue from accelerations that do not balance the forces.
"""

PASSED = "passed"
"""Name of the time [s] of the first frame in which an obstacle and a body passed through each other, (1, 1).

They do not return to their sides, so later frames are wrong although their forces balance.
"""

LASTING_FAULTS = UNSOLVED, PASSED
"""Names of the times of frames whose faults remain in all later ones."""

MOTION = {ACCELERATION: 3, PREVIOUS_STEP: 7, AFFINE: 9}
"""Number of values per vertex of each."""


def evolving_parameters(model: Model) -> Iterator[tuple[str, int, int, str]]:
    """Enumerate the evolving material parameters of a model.

    Yields:
        Name in a `State`, with the term index appended if several terms have the same parameter; index of the
        term; index of the material among those of all terms; and name of the parameter.
    """
    made_of = [(k, term) for k, term in enumerate(model.terms) if term.material is not None]
    parameters = [
        (p.name, k, number) for number, (k, term) in enumerate(made_of) for p in evolving(type(term.material))
    ]
    names = [name for name, _, _ in parameters]
    for name, k, number in parameters:
        yield (name if names.count(name) == 1 else f"{name} {k}"), k, number, name


def check_history(model: Model, history: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Validate history variables for a model; missing ones keep their values of the scene.

    Returns:
        Float64 arrays by name.

    Raises:
        ValueError: A name or a shape does not fit the model, or values are not finite.
    """
    parameters = {name: (k, parameter) for name, k, _, parameter in evolving_parameters(model)}
    has_friction = bool(frictional_terms(model))
    for name, values in history.items():
        if name in MOTION:
            _check_rows(name, (model.vertices, MOTION[name]), values)
            continue
        if name in LASTING_FAULTS:
            _check_rows(name, (1, 1), values)
            continue
        if has_friction and name == CONTACTS:
            check_contacts(model, values)
            continue
        if name == RIGID and model.obstacles is not None and model.obstacles.rigid:
            _check_rows(RIGID, (len(model.obstacles.rigid), 18), values)
            continue
        if name == LATE_PIN_TIME and any(term.intersection_free for term in model.terms):
            _check_rows(LATE_PIN_TIME, (1, 1), values)
            continue
        if name not in parameters:
            available = ", ".join(parameters) or "none"
            raise ValueError(
                f"the state contains the history variable {name!r}, which this scene does not have (it "
                f"has: {available}); was it saved from another scene?"
            )
        k, parameter = parameters[name]
        shape = np.shape(getattr(model.terms[k].material, parameter))
        numbers = to_floats(values)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise ValueError(
                f"{name!r} of the state must be finite and of shape {shape}, got {format_value(values)}"
            )
    return {name: to_floats(values) for name, values in history.items()}


def _check_rows(name: str, shape: tuple[int, int], values: Any) -> None:
    numbers = to_floats(values)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name!r} of the state must be finite and of shape {shape}, got {format_value(values)}"
        )


class HistoryVariables:
    """History variables of the batch.

    Evolving parameters are held by the problem's materials in float64; kernels have rounded copies.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._parameters = list(evolving_parameters(problem.model))
        self._frictional_terms = frictional_terms(problem.model)
        self._motions: list[dict[str, np.ndarray]] = []

    @property
    def _materials(self) -> list[tuple]:
        """Materials of each batch member, one per elastic term."""
        used, batch_size = self._problem.layout.materials, self._problem.batch_size
        return used if len(used) == batch_size else used * batch_size

    def get_variables(self) -> list[dict[str, np.ndarray]]:
        """History variables of each batch member, by name."""
        terms: Any = self._problem.model.terms
        p, friction = self._problem, self._problem.dynamic_terms.restored_friction
        x = (
            p.positions if any(terms[k].intersection_free for k in self._frictional_terms) else p.model.rest
        )  # barriers need positions
        shared = [contacts_to_state(terms[k], x, friction.get(k)) for k in self._frictional_terms] or [{}]
        if self._problem.trust_region and self._problem.trust_region.pins.late_time is not None:
            shared[0][LATE_PIN_TIME] = np.array([[self._problem.trust_region.pins.late_time]])
        if self._problem.contacts.rigid:
            shared[0][RIGID] = self._problem.contacts.rigid_states
        return [
            {name: getattr(materials[number], parameter) for name, _, number, parameter in self._parameters}
            | shared[0]
            | motion
            for materials, motion in zip(self._materials, self.motions(), strict=True)
        ]

    def motions(self) -> list[dict[str, np.ndarray]]:
        """Integrator history of each batch member, by name; empty at the start of a motion."""
        batch_size = self._problem.batch_size
        return self._motions if len(self._motions) == batch_size else [{}] * batch_size

    def set_motions(self, motions: list[dict[str, np.ndarray]]) -> None:
        """Set the integrator history, one per batch member."""
        self._motions = motions

    def clear_motions(self, name: str | None = None) -> None:
        """Discard the integrator history, except for one name.

        A different integrator would use it as if no time had passed. The mark of a passage remains;
        second-order rules also keep that of an unconverged step.
        """
        names = {name, *LASTING_FAULTS} if name in (ACCELERATION, PREVIOUS_STEP) else {name, PASSED}
        self.set_motions([{k: v for k, v in motion.items() if k in names} for motion in self.motions()])

    def marked_times(self, mark: str) -> list[float | None]:
        """Time [s] of the first frame with a mark of `LASTING_FAULTS`, per batch member, or None."""
        return [float(m[mark][0, 0]) if mark in m else None for m in self.motions()]

    def mark(self, mark: str, members: Sequence[int], time: float) -> None:
        """Mark the frame of batch members at a time [s]; earlier marks stay."""
        new = {mark: np.array([[time]])}
        self.set_motions([new | m if k in members else m for k, m in enumerate(self.motions())])

    def set_variables(self, variables: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Restore history variables of each batch member; missing ones keep scene values."""
        self.set_motions(
            [
                {name: restored[name] for name in (*MOTION, *LASTING_FAULTS) if name in restored}
                for restored in variables
            ]
        )
        if self._problem.contacts.rigid and RIGID in variables[0]:
            self._problem.contacts.rigid_states = variables[0][RIGID]
        self._problem.trust_region.pins.late_time = (
            float(variables[0][LATE_PIN_TIME][0, 0]) if LATE_PIN_TIME in variables[0] else None
        )
        self._restore_contacts(variables[0])
        if self._parameters:
            initial = self._problem.layout.begun
            self._set_materials([self._insert(initial, member) for member in variables])

    def clear(self) -> None:
        """Discard history before equilibria; their conditions define the materials."""
        self.set_motions([])
        self._restore_contacts({})

    def _restore_contacts(self, variables: Mapping[str, np.ndarray]) -> None:
        for k in self._frictional_terms:
            if self._problem.model.terms[k].intersection_free:
                self._problem.dynamic_terms.restored_friction[k] = rows_from(variables)
            else:
                self._problem.refresh(k, contacts_from_state(variables))

    def evolve(self, dt: float) -> None:
        """Update the internal variables of materials over a time dt [s] at the present displacements."""
        if self._parameters:
            u = self._problem.states.vectors(self._problem.u).astype(float)
            pairs = zip(self._materials, u, strict=True)
            self._set_materials(
                [self._evolve_materials(materials, displacements, dt) for materials, displacements in pairs]
            )

    def flow(self) -> None:
        """Update the internal variables of rate-independent materials; no time passes."""
        self.evolve(0.0)

    def insert_into(self, materials: list[tuple]) -> list[tuple]:
        """Insert the present internal variables into materials of the batch."""
        return [self._insert(*both) for both in zip(materials, self.get_variables(), strict=True)]

    def _evolve_materials(self, materials: tuple, u: np.ndarray, dt: float) -> tuple:
        if not np.isfinite(u).all():
            return materials
        changed = list(materials)
        for k, number in dict.fromkeys((k, number) for _, k, number, _ in self._parameters):
            if dt == 0 and not getattr(changed[number], "rate_independent", False):
                continue
            term: Any = self._problem.model.terms[k]
            new = changed[number].evolve(term.deformations(u), dt)
            changed[number] = changed[number]._replace(**new) if new else changed[number]
        return tuple(changed)

    def _insert(self, materials: tuple, variables: Mapping[str, np.ndarray]) -> tuple:
        changed = list(materials)
        for name, _, number, parameter in self._parameters:
            if name in variables:
                changed[number] = changed[number]._replace(**{parameter: variables[name]})
        return tuple(changed)

    def _set_materials(self, materials: list[tuple]) -> None:
        pairs = zip(materials, self._materials, strict=True)
        if any(new is not old for both in pairs for new, old in zip(*both, strict=True)):
            self._problem.use_materials(materials)
