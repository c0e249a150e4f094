"""Weak constraints: stiff springs between two interpolated points [PBNG section 4.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.kernels import device_function, gather, load
from supple.terms.base.term import Elemental, Elements, Incidence, Relations, energy, vertex_force

_SYMMETRIC = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])


class WeakRows(NamedTuple):
    """Packed data of weak constraints.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, k - 1, lanes) ids of the other vertices.
        weights: (rows, k, lanes) signed weights, starting with the visiting vertex.
        offset: (rows, 3, lanes) C at zero displacement [m].
        stiffness: (rows, 6, lanes) K [N/m].
    """

    start: Any
    others: Any
    weights: Any
    offset: Any
    stiffness: Any


@dataclass(frozen=True, eq=False)
class WeakConstraints(Elemental):
    """½ Σ Cᵀ K C with C = Σⱼ wⱼ xⱼ - target [PBNG eq. 18-19].

    Attributes:
        vertices: (m, k) vertices of both points.
        weights: (m, k) signed weights: positive for the first point, negative for the second, 0 in unused
            slots.
        target: (m, 3) target of C [m].
        stiffness: (m, 6) K [N/m], symmetric as xx yy zz xy xz yz.
        rest: (n, 3) positions at zero displacement [m].
        capacity: Largest number of constraints of a dynamic term, or None.
        depends_on_rest: True if weights or targets were computed from the rest positions.
    """

    vertices: np.ndarray
    weights: np.ndarray
    target: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    capacity: int | None = None
    depends_on_rest: bool = False

    name: ClassVar[str] = "weak constraints"
    ties: ClassVar[bool] = True
    family: ClassVar[str] = "weak_constraint"
    material: ClassVar[None] = None

    @property
    def translatable(self) -> np.ndarray:
        """True between two moving points, whose weights cancel; False for a point tied to a fixed one."""
        return np.abs(self.weights.sum(axis=1)) < 1e-9

    @property
    def stiffnesses(self) -> np.ndarray:
        return self.stiffness

    def rows(self, incidence: Incidence, start: np.ndarray) -> WeakRows:
        element, slot = incidence.element, incidence.slot
        slots = self.vertices.shape[1]
        order = np.array([[s, *(o for o in range(slots) if o != s)] for s in range(slots)])[slot]
        ids = np.take_along_axis(self.vertices[element], order, axis=1)[:, 1:]
        weights = np.take_along_axis(self.weights[element], order, axis=1)
        offset = np.einsum("ek,eki->ei", self.weights, self.rest[self.vertices]) - self.target
        return WeakRows(
            start,
            incidence.pack_ids(ids),
            incidence.pack(weights),
            incidence.pack(offset[element]),
            incidence.pack(self.stiffness[element]),
        )

    def relations(self) -> Relations:
        least = np.linalg.eigvalsh(self.stiffness[:, _SYMMETRIC])[:, 0]
        return Relations(self.weights, np.maximum(least, 0))

    def ends(self, positions: np.ndarray) -> np.ndarray:
        """End points of each constraint: the first point, and the second point or the target."""
        first, second = (
            np.einsum("ek,eki->ei", np.maximum(sign * self.weights, 0), positions[self.vertices])
            for sign in (1, -1)
        )
        return np.stack([first, np.where(self.translatable[:, None], second, self.target)], axis=1)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """wᵃ wᵇ K, constant and positive semi-definite, therefore the same for every kind."""
        return np.einsum("ea,eb,eij->eabij", self.weights, self.weights, self.stiffness[:, _SYMMETRIC])


@device_function
def constraint_gap(term, row, u, ui):
    """C = Σ w x - target of the constraints in a packed row, and K C."""
    w = load(term.weights, row, 0)
    x = load(term.offset, row, 0) + w * ui[0]
    y = load(term.offset, row, 1) + w * ui[1]
    z = load(term.offset, row, 2) + w * ui[2]
    for slot in range(term.others.shape[1]):
        w = load(term.weights, row, slot + 1)
        other = gather(u, term.others, row, slot)
        x = x + w * other[0]
        y = y + w * other[1]
        z = z + w * other[2]
    K = term.stiffness
    xx, yy, zz = load(K, row, 0), load(K, row, 1), load(K, row, 2)
    xy, xz, yz = load(K, row, 3), load(K, row, 4), load(K, row, 5)
    return (x, y, z), (xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z)


@vertex_force.of(WeakRows)
def _vertex_force(term, row, u, ui):
    """f = -wᵢ K C,  A = wᵢ² K [PBNG eq. 34]."""
    w = load(term.weights, row, 0)
    _, KC = constraint_gap(term, row, u, ui)
    K, s = term.stiffness, w * w
    return (
        (-w * KC[0], -w * KC[1], -w * KC[2]),
        (
            s * load(K, row, 0),
            s * load(K, row, 1),
            s * load(K, row, 2),
            s * load(K, row, 3),
            s * load(K, row, 4),
            s * load(K, row, 5),
        ),
    )


@energy.of(WeakRows)
def _energy(term, row, u, ui):
    C, KC = constraint_gap(term, row, u, ui)
    return 0.5 * (C[0] * KC[0] + C[1] * KC[1] + C[2] * KC[2])
