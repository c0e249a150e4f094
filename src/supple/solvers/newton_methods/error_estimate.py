"""A-posteriori estimate of the distance to the equilibrium by one Newton step.

With the net forces r and the Hessian H, the solution d of H d = r is the displacement to the equilibrium, and
½ d · r is the energy above it, both to second order. Unlike residual norms, d is not dominated by the
stiffest elements. Tractions that follow their surface have a load stiffness K: then (H - K) d = r, and the
stability of the equilibrium is not assessed, since these loads have no energy.

Error estimates of several batch members, solved as bodies of one block-diagonal problem where possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from supple.model.model import Model
from supple.problem import Balance, Problem
from supple.problem.states import vectors_of
from supple.solvers.newton_methods.active_set import active_set_problem
from supple.solvers.newton_methods.block_diagonal import gather, room_for, size_for
from supple.solvers.newton_methods.float64_problem import to_float64
from supple.solvers.newton_methods.newton_system import Direction, Linearization

ACCURACY = 1e-2
"""Relative accuracy of d in the energy norm."""


@dataclass(frozen=True)
class BodyError:
    """Estimated error of one body: how far it is from its equilibrium.

    Attributes:
        body: Name of the body.
        position_error_m: Largest distance of a vertex from the equilibrium [m].
        energy_error: Energy above the equilibrium [J].
        size: Largest extent at rest [m].
        displacement: Largest displacement of a vertex [m].
    """

    body: str
    position_error_m: float
    energy_error: float
    size: float
    displacement: float

    @property
    def position_error(self) -> float:
        """Largest distance of a vertex from the equilibrium, relative to the size."""
        return self.position_error_m / self.size if self.size else 0.0

    @property
    def of_displacement(self) -> float:
        """Ratio position_error_m / displacement; infinite if the body is undisplaced but its equilibrium is
        not."""
        return (
            self.position_error_m / self.displacement
            if self.displacement
            else float(np.inf if self.position_error_m else 0)
        )


@dataclass(frozen=True)
class ErrorEstimate:
    """Error estimate of a state: distances to the equilibrium, and stability.

    Attributes:
        bodies: Errors of the bodies in the order of the scene.
        stable: True if the energy is convex along all directions that were examined, except rigid motions of
            unconstrained bodies. Always True under tractions that follow their surface.
        curvature: Smallest curvature met, p · H p / |p|² [N/m], if known.
        seconds: Computing time.
    """

    bodies: tuple[BodyError, ...]
    stable: bool
    curvature: float | None
    seconds: float

    @property
    def worst(self) -> BodyError:
        """Error of the body with the largest `position_error`."""
        return max(self.bodies, key=lambda body: body.position_error)

    @property
    def position_error(self) -> float:
        """Largest `position_error` of a body: distance from the equilibrium relative to its size."""
        return self.worst.position_error

    @property
    def position_error_m(self) -> float:
        """Largest distance of a vertex of any body from the equilibrium [m]."""
        return max(body.position_error_m for body in self.bodies)

    @property
    def energy_error(self) -> float:
        """Total energy above the equilibrium [J]."""
        return sum(body.energy_error for body in self.bodies)

    def to_dict(self) -> dict[str, Any]:
        return {
            "bodies": [
                {**vars(body), "position_error": body.position_error, "of_displacement": body.of_displacement}
                for body in self.bodies
            ],
            "stable": self.stable,
            "curvature": self.curvature,
            "position_error": self.position_error,
            "position_error_m": self.position_error_m,
            "energy_error": self.energy_error,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        worst = self.worst
        named = f"{worst.body}: " if len(self.bodies) > 1 and worst.body else ""
        text = (
            f"distance to the equilibrium {worst.position_error:.1e} of the size "
            f"({named}{worst.position_error_m:.2e} m, "
            f"{worst.of_displacement:.1e} of the displacement), {self.energy_error:.1e} J"
        )
        return text if self.stable else f"{text}; not stable: in some direction the energy falls"


def prepare(problem: Problem) -> None:
    """Compute the state-independent data of error estimates, so that its time counts as set-up."""
    shadow = to_float64(problem)
    shadow.shared("linearization", lambda: Linearization(shadow))


def certify(problem: Problem, member: int = 0, exact: Problem | None = None) -> ErrorEstimate:
    """Estimate the error of the problem's u.

    Args:
        problem: Problem with its u.
        copy: Batch member.
        exact: Problem in float64 whose rounded state is u. The distances then include the displacement by
            rounding.
    """
    began = perf_counter()
    shadow = exact or (
        active_set_problem(problem, member) if problem.contacts else to_float64(problem, member)
    )
    shadow.follower_loads.sync()
    balance = shadow.balance()
    linear: Linearization = shadow.shared("linearization", lambda: Linearization(shadow))
    resting = balance.at_rest and shadow.energy() <= shadow.measures.energy_rounding()
    nothing = Direction(shadow.zeros(shadow.u.shape), False, None, 0.0, None)
    follows = bool(shadow.follower_loads)
    if follows:
        direction = linear.follower_direction(ACCURACY)
    else:
        direction = nothing if resting else linear.direction(ACCURACY, 0.0, probe=True)
    if balance.at_rest:
        direction = direction._replace(d=nothing.d, slope=0.0)
    states = shadow.states
    d, net, u = (states.vectors(records)[0] for records in (direction.d, states.net, states.u))
    bodies = distances(shadow.model, d, net, u)
    known = not direction.filtered if follows else direction.slope > 0
    if not balance.at_rest and balance.residual > 0 and not known:  # no estimate
        bodies = tuple(replace(body, position_error_m=np.inf, energy_error=np.inf) for body in bodies)
    elif follows:  # r · d may have either sign
        bodies = tuple(replace(body, energy_error=abs(body.energy_error)) for body in bodies)
    if exact is not None:
        moved = vectors_of(problem.states, problem.u, [member])[0] - states.vectors(states.u)[0]
        bodies = tuple(map(_farther, bodies, _lengths(shadow.model, moved)))
    stable = follows or not direction.filtered or direction.adrift
    stable = stable or (bool(problem.contacts) and _hardly(direction, linear))
    if not stable and problem.contacts and problem.contacts.rough:
        stable = _held_by_friction(problem, member)
    return ErrorEstimate(bodies, stable, direction.curvature, perf_counter() - began)


def _held_by_friction(problem: Problem, member: int) -> bool:
    """True if the energy has no direction of decrease that keeps all frictional contacts at rest.

    Sliding of such a vertex costs frictional work of first order in its path; negative curvature gains work
    of second order only.
    """
    shadow = active_set_problem(problem, member, sliding=False)
    linear = shadow.shared("linearization", lambda: Linearization(shadow))
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    return not direction.filtered or direction.adrift or _hardly(direction, linear)


FLAT = 1e-9
"""Smallest significant negative curvature with obstacles, as a fraction of the stiffness of a vertex.

Bodies may slide freely on obstacles, with curvature 0 up to rounding.
"""


def _hardly(direction: Direction, linear: Linearization) -> bool:
    """True if negative curvature is rounding."""
    stiffest = float(np.abs(linear.assembly.hessian("bound").diagonal()).max(initial=0))
    return direction.curvature is not None and direction.curvature > -FLAT * stiffest


def _lengths(model: Model, vectors: np.ndarray) -> list[float]:
    """Largest length of the vectors (n, 3) in each body."""
    return [float(np.linalg.norm(vectors[own], axis=1).max(initial=0)) for _, own in model.body_vertices]


def _farther(body: BodyError, by: float) -> BodyError:
    return replace(body, position_error_m=body.position_error_m + by)


def distances(model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> tuple[BodyError, ...]:
    """Return the distance of every body to its equilibrium.

    Args:
        model: The model.
        d: (n, 3) Newton direction [m].
        forces: (n, 3) net forces [N].
        u: (n, 3) displacements [m].
    """
    return distances_of_copies(model, d[None], forces[None], u[None])[0]


def distances_of_copies(
    model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray
) -> list[tuple[BodyError, ...]]:
    """Return the distances of the bodies of several batch members.

    Args:
        model: The model.
        d: (copies, n, 3) Newton directions [m].
        forces: (copies, n, 3) net forces [N].
        u: (copies, n, 3) displacements [m].

    Returns:
        For each batch member the distances of all bodies.
    """
    work = np.where(model.free, 0.5 * np.einsum("cni,cni->cn", d, forces), 0)
    length, moved = (np.sqrt(np.einsum("cni,cni->cn", vectors, vectors)) for vectors in (d, u))
    bodies = []
    for name, own in model.body_vertices:
        size = float(np.ptp(model.rest[own], axis=0).max(initial=0))
        position, farthest = (lengths[:, own].max(axis=1, initial=0) for lengths in (length, moved))
        figures = zip(position.tolist(), work[:, own].sum(axis=1).tolist(), farthest.tolist(), strict=True)
        bodies.append([BodyError(name, far, energy, size, most) for far, energy, most in figures])
    return list(zip(*bodies, strict=True))


def certify_copies(problem: Problem, balances: Mapping[int, Balance]) -> dict[int, ErrorEstimate]:
    """Estimate the errors of the batch members that have balances.

    Args:
        problem: Problem with its batch.
        balances: Balance of each batch member.

    Returns:
        Error estimate of each batch member.
    """
    found: dict[int, ErrorEstimate] = {}
    room = room_for(problem)
    moving = [member for member, balance in balances.items() if not balance.at_rest and balance.residual > 0]
    groups = range(0, len(moving), room) if room > 1 and len(moving) > 1 else ()
    for first in groups:
        found |= _certify_together(problem, moving[first : first + room])
    return found | {member: certify(problem, member) for member in balances if member not in found}


def _certify_together(problem: Problem, members: Sequence[int]) -> dict[int, ErrorEstimate]:
    """Estimate errors by one linear solve of several batch members.

    If the solve meets negative curvature, it is repeated without the members that caused it. Members whose
    accuracy is below that of a solve of their own are solved again without the others. Unused slots of the
    gathered problem repeat the last member.

    Returns:
        Error estimates of the members that could be solved; the others are left out.
    """
    began, model, room = perf_counter(), problem.model, size_for(problem, len(members))
    gathered = gather(problem, [*members, *[members[-1]] * (room - len(members))])
    if not gathered.balance().finite:
        return {}
    linear: Linearization = gathered.shared("linearization", lambda: Linearization(gathered, each=False))
    states, shape = gathered.states, (room, model.vertices, 3)
    forces = np.where(model.free[:, None], states.vectors(states.net)[0].reshape(shape), 0)
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    if direction.filtered and not direction.adrift:
        others = _without_concave(members, direction.shares, room)
        return _certify_others(problem, members, others)
    d = states.vectors(direction.d)[0].reshape(shape)
    found = _certificates(problem, d, forces, states.vectors(states.u)[0].reshape(shape))
    each = (perf_counter() - began) / len(members)
    known = {member: replace(one, seconds=each) for member, one in zip(members, found, strict=False)}
    left = _left(linear, direction.left, room)
    late = [member for member, part in zip(members, left, strict=False) if not part <= ACCURACY]
    known = {member: one for member, one in known.items() if member not in late}
    return known | _certify_others(problem, members, late)


def _left(linear: Linearization, left: np.ndarray, room: int) -> np.ndarray:
    """(room,) largest remaining error of each batch member over its components."""
    member = linear.free // (linear.problem.model.vertices // room)
    most = np.zeros(room)
    np.maximum.at(most, member, left[linear.parts.number])
    return most


def _certify_others(
    problem: Problem, members: Sequence[int], some: Sequence[int]
) -> dict[int, ErrorEstimate]:
    """Estimate errors of a smaller group together; other groups are left to the caller."""
    return _certify_together(problem, some) if 1 < len(some) < len(members) else {}


def _without_concave(members: Sequence[int], shares: np.ndarray | None, room: int) -> list[int]:
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
    bent[len(members) - 1] |= bent[len(members) :].any()
    return (
        [member for member, concave in zip(members, bent, strict=False) if not concave] if bent.any() else []
    )


def _certificates(problem: Problem, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> list[ErrorEstimate]:
    """Error estimates of stable batch members."""
    slopes, squares = (np.einsum("cni,cni->c", d, other).tolist() for other in (forces, d))
    found: list[ErrorEstimate] = []
    known = distances_of_copies(problem.model, d, forces, u)
    for bodies, slope, square in zip(known, slopes, squares, strict=True):
        if not slope > 0:  # no estimate
            bodies = tuple(replace(body, position_error_m=np.inf, energy_error=np.inf) for body in bodies)
        found.append(ErrorEstimate(bodies, True, slope / square if square else None, 0.0))
    return found
