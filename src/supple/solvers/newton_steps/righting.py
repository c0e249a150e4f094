"""Bodies of a material with a barrier that start inverted, where their energy is infinite: how they get to
where it is finite.

Another energy that has its minimum at the same rest shape and is finite everywhere, stable neo-Hookean,
stands for each material with a barrier, and goes down without loads and inertia: what is inverted costs
energy, and rights itself. Where pins leave little room and elements stay inverted, volumes are made to resist
more, step by step. Then the material itself goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.materials import StableNeoHookean, material_name
from supple.problem import Problem
from supple.problem.materials import materials_of, with_materials
from supple.solvers.newton_steps.twin import follow
from supple.words import counted

RESISTANCES = 0.4, 0.49, 0.4995
"""Poisson's ratios with which righting is tried, one after the other."""

ROUGHLY, MOST_STEPS = 1e-2, 200
"""The imbalance to which a surrogate is solved, and the steps that it may take."""

COLLAPSED = 1e-9
"""det F from which on forces are more than rounding."""

NOISE = 1e-3
"""How far vertices are moved at random first, in edges: all at one point, or mirrored, they may be in
balance."""

Stepping = Callable[[Problem], Callable[[], None]]
"""Makes steps of a problem down to a minimum of its energy."""


class Righting:
    """Of one problem; notes: what is to be said of it, once it was tried."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._barred = [material for material in materials_of(problem.model) if material.barrier]
        self.notes: list[str] = []
        self.open = bool(self._barred) and not problem.room and not problem.contacts
        """Whether it may be of use, and was not tried yet."""

    def right(self, stepping: Stepping) -> None:
        """Leave u where the problem's energy and forces are finite, which is where it is, if they are; or as
        it was where no such place is found."""
        self.open = False
        if self._sound():
            return
        inverted = int((_volume_ratios(self.problem) <= COLLAPSED).sum())
        start = self.problem.positions
        names = " and ".join(sorted({material_name(material) for material in self._barred}))
        began = (
            f"{counted(inverted, 'element')} began inverted or flat, where the energy of {names} is infinite"
        )
        for poisson in RESISTANCES:
            surrogate = self._surrogate(poisson)
            _descend(surrogate, stepping(surrogate))
            self.problem.positions = surrogate.positions
            if self._sound():
                self.notes = [f"{began}; they were righted with stable_neo_hookean in its place"]
                return
        self.problem.positions = start
        self.notes = [
            f"{began}; with stable_neo_hookean in its place and no loads some stay so, held by pins or "
            "attachments: move these in steps (steps=), or give a start in which no element is inverted"
        ]

    def _sound(self) -> bool:
        """Whether forces are finite, and more than rounding."""
        return self.problem.balance().finite and bool((_volume_ratios(self.problem) > COLLAPSED).all())

    def _surrogate(self, poisson: float) -> Problem:
        """The problem without forces and inertia, with an energy that is finite everywhere."""
        model = self.problem.model
        materials = tuple(_finite_one(material, poisson) for material in materials_of(model))
        device = self.problem.device.alike(np.dtype(float))
        surrogate = Problem(with_materials(model, materials), "float64", device=device)
        follow(surrogate, self.problem)
        surrogate.loads.set(np.zeros_like(model.force))
        return surrogate


def _volume_ratios(problem: Problem) -> np.ndarray:
    """det F of all tetrahedra with a barrier."""
    u, ratios = problem.states.vectors(problem.u)[0].astype(float), [np.empty(0)]
    terms: Any = problem.model.terms
    for term in terms:
        if term.fills and term.material.barrier:
            ratios.append(np.linalg.det(term.deformations(u)))
    return np.concatenate(ratios)


def _descend(problem: Problem, step: Callable[[], None]) -> None:
    """To a minimum, roughly."""
    model = problem.model
    noise = np.random.default_rng(0).normal(0, NOISE * model.mean_edge, model.rest.shape)
    problem.positions = problem.positions + model.unheld(noise)
    for _ in range(MOST_STEPS):
        if problem.balance().imbalance <= ROUGHLY:
            return
        step()


def _finite_one(material: Any, poisson: float) -> Any:
    """A stable neo-Hookean material of the same shear modulus where one has a barrier; as it is where not."""
    if not material.barrier:
        return material
    mu = np.asarray(getattr(material, "mu", 1.0), float)
    young = 2 * (1 + poisson) * mu
    return StableNeoHookean(young=young if young.ndim else float(young), poisson=poisson)
