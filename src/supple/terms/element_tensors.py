"""Second derivatives of the energy densities of all elements: ∂²ψ/∂F∂F, or a positive definite bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    counters_for,
    do,
    gather,
    kernel,
    lanes_of,
    load,
    physics,
    run,
    store,
    take_chunk,
)
from supple.materials import hessian_bound, stress_differential
from supple.terms.elastic import deformation_at, material_at
from supple.terms.tensors import project_tensors
from supple.terms.term import Elements


def tensors_of(elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
    """Compute ∂²ψ/∂F∂F of every element.

    Args:
        elements: Data packed by elements.
        u: Displacements, padded vectors [m].
        kind: "exact", "projected" (positive semi-definite) or "bound" (positive definite bound).
        threads: Number of threads.

    Returns:
        (rows, 81, lanes) tensors [Pa].
    """
    tensors = np.empty((len(elements.own), 81, lanes_of(u.dtype)))
    made = BoundTensors if kind == "bound" else ExactTensors
    work = made(elements.rows, elements.own, u, unit_matrices(), tensors)
    run(_at_all_rows, threads, work, counters_for(1))
    if kind == "projected":
        run(project_tensors, threads, tensors, counters_for(1))
    return tensors


def unit_matrices() -> np.ndarray:
    """(9, 9, lanes): row q holds the unit matrix E_q in every lane."""
    return np.repeat(np.eye(9)[:, :, None], lanes_of(np.float64), axis=2)


@physics
def load_matrix(data, row):
    """Load the nine numbers of a row."""
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


class ExactTensors(NamedTuple):
    """out[row, 9 p + q] = ∂²ψ/∂F_p∂F_q of the elements in each row."""

    rows: Any
    own: Any
    u: Any
    units: Any
    out: Any


class BoundTensors(ExactTensors):
    """out[row, 9 (3 i + j) + 3 k + l] = A(e_j, e_l)_ik, the positive definite bound of ∂²ψ/∂F∂F."""

    __slots__ = ()


@kernel
def _at_all_rows(work, counters):
    row = take_chunk(counters, 0, len(work.own))
    while row >= 0:
        do(work, row)
        row = take_chunk(counters, 0, len(work.own))


@physics
def _deformed(work, row):
    """Material and F of the elements in a row."""
    F = deformation_at(work.rows, row, work.u, gather(work.u, work.own, row, 0))
    return material_at(work.rows, row), F


@do.of(ExactTensors)
def _exact(work, row):
    material, F = _deformed(work, row)
    for q in range(9):
        dP = stress_differential(material, F, load_matrix(work.units, q))
        for p in range(9):
            store(work.out, row, 9 * p + q, dP[p])


@do.of(BoundTensors)
def _bound(work, row):
    material, F = _deformed(work, row)
    for j in range(3):
        for l in range(3):
            g, h = load_matrix(work.units, j), load_matrix(work.units, l)
            A = hessian_bound(material, F, (g[0], g[1], g[2]), (h[0], h[1], h[2]))
            for i in range(3):
                for k in range(3):
                    store(work.out, row, 9 * (3 * i + j) + 3 * k + l, A[3 * i + k])
