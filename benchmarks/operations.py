"""Cost of one update of a stencil: operations, counted in LLVM's optimized code, and bytes.

A vertex update is what one vertex learns of one stencil in a sweep of PBNG: its force and the bound of its
Hessian. Additions, subtractions, multiplications, divisions and roots of whole packs count once each; a
comparison, a selection or a gather is none. Bytes are those of the stencil's own rows, which a sweep reads
once; records of the other corners come on top, 16 in float32 each, mostly from caches.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numba import njit

from supple.config.backend import Backend
from supple.kernels import gather, lanes_of, store
from supple.kernels.simd.pack import FAST_FLAGS
from supple.model.model import Model
from supple.solve.batch_solve import make_problem
from supple.terms import vertex_force

ARITHMETIC = re.compile(r"= f(add|sub|mul|div|neg)\b[^<]*<\d+ x (?:float|double)>")
ROOT = re.compile(r"call[^\n]*@llvm\.sqrt\.v\d+f\d+")


def _update_kernel(term, own, u, out):
    f, A = vertex_force(term, 0, u, gather(u, own, 0, 0))
    store(out, 0, 0, f[0])
    store(out, 0, 1, f[1])
    store(out, 0, 2, f[2])
    store(out, 0, 3, A[0])
    store(out, 0, 4, A[1])
    store(out, 0, 5, A[2])
    store(out, 0, 6, A[3])
    store(out, 0, 7, A[4])
    store(out, 0, 8, A[5])


def count_operations(code: str) -> dict[str, int]:
    """Operations in LLVM's code, by kind."""
    operations = [match.group(1) for match in ARITHMETIC.finditer(code)]
    operations_by_type = {"add": ("add", "sub"), "mul": ("mul",), "div": ("div",)}
    counts = {
        name: sum(operations.count(part) for part in parts) for name, parts in operations_by_type.items()
    }
    return counts | {"sqrt": len(ROOT.findall(code))}


def row_bytes(term: Any, lanes: int) -> int:
    """Bytes of one update in the rows of a term."""
    own = [part for part in term if isinstance(part, np.ndarray) and part.ndim == 3]
    return sum(int(part[0].nbytes) for part in own) // lanes


def operations_per_update(model: Model, precision: str = "float32") -> dict[str, dict[str, Any]]:
    """For each term of a model: corners, and operations and bytes of a vertex update and of a stencil."""
    problem = make_problem(model, True, Backend("cpu", precision, 1))
    lanes, results = lanes_of(precision), {}
    out = np.zeros((1, 9, lanes), precision)
    for term, rows in zip(model.terms, problem.layout.terms, strict=True):
        compiled = njit(fastmath=set(FAST_FLAGS), error_model="numpy")(_update_kernel)
        compiled(rows, problem.loads.rows.own, problem.u, out)
        (code,) = compiled.inspect_llvm().values()
        operation_counts = count_operations(code)
        corners = term.vertices.shape[1]
        flops, size = sum(operation_counts.values()), row_bytes(rows, lanes)
        results[term.name] = {
            "corners": corners,
            "flops_per_visit": flops,
            "of_these": operation_counts,
            "bytes_per_visit": size,
            "records_per_visit": corners - 1,
            "flops_per_stencil": corners * flops,
            "bytes_per_stencil": corners * size,
        }
    return results
