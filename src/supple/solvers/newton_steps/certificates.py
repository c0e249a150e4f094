"""Error estimates of several batch members, solved as bodies of one block-diagonal problem where possible."""

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
    """Estimate the errors of the batch members that have balances.

    Args:
        problem: Problem with its batch.
        balances: Balance of each batch member.

    Returns:
        Error estimate of each batch member.
    """
    found: dict[int, Certificate] = {}
    room = room_for(problem)
    moving = [copy for copy, balance in balances.items() if not balance.at_rest and balance.residual > 0]
    groups = range(0, len(moving), room) if room > 1 and len(moving) > 1 else ()
    for first in groups:
        found |= _certify_together(problem, moving[first : first + room])
    return found | {copy: certify(problem, copy) for copy in balances if copy not in found}


def _certify_together(problem: Problem, copies: Sequence[int]) -> dict[int, Certificate]:
    """Estimate errors by one linear solve of several batch members.

    If the solve meets negative curvature, it is repeated without the members that caused it. Members whose
    accuracy is below that of a solve of their own are solved again without the others. Unused slots of the
    gathered problem repeat the last member.

    Returns:
        Error estimates of the members that could be solved; the others are left out.
    """
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
    """(room,) largest remaining error of each batch member over its components."""
    copy = linear.free // (linear.problem.model.vertices // room)
    most = np.zeros(room)
    np.maximum.at(most, copy, left[linear.parts.number])
    return most


def _certify_others(problem: Problem, copies: Sequence[int], some: Sequence[int]) -> dict[int, Certificate]:
    """Estimate errors of a smaller group together; other groups are left to the caller."""
    return _certify_together(problem, some) if 1 < len(some) < len(copies) else {}


def _without_concave(copies: Sequence[int], shares: np.ndarray | None, room: int) -> list[int]:
    """Drop the batch members along whose part of the direction the energy is concave.

    Args:
        copies: Batch members.
        shares: Contributions of the vertices to p · H p, see `Direction`.
        room: Size of the gathered problem.

    Returns:
        The remaining members; none if the contributions are unknown or no member is concave.
    """
    if shares is None:
        return []
    bent = shares.reshape(room, -1).sum(axis=1) < 0
    bent[len(copies) - 1] |= bent[len(copies) :].any()
    return [copy for copy, concave in zip(copies, bent, strict=False) if not concave] if bent.any() else []


def _certificates(problem: Problem, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> list[Certificate]:
    """Error estimates of stable batch members."""
    slopes, squares = (np.einsum("cni,cni->c", d, other).tolist() for other in (forces, d))
    found: list[Certificate] = []
    known = distances_of_copies(problem.model, d, forces, u)
    for bodies, slope, square in zip(known, slopes, squares, strict=True):
        if not slope > 0:  # no estimate
            bodies = tuple(replace(body, position=np.inf, energy=np.inf) for body in bodies)
        found.append(Certificate(bodies, True, slope / square if square else None, 0.0))
    return found
