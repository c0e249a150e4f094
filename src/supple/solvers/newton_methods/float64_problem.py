"""Shadow problem in float64 at the same step, for methods that need energy differences."""

from __future__ import annotations

import numpy as np

from supple.problem import Problem
from supple.problem.material_update import have_same_layout, with_materials


def to_float64(problem: Problem, member: int = 0) -> Problem:
    """Return the problem in float64 with batch size 1 at the state of a batch member.

    A problem with these properties is returned itself. Otherwise the copy is on a device of the same kind and
    has the same u, forces and inertia.
    """
    if problem.batch_size == 1 and problem.dtype == np.float64:
        return problem
    shadow = _cached_shadow(problem, problem.layout.materials[member if problem.layout.varied else 0])
    shadow.loads.copy_from(problem.loads, member)
    copy_state(shadow, problem, member)
    return shadow


def copy_state(shadow: Problem, problem: Problem, member: int = 0) -> None:
    """Copy the state and the prescribed positions of a batch member to a problem with the same vertices."""
    own, other = shadow.states, problem.states
    pairs = [(own.u, other.u), (own.anchor, other.anchor)]
    if problem.model.constraint_projection is not None:
        pairs.append((own.constrained_at, other.constrained_at))
    for records, source in pairs:
        records[:-1, :3] = other.vectors(source)[member]
        shadow.device.upload(records)
    for k in shadow.gases.indices:
        shadow.gases.set_gas(k, problem.model.terms[k])  # type: ignore[arg-type]
    shadow.follower_loads.copy_from(problem.follower_loads)
    shadow.trust_region.outdated = True


def _cached_shadow(problem: Problem, materials: tuple) -> Problem:
    """Return the cached shadow problem with these materials, or a new one if incompatible."""

    def make() -> Problem:
        model = with_materials(problem.model, materials) if problem.layout.varied else problem.model
        return Problem(model, "float64", device=problem.device.clone(np.dtype(float)))

    shadow: Problem = problem.get_shared("float64 problem", make)
    if not problem.layout.varied:
        return shadow
    if not have_same_layout(shadow.model, materials):
        return problem.get_shared("float64 problem", make, recompute=True)
    if shadow.layout.materials != [materials]:
        shadow.use_materials([materials])
    return shadow


def write_back(shadow: Problem, problem: Problem, member: int = 0) -> None:
    """Write the u of the shadow problem to a batch member of the problem, rounded."""
    if shadow is not problem:
        states = problem.states
        states.vectors(states.u)[member] = shadow.states.vectors(shadow.u)[0]
        problem.device.upload(states.u)
        problem.trust_region.outdated = True
