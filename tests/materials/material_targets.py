"""All functions of a material on three targets: compiled scalars, packs, plain Python.

A row of results is ψ (1 number), P (9), δP along D (9) and A(g, h) (9), with g and h the first rows of D. Run
as a script, this file reads {"material": [class, mu, lam], "F": ..., "D": ...} from its input and writes the
rows of plain Python.
"""

import json
import sys

import numpy as np
from numba import njit

from supple.kernels import device_function, lanes_of, load, store
from supple.materials import (
    MATERIALS,
    hessian_bound,
    psi,
    stress,
    stress_differential,
    vertex_response,
)

RESULTS = 28


def by_python(material, F, D):
    rows = []
    for f, d in zip(F, D, strict=True):
        f, d = tuple(f), tuple(d)
        parts = (
            stress(material, f),
            stress_differential(material, f, d),
            hessian_bound(material, f, d[:3], d[3:6]),
        )
        rows.append([psi(material, f), *parts[0], *parts[1], *parts[2]])
    return rows


@device_function
def _nine(x, row):
    return (
        x[row, 0],
        x[row, 1],
        x[row, 2],
        x[row, 3],
        x[row, 4],
        x[row, 5],
        x[row, 6],
        x[row, 7],
        x[row, 8],
    )


@njit(error_model="numpy")
def _on_scalars(material, F, D, out):
    for row in range(len(F)):
        f, d = _nine(F, row), _nine(D, row)
        out[row, 0] = psi(material, f)
        P = stress(material, f)
        dP = stress_differential(material, f, d)
        A = hessian_bound(material, f, (d[0], d[1], d[2]), (d[3], d[4], d[5]))
        for i in range(9):
            out[row, 1 + i], out[row, 10 + i], out[row, 19 + i] = P[i], dP[i], A[i]


@device_function
def _nine_packs(x, row):
    return (
        load(x, row, 0),
        load(x, row, 1),
        load(x, row, 2),
        load(x, row, 3),
        load(x, row, 4),
        load(x, row, 5),
        load(x, row, 6),
        load(x, row, 7),
        load(x, row, 8),
    )


@njit(error_model="numpy")
def _on_packs(material, F, D, out):
    for row in range(len(F)):
        f, d = _nine_packs(F, row), _nine_packs(D, row)
        store(out, row, 0, psi(material, f))
        P = stress(material, f)
        dP = stress_differential(material, f, d)
        A = hessian_bound(material, f, (d[0], d[1], d[2]), (d[3], d[4], d[5]))
        for i in range(9):
            store(out, row, 1 + i, P[i])
            store(out, row, 10 + i, dP[i])
            store(out, row, 19 + i, A[i])


@njit(error_model="numpy")
def _responses_on_packs(material, F, g, out):
    for row in range(len(F)):
        f = _nine_packs(F, row)
        store(out, row, 0, psi(material, f))
        p, A, _ = vertex_response(material, f, (load(g, row, 0), load(g, row, 1), load(g, row, 2)))
        for i in range(3):
            store(out, row, 1 + i, p[i])
        for i in range(9):
            store(out, row, 4 + i, A[i])


def responses_by_packs(material, F, g, dtype):
    """ψ, P g and the block of a vertex: 13 numbers."""
    lanes = lanes_of(dtype)
    out = np.empty((len(F) // lanes, 13, lanes), dtype)
    _responses_on_packs(material, _in_packs(F, dtype), _in_packs(g, dtype), out)
    return out.transpose(0, 2, 1).reshape(len(F), 13)


@njit(error_model="numpy")
def _stresses_on_packs(material, F, out):
    for row in range(len(F)):
        P = stress(material, _nine_packs(F, row))
        for i in range(9):
            store(out, row, i, P[i])


def stresses_by_packs(material, F, dtype):
    """(n, 9) P of any number of F."""
    lanes = lanes_of(dtype)
    padded = np.vstack([F, np.repeat(F[-1:], -len(F) % lanes, axis=0)])
    out = np.empty((len(padded) // lanes, 9, lanes), dtype)
    _stresses_on_packs(material, _in_packs(padded, dtype), out)
    return out.transpose(0, 2, 1).reshape(-1, 9)[: len(F)]


def _in_packs(x, dtype):
    return np.ascontiguousarray(x.reshape(-1, lanes_of(dtype), x.shape[1]).transpose(0, 2, 1), dtype)


def by_scalars(material, F, D):
    out = np.empty((len(F), RESULTS))
    _on_scalars(material, F, D, out)
    return out


def by_packs(material, F, D, dtype):
    lanes = lanes_of(dtype)
    assert len(F) % lanes == 0

    out = np.empty((len(F) // lanes, RESULTS, lanes), dtype)
    _on_packs(material, _in_packs(F, dtype), _in_packs(D, dtype), out)
    return out.transpose(0, 2, 1).reshape(len(F), RESULTS)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    results = {
        name: by_python(MATERIALS[name].from_lame(*given["lame"]), given["F"], given["D"])
        for name in given["materials"]
    }
    json.dump(results, sys.stdout)
