"""What contacts that rub do to vertices and to bodies, added up on the host in the order of the contacts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import kernel, physics
from supple.terms.rubbing import FRICTION, GAP, NORMAL, SLIP, STIFFNESS, TINY, RubbingContacts


class _Contacts(NamedTuple):
    """The arrays of `RubbingContacts`."""

    vertices: Any
    weights: Any
    numbers: Any


def _arrays(term: RubbingContacts) -> _Contacts:
    return _Contacts(term.vertices, term.weights, term.numbers)


@physics
def _between(contacts, m, points):
    """Σ wⱼ xⱼ of the m-th contact with vertices at points."""
    c = 0.0, 0.0, 0.0
    for j in range(contacts.vertices.shape[1]):
        v = contacts.vertices[m, j]
        c = add(c, scale(contacts.weights[m, j], (points[v, 0], points[v, 1], points[v, 2])))
    return c


@physics
def _numbers(contacts, m, first):
    return contacts.numbers[m, first], contacts.numbers[m, first + 1], contacts.numbers[m, first + 2]


@physics
def _respond(contacts, m, u):
    """(λ, r) of the m-th contact at displacements u."""
    n, c, k = _numbers(contacts, m, NORMAL), _between(contacts, m, u), contacts.numbers[m, STIFFNESS]
    along = dot(n, c)
    push = k * max(-(contacts.numbers[m, GAP] + along), 0.0)
    slip = sub(add(_numbers(contacts, m, SLIP), c), scale(along, n))
    holds = min(k, contacts.numbers[m, FRICTION] * push / max(math.sqrt(dot(slip, slip)), TINY))
    return push, sub(scale(push, n), scale(holds, slip))


@physics
def _give(force, k, r):
    force[k, 0] += r[0]
    force[k, 1] += r[1]
    force[k, 2] += r[2]


@kernel
def add_to_vertices(contacts, u, force):
    for m in range(len(contacts.vertices)):
        _, r = _respond(contacts, m, u)
        for j in range(contacts.vertices.shape[1]):
            _give(force, contacts.vertices[m, j], scale(contacts.weights[m, j], r))


@kernel
def add_to_bodies(contacts, u, rest, body, force, carried):
    for m in range(len(contacts.vertices)):
        push, r = _respond(contacts, m, u)
        between = add(_between(contacts, m, rest), _between(contacts, m, u))
        carried[0] += push * abs(dot(_numbers(contacts, m, NORMAL), between))
        for j in range(contacts.vertices.shape[1]):
            _give(force, body[contacts.vertices[m, j]], scale(contacts.weights[m, j], r))


@kernel
def compare_at(vertices, before, now, found):
    """The largest of now - before and of now, and the sum of the squares of the first, each vertex once: both
    are 0 afterwards."""
    for m in range(len(vertices)):
        for j in range(vertices.shape[1]):
            for axis in range(3):
                there = now[vertices[m, j], axis]
                change = there - before[vertices[m, j], axis]
                found[0], found[1] = max(found[0], abs(change)), max(found[1], abs(there))
                found[2] += change * change
                before[vertices[m, j], axis] = now[vertices[m, j], axis] = 0.0


def forces_on_vertices(term: RubbingContacts, u: np.ndarray) -> np.ndarray:
    """(n, 3) [N] what contacts do to vertices at displacements u (n, 3)."""
    force = np.zeros(u.shape)
    add_to_vertices(_arrays(term), u, force)
    return force


def forces_on_bodies(
    term: RubbingContacts, u: np.ndarray, rest: np.ndarray, body: np.ndarray, count: int
) -> tuple[np.ndarray, float]:
    """(count, 3) [N] what contacts do to bodies, with vertices displaced by u (n, 3) from rest (n, 3) [m],
    body (n,) saying whose each is; and Σ λ |g| [J], forces times gaps."""
    force, carried = np.zeros((count, 3)), np.zeros(1)
    add_to_bodies(_arrays(term), u, rest, body, force, carried)
    return force, float(carried[0])


def change_of_forces(old: RubbingContacts, new: RubbingContacts, u: np.ndarray) -> tuple[float, float, float]:
    """[N] where others take the place of contacts, at displacements u (n, 3): the largest change of a force
    on a vertex, and the largest force then, along any axis; and the length of all changes."""
    before, now, found = forces_on_vertices(old, u), forces_on_vertices(new, u), np.zeros(3)
    for term in (old, new):
        compare_at(term.vertices, before, now, found)
    change, most, squares = found.tolist()
    return change, most, math.sqrt(squares)
