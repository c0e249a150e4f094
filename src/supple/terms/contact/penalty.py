"""Frictional penalty contacts: one-sided springs along a normal with Coulomb friction across it.

With the relative displacement c = Σ wⱼ uⱼ of the two contact points, the gap beyond the thickness is g = g₀ +
n · c, and the slip from the stick point is o = o₀ + c - n (n · c). The force on the first point is

    r = λ n + t,    λ = k max(-g, 0),    t = -k o if k |o| ≤ μ λ, otherwise -μ λ o/|o|.

λ and t are evaluated at the same positions: nothing is lagged. A sticking contact is held by a spring whose
end moves only during sliding, so it does not creep (`supple.contact.state.friction_state`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.algebra.symmetric import axial_and_isotropic
from supple.kernels import device_function, gather, kernel, load, where
from supple.terms.base.term import Elemental, Elements, Incidence, energy, vertex_force, write_incidence

NORMAL, SLIP, GAP, STIFFNESS, FRICTION, NUMBERS = 0, 3, 6, 7, 8, 9
"""Offsets of n, o₀ [m], g₀ [m], k [N/m] and μ in the numbers of a contact, and their count."""

MIN_SLIP = 1e-30
"""Smallest slip length in a denominator [m]; zero slip has no direction."""


class PenaltyContactRows(NamedTuple):
    """Packed data of frictional contacts.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, k - 1, lanes) ids of the other vertices.
        weights: (rows, k, lanes) signed weights, starting with the visiting vertex.
        numbers: (rows, NUMBERS, lanes) numbers of the contacts.
    """

    start: Any
    others: Any
    weights: Any
    numbers: Any


class PenaltyContactTables(NamedTuple):
    """Arrays of all contacts, see `PenaltyContacts`."""

    vertices: Any
    weights: Any
    numbers: Any


@dataclass(frozen=True, eq=False)
class PenaltyContacts(Elemental):
    """Penalty contacts with Coulomb friction.

    Attributes:
        vertices: (m, k) vertices of both contact points.
        weights: (m, k) signed weights: positive for the first point, negative for the second.
        numbers: (m, NUMBERS) normal, initial slip, gap, stiffness and friction coefficient, see above.
        capacity: Largest number of contacts, or None.
        has_friction: True if any contact has friction.
        keys: (m, 2) identifiers that match frictional contacts of successive steps.
    """

    vertices: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray
    capacity: int | None = None
    has_friction: bool = True
    keys: np.ndarray | None = None

    name: ClassVar[str] = "contacts"
    ties: ClassVar[bool] = True
    material: ClassVar[None] = None
    family: ClassVar[str] = "contact"

    def rows(self, incidence: Incidence, start: np.ndarray) -> PenaltyContactRows:
        slots = self.vertices.shape[1]
        order = np.array([[s, *(o for o in range(slots) if o != s)] for s in range(slots)])[incidence.slot]
        ids = np.take_along_axis(self.vertices[incidence.element], order, axis=1)[:, 1:]
        weights = np.take_along_axis(self.weights[incidence.element], order, axis=1)
        numbers = incidence.pack(self.numbers[incidence.element])
        return PenaltyContactRows(start, incidence.pack_ids(ids), incidence.pack(weights), numbers)

    def tables(self, dtype: np.dtype) -> PenaltyContactTables:
        return PenaltyContactTables(
            np.array(self.vertices, np.int32, order="C"),
            np.array(self.weights, dtype, order="C"),
            np.array(self.numbers, dtype, order="C"),
        )

    def response(self, u: np.ndarray) -> Response:
        """Contact response at displacements u (n, 3) [m]."""
        c = np.einsum("mk,mki->mi", self.weights, u[self.vertices])
        n, k, mu = self.numbers[:, NORMAL:SLIP], self.numbers[:, STIFFNESS], self.numbers[:, FRICTION]
        along = (n * c).sum(axis=1)
        normal_force = k * np.maximum(-(self.numbers[:, GAP] + along), 0)
        slip = self.numbers[:, SLIP:GAP] + c - along[:, None] * n
        length = np.sqrt((slip * slip).sum(axis=1))
        tangential_stiffness = np.minimum(k, mu * normal_force / np.maximum(length, MIN_SLIP))
        return Response(normal_force, slip, tangential_stiffness, k * length > mu * normal_force)

    def distances(self, positions: np.ndarray) -> np.ndarray:
        """(m,) distances n · C of the contact points [m], for vertices at positions (n, 3) [m]."""
        between = np.einsum("mk,mki->mi", self.weights, positions[self.vertices])
        return np.asarray((self.numbers[:, NORMAL:SLIP] * between).sum(axis=1))

    def normal_forces(self, u: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Normal forces, distances and thicknesses of all contacts.

        Args:
            u: (n, 3) displacements [m].
            rest: (n, 3) rest positions [m].

        Returns:
            (m,) λ [N], distances n · C [m], and distances below which contacts push [m].
        """
        distance = self.distances(rest + u)
        along = np.einsum("mi,mk,mki->m", self.numbers[:, NORMAL:SLIP], self.weights, u[self.vertices])
        return self.response(u).normal_force, distance, distance - self.numbers[:, GAP] - along

    def forces(self, u: np.ndarray) -> np.ndarray:
        """(m, 3) contact forces r [N] at displacements u (n, 3) [m]."""
        response = self.response(u)
        return (
            response.normal_force[:, None] * self.numbers[:, NORMAL:SLIP]
            - response.tangential_stiffness[:, None] * response.slip
        )

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray:
        total = np.zeros(positions.shape)
        on_points = self.forces(positions - rest)
        np.add.at(total, self.vertices, self.weights[:, :, None] * on_points[:, None])
        return total

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """wᵃ wᵇ (k n nᵀ + s (I - n nᵀ)), for every kind of Hessian.

        k = 0 for open contacts, and s = μ λ/|o| for sliding ones. Coulomb's law has no potential, so these
        blocks are the bound used by vertex updates.
        """
        response, n = self.response(np.asarray(u)[:, :3].astype(float)), self.numbers[:, NORMAL:SLIP]
        along = np.einsum("mi,mj->mij", n, n)
        k = np.where(response.normal_force > 0, self.numbers[:, STIFFNESS], 0.0)
        K = k[:, None, None] * along + response.tangential_stiffness[:, None, None] * (np.eye(3) - along)
        return np.einsum("ma,mb,mij->mabij", self.weights, self.weights, K)


class Response(NamedTuple):
    """Response of contacts.

    Attributes:
        normal_force: (m,) normal force λ [N].
        slip: (m, 3) slip o [m].
        tangential_stiffness: (m,) tangential stiffness |t|/|o| [N/m].
        slides: (m,) True for sliding contacts.
    """

    normal_force: np.ndarray
    slip: np.ndarray
    tangential_stiffness: np.ndarray
    slides: np.ndarray


@write_incidence.of(PenaltyContactTables)
def _write_incidence(tables, arrays, row, lane, element, slot):
    others, weights, numbers = arrays
    weights[row, 0, lane] = tables.weights[element, slot]
    for k in range(others.shape[1]):
        other = k if k < slot else k + 1
        others[row, k, lane] = tables.vertices[element, other]
        weights[row, k + 1, lane] = tables.weights[element, other]
    for k in range(NUMBERS):
        numbers[row, k, lane] = tables.numbers[element, k]


@device_function
def normal_of(term, row):
    return (
        load(term.numbers, row, NORMAL),
        load(term.numbers, row, NORMAL + 1),
        load(term.numbers, row, NORMAL + 2),
    )


@device_function
def slip_of(term, row):
    return load(term.numbers, row, SLIP), load(term.numbers, row, SLIP + 1), load(term.numbers, row, SLIP + 2)


@device_function
def separation(term, row, u, ui):
    """(n, g, o) of the contacts in a packed row."""
    c = scale(load(term.weights, row, 0), ui)
    for slot in range(term.others.shape[1]):
        c = add(c, scale(load(term.weights, row, slot + 1), gather(u, term.others, row, slot)))
    n = normal_of(term, row)
    along = dot(n, c)
    return n, load(term.numbers, row, GAP) + along, add(slip_of(term, row), sub(c, scale(along, n)))


@device_function
def _response(term, row, u, ui):
    """(n, g, λ, o, s): normal, gap, normal force, slip, and |t|/|o|."""
    n, g, o = separation(term, row, u, ui)
    k = load(term.numbers, row, STIFFNESS)
    normal_force = k * max(-g, 0.0 * g)
    length = math.sqrt(dot(o, o))
    return (
        n,
        g,
        normal_force,
        o,
        min(k, load(term.numbers, row, FRICTION) * normal_force / max(length, 0.0 * length + MIN_SLIP)),
    )


@vertex_force.of(PenaltyContactRows)
def _vertex_force(term, row, u, ui):
    """f = wᵢ r,  A = wᵢ² (k n nᵀ + s (I - n nᵀ)).

    Open contacts keep k in A, because the bound must hold wherever the vertex moves.
    """
    n, _, normal_force, o, s = _response(term, row, u, ui)
    w = load(term.weights, row, 0)
    p, q = w * w * (load(term.numbers, row, STIFFNESS) - s), w * w * s
    return scale(w, sub(scale(normal_force, n), scale(s, o))), axial_and_isotropic(p, n, q)


@energy.of(PenaltyContactRows)
def _energy(term, row, u, ui):
    """Penalty energy ½ k g² plus the energy of sticking springs, or the work of sliding.

    The work of sliding is computed for the present normal force; it is not a potential, because that force
    changes.
    """
    _, g, normal_force, o, s = _response(term, row, u, ui)
    k = load(term.numbers, row, STIFFNESS)
    limit = load(term.numbers, row, FRICTION) * normal_force
    length = math.sqrt(dot(o, o))
    stuck = 0.5 * s * length * length
    slid = limit * (length - 0.5 * limit / max(k, 0.0 * k + MIN_SLIP))
    return -0.5 * normal_force * g + where(k * length > limit, slid, stuck)


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
def _contact_force(contacts, m, u):
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
        _, r = _contact_force(contacts, m, u)
        for j in range(contacts.vertices.shape[1]):
            _add_at(force, contacts.vertices[m, j], scale(contacts.weights[m, j], r))


@kernel
def add_to_bodies(contacts, u, rest, body, force, complementarity):
    """Add contact forces to body forces, and Σ λ |g| [J] to `complementarity`; see `forces_on_bodies`."""
    for m in range(len(contacts.vertices)):
        normal_force, r = _contact_force(contacts, m, u)
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
