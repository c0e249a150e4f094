"""How far a state is from the equilibrium: one Newton step says it, beside what stiffness hides in forces.

With the net forces r and the Hessian H there, d with H d = r is how far the equilibrium is, and ½ d · r how
much lower its energy: to second order, which near the equilibrium is all there is. Tractions that follow
their surface have a load stiffness K: then (H - K) d = r, and no energy tells whether the equilibrium is
stable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from supple.model import Model
from supple.problem import Problem
from supple.problem.states import vectors_of
from supple.solvers.newton_steps.linearisation import Direction, Linearisation
from supple.solvers.newton_steps.touching_twin import touching_twin
from supple.solvers.newton_steps.twin import exact_twin

ACCURACY = 1e-2
"""Of d, in the norm of the energy."""


@dataclass(frozen=True)
class Distance:
    """Of one body to its equilibrium: position, the largest distance of a vertex [m]; energy, what is left to
    be released [J]; size: its largest extent at rest [m]; displacement: the largest of its vertices [m]."""

    body: str
    position: float
    energy: float
    size: float
    displacement: float

    @property
    def of_size(self) -> float:
        """position / size."""
        return self.position / self.size if self.size else 0.0

    @property
    def of_displacement(self) -> float:
        """position / displacement; infinite where only the equilibrium is displaced."""
        return (
            self.position / self.displacement if self.displacement else float(np.inf if self.position else 0)
        )


@dataclass(frozen=True)
class Certificate:
    """The distance of every body, in the order of the scene. stable: whether the energy is convex there in
    all directions that were looked at, beside motions of whole bodies that nothing holds; True under
    tractions that follow their surface, where no energy tells. curvature: the smallest that was seen,
    p · H p / |p|² [N/m], where that is known. seconds: what it took to find out."""

    bodies: tuple[Distance, ...]
    stable: bool
    curvature: float | None
    seconds: float

    @property
    def worst(self) -> Distance:
        """Of the body that is farthest off for its size."""
        return max(self.bodies, key=lambda body: body.of_size)

    @property
    def energy(self) -> float:
        """What is left to be released [J]."""
        return sum(body.energy for body in self.bodies)

    def to_dict(self) -> dict[str, Any]:
        return {
            "bodies": [
                {**vars(body), "of_size": body.of_size, "of_displacement": body.of_displacement}
                for body in self.bodies
            ],
            "stable": self.stable,
            "curvature": self.curvature,
            "energy": self.energy,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        worst = self.worst
        named = f"{worst.body}: " if len(self.bodies) > 1 and worst.body else ""
        text = (
            f"distance to the equilibrium {worst.of_size:.1e} of the size ({named}{worst.position:.2e} m, "
            f"{worst.of_displacement:.1e} of the displacement), {self.energy:.1e} J"
        )
        return text if self.stable else f"{text}; not stable: in some direction the energy falls"


def prepare(problem: Problem) -> None:
    """Find what does not depend on the state, so that it counts as set-up."""
    twin = exact_twin(problem)
    twin.shared("linearisation", lambda: Linearisation(twin))


def certify(problem: Problem, copy: int = 0, exact: Problem | None = None) -> Certificate:
    """The certificate of a problem's u, of one copy of the state. exact: a problem in float64 with the state
    of which u is the rounded one; how far rounding has moved vertices is then added to the distances."""
    began = perf_counter()
    twin = exact or (touching_twin(problem, copy) if problem.contacts else exact_twin(problem, copy))
    twin.follower_loads.sync()
    balance = twin.balance()
    linear: Linearisation = twin.shared("linearisation", lambda: Linearisation(twin))
    resting = balance.at_rest and twin.energy() <= twin.measures.energy_rounding()
    nothing = Direction(twin.zeros(twin.u.shape), False, None, 0.0, None)
    follows = bool(twin.follower_loads)
    if follows:
        direction = linear.follower_direction(ACCURACY)
    else:
        direction = nothing if resting else linear.direction(ACCURACY, 0.0, probe=True)
    if balance.at_rest:
        direction = direction._replace(d=nothing.d, slope=0.0)
    states = twin.states
    d, net, u = (states.vectors(records)[0] for records in (direction.d, states.net, states.u))
    bodies = distances(twin.model, d, net, u)
    known = not direction.filtered if follows else direction.slope > 0
    if not balance.at_rest and balance.residual > 0 and not known:
        bodies = tuple(replace(body, position=np.inf, energy=np.inf) for body in bodies)
    elif follows:  # r · d may have either sign
        bodies = tuple(replace(body, energy=abs(body.energy)) for body in bodies)
    if exact is not None:
        moved = vectors_of(problem.states, problem.u, [copy])[0] - states.vectors(states.u)[0]
        bodies = tuple(map(_farther, bodies, _lengths(twin.model, moved)))
    stable = follows or not direction.filtered or direction.adrift
    stable = stable or (bool(problem.contacts) and _hardly(direction, linear))
    if not stable and problem.contacts and problem.contacts.rough:
        stable = _held_by_friction(problem, copy)
    return Certificate(bodies, stable, direction.curvature, perf_counter() - began)


def _held_by_friction(problem: Problem, copy: int) -> bool:
    """Whether the energy falls in no direction in which vertices with friction rest: any that slide cost work
    of first order in their way, and a negative curvature gains work of second order."""
    twin = touching_twin(problem, copy, sliding=False)
    linear = twin.shared("linearisation", lambda: Linearisation(twin))
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    return not direction.filtered or direction.adrift or _hardly(direction, linear)


FLAT = 1e-9
"""Part of the stiffness of a vertex that a negative curvature must have to count beside obstacles, on which
bodies may slide freely."""


def _hardly(direction: Direction, linear: Linearisation) -> bool:
    """Whether the curvature is 0 but for rounding."""
    stiffest = float(np.abs(linear.assembly.hessian("bound").diagonal()).max(initial=0))
    return direction.curvature is not None and direction.curvature > -FLAT * stiffest


def _lengths(model: Model, vectors: np.ndarray) -> list[float]:
    """The largest of the vectors (n, 3) of the vertices of each body."""
    return [float(np.linalg.norm(vectors[own], axis=1).max(initial=0)) for _, own in model.body_vertices]


def _farther(body: Distance, by: float) -> Distance:
    return replace(body, position=body.position + by)


def distances(model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray) -> tuple[Distance, ...]:
    """What a Newton direction d (n, 3) [m] at displacements u says of every body, on which net forces (n, 3)
    [N] act."""
    return distances_of_copies(model, d[None], forces[None], u[None])[0]


def distances_of_copies(
    model: Model, d: np.ndarray, forces: np.ndarray, u: np.ndarray
) -> list[tuple[Distance, ...]]:
    """What Newton directions d (copies, n, 3) [m] of several copies of the state say of every body of each,
    at displacements u, where net forces [N] act, both of the same shape."""
    work = np.where(model.free, 0.5 * np.einsum("cni,cni->cn", d, forces), 0)
    length, moved = (np.sqrt(np.einsum("cni,cni->cn", vectors, vectors)) for vectors in (d, u))
    bodies = []
    for name, own in model.body_vertices:
        size = float(np.ptp(model.rest[own], axis=0).max(initial=0))
        position, farthest = (lengths[:, own].max(axis=1, initial=0) for lengths in (length, moved))
        figures = zip(position.tolist(), work[:, own].sum(axis=1).tolist(), farthest.tolist(), strict=True)
        bodies.append([Distance(name, far, energy, size, most) for far, energy, most in figures])
    return list(zip(*bodies, strict=True))
