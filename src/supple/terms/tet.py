"""Tetrahedral elasticity: Σ V ψ(F) with F constant in each element [PBNG eq. 15]."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from supple.algebra.matrix3 import det
from supple.kernels import counters_for, pack_like, run, where
from supple.terms.base.elastic import Elastic, ElasticRows, deformation_at, measure, volume_of
from supple.terms.base.tensors import contract_tensors, tensors_of
from supple.terms.base.term import Elements, inversion


class TetRows(ElasticRows):
    """Packed data of tetrahedra."""

    __slots__ = ()
    corners: ClassVar[int] = 4


class TetElasticity(Elastic):
    """Σₑ Vₑ ψ(Fₑ) over tetrahedra, F = Σ xₐ gₐᵀ."""

    kind = TetRows
    name: ClassVar[str] = "tetrahedra"
    fills: ClassVar[bool] = True

    @classmethod
    def from_mesh(cls, points: np.ndarray, tets: np.ndarray, material: Any) -> Self:
        """Create the term of a mesh at rest.

        Args:
            points: (n, 3) rest positions [m].
            tets: (m, 4) vertices.
            material: Material of solids, uniform or per element.
        """
        refuse_sheets(material)
        edges = points[tets[:, 1:]] - points[tets[:, :1]]  # rows x_a - x_0
        gradients = np.linalg.inv(edges).transpose(0, 2, 1)  # F = Σ (x_a - x_0) g_aᵀ with g_a rows of Dm⁻¹
        gradients = np.concatenate([-gradients.sum(1, keepdims=True), gradients], axis=1)
        return cls(np.asarray(tets, np.int32), gradients, np.abs(np.linalg.det(edges)) / 6, material)

    def deformations(self, displacements: np.ndarray) -> np.ndarray:
        """F (m, 3, 3) at displacements (n, 3) [m] of all vertices."""
        moved = displacements[self.vertices]
        return np.eye(3) + np.einsum("eai,eaj->eij", moved - moved[:, :1], self.gradients)

    def to_stored(self) -> Any:
        return StoredTets(self.vertices, self.material) if type(self) is TetElasticity else self

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ with C = ∂²ψ/∂F∂F, its semi-definite projection, or its bound."""
        tensors = tensors_of(elements, u, kind, threads)
        blocks = np.empty((len(self.volume), 4, 4, 3, 3))
        run(contract_tensors, threads, tensors, self.gradients, self.volume, blocks, counters_for(1))
        return blocks


class StoredTets(NamedTuple):
    """Tetrahedra without their shape gradients and volumes."""

    vertices: np.ndarray
    material: Any

    def restore(self, rest: np.ndarray) -> TetElasticity:
        return TetElasticity.from_mesh(rest, *self)


def refuse_sheets(material: Any) -> None:
    """Raise a ValueError for sheet materials."""
    if material.thin:
        raise ValueError(
            f"{type(material).__name__} is a material for thin sheets; use another for solids, such as "
            "StVK or NeoHookean"
        )


@measure.of(TetRows)
def _measure(rows, x, g):
    """F = I + Σ (u_a - u_i) g_aᵀ over the three other corners.

    Displacements u instead of positions keep the rounding error independent of the distance from the origin.
    """
    ui, (a, b, c), (g, h, k) = x[0], (x[1], x[2], x[3]), (g[1], g[2], g[3])
    a0, a1, a2 = a[0] - ui[0], a[1] - ui[1], a[2] - ui[2]
    b0, b1, b2 = b[0] - ui[0], b[1] - ui[1], b[2] - ui[2]
    c0, c1, c2 = c[0] - ui[0], c[1] - ui[1], c[2] - ui[2]
    return (
        1.0 + (a0 * g[0] + b0 * h[0] + c0 * k[0]),
        a0 * g[1] + b0 * h[1] + c0 * k[1],
        a0 * g[2] + b0 * h[2] + c0 * k[2],
        a1 * g[0] + b1 * h[0] + c1 * k[0],
        1.0 + (a1 * g[1] + b1 * h[1] + c1 * k[1]),
        a1 * g[2] + b1 * h[2] + c1 * k[2],
        a2 * g[0] + b2 * h[0] + c2 * k[0],
        a2 * g[1] + b2 * h[1] + c2 * k[1],
        1.0 + (a2 * g[2] + b2 * h[2] + c2 * k[2]),
    )


@volume_of.of(TetRows)
def _volume_of(rows, g):
    """1 / (6 |det(g, h, k)|)."""
    inverse = 6.0 * abs(
        det((g[1][0], g[1][1], g[1][2], g[2][0], g[2][1], g[2][2], g[3][0], g[3][1], g[3][2]))
    )
    return where(inverse > 0.0, 1.0 / max(inverse, 1e-30), inverse)


@inversion.of(TetRows)
def _inversion(rows, row, u, ui):
    J = det(deformation_at(rows, row, u, ui))
    return where(J < 0.0, pack_like(1.0, J), pack_like(0.0, J))
