"""What steps leave behind: parameters of materials that evolve, as plastic strains, and contacts that rub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import floats, shown
from supple.grip import (
    CONTACTS,
    check_contacts,
    contacts_from_state,
    contacts_to_state,
    rows_from,
    rubbing_terms,
)
from supple.materials import evolving
from supple.model import Model

if TYPE_CHECKING:
    from supple.problem.problem import Problem


RIGID = "rigid"
"""The name of what a `State` has of rigid bodies: (k, 18) centre, axes, velocity and spin of each."""

ACCELERATION, EARLIER, AFFINE = "acceleration", "earlier", "affine"
"""The names of what steps look back to: of second order (n, 3) [m/s²], or (n, 7) the displacements [m] and
velocities [m/s] a step ago, and how long that was [s]; of a grid (n, 9) the gradients of velocities [1/s]."""

PINS = "pins"
"""The name of the time [s] of their motion at which pinned vertices are, (1, 1), where contact lets them be
late."""

UNSOLVED = "unsolved"
"""The name of the time [s] of the first frame, (1, 1), that a rule of second order has not solved: those
after it go on from accelerations that are not those of the forces."""

MOTION = {ACCELERATION: 3, EARLIER: 7, AFFINE: 9}
"""How many numbers of each vertex these are."""


def evolving_parameters(model: Model) -> Iterator[tuple[str, int, int, str]]:
    """For every parameter that evolves: its name in a `State`, with the number of its term where several
    terms have one so called; the term, its material among those of all terms, and the parameter."""
    made_of = [(k, term) for k, term in enumerate(model.terms) if term.material is not None]
    found = [
        (p.name, k, number) for number, (k, term) in enumerate(made_of) for p in evolving(type(term.material))
    ]
    names = [name for name, _, _ in found]
    for name, k, number in found:
        yield (name if names.count(name) == 1 else f"{name} {k}"), k, number, name


def checked_remembered(model: Model, remembered: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What a state remembers, if that suits a model; what it lacks is as the scene has it."""
    known = {name: (k, parameter) for name, k, _, parameter in evolving_parameters(model)}
    rubs = bool(rubbing_terms(model))
    for name, values in remembered.items():
        if name in MOTION:
            _check_rows(name, (model.vertices, MOTION[name]), values)
            continue
        if name == UNSOLVED:
            _check_rows(UNSOLVED, (1, 1), values)
            continue
        if rubs and name == CONTACTS:
            check_contacts(model, values)
            continue
        if name == RIGID and model.obstacles is not None and model.obstacles.rigid:
            _check_rows(RIGID, (len(model.obstacles.rigid), 18), values)
            continue
        if name == PINS and any(term.confines for term in model.terms):
            _check_rows(PINS, (1, 1), values)
            continue
        if name not in known:
            there = ", ".join(known) or "none"
            raise ValueError(f"the state remembers {name!r} of elements; this scene has {there}")
        k, parameter = known[name]
        shape = np.shape(getattr(model.terms[k].material, parameter))
        found = floats(values)
        if found.shape != shape or not np.isfinite(found).all():
            raise ValueError(
                f"{name!r} of the state must be finite and of shape {shape}, got {shown(values)}"
            )
    return {name: floats(values) for name, values in remembered.items()}


def _check_rows(name: str, shape: tuple[int, int], values: Any) -> None:
    found = floats(values)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{name!r} of the state must be finite and of shape {shape}, got {shown(values)}")


class Remembered:
    """What every copy of a problem's state remembers. Values are the problem's materials, of which kernels
    have rounded copies."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known = list(evolving_parameters(problem.model))
        self._rubs = rubbing_terms(problem.model)
        self._motions: list[dict[str, np.ndarray]] = []

    @property
    def _materials(self) -> list[tuple]:
        """Of each copy, one for each term that has one."""
        used, copies = self._problem.layout.materials, self._problem.copies
        return used if len(used) == copies else used * copies

    def take(self) -> list[dict[str, np.ndarray]]:
        """For each copy, by name."""
        terms: Any = self._problem.model.terms
        p, given = self._problem, self._problem.following.given
        x = p.positions if any(terms[k].confines for k in self._rubs) else p.model.rest  # barriers ask where
        rubs = [contacts_to_state(terms[k], x, given.get(k)) for k in self._rubs] or [{}]
        if self._problem.room and self._problem.room.pins.late is not None:
            rubs[0][PINS] = np.array([[self._problem.room.pins.late]])
        if self._problem.contacts.rigid:
            rubs[0][RIGID] = self._problem.contacts.moved_by_bodies
        return [
            {name: getattr(materials[number], parameter) for name, _, number, parameter in self._known}
            | rubs[0]
            | motion
            for materials, motion in zip(self._materials, self.motions(), strict=True)
        ]

    def motions(self) -> list[dict[str, np.ndarray]]:
        """What steps look back to, for each copy, by name; nothing where a motion begins."""
        copies = self._problem.copies
        return self._motions if len(self._motions) == copies else [{}] * copies

    def move_on(self, motions: list[dict[str, np.ndarray]]) -> None:
        """Look back to these from now on, one for each copy."""
        self._motions = motions

    def forget_motions(self, name: str | None = None) -> None:
        """Look back to nothing but what is called so: a motion of another kind would go on from it as if no
        time had passed. Rules of second order keep in mind that a step was not solved."""
        kept = {name, UNSOLVED} if name in (ACCELERATION, EARLIER) else {name}
        self.move_on([{k: v for k, v in motion.items() if k in kept} for motion in self.motions()])

    def unsolved(self) -> list[float | None]:
        """[s] when each copy was first left unsolved by a rule of second order."""
        return [float(m[UNSOLVED][0, 0]) if UNSOLVED in m else None for m in self.motions()]

    def leave_unsolved(self, copies: Sequence[int], time: float) -> None:
        """Keep in mind that the frame at a time [s] was not solved for some copies."""
        mark = {UNSOLVED: np.array([[time]])}
        self.move_on([mark | m if k in copies else m for k, m in enumerate(self.motions())])

    def put(self, copies: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Go on from what each copy remembers; what it lacks is as the scene has it."""
        self.move_on(
            [{name: known[name] for name in (*MOTION, UNSOLVED) if name in known} for known in copies]
        )
        if self._problem.contacts.rigid and RIGID in copies[0]:
            self._problem.contacts.moved_by_bodies = copies[0][RIGID]
        self._problem.room.pins.late = float(copies[0][PINS][0, 0]) if PINS in copies[0] else None
        self._touch(copies[0])
        if self._known:
            begun = self._problem.layout.begun
            self._use([self._with(begun, known) for known in copies])

    def forget(self) -> None:
        """Nothing is behind equilibria under conditions of their own, whose materials are as given."""
        self.move_on([])
        self._touch({})

    def _touch(self, known: Mapping[str, np.ndarray]) -> None:
        for k in self._rubs:
            if self._problem.model.terms[k].confines:
                self._problem.following.given[k] = rows_from(known)
            else:
                self._problem.refresh(k, contacts_from_state(known))

    def evolve(self, dt: float) -> None:
        """Let elements change as a time dt [s] where the vertices are changes them."""
        if self._known:
            u = self._problem.states.vectors(self._problem.u).astype(float)
            pairs = zip(self._materials, u, strict=True)
            self._use([self._evolved(materials, of_copy, dt) for materials, of_copy in pairs])

    def flow(self) -> None:
        """Let elements of rate-independent materials flow where the vertices are; no time passes."""
        self.evolve(0.0)

    def keep(self, materials: list[tuple]) -> list[tuple]:
        """Materials of all copies with the values that have evolved so far."""
        return [self._with(*both) for both in zip(materials, self.take(), strict=True)]

    def _evolved(self, materials: tuple, u: np.ndarray, dt: float) -> tuple:
        if not np.isfinite(u).all():
            return materials
        changed = list(materials)
        for k, number in dict.fromkeys((k, number) for _, k, number, _ in self._known):
            if dt == 0 and not getattr(changed[number], "rate_independent", False):
                continue
            term: Any = self._problem.model.terms[k]
            new = changed[number].evolve(term.deformations(u), dt)
            changed[number] = changed[number]._replace(**new) if new else changed[number]
        return tuple(changed)

    def _with(self, materials: tuple, known: Mapping[str, np.ndarray]) -> tuple:
        changed = list(materials)
        for name, _, number, parameter in self._known:
            if name in known:
                changed[number] = changed[number]._replace(**{parameter: known[name]})
        return tuple(changed)

    def _use(self, materials: list[tuple]) -> None:
        pairs = zip(materials, self._materials, strict=True)
        if any(new is not old for both in pairs for new, old in zip(*both, strict=True)):
            self._problem.use_materials(materials)
