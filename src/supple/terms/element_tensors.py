"""Second derivatives of an energy density at all elements: ∂²ψ/∂F∂F, or its positive definite bound."""

from __future__ import annotations

import numpy as np

from supple.kernels import counters_for, gather, kernel, lanes_of, load, physics, run, store, take_chunk
from supple.materials import hessian_bound, stress_differential
from supple.terms.elastic import deformation_at, material_at
from supple.terms.term import Elements


def tensors_of(elements: Elements, u: np.ndarray, bound: bool, threads: int) -> np.ndarray:
    """(rows, 81, lanes) ∂²ψ/∂F∂F of every element at displacements u, or its positive definite bound."""
    tensors = np.empty((len(elements.own), 81, lanes_of(u.dtype)))
    evaluate = bound_tensors if bound else exact_tensors
    run(evaluate, threads, elements.rows, elements.own, u, unit_matrices(), tensors, counters_for(1))
    return tensors


def unit_matrices() -> np.ndarray:
    """(9, 9, lanes): row q holds the unit matrix E_q in every lane."""
    return np.repeat(np.eye(9)[:, :, None], lanes_of(np.float64), axis=2)


@physics
def load_matrix(data, row):
    """Nine numbers of a row."""
    return (
        load(data, row, 0),
        load(data, row, 1),
        load(data, row, 2),
        load(data, row, 3),
        load(data, row, 4),
        load(data, row, 5),
        load(data, row, 6),
        load(data, row, 7),
        load(data, row, 8),
    )


@kernel
def exact_tensors(rows, own, u, units, out, counters):
    """out[row, 9 p + q] = ∂²ψ/∂F_p∂F_q of the elements in each row."""
    row = take_chunk(counters, 0, len(own))
    while row >= 0:
        F = deformation_at(rows, row, u, gather(u, own, row, 0))
        material = material_at(rows, row)
        for q in range(9):
            dP = stress_differential(material, F, load_matrix(units, q))
            for p in range(9):
                store(out, row, 9 * p + q, dP[p])
        row = take_chunk(counters, 0, len(own))


@kernel
def bound_tensors(rows, own, u, units, out, counters):
    """out[row, 9 (3 i + j) + 3 k + l] = A(e_j, e_l)_ik, the positive definite bound of ∂²ψ/∂F∂F."""
    row = take_chunk(counters, 0, len(own))
    while row >= 0:
        F = deformation_at(rows, row, u, gather(u, own, row, 0))
        material = material_at(rows, row)
        for j in range(3):
            for l in range(3):
                g, h = load_matrix(units, j), load_matrix(units, l)
                A = hessian_bound(material, F, (g[0], g[1], g[2]), (h[0], h[1], h[2]))
                for i in range(3):
                    for k in range(3):
                        store(out, row, 9 * (3 * i + j) + 3 * k + l, A[3 * i + k])
        row = take_chunk(counters, 0, len(own))
