"""Reaction forces of pins and obstacles, and contact forces between bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from supple.model.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Reaction:
    """Reaction of a pin on its body, or of an obstacle on all bodies.

    If several pins constrain a vertex along the same direction, the force belongs to a pin that constrains it
    fully, otherwise to the first pin.

    Attributes:
        force: (3,) force [N].
        moment: (3,) moment about `center` [N m].
        center: (3,) mean position of the vertices [m].
        vertices: (k,) vertices.
        forces: (k, 3) forces on the vertices [N].
    """

    force: np.ndarray
    moment: np.ndarray
    center: np.ndarray
    vertices: np.ndarray
    forces: np.ndarray

    def __repr__(self) -> str:
        force, moment = (np.array2string(v, precision=6) for v in (self.force, self.moment))
        return f"<Reaction: force {force} N, moment {moment} N m, {len(self.vertices):,} vertices>"


@dataclass(frozen=True, eq=False, repr=False)
class ObstacleContacts:
    """Contacts of vertices with obstacles.

    Attributes:
        names: Names of the obstacles.
        vertices: (c,) vertices.
        obstacle: (c,) obstacle of each contact.
        force: (c, 3) forces on the vertices [N].
    """

    names: tuple[str, ...]
    vertices: np.ndarray
    obstacle: np.ndarray
    force: np.ndarray

    @staticmethod
    def none() -> ObstacleContacts:
        """Return an empty set of contacts."""
        return ObstacleContacts((), np.empty(0, int), np.empty(0, int), np.empty((0, 3)))

    def and_others(self, others: ObstacleContacts) -> ObstacleContacts:
        """Concatenate contacts with the same obstacles."""
        pairs = (
            (self.vertices, others.vertices),
            (self.obstacle, others.obstacle),
            (self.force, others.force),
        )
        return ObstacleContacts(self.names, *map(np.concatenate, pairs))

    def total(self, vertices: int) -> np.ndarray:
        """(n, 3) force on each vertex [N]."""
        columns = [np.bincount(self.vertices, axis, vertices) for axis in self.force.T]
        return np.column_stack(columns)


def reaction_of(positions: np.ndarray, vertices: np.ndarray, forces: np.ndarray) -> Reaction:
    """Reaction from forces (k, 3) [N] on vertices (k,), at positions (n, 3) [m]."""
    points = positions[vertices]
    center = points.mean(axis=0) if len(points) else np.zeros(3)
    moment = np.cross(points - center, forces).sum(axis=0)
    return Reaction(forces.sum(axis=0), moment, center, vertices, forces)


def forces_between_bodies(model: Model, positions: np.ndarray) -> np.ndarray:
    """(n, 3) contact forces between bodies and of self-contact [N], without obstacles."""
    of_obstacles = {k for k, dynamic_term in model.dynamic_terms if dynamic_term.resolves_faces}
    total = np.zeros_like(positions)
    for k, term in enumerate(model.terms):
        if k not in of_obstacles and (forces := term.contact_forces(positions, model.rest)) is not None:
            total += forces
    return total
