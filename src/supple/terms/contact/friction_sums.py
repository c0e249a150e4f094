"""Forces of frictional contacts on vertices and bodies, summed on the host in contact order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import device_function, kernel
from supple.terms.contact.penalty import (
    FRICTION,
    GAP,
    MIN_SLIP,
    NORMAL,
    SLIP,
    STIFFNESS,
    PenaltyContacts,
)


class _Contacts(NamedTuple):
    """Arrays of `PenaltyContacts`."""

    vertices: Any
    weights: Any
    numbers: Any


def _arrays(term: PenaltyContacts) -> _Contacts:
    return _Contacts(term.vertices, term.weights, term.numbers)


@device_function
def _between(contacts, m, points):
    """Σ wⱼ xⱼ of the m-th contact with vertices at `points`."""
    c = 0.0, 0.0, 0.0
    for j in range(contacts.vertices.shape[1]):
        v = contacts.vertices[m, j]
        c = add(c, scale(contacts.weights[m, j], (points[v, 0], points[v, 1], points[v, 2])))
    return c


@device_function
def _numbers(contacts, m, first):
    return contacts.numbers[m, first], contacts.numbers[m, first + 1], contacts.numbers[m, first + 2]


@device_function
def _response(contacts, m, u):
    """(λ, r) of the m-th contact at displacements u."""
    n, c, k = _numbers(contacts, m, NORMAL), _between(contacts, m, u), contacts.numbers[m, STIFFNESS]
    along = dot(n, c)
    normal_force = k * max(-(contacts.numbers[m, GAP] + along), 0.0)
    slip = sub(add(_numbers(contacts, m, SLIP), c), scale(along, n))
    tangential_stiffness = min(
        k, contacts.numbers[m, FRICTION] * normal_force / max(math.sqrt(dot(slip, slip)), MIN_SLIP)
    )
    return normal_force, sub(scale(normal_force, n), scale(tangential_stiffness, slip))


@device_function
def _add_at(force, k, r):
    force[k, 0] += r[0]
    force[k, 1] += r[1]
    force[k, 2] += r[2]


@kernel
def add_to_vertices(contacts, u, force):
    """Add contact forces at displacements u (n, 3) [m] to force (n, 3) [N]."""
    for m in range(len(contacts.vertices)):
        _, r = _response(contacts, m, u)
        for j in range(contacts.vertices.shape[1]):
            _add_at(force, contacts.vertices[m, j], scale(contacts.weights[m, j], r))


@kernel
def add_to_bodies(contacts, u, rest, body, force, complementarity):
    """Add contact forces to body forces, and Σ λ |g| [J] to `complementarity`; see `forces_on_bodies`."""
    for m in range(len(contacts.vertices)):
        normal_force, r = _response(contacts, m, u)
        between = add(_between(contacts, m, rest), _between(contacts, m, u))
        complementarity[0] += normal_force * abs(dot(_numbers(contacts, m, NORMAL), between))
        for j in range(contacts.vertices.shape[1]):
            _add_at(force, body[contacts.vertices[m, j]], scale(contacts.weights[m, j], r))


@kernel
def compare_forces(vertices, before, now, changes):
    """Compare two force fields at contact vertices, each vertex once; clears both there.

    changes: largest component of |now - before|, largest component of |now|, and sum of squared differences.
    """
    for m in range(len(vertices)):
        for j in range(vertices.shape[1]):
            for axis in range(3):
                new = now[vertices[m, j], axis]
                change = new - before[vertices[m, j], axis]
                changes[0], changes[1] = max(changes[0], abs(change)), max(changes[1], abs(new))
                changes[2] += change * change
                before[vertices[m, j], axis] = now[vertices[m, j], axis] = 0.0


def forces_on_vertices(term: PenaltyContacts, u: np.ndarray) -> np.ndarray:
    """(n, 3) contact forces on vertices [N] at displacements u (n, 3) [m]."""
    force = np.zeros(u.shape)
    add_to_vertices(_arrays(term), u, force)
    return force


def forces_on_bodies(
    term: PenaltyContacts, u: np.ndarray, rest: np.ndarray, body: np.ndarray, count: int
) -> tuple[np.ndarray, float]:
    """Sum contact forces per body.

    Args:
        term: Contacts.
        u: (n, 3) displacements [m].
        rest: (n, 3) rest positions [m].
        body: (n,) body of each vertex.
        count: Number of bodies.

    Returns:
        (count, 3) forces [N], and Σ λ |g|, normal forces times gaps [J].
    """
    force, complementarity = np.zeros((count, 3)), np.zeros(1)
    add_to_bodies(_arrays(term), u, rest, body, force, complementarity)
    return force, float(complementarity[0])


def force_change(old: PenaltyContacts, new: PenaltyContacts, u: np.ndarray) -> tuple[float, float, float]:
    """Change of the vertex forces if contacts are replaced, at displacements u (n, 3) [m].

    Returns:
        Largest change of a force component, largest new force component, and norm of all changes [N].
    """
    before, now, changes = forces_on_vertices(old, u), forces_on_vertices(new, u), np.zeros(3)
    for term in (old, new):
        compare_forces(term.vertices, before, now, changes)
    change, most, squares = changes.tolist()
    return change, most, math.sqrt(squares)
