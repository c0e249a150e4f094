"""ψ of a fabric and its derivatives at given strains, on the host."""

from __future__ import annotations

import numpy as np

from supple.kernels import claim_chunk, counters_for, kernel, lanes_of, load, run, store
from supple.terms.hylc.energy import FabricData, density
from supple.terms.hylc.fabric import Fabric


def data_of(fabric: Fabric, dtype: np.dtype) -> FabricData:
    """Pack the data of a fabric for kernels."""
    return FabricData(fabric.layout, fabric.table.astype(dtype), fabric.scale.astype(dtype))


def densities(
    fabric: Fabric, strain: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Evaluate ψ in float64.

    Args:
        fabric: Fabric.
        strain: (m, 6) strains.
        threads: Number of threads.

    Returns:
        ψ (m,) [J/m²] with its constant, ∂ψ/∂e (m, 6) and ∂²ψ/∂e∂e (m, 6, 6).
    """
    m, lanes = len(strain), lanes_of(np.float64)
    rows = -(-m // lanes)
    padded = np.zeros((rows * lanes, 6))
    padded[:m] = strain
    padded = np.ascontiguousarray(padded.reshape(rows, lanes, 6).transpose(0, 2, 1))
    out = np.empty((rows, 28, lanes))
    run(evaluate_densities, threads, data_of(fabric, np.dtype(float)), padded, out, counters_for(1))
    values = out.transpose(0, 2, 1).reshape(rows * lanes, 28)[:m]
    upper, second = np.triu_indices(6), np.empty((m, 6, 6))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = values[:, 7:]
    return values[:, 0] + fabric.constant, values[:, 1:7], second


@kernel
def evaluate_densities(fabric, strain, out, counters):
    """out[row] = ψ, its 6 first and 21 second derivatives at strain[row]."""
    row = claim_chunk(counters, 0, len(strain))
    while row >= 0:
        e = (
            load(strain, row, 0), load(strain, row, 1), load(strain, row, 2),
            load(strain, row, 3), load(strain, row, 4), load(strain, row, 5),
        )  # fmt: skip
        psi = density(fabric, e)
        store(out, row, 0, psi.value)
        for k in range(6):
            store(out, row, 1 + k, psi.first[k])
        for k in range(21):
            store(out, row, 7 + k, psi.second[k])
        row = claim_chunk(counters, 0, len(strain))
