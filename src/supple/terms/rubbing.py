"""Contacts that push and rub: one-sided springs along a normal, and Coulomb's friction across it.

With c = Σ wⱼ uⱼ the relative displacement of the two points that meet, the gap beyond the thickness is
g = g₀ + n · c and the slip from where they stick together o = o₀ + c - n (n · c). The first of them gets

    r = λ n + t,    λ = k max(-g, 0),    t = -k o where that is at most μ λ, else -μ λ o/|o|.

λ and t are those of the same positions: nothing is lagged. What sticks is held by a spring whose end moves
only where it slides, so that it does not creep (`supple.grip`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.algebra.symmetric import along_and_across
from supple.kernels import gather, load, physics, select
from supple.terms.term import Elemental, Elements, Visits, energy, put_visit, vertex_force

NORMAL, SLIP, GAP, STIFFNESS, FRICTION, NUMBERS = 0, 3, 6, 7, 8, 9
"""Where among its numbers a contact has n, o₀ [m], g₀ [m], k [N/m] and μ."""

TINY = 1e-30
"""Least length [m] that is divided by: what has not slipped has no direction."""


class RubbingRows(NamedTuple):
    """start (batches + 1,): first row of each batch; others (rows, k - 1, lanes): ids of the other vertices;
    weights (rows, k, lanes), the visiting vertex's first; numbers (rows, NUMBERS, lanes)."""

    start: Any
    others: Any
    weights: Any
    numbers: Any


class RubbingTables(NamedTuple):
    """Of all contacts, see `RubbingContacts`."""

    vertices: Any
    weights: Any
    numbers: Any


@dataclass(frozen=True, eq=False)
class RubbingContacts(Elemental):
    """vertices (m, k) and signed weights (m, k): positive for the first point and negative for the second;
    numbers (m, NUMBERS) of each contact, see above; capacity: how many there is room for; rough: whether any
    may rub; keys (m, 2), by which contacts that rub are known again."""

    vertices: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray
    capacity: int | None = None
    rough: bool = True
    keys: np.ndarray | None = None

    name: ClassVar[str] = "contacts"
    ties: ClassVar[bool] = True
    material: ClassVar[None] = None
    family: ClassVar[str] = "contact"

    def rows(self, visits: Visits, start: np.ndarray) -> RubbingRows:
        slots = self.vertices.shape[1]
        order = np.array([[s, *(o for o in range(slots) if o != s)] for s in range(slots)])[visits.slot]
        ids = np.take_along_axis(self.vertices[visits.element], order, axis=1)[:, 1:]
        weights = np.take_along_axis(self.weights[visits.element], order, axis=1)
        numbers = visits.place(self.numbers[visits.element])
        return RubbingRows(start, visits.place_ids(ids), visits.place(weights), numbers)

    def tables(self, dtype: np.dtype) -> RubbingTables:
        return RubbingTables(
            np.array(self.vertices, np.int32, order="C"),
            np.array(self.weights, dtype, order="C"),
            np.array(self.numbers, dtype, order="C"),
        )

    def response(self, u: np.ndarray) -> Response:
        """At displacements u (n, 3) [m]."""
        c = np.einsum("mk,mki->mi", self.weights, u[self.vertices])
        n, k, mu = self.numbers[:, NORMAL:SLIP], self.numbers[:, STIFFNESS], self.numbers[:, FRICTION]
        along = (n * c).sum(axis=1)
        push = k * np.maximum(-(self.numbers[:, GAP] + along), 0)
        slip = self.numbers[:, SLIP:GAP] + c - along[:, None] * n
        length = np.sqrt((slip * slip).sum(axis=1))
        holds = np.minimum(k, mu * push / np.maximum(length, TINY))
        return Response(push, slip, holds, k * length > mu * push)

    def gaps(self, positions: np.ndarray) -> np.ndarray:
        """(m,) [m] n · C of the points that meet, with vertices at positions (n, 3)."""
        between = np.einsum("mk,mki->mi", self.weights, positions[self.vertices])
        return np.asarray((self.numbers[:, NORMAL:SLIP] * between).sum(axis=1))

    def forces(self, u: np.ndarray) -> np.ndarray:
        """(m, 3) r [N] at displacements u (n, 3) [m]."""
        found = self.response(u)
        return found.push[:, None] * self.numbers[:, NORMAL:SLIP] - found.holds[:, None] * found.slip

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray:
        total = np.zeros(positions.shape)
        on_points = self.forces(positions - rest)
        np.add.at(total, self.vertices, self.weights[:, :, None] * on_points[:, None])
        return total

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """wᵃ wᵇ (k n nᵀ + s (I - n nᵀ)), with k = 0 where nothing pushes, and s = μ λ/|o| where it slides:
        the bound of a visit, for every kind. Coulomb's law has no second derivatives of an energy."""
        found, n = self.response(np.asarray(u)[:, :3].astype(float)), self.numbers[:, NORMAL:SLIP]
        along = np.einsum("mi,mj->mij", n, n)
        k = np.where(found.push > 0, self.numbers[:, STIFFNESS], 0.0)
        K = k[:, None, None] * along + found.holds[:, None, None] * (np.eye(3) - along)
        return np.einsum("ma,mb,mij->mabij", self.weights, self.weights, K)


class Response(NamedTuple):
    """push (m,): λ [N]; slip (m, 3): o [m]; holds (m,): |t|/|o| [N/m]; slides (m,)."""

    push: np.ndarray
    slip: np.ndarray
    holds: np.ndarray
    slides: np.ndarray


@put_visit.of(RubbingTables)
def _put_visit(tables, arrays, row, lane, element, slot):
    others, weights, numbers = arrays
    weights[row, 0, lane] = tables.weights[element, slot]
    for k in range(others.shape[1]):
        other = k if k < slot else k + 1
        others[row, k, lane] = tables.vertices[element, other]
        weights[row, k + 1, lane] = tables.weights[element, other]
    for k in range(NUMBERS):
        numbers[row, k, lane] = tables.numbers[element, k]


@physics
def normal_of(term, row):
    return (
        load(term.numbers, row, NORMAL),
        load(term.numbers, row, NORMAL + 1),
        load(term.numbers, row, NORMAL + 2),
    )


@physics
def slip_of(term, row):
    return load(term.numbers, row, SLIP), load(term.numbers, row, SLIP + 1), load(term.numbers, row, SLIP + 2)


@physics
def separation(term, row, u, ui):
    """(n, g, o) of the contacts in a row."""
    c = scale(load(term.weights, row, 0), ui)
    for slot in range(term.others.shape[1]):
        c = add(c, scale(load(term.weights, row, slot + 1), gather(u, term.others, row, slot)))
    n = normal_of(term, row)
    along = dot(n, c)
    return n, load(term.numbers, row, GAP) + along, add(slip_of(term, row), sub(c, scale(along, n)))


@physics
def _response(term, row, u, ui):
    """(n, g, λ, o, s): normal, gap, push, slip, and |t|/|o|."""
    n, g, o = separation(term, row, u, ui)
    k = load(term.numbers, row, STIFFNESS)
    push = k * max(-g, 0.0 * g)
    length = math.sqrt(dot(o, o))
    return n, g, push, o, min(k, load(term.numbers, row, FRICTION) * push / max(length, 0.0 * length + TINY))


@vertex_force.of(RubbingRows)
def _vertex_force(term, row, u, ui):
    """f = wᵢ r,  A = wᵢ² (k n nᵀ + s (I - n nᵀ)), also where nothing pushes: the bound must hold wherever the
    vertex goes."""
    n, _, push, o, s = _response(term, row, u, ui)
    w = load(term.weights, row, 0)
    p, q = w * w * (load(term.numbers, row, STIFFNESS) - s), w * w * s
    return scale(w, sub(scale(push, n), scale(s, o))), along_and_across(p, n, q)


@energy.of(RubbingRows)
def _energy(term, row, u, ui):
    """½ k g² where it pushes, and what stretches the springs that stick; where it slides, also the work of
    sliding against the present push: no potential, since the push changes."""
    _, g, push, o, s = _response(term, row, u, ui)
    k = load(term.numbers, row, STIFFNESS)
    limit = load(term.numbers, row, FRICTION) * push
    length = math.sqrt(dot(o, o))
    stuck = 0.5 * s * length * length
    slid = limit * (length - 0.5 * limit / max(k, 0.0 * k + TINY))
    return -0.5 * push * g + select(k * length > limit, slid, stuck)
