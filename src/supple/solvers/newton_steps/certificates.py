"""The certificates of several copies of a state, as bodies of one problem where that can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from supple.problem import Balance, Problem
from supple.solvers.newton_steps.certificate import ACCURACY, Certificate, certify, distances
from supple.solvers.newton_steps.gathered import gather, room_for
from supple.solvers.newton_steps.linearisation import Linearisation


def certify_copies(problem: Problem, balances: Mapping[int, Balance]) -> dict[int, Certificate]:
    """Of the copies that have these balances."""
    found: dict[int, Certificate] = {}
    room = room_for(problem)
    moving = [copy for copy, balance in balances.items() if not balance.at_rest and balance.residual > 0]
    groups = range(0, len(moving), room) if room > 1 and len(moving) > 1 else ()
    for first in groups:
        found |= _certify_together(problem, moving[first : first + room], room)
    return found | {copy: certify(problem, copy) for copy in balances if copy not in found}


def _certify_together(problem: Problem, copies: Sequence[int], room: int) -> dict[int, Certificate]:
    """By one linear solve; none where that meets negative curvature, since it does not tell whose that is.
    Forces of each copy are scaled to one length, so that those of others do not hide them. What there is
    room for beyond these copies repeats the last."""
    began, model = perf_counter(), problem.model
    gathered = gather(problem, [*copies, *[copies[-1]] * (room - len(copies))])
    linear: Linearisation = gathered.shared("linearisation", lambda: Linearisation(gathered))
    if not gathered.balance().finite:
        return {}
    states = gathered.states
    net = states.vectors(states.net)[0].reshape(room, model.vertices, 3)
    forces = np.where(model.free[:, None], net, 0)
    size = np.linalg.norm(forces, axis=(1, 2))[:, None, None]
    net /= np.maximum(size, np.finfo(float).tiny)
    gathered.device.push(states.net)
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    if direction.filtered:
        return {}
    every = states.vectors(direction.d)[0].reshape(net.shape) * size
    positions = states.vectors(states.u)[0].reshape(net.shape)
    each = (perf_counter() - began) / len(copies)
    parts = zip(copies, every, forces, positions, strict=False)
    return {copy: _certificate(problem, d, f, u, each) for copy, d, f, u in parts}


def _certificate(
    problem: Problem, d: np.ndarray, forces: np.ndarray, u: np.ndarray, seconds: float
) -> Certificate:
    """Of a stable copy, in so many seconds."""
    bodies = distances(problem.model, d, forces, u)
    slope, square = float((d * forces).sum()), float((d * d).sum())
    if not slope > 0:  # nothing is known
        bodies = tuple(replace(body, position=np.inf, energy=np.inf) for body in bodies)
    return Certificate(bodies, True, slope / square if square else None, seconds)
