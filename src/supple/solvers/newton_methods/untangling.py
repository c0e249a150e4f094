"""Recovery from initially inverted elements whose barrier energy is infinite.

Stable neo-Hookean elasticity has the same rest shape and is finite everywhere. It replaces each material with
a barrier and is minimized without loads and inertia, which restores inverted elements. If pins leave little
room and elements stay inverted, Poisson's ratio is increased step by step to strengthen the volume term. The
solve then continues with the original material.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.materials import StableNeoHookean, material_name
from supple.problem import Problem
from supple.problem.material_update import materials_of, with_materials
from supple.solvers.newton_methods.float64_problem import copy_state
from supple.support.text import pluralize

POISSON_RATIOS = 0.4, 0.49, 0.4995
"""Poisson's ratios of the surrogate, tried in this order."""

COARSE_TOLERANCE, MAX_STEPS = 1e-2, 200
"""Relative residual to which the surrogate is solved, and its step limit."""

MIN_VOLUME_RATIO = 1e-9
"""Smallest det F for which forces are not dominated by rounding."""

NOISE_AMPLITUDE = 1e-3
"""Amplitude of the initial random displacement relative to the mean edge length.

Elements that are mirrored or collapsed to a point may otherwise be in equilibrium.
"""

StepFactory = Callable[[Problem], Callable[[], None]]
"""Returns a step function that minimizes the energy of a problem."""


class Untangling:
    """Recovery of inverted elements in one problem.

    Attributes:
        notes: Notes for the report after an attempt.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._barriers = [material for material in materials_of(problem.model) if material.barrier]
        self.notes: list[str] = []
        self.open = bool(self._barriers) and not problem.trust_region and not problem.contacts
        """True if the recovery is applicable and has not been tried yet."""

    def untangle(self, make_step: StepFactory) -> None:
        """Move u to a state of finite energy and forces, if necessary; restore u if none is found."""
        self.open = False
        if self._is_valid():
            return
        inverted = int((_volume_ratios(self.problem) <= MIN_VOLUME_RATIO).sum())
        start = self.problem.positions
        names = " and ".join(sorted({material_name(material) for material in self._barriers}))
        count = pluralize(inverted, "element")
        began = f"{count} inverted or flat at the start, where the energy of {names} is infinite"
        for poisson in POISSON_RATIOS:
            surrogate = self._surrogate(poisson)
            _descend(surrogate, make_step(surrogate))
            self.problem.positions = surrogate.positions
            if self._is_valid():
                self.notes = [f"{began}; stable_neo_hookean in its place removed the inversions"]
                return
        self.problem.positions = start
        self.notes = [
            f"{began}; with stable_neo_hookean in its place and without loads, some stay inverted because "
            "of pins or attachments; move these in steps (load_steps=), or give a start without inverted "
            "elements"
        ]

    def _is_valid(self) -> bool:
        """True if forces are finite and no barrier element is inverted or collapsed."""
        return self.problem.balance().finite and bool((_volume_ratios(self.problem) > MIN_VOLUME_RATIO).all())

    def _surrogate(self, poisson: float) -> Problem:
        """Return the problem with finite energies, without external forces and inertia."""
        model = self.problem.model
        materials = tuple(_replace_barrier(material, poisson) for material in materials_of(model))
        device = self.problem.device.clone(np.dtype(float))
        surrogate = Problem(with_materials(model, materials), "float64", device=device)
        copy_state(surrogate, self.problem)
        surrogate.loads.set(np.zeros_like(model.force))
        return surrogate


def _volume_ratios(problem: Problem) -> np.ndarray:
    """Return det F of all tetrahedra with a barrier energy."""
    u, ratios = problem.states.vectors(problem.u)[0].astype(float), [np.empty(0)]
    terms: Any = problem.model.terms
    for term in terms:
        if term.fills and term.material.barrier:
            ratios.append(np.linalg.det(term.deformations(u)))
    return np.concatenate(ratios)


def _descend(problem: Problem, step: Callable[[], None]) -> None:
    """Minimize the energy approximately from a randomly perturbed state."""
    model = problem.model
    noise = np.random.default_rng(0).normal(0, NOISE_AMPLITUDE * model.mean_edge, model.rest.shape)
    problem.positions = problem.positions + model.unconstrained(noise)
    for _ in range(MAX_STEPS):
        if problem.balance().relative_residual <= COARSE_TOLERANCE:
            return
        step()


def _replace_barrier(material: Any, poisson: float) -> Any:
    """Replace a barrier material by stable neo-Hookean with the same shear modulus; keep other materials."""
    if not material.barrier:
        return material
    mu = np.asarray(getattr(material, "mu", 1.0), float)
    young = 2 * (1 + poisson) * mu
    return StableNeoHookean(young=young if young.ndim else float(young), poisson=poisson)
