"""The certificates of several copies of a state, as bodies of one problem where that can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from supple.problem import Balance, Problem
from supple.solvers.newton_steps.certificate import ACCURACY, Certificate, certify, distances_of_copies
from supple.solvers.newton_steps.gathered import gather, room_for, size_for
from supple.solvers.newton_steps.linearisation import Linearisation


def certify_copies(problem: Problem, balances: Mapping[int, Balance]) -> dict[int, Certificate]:
    """Of the copies that have these balances."""
    found: dict[int, Certificate] = {}
    room = room_for(problem)
    moving = [copy for copy, balance in balances.items() if not balance.at_rest and balance.residual > 0]
    groups = range(0, len(moving), room) if room > 1 and len(moving) > 1 else ()
    for first in groups:
        found |= _certify_together(problem, moving[first : first + room])
    return found | {copy: certify(problem, copy) for copy in balances if copy not in found}


def _certify_together(problem: Problem, copies: Sequence[int]) -> dict[int, Certificate]:
    """By one linear solve; where that meets negative curvature, of the others than those that have it. Those
    for which it is less accurate than one of their own would be are solved for once more, without the others.
    What there is room for beyond these copies repeats the last."""
    began, model, room = perf_counter(), problem.model, size_for(problem, len(copies))
    gathered = gather(problem, [*copies, *[copies[-1]] * (room - len(copies))])
    if not gathered.balance().finite:
        return {}
    linear: Linearisation = gathered.shared("linearisation", lambda: Linearisation(gathered, each=False))
    states, shape = gathered.states, (room, model.vertices, 3)
    forces = np.where(model.free[:, None], states.vectors(states.net)[0].reshape(shape), 0)
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    if direction.filtered and not direction.adrift:
        others = _without_concave(copies, direction.shares, room)
        return _certify_others(problem, copies, others)
    d = states.vectors(direction.d)[0].reshape(shape)
    found = _certificates(problem, d, forces, states.vectors(states.u)[0].reshape(shape))
    each = (perf_counter() - began) / len(copies)
    known = {copy: replace(one, seconds=each) for copy, one in zip(copies, found, strict=False)}
    left = _left(linear, direction.left, room)
    late = [copy for copy, part in zip(copies, left, strict=False) if not part <= ACCURACY]
    known = {copy: one for copy, one in known.items() if copy not in late}
    return known | _certify_others(problem, copies, late)


def _left(linear: Linearisation, left: np.ndarray, room: int) -> np.ndarray:
    """(room,) the most that is left of a part of each copy, of what is left of each part."""
    copy = linear.free // (linear.problem.model.vertices // room)
    most = np.zeros(room)
    np.maximum.at(most, copy, left[linear.parts.number])
    return most


def _certify_others(problem: Problem, copies: Sequence[int], some: Sequence[int]) -> dict[int, Certificate]:
    """Of some of these copies, if they are fewer: what one alone is to do, or all again, is left."""
    return _certify_together(problem, some) if 1 < len(some) < len(copies) else {}


def _without_concave(copies: Sequence[int], shares: np.ndarray | None, room: int) -> list[int]:
    """Copies without those along whose part of the direction the energy is concave: shares, see `Direction`;
    none where nothing is known of it."""
    if shares is None:
        return []
    bent = shares.reshape(room, -1).sum(axis=1) < 0
    bent[len(copies) - 1] |= bent[len(copies) :].any()
    return [copy for copy, concave in zip(copies, bent, strict=False) if not concave] if bent.any() else []


def _certificates(problem: Problem, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> list[Certificate]:
    """Of stable copies."""
    slopes, squares = (np.einsum("cni,cni->c", d, other).tolist() for other in (forces, d))
    found: list[Certificate] = []
    known = distances_of_copies(problem.model, d, forces, u)
    for bodies, slope, square in zip(known, slopes, squares, strict=True):
        if not slope > 0:  # nothing is known
            bodies = tuple(replace(body, position=np.inf, energy=np.inf) for body in bodies)
        found.append(Certificate(bodies, True, slope / square if square else None, 0.0))
    return found
