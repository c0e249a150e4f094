"""Scalar Laplace problems L Y = B of three right-hand sides, by conjugate gradients and smoothed aggregation
[Vaněk, Mandel and Brezina 1996]. L does not change, so that its levels are made once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from supple.kernels import kernel

COARSEST = 5000
"""Unknowns of the level that is factorised."""

SHIFT = 1e-9
"""Part of the diagonal that is added to it: a body that nothing holds may be anywhere."""


@kernel
def _aggregate(indptr, indices, group):
    """Greedy groups of neighbours: first around nodes of which no neighbour has a group, then what is left
    joins the group of a neighbour, or stays alone. Returns how many there are."""
    count = 0
    for i in range(len(group)):
        alone = group[i] < 0
        for k in range(indptr[i], indptr[i + 1]):
            alone = alone and group[indices[k]] < 0
        if alone:
            for k in range(indptr[i], indptr[i + 1]):
                group[indices[k]] = count
            group[i] = count
            count += 1
    grouped = group.copy()
    for i in range(len(group)):
        if group[i] < 0:
            for k in range(indptr[i], indptr[i + 1]):
                if grouped[indices[k]] >= 0:
                    group[i] = grouped[indices[k]]
            if group[i] < 0:
                group[i] = count
                count += 1
    return count


def aggregates(L: csr_array) -> csr_array:
    """(n, m): 1 where a node belongs to a group of nodes that L couples."""
    group = np.full(L.shape[0], -1, np.int64)
    count = _aggregate(L.indptr.astype(np.int64), L.indices.astype(np.int64), group)
    n = len(group)
    return csr_array((np.ones(n), group, np.arange(n + 1)), shape=(n, count))


class Level(NamedTuple):
    """L, 1/diag(L) with the weight of Jacobi's relaxation, and what takes values of the next level to this
    one."""

    L: csr_array
    relax: np.ndarray
    prolong: csr_array


class Laplace:
    """Solves with one symmetric positive semi-definite L."""

    def __init__(self, L: csr_array) -> None:
        diagonal = L.diagonal()
        self.L = csr_array(L + diags_array(SHIFT * diagonal + np.finfo(float).tiny))
        self._levels: list[Level] = []
        A = self.L
        while A.shape[0] > COARSEST:
            inverse = 1 / A.diagonal()
            radius = float((abs(A) @ np.ones(A.shape[0]) * inverse).max())  # of D⁻¹L, from above
            groups = aggregates(A)
            if groups.shape[1] == A.shape[0]:  # nothing is coupled
                A = csr_array(diags_array(A.diagonal()))
                break
            prolong = csr_array(groups - diags_array(4 / 3 / radius * inverse) @ (A @ groups))
            self._levels.append(Level(A, (4 / 3 / radius * inverse)[:, None], prolong))
            A = csr_array(prolong.T @ A @ prolong)
        symmetric = {"SymmetricMode": True}
        self._last = splu(csc_array(A), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)

    def solve(self, B: np.ndarray, accuracy: float, most: int = 100) -> np.ndarray:
        """Y (n, 3) with |B - L Y| ≤ accuracy |B| in every column, or what so many iterations give."""
        Y, R = np.zeros_like(B), B.copy()
        Z = self._cycle(R)
        P, rz = Z.copy(), _dots(R, Z)
        enough = accuracy * np.sqrt(_dots(B, B))
        for _ in range(most):
            Q = self.L @ P
            step = _part(rz, _dots(P, Q))
            Y += step * P
            R -= step * Q
            if np.all(np.sqrt(_dots(R, R)) <= enough):
                break
            Z = self._cycle(R)
            before, rz = rz, _dots(R, Z)
            P = Z + _part(rz, before) * P
        return Y

    def _cycle(self, B: np.ndarray, k: int = 0) -> np.ndarray:
        """One V-cycle: two relaxations down, two up."""
        if k == len(self._levels):
            return self._last.solve(B)
        level = self._levels[k]
        X = level.relax * B
        X += level.relax * (B - level.L @ X)
        X += level.prolong @ self._cycle(level.prolong.T @ (B - level.L @ X), k + 1)
        for _ in range(2):
            X += level.relax * (B - level.L @ X)
        return X


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(3,) products of the columns."""
    return np.einsum("ij,ij->j", A, B)


def _part(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, 0 where b is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
