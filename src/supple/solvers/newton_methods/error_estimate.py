"""A-posteriori estimate of the distance to the equilibrium by one Newton step.

With the net forces f and the Hessian H, the solution Δu of H Δu = f (`d` in the code) is the displacement to
the equilibrium, and ½ Δu · f is the energy above it, both to second order. Unlike residual norms, Δu is not
dominated by the stiffest elements. Tractions that follow their surface have a load stiffness K: then (H - K)
Δu = f, and the stability of the equilibrium is not assessed, since these loads have no energy.

The estimates of several batch members are solved as bodies of one block-diagonal problem where possible.
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
from supple.solvers.newton_methods.block_diagonal import block_capacity, join_members, padded_block_size
from supple.solvers.newton_methods.float64_problem import to_float64
from supple.solvers.newton_methods.newton_system import Direction, Linearization

ACCURACY = 1e-2
"""Relative accuracy of Δu in the energy norm."""


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
        return text if self.stable else f"{text}; not stable: the energy falls in some direction"


def prepare(problem: Problem) -> None:
    """Compute the state-independent data of error estimates, so that its time counts as set-up."""
    shadow = to_float64(problem)
    shadow.get_shared("linearization", lambda: Linearization(shadow))


def estimate_error(problem: Problem, member: int = 0, exact: Problem | None = None) -> ErrorEstimate:
    """Estimate the error of the problem's u.

    Args:
        problem: Problem with its u.
        member: Batch member.
        exact: Problem in float64 whose rounded state is u. The distances then include the displacement by
            rounding.
    """
    began = perf_counter()
    shadow = exact or (
        active_set_problem(problem, member) if problem.contacts else to_float64(problem, member)
    )
    shadow.follower_loads.sync()
    balance = shadow.balance()
    linear: Linearization = shadow.get_shared("linearization", lambda: Linearization(shadow))
    resting = balance.at_rest and shadow.energy() <= shadow.diagnostics.energy_rounding()
    nothing = Direction(shadow.zeros(shadow.u.shape), False, None, 0.0, None)
    has_follower_loads = bool(shadow.follower_loads)
    if has_follower_loads:
        direction = linear.follower_direction(ACCURACY)
    else:
        direction = nothing if resting else linear.direction(ACCURACY, 0.0, probe=True)
    if balance.at_rest:
        direction = direction._replace(d=nothing.d, slope=0.0)
    states = shadow.states
    d, net, u = (states.vectors(records)[0] for records in (direction.d, states.net, states.u))
    bodies = body_errors(shadow.model, d, net, u)
    known = not direction.projected if has_follower_loads else direction.slope > 0
    if not balance.at_rest and balance.residual > 0 and not known:  # no estimate
        bodies = tuple(replace(body, position_error_m=np.inf, energy_error=np.inf) for body in bodies)
    elif has_follower_loads:  # f · Δu may have either sign
        bodies = tuple(replace(body, energy_error=abs(body.energy_error)) for body in bodies)
    if exact is not None:
        moved = vectors_of(problem.states, problem.u, [member])[0] - states.vectors(states.u)[0]
        bodies = tuple(map(_add_distance, bodies, _lengths(shadow.model, moved)))
    stable = has_follower_loads or not direction.projected or direction.rigid_only
    stable = stable or (bool(problem.contacts) and _is_rounding(direction, linear))
    if not stable and problem.contacts and problem.contacts.has_friction:
        stable = _is_stable_by_friction(problem, member)
    return ErrorEstimate(bodies, stable, direction.curvature, perf_counter() - began)


def _is_stable_by_friction(problem: Problem, member: int) -> bool:
    """True if the energy has no direction of decrease that keeps all frictional contacts at rest.

    Sliding of such a vertex costs frictional work of first order in its path; negative curvature gains work
    of second order only.
    """
    shadow = active_set_problem(problem, member, sliding=False)
    linear = shadow.get_shared("linearization", lambda: Linearization(shadow))
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    return not direction.projected or direction.rigid_only or _is_rounding(direction, linear)


MIN_CURVATURE = 1e-9
"""Smallest significant negative curvature with obstacles, as a fraction of the stiffness of a vertex.

Bodies may slide freely on obstacles, with curvature 0 up to rounding.
"""


def _is_rounding(direction: Direction, linear: Linearization) -> bool:
    """True if negative curvature is rounding."""
    stiffest = float(np.abs(linear.assembly.hessian("bound").diagonal()).max(initial=0))
    return direction.curvature is not None and direction.curvature > -MIN_CURVATURE * stiffest


def _lengths(model: Model, vectors: np.ndarray) -> list[float]:
    """Largest length of the vectors (n, 3) in each body."""
    return [float(np.linalg.norm(vectors[own], axis=1).max(initial=0)) for _, own in model.body_vertices]


def _add_distance(body: BodyError, by: float) -> BodyError:
    return replace(body, position_error_m=body.position_error_m + by)


def body_errors(model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> tuple[BodyError, ...]:
    """Return the distance of every body to its equilibrium.

    Args:
        model: The model.
        d: (n, 3) Newton direction Δu [m].
        forces: (n, 3) net forces [N].
        u: (n, 3) displacements [m].
    """
    return batch_body_errors(model, d[None], forces[None], u[None])[0]


def batch_body_errors(
    model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray
) -> list[tuple[BodyError, ...]]:
    """Return the distances of the bodies of several batch members.

    Args:
        model: The model.
        d: (batch, n, 3) Newton directions Δu [m].
        forces: (batch, n, 3) net forces [N].
        u: (batch, n, 3) displacements [m].

    Returns:
        For each batch member the distances of all bodies.
    """
    work = np.where(model.free, 0.5 * np.einsum("cni,cni->cn", d, forces), 0)
    length, moved = (np.sqrt(np.einsum("cni,cni->cn", vectors, vectors)) for vectors in (d, u))
    bodies = []
    for name, own in model.body_vertices:
        size = float(np.ptp(model.rest[own], axis=0).max(initial=0))
        position, farthest = (lengths[:, own].max(axis=1, initial=0) for lengths in (length, moved))
        statistics = zip(position.tolist(), work[:, own].sum(axis=1).tolist(), farthest.tolist(), strict=True)
        bodies.append(
            [
                BodyError(name, distance, energy, size, displacement)
                for distance, energy, displacement in statistics
            ]
        )
    return list(zip(*bodies, strict=True))


def estimate_errors(problem: Problem, balances: Mapping[int, Balance]) -> dict[int, ErrorEstimate]:
    """Estimate the errors of the batch members that have balances.

    Args:
        problem: Problem with its batch.
        balances: Balance of each batch member.

    Returns:
        Error estimate of each batch member.
    """
    estimates: dict[int, ErrorEstimate] = {}
    group_size = block_capacity(problem)
    moving = [member for member, balance in balances.items() if not balance.at_rest and balance.residual > 0]
    groups = range(0, len(moving), group_size) if group_size > 1 and len(moving) > 1 else ()
    for first in groups:
        estimates |= _estimate_batch(problem, moving[first : first + group_size])
    return estimates | {
        member: estimate_error(problem, member) for member in balances if member not in estimates
    }


def _estimate_batch(problem: Problem, members: Sequence[int]) -> dict[int, ErrorEstimate]:
    """Estimate errors by one linear solve of several batch members.

    If the solve meets negative curvature, it is repeated without the members that caused it. Members whose
    accuracy is below that of a solve of their own are solved again without the others. Unused slots of the
    block-diagonal problem repeat the last member.

    Returns:
        Error estimates of the members that could be solved; the others are left out.
    """
    began, model, group_size = perf_counter(), problem.model, padded_block_size(problem, len(members))
    block_problem = join_members(problem, [*members, *[members[-1]] * (group_size - len(members))])
    if not block_problem.balance().finite:
        return {}
    linear: Linearization = block_problem.get_shared(
        "linearization", lambda: Linearization(block_problem, per_component=False)
    )
    states, shape = block_problem.states, (group_size, model.vertices, 3)
    forces = np.where(model.free[:, None], states.vectors(states.net)[0].reshape(shape), 0)
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    if direction.projected and not direction.rigid_only:
        others = _drop_concave(members, direction.shares, group_size)
        return _estimate_subset(problem, members, others)
    d = states.vectors(direction.d)[0].reshape(shape)
    estimates = _batch_estimates(problem, d, forces, states.vectors(states.u)[0].reshape(shape))
    each = (perf_counter() - began) / len(members)
    known = {member: replace(one, seconds=each) for member, one in zip(members, estimates, strict=False)}
    left = _remaining_errors(linear, direction.errors, group_size)
    inaccurate = [member for member, part in zip(members, left, strict=False) if not part <= ACCURACY]
    known = {member: one for member, one in known.items() if member not in inaccurate}
    return known | _estimate_subset(problem, members, inaccurate)


def _remaining_errors(linear: Linearization, left: np.ndarray, group_size: int) -> np.ndarray:
    """(group_size,) largest remaining error of each batch member over its components."""
    member = linear.free // (linear.problem.model.vertices // group_size)
    most = np.zeros(group_size)
    np.maximum.at(most, member, left[linear.parts.number])
    return most


def _estimate_subset(
    problem: Problem, members: Sequence[int], subset: Sequence[int]
) -> dict[int, ErrorEstimate]:
    """Estimate errors of a smaller group in one solve; return nothing for other groups."""
    return _estimate_batch(problem, subset) if 1 < len(subset) < len(members) else {}


def _drop_concave(members: Sequence[int], shares: np.ndarray | None, group_size: int) -> list[int]:
    """Drop the batch members along whose part of the direction the energy is concave.

    Args:
        members: Batch members.
        shares: Contributions of the vertices to p · H p, see `Direction`.
        group_size: Size of the block-diagonal problem.

    Returns:
        The remaining members; none if the contributions are unknown or no member is concave.
    """
    if shares is None:
        return []
    bent = shares.reshape(group_size, -1).sum(axis=1) < 0
    bent[len(members) - 1] |= bent[len(members) :].any()
    return (
        [member for member, concave in zip(members, bent, strict=False) if not concave] if bent.any() else []
    )


def _batch_estimates(
    problem: Problem, d: np.ndarray, forces: np.ndarray, u: np.ndarray
) -> list[ErrorEstimate]:
    """Error estimates of stable batch members."""
    slopes, squares = (np.einsum("cni,cni->c", d, other).tolist() for other in (forces, d))
    estimates: list[ErrorEstimate] = []
    known = batch_body_errors(problem.model, d, forces, u)
    for bodies, slope, square in zip(known, slopes, squares, strict=True):
        if not slope > 0:  # no estimate
            bodies = tuple(replace(body, position_error_m=np.inf, energy_error=np.inf) for body in bodies)
        estimates.append(ErrorEstimate(bodies, True, slope / square if square else None, 0.0))
    return estimates
