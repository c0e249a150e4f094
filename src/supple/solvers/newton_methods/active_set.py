"""Active-set Newton steps for problems in contact with obstacles.

Each step solves a second problem without obstacles. There, vertices in contact are constrained along the
contact normals, sticking vertices are fully constrained, and friction on sliding vertices keeps its value
from the start of the step. Then vertices are projected out of the obstacles and the active set is detected
again. An unchanged active set means equilibrium. If the residual did not decrease, sweeps replace the step:
they find an active set that is far away. After rejected steps in a row, `Hybrid` runs 4 times as many sweeps
each time, so that the linear systems of rejected steps never cost much more than the sweeps between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from supple.model.model import Model
from supple.problem import Balance, Problem
from supple.problem.dirichlet_rows import SYMMETRIC, normals_of
from supple.problem.material_update import with_materials
from supple.problem.states import vectors_of
from supple.solvers.base import Run
from supple.solvers.newton_methods.line_search import copy_u
from supple.solvers.pbng import PBNG
from supple.support.text import pluralize

STICK_FRACTION = 1 - 1e-6
"""Fraction of the friction limit below which a vertex sticks."""


def active_set_problem(problem: Problem, member: int = 0, sliding: bool = True) -> Problem:
    """Return the active-set problem in float64 on the CPU at the u of a batch member.

    Vertices in contact with obstacles are constrained along the contact normals, sticking vertices fully.
    Obstacles are absent, but their forces act.

    Args:
        problem: Problem with obstacles.
        member: Batch member.
        sliding: False to constrain sliding vertices with friction fully, too.
    """
    problem.diagnostics.balances()
    model, layout = problem.model, problem.layout
    if layout.varied:
        model = with_materials(model, layout.materials[member])
    N = np.zeros((model.vertices, 3, 3))
    N[..., *SYMMETRIC] = normals_of(model)[:-1]
    N[..., *SYMMETRIC[::-1]] = N[..., *SYMMETRIC]
    normals, _, forces, _ = problem.contacts.get_planes(member)
    mu = problem.contacts.coefficients(member)
    normal_force = np.einsum("pni,pni->pn", normals, forces)
    friction = np.linalg.norm(forces - normal_force[..., None] * normals, axis=2)
    for n, λ, t, limit in zip(normals, normal_force, friction, mu * normal_force, strict=True):
        sticks = (λ > 0) & (limit > 0) & ((t < STICK_FRACTION * limit) | (not sliding))
        N[λ > 0] += n[λ > 0, :, None] * n[λ > 0, None, :]
        N[sticks] += np.eye(3)
    values, vectors = np.linalg.eigh(N)
    constrained = np.einsum("kia,ka,kja->kij", vectors, values > 1e-9, vectors)
    pinned = np.flatnonzero((values > 1e-9).any(axis=1))
    subproblem = _constrain(problem, model, pinned, constrained[pinned])
    subproblem.loads.copy_from(problem.loads, member)
    subproblem.follower_loads.copy_from(problem.follower_loads)
    subproblem.loads.set(
        subproblem.loads.force + forces.sum(axis=0)
    )  # friction matters for sliding vertices only
    for array, target in ((problem.u, subproblem.u), (problem.states.anchor, subproblem.states.anchor)):
        target[:-1, :3] = vectors_of(problem.states, array, [member])[0]
    prescribed = np.einsum("kij,kj->ki", constrained[pinned], subproblem.u[pinned, :3])
    subproblem.states.constrained_at[pinned, :3] = prescribed
    return subproblem


def _constrain(problem: Problem, model: Model, pinned: np.ndarray, constrained: np.ndarray) -> Problem:
    """Return a problem without obstacles with constrained vertices; reuse the last one if unchanged.

    Args:
        problem: Problem with obstacles.
        model: Its model.
        pinned: (k,) constrained vertices.
        constrained: (k, 3, 3) projections onto the constrained directions.
    """
    cache: list = problem.get_shared("active-set problem", list)
    if cache:
        of, last, subproblem = cache
        same = of is model and last[0].shape == pinned.shape
        if same and np.array_equal(last[0], pinned) and np.array_equal(last[1], constrained):
            return subproblem
    loads = tuple((k, each) for k, each in model.dynamic_terms if k in problem.follower_loads.indices)
    reduced = replace(
        model, pinned=pinned, constraint_projection=constrained, obstacles=None, dynamic_terms=loads
    )
    subproblem = Problem(reduced, "float64", problem.device.threads if problem.device.name == "cpu" else None)
    cache[:] = model, (pinned, constrained), subproblem
    return subproblem


RECOVERY_SWEEPS = 10
"""Sweeps that replace a rejected step."""

PAUSE_GROWTH = 4
"""Growth of the pause after rejected Newton steps in a row. A Newton step takes as long as hundreds of sweeps
of cloth, and where folds slide along obstacles one after the other is rejected."""

StepFactory = Callable[[Problem], Callable[[], None]]
"""Returns a step function for a problem without obstacles."""


def active_set_step(problem: Problem, make_step: StepFactory) -> bool:
    """Make one active-set step on the CPU; return False if it was rejected and replaced by sweeps."""
    before, start = problem.balance().residual, copy_u(problem)
    subproblem = active_set_problem(problem)
    make_step(subproblem)()
    states = problem.states
    states.vectors(states.u)[0] = subproblem.states.vectors(subproblem.u)[0]
    if problem.trust_region:
        problem.dynamic_terms.limit_step(start)
        problem.dynamic_terms.set_step_bounds()
    problem.device.apply_to_vectors(*problem.contacts.clamp())
    problem.contacts.detect()
    problem.trust_region.restore_bounds()
    if problem.balance().residual < before:
        return True
    problem.device.assign(problem.u, start)
    problem.contacts.detect()
    problem.trust_region.restore_bounds()
    PBNG().begin(problem).advance(RECOVERY_SWEEPS)
    return False


class Stepper(Protocol):
    """Newton iteration, advanced step by step."""

    def step(self) -> None: ...


class ActiveSetNewton:
    """Second phase of `Hybrid` on a problem with obstacles.

    Args:
        problem: Problem with obstacles.
        make: Returns a stepper for a problem without obstacles and a tolerance.
        tolerance: Relative residual to reach.
    """

    def __init__(self, problem: Problem, make: Callable[[Problem, float], Stepper], tolerance: float) -> None:
        self.problem, self.tolerance, self._make = problem, tolerance, make
        self.at_saddle = False
        self._steps = self._sweep_steps = 0
        self._rejected = self._pause = 0
        self._sweep_run: Run | None = None

    def step(self) -> None:
        """Make a Newton step, or sweeps: after rejections in a row, the next 16, 64, 256 ... are sweeps."""
        self._steps += 1
        if self._pause:
            self._sweep()
            return
        self._sweep_run = None
        if active_set_step(self.problem, lambda subproblem: self._make(subproblem, self.tolerance).step):
            self._rejected = 0
            return
        self._sweep_steps += 1
        self._rejected += 1
        self._pause = PAUSE_GROWTH ** (self._rejected + 1)

    def _sweep(self) -> None:
        if self._sweep_run is None:
            self._sweep_run = PBNG().begin(self.problem)
        self._sweep_run.advance(RECOVERY_SWEEPS)
        self._pause -= 1
        self._sweep_steps += 1

    def observe(self, balance: Balance) -> bool:
        """Pass the residual to the sweeps between Newton steps; True if they restarted from another u."""
        return self._sweep_run is not None and self._sweep_run.observe(balance)

    def notes(self) -> list[str]:
        notes = [f"{pluralize(self._steps, 'Newton step')} with an active set of obstacle contacts"]
        return (
            [*notes, f"{pluralize(self._sweep_steps, 'step')} made by sweeps"] if self._sweep_steps else notes
        )
