"""Products of element Hessians with a vector λ of all vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.linear.assembly.block_kernels import host_elements
from supple.linear.assembly.stress_differentials import differentials
from supple.problem import Problem


@dataclass(frozen=True, eq=False)
class Response:
    """Element response of one term to λ.

    Attributes:
        term: Term.
        F: (m, 3, 3) deformation gradients.
        P: (m, 3, 3) stresses [Pa].
        G: (m, 3, 3) gradients of λ, Σ λₐ gₐᵀ.
        differential: (m, 3, 3) stress differentials δP = (∂²ψ/∂F∂F) : G.
    """

    term: Any
    F: np.ndarray
    P: np.ndarray
    G: np.ndarray
    differential: np.ndarray

    @property
    def work(self) -> np.ndarray:
        """V P : G (m,), the derivative of each element's energy along λ."""
        return self.term.volume * np.einsum("eij,eij->e", self.P, self.G)


def element_response(problem: Problem, index: int, along: np.ndarray, material: Any = None) -> Response:
    """Compute a term's element response to λ (n, 3), at the problem's u.

    `material` replaces the term's material by another of the same class.
    """
    term: Any = problem.model.terms[index]
    F, P, dP = differentials(problem, index, along, material)
    corners = along[term.vertices]
    G = (corners - corners[:, :1]).transpose(0, 2, 1) @ term.gradients
    return Response(term, F, P, G, dP)


def are_tets(problem: Problem, index: int) -> bool:
    """True for terms of tetrahedra with a material."""
    return problem.model.terms[index].fills


def at_corners(A: np.ndarray, term: Any) -> np.ndarray:
    """A gₐ (m, k, 3) at the corners of elements, for A (m, 3, 3)."""
    return term.gradients @ A.transpose(0, 2, 1)


def scatter(vertices: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """(count, 3) sums at the vertices of corner vectors (m, k, 3), for corners (m, k)."""
    flat = vertices.ravel()
    return np.stack([np.bincount(flat, v, count) for v in vectors.reshape(-1, 3).T], axis=1)


def hessian_product(problem: Problem, along: np.ndarray, tets: dict[int, Response]) -> np.ndarray:
    """H λ (n, 3) at all vertices, including pinned ones, without inertia.

    `tets` contains the responses of tetrahedra by term number.
    """
    total = np.zeros_like(along)
    problem.device.download(problem.u)
    for k, term in enumerate(problem.model.terms):
        if k in tets:
            response = tets[k]
            V = response.term.volume[:, None, None]
            vectors = at_corners(V * response.differential, response.term)
        elif len(term.vertices):
            blocks = term.hessian_blocks(
                host_elements(problem, k), problem.u, "exact", problem.device.threads
            )
            vectors = np.einsum("eabij,ebj->eai", blocks, along[term.vertices])
        else:
            continue
        total += scatter(term.vertices, vectors, len(along))
    return total


def shape_product(response: Response) -> np.ndarray:
    """A (m, 3, 3) with Σ A gₐ · δXₐ = -δ(V P : G) for tetrahedra with rest displacements δXₐ.

    Positions are fixed. With M = Σ δXₐ gₐᵀ, δF = -F M, δG = -G M and δV = V tr M, so that A = V (Fᵀ δP + Gᵀ P
    - (P : G) I).
    """
    V = response.term.volume[:, None, None]
    stretched = (
        response.F.transpose(0, 2, 1) @ response.differential + response.G.transpose(0, 2, 1) @ response.P
    )
    return V * stretched - response.work[:, None, None] * np.eye(3)
