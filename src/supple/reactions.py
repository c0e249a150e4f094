"""Forces of pins, obstacles and other bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from supple.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Reaction:
    """What a pin does to its body, or an obstacle to all: force (3,) [N], and its moment (3,) [N m] about the
    centre (3,) [m], the mean of where its vertices are; forces (k, 3) [N] on its vertices (k,). Where several
    pins hold a vertex along the same direction, that counts for one that holds it wholly, else for the
    first."""

    force: np.ndarray
    moment: np.ndarray
    centre: np.ndarray
    vertices: np.ndarray
    forces: np.ndarray

    def __repr__(self) -> str:
        force, moment = (np.array2string(v, precision=6) for v in (self.force, self.moment))
        return f"<Reaction: force {force} N, moment {moment} N m, {len(self.vertices):,} vertices>"


@dataclass(frozen=True, eq=False, repr=False)
class Touches:
    """Where vertices touch obstacles, one row for each: vertices (c,), numbers of obstacles (c,) of these
    names, and the force (c, 3) [N] on the vertex."""

    names: tuple[str, ...]
    vertices: np.ndarray
    obstacle: np.ndarray
    force: np.ndarray

    @staticmethod
    def none() -> Touches:
        return Touches((), np.empty(0, int), np.empty(0, int), np.empty((0, 3)))

    def and_others(self, others: Touches) -> Touches:
        """These and others of the same obstacles."""
        pairs = (
            (self.vertices, others.vertices),
            (self.obstacle, others.obstacle),
            (self.force, others.force),
        )
        return Touches(self.names, *map(np.concatenate, pairs))

    def total(self, vertices: int) -> np.ndarray:
        """(n, 3) [N] on every vertex."""
        columns = [np.bincount(self.vertices, axis, vertices) for axis in self.force.T]
        return np.column_stack(columns)


def reaction_of(positions: np.ndarray, vertices: np.ndarray, forces: np.ndarray) -> Reaction:
    """Of forces (k, 3) [N] on vertices (k,) of those at positions (n, 3) [m]."""
    places = positions[vertices]
    centre = places.mean(axis=0) if len(places) else np.zeros(3)
    moment = np.cross(places - centre, forces).sum(axis=0)
    return Reaction(forces.sum(axis=0), moment, centre, vertices, forces)


def forces_between_bodies(model: Model, positions: np.ndarray) -> np.ndarray:
    """(n, 3) [N] of bodies on each other's vertices and on their own: of all contacts but those with
    obstacles."""
    of_obstacles = {k for k, follower in model.followers if getattr(follower, "presses", False)}
    total = np.zeros_like(positions)
    for k, term in enumerate(model.terms):
        if k not in of_obstacles and (forces := term.contact_forces(positions, model.rest)) is not None:
            total += forces
    return total
