"""Newton refinement of a result before differentiation.

In float64, the state is brought as close to the equilibrium as rounding permits, since its residual limits
the accuracy of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from supple.api.simulate import Result
from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.contact.state.friction_state import frictional_terms
from supple.gradients.adjoint_system import System
from supple.gradients.gradient_report import NoGradientError
from supple.kernels import compilation
from supple.model.model import Model, Step
from supple.problem import Problem
from supple.problem.history_variables import evolving_parameters
from supple.problem.material_update import have_same_layout, materials_of
from supple.scene.loads.cavities import GasUpdate
from supple.scene.loads.follower_tractions import FollowerForces
from supple.solve.batch_solve import make_device, solve
from supple.solvers import default_solver
from supple.solvers.newton_methods.active_set import STICK_FRACTION, active_set_problem
from supple.solvers.newton_methods.line_search import straight_path
from supple.support.arguments import comma_list
from supple.support.text import pluralize

TARGET_RESIDUAL = 1e-11
"""Relative residual at which Newton steps stop."""

NEWTON_RESIDUAL = 1e-3
"""Relative residual below which full Newton steps are tried."""

MAX_STEPS = 12
"""Maximum number of Newton steps. From NEAR they square the relative residual, so four or five suffice unless
rounding intervenes."""

ACCURACY = 1e-9
"""Relative residual of the linear systems of Newton steps."""


MAX_SLIP = 1e-6
"""Largest slip of a vertex that sticks at its rest position, relative to the mean edge length."""


@dataclass(frozen=True)
class PolishedState:
    """A problem at its equilibrium, and statistics of the refinement; see `GradientReport`."""

    problem: Problem
    relative_residual: float
    initial_relative_residual: float
    steps: int
    moved: float
    contacts: int = 0
    grazing: int = 0
    seconds: float = 0.0


def model_of_step(model: Model, step: Step | None) -> Model:
    """Model with constant loads and materials of a step."""
    force = model.force_at(math.inf) if step is None or step.force is None else step.force
    materials = (None if step is None else step.materials) or {}
    terms = tuple(
        replace(term, material=materials[k]) if k in materials else term  # type: ignore[type-var]
        for k, term in enumerate(model.terms)
    )
    return replace(model, force=force, varying=(), terms=terms, changing=())


def check_differentiable(result: Result) -> None:
    """Raise a NoGradientError for effects missing from the Hessian."""
    if result.model.grid is not None:
        raise NoGradientError(
            'Gradients do not support contact="grid", where forces balance at grid nodes instead of '
            'vertices; use contact="weak" or "none".'
        )
    if any(isinstance(dynamic_term, GasUpdate) for _, dynamic_term in result.model.dynamic_terms):
        raise NoGradientError(
            "Gradients do not support sealed chambers, whose pressure changes with their volume. "
            "Use a constant pressure, sealed=False."
        )
    if any(isinstance(dynamic_term, FollowerForces) for _, dynamic_term in result.model.dynamic_terms):
        raise NoGradientError(
            "Gradients do not support tractions that follow their surface, since these have no "
            "energy. Use following=False."
        )
    if frictional_terms(result.model):
        raise NoGradientError(
            "Gradients do not support friction between bodies, since its forces have no energy. Use "
            "contact without friction."
        )
    if result.stages and (plastic := plastic_bodies(result)):
        raise NoGradientError(
            f"Elements of {comma_list(plastic)} yielded in earlier load steps, so the result depends "
            "on its path, and its gradient is not available. Solve with load_steps=1, or use "
            "central differences of whole solves."
        )
    is_dynamic = result.step is not None and math.isfinite(result.step.dt)
    viscous = [body.name for body in result.model.bodies if getattr(body, "viscosity", ())]
    if is_dynamic and viscous:
        raise NoGradientError(
            f"Gradients of motions do not support viscosity; remove it from {comma_list(viscous)}."
        )


def plastic_bodies(result: Result) -> list[str]:
    """Names of bodies of rate-independent materials, if any of them flowed in earlier load steps."""
    first, last = (one.step.history if one.step else {} for one in (result.stages[0], result))
    names = {name for name, *_ in evolving_parameters(result.model)}
    absent = np.empty(0)
    if all(np.array_equal(first.get(name, absent), last.get(name, absent)) for name in names):
        return []
    materials = ((body.name, getattr(body, "material", None)) for body in result.model.bodies)
    return [name for name, material in materials if getattr(material, "rate_independent", False)]


def make_problem_at(result: Result, backend: Backend, known: Problem | None = None) -> Problem:
    """Float64 problem with a result as its solution, at the result's positions.

    A compatible known problem, of the same bodies under other loads or with other materials, is reused.
    """
    check_differentiable(result)
    model, step = model_of_step(result.model, result.step), result.step
    is_reusable = known is not None and not result.model.changing and is_compatible(known.model, model)
    if known is None or not is_reusable or not _set_materials(known, materials_of(model)):
        problem = Problem(model, "float64", backend.threads, make_device(backend.device, model))
    else:
        problem = known
        problem.loads.set(model.force)
    if result.state is not None:
        problem.state = replace(result.state, displacements=result.positions - model.rest)
    problem.positions = result.positions
    if model.constraint_projection is not None:
        problem.states.set_targets(result.positions[model.pinned])
    if step is not None and math.isfinite(step.dt):
        if step.anchor is None:
            raise NoGradientError(
                "The gradient of this frame is not available: with substeps > 1, saved frames do "
                "not contain the start of the last substep. Differentiate the frame during "
                "`simulate`, or save with substeps=1."
            )
        problem.set_inertia(step.dt, step.anchor)
    step_time = math.inf if step is None else step.time
    problem.contacts.begin_equilibria([step_time])
    problem.dynamic_terms.begin_step(step_time)
    return problem


def is_compatible(one: Model, other: Model) -> bool:
    """True for models with equal rest positions, constraints and terms; materials may differ."""
    return (
        np.array_equal(one.rest, other.rest)
        and np.array_equal(one.pinned, other.pinned)
        and _is_equal(one.constraint_projection, other.constraint_projection)
        and len(one.terms) == len(other.terms)
        and all(map(_is_equal, one.terms, other.terms))
    )


def _is_equal(one: Any, other: Any) -> bool:
    """Compare two terms, or parts of terms, except for materials."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if is_dataclass(one):
        names = (field.name for field in fields(one) if field.name != "material")
        return all(_is_equal(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return bool(one == other)


def _set_materials(problem: Problem, materials: tuple[Any, ...]) -> bool:
    """Try to set a problem's materials; False for incompatible materials."""
    if problem.layout.materials == [materials]:
        return True
    if not have_same_layout(problem.model, materials):
        return False
    problem.use_materials([materials])
    return True


def polish_timed(make: Callable[[], Problem]) -> PolishedState:
    """Create and polish a problem; the result includes the total time [s]."""
    with compilation() as compiled:
        began = perf_counter()
        state = polish(make())
        return replace(state, seconds=perf_counter() - began - compiled.seconds)


def polish(problem: Problem) -> PolishedState:
    """Refine a problem's state by Newton steps; solve first if far from equilibrium."""
    start, before = problem.positions, problem.balance().relative_residual
    contacts = grazing = 0
    if not before <= NEWTON_RESIDUAL:
        solve(problem, default_solver(), StopCriteria(tolerance=1e-6))
    if problem.contacts:
        contacts, grazing = _count_contacts(problem)
        _check_sliding(problem)
        problem = active_set_problem(problem)
    steps, relative_residual = _newton(problem)
    if not relative_residual <= NEWTON_RESIDUAL:
        raise NoGradientError(
            f"The gradient needs an equilibrium: the relative residual is {relative_residual:.1e}, "
            "and neither Newton steps nor the default solver reduce it. Solve with a smaller "
            "tolerance or more load_steps first."
        )
    displacement = float(np.abs(problem.positions - start).max(initial=0.0))
    return PolishedState(problem, relative_residual, before, steps, displacement, contacts, grazing)


def _newton(problem: Problem) -> tuple[int, float]:
    """Take full Newton steps while they reduce the forces.

    Returns:
        Number of steps, and the final relative residual.
    """
    balance = problem.balance()
    for step in range(MAX_STEPS):
        if balance.at_rest or balance.relative_residual <= TARGET_RESIDUAL:
            return step, balance.relative_residual
        try:
            direction = _direction(problem)
        except NoGradientError:
            return step, balance.relative_residual
        move = straight_path(problem, direction)
        move(1.0)
        reached = problem.balance()
        if not reached.residual < balance.residual:
            move(0.0)
            return step, problem.balance().relative_residual
        balance = reached
    return MAX_STEPS, balance.relative_residual


def _direction(problem: Problem) -> np.ndarray:
    """Newton direction d with H d = r, padded vectors (n + 1, 4) in device memory."""
    system = System(problem)
    assembly = system.assembly
    forces = assembly.unconstrained(assembly.restrict(problem.states.net))
    solution = system.solve(forces.reshape(-1, 3), ACCURACY)
    records = np.zeros((problem.model.vertices + 1, 4))
    records[assembly.free, :3] = solution.x
    problem.device.upload(records)
    return records


def _check_sliding(problem: Problem) -> None:
    """Refuse friction on obstacles unless all affected vertices stick at their rest positions.

    Such a vertex has a constant position. The position of a sliding vertex depends on its path, and its
    friction on the normal force and on the direction of the slip.
    """
    normals, _, forces, which = problem.contacts.get_planes(0)
    normal_force = np.einsum("pni,pni->pn", normals, forces)
    friction = np.linalg.norm(forces - normal_force[..., None] * normals, axis=2)
    limit = problem.contacts.coefficients(0) * normal_force
    u = problem.positions - problem.model.rest
    slip = np.linalg.norm(u - np.einsum("pni,ni->pn", normals, u)[..., None] * normals, axis=2)
    sticks = (friction < STICK_FRACTION * limit) & (slip <= MAX_SLIP * problem.model.mean_edge)
    slid = (limit > 0) & ~sticks
    if slid.any():
        assert problem.model.obstacles is not None
        names = problem.model.obstacles.names
        names_in_contact = comma_list({names[k]: None for k in which[slid] if 0 <= k < len(names)})
        raise NoGradientError(
            "Gradients do not support sliding friction, whose result depends on its path, and "
            f"{pluralize(int(slid.any(axis=0).sum()), 'vertex', 'vertices')} slid along "
            f"{names_in_contact}. Set friction=0 for this obstacle, or use central differences of "
            "whole solves from the same initial state."
        )


def _count_contacts(problem: Problem) -> tuple[int, int]:
    """Number of vertices in contact with obstacles, and number with negligible contact force."""
    problem.balance()
    _, _, forces, _ = problem.contacts.get_planes(0)
    force = np.linalg.norm(forces, axis=2).max(axis=0)
    largest = force.max(initial=0.0)
    return int((force > 0).sum()), int(((force > 0) & (force < 1e-6 * largest)).sum())
