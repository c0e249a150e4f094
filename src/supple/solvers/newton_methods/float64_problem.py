"""Shadow problem in float64 at the same step, for methods that need energy differences."""

from __future__ import annotations

import numpy as np

from supple.problem import Problem
from supple.problem.material_update import are_alike, with_materials


def exact_twin(problem: Problem, member: int = 0) -> Problem:
    """Return the problem in float64 with batch size 1 at the state of a batch member.

    A problem with these properties is returned itself. Otherwise the copy is on a device of the same kind and
    has the same u, forces and inertia.
    """
    if problem.batch_size == 1 and problem.dtype == np.float64:
        return problem
    twin = _made_of(problem, problem.layout.materials[member if problem.layout.varied else 0])
    twin.loads.copy(problem.loads, member)
    follow(twin, problem, member)
    return twin


def follow(twin: Problem, problem: Problem, member: int = 0) -> None:
    """Copy the state and the prescribed positions of a batch member to a problem with the same vertices."""
    own, other = twin.states, problem.states
    pairs = [(own.u, other.u), (own.anchor, other.anchor)]
    if problem.model.held is not None:
        pairs.append((own.held_at, other.held_at))
    for records, copied in pairs:
        records[:-1, :3] = other.vectors(copied)[member]
        twin.device.upload(records)
    for k in twin.gases.indices:
        twin.gases.take(k, problem.model.terms[k])  # type: ignore[arg-type]
    twin.follower_loads.copy(problem.follower_loads)
    twin.room.stale = True


def _made_of(problem: Problem, materials: tuple) -> Problem:
    """Return the cached shadow problem with these materials, or a new one if incompatible."""

    def make() -> Problem:
        model = with_materials(problem.model, materials) if problem.layout.varied else problem.model
        return Problem(model, "float64", device=problem.device.clone(np.dtype(float)))

    twin: Problem = problem.shared("float64 twin", make)
    if not problem.layout.varied:
        return twin
    if not are_alike(twin.model, materials):
        return problem.shared("float64 twin", make, anew=True)
    if twin.layout.materials != [materials]:
        twin.use_materials([materials])
    return twin


def bring_back(twin: Problem, problem: Problem, member: int = 0) -> None:
    """Write the u of the shadow problem to a batch member of the problem, rounded."""
    if twin is not problem:
        states = problem.states
        states.vectors(states.u)[member] = twin.states.vectors(twin.u)[0]
        problem.device.upload(states.u)
        problem.room.stale = True
