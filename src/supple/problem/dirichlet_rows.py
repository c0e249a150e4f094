"""Directional Dirichlet conditions: rollers, symmetry planes, rails.

A vertex constrained along some directions remains a free vertex. Its net force, Hessian bound and steps are
projected orthogonally to the constrained directions n, with N = Σ n nᵀ. At the beginning of a time step and
after every vertex update, x ← x - N x + N target restores the prescribed coordinates to rounding. Models
without such conditions pass () to the kernels, which removes the code at compile time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.algebra.dirichlet_projection import free_part
from supple.algebra.matrix3 import add
from supple.kernels import RECORD, device_function, gather, load, overload_by_type
from supple.model.model import Model

SYMMETRIC = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
"""Row and column indices of the numbers xx yy zz xy xz yz of a symmetric matrix."""


class ConstrainedRows(NamedTuple):
    """Constraint data of the free vertices.

    Attributes:
        normal: (batches, 6, lanes) N of the vertices of each batch.
        at: (batch size (n + 1), 4) padded vectors of N times the prescribed displacements [m].
    """

    normal: Any
    at: Any


class Normals(NamedTuple):
    """N of every vertex as padded vectors (n + 1, 4).

    Attributes:
        diagonal: xx yy zz.
        across: xy xz yz.
    """

    diagonal: Any
    across: Any


def normals_of(model: Model) -> np.ndarray:
    """(n + 1, 6) float64 N of all vertices: 0 for unconstrained ones and padding, I for pinned ones."""
    table = np.zeros((model.vertices + 1, 6))
    table[model.pinned] = (
        np.eye(3)[SYMMETRIC]
        if model.constraint_projection is None
        else model.constraint_projection[:, *SYMMETRIC]
    )
    return table


def normal_records(model: Model, dtype: np.dtype) -> Normals | tuple[()]:
    if model.constraint_projection is None:
        return ()
    table = normals_of(model)
    records = np.zeros((2, len(table), RECORD), dtype)
    records[0, :, :3], records[1, :, :3] = table[:, :3], table[:, 3:]
    return Normals(records[0].copy(), records[1].copy())


def batch_normals(model: Model, own: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(batches, 6, lanes) N of vertices own (batches, 1, lanes)."""
    return np.ascontiguousarray(np.swapaxes(normals_of(model)[own[:, 0]], 1, 2), dtype)


def corner_normals(model: Model, ids: np.ndarray, dtype: np.dtype) -> np.ndarray | tuple[()]:
    """(rows, 6 k, lanes) N of vertices ids (rows, k, lanes), corner after corner."""
    if model.constraint_projection is None:
        return ()
    rows, corners, lanes = ids.shape
    normals = np.moveaxis(normals_of(model)[ids], 3, 2)
    return np.ascontiguousarray(normals.reshape(rows, 6 * corners, lanes), dtype)


def group_normals(model: Model, members: np.ndarray, dtype: np.dtype) -> np.ndarray | tuple[()]:
    """Projections of groups of tied vertices, which move as one.

    Args:
        model: Model with the conditions.
        members: (batches, k, lanes) vertices of each group.
        dtype: Working precision.

    Returns:
        (batches, 6, lanes) projection onto all directions along which any member is constrained; () without
        directional conditions.
    """
    if model.constraint_projection is None:
        return ()
    full = np.zeros((members.shape[0], members.shape[2], 3, 3))
    full[..., *SYMMETRIC] = normals_of(model)[members].sum(axis=1)
    full[..., *SYMMETRIC[::-1]] = full[..., *SYMMETRIC]
    values, vectors = np.linalg.eigh(full)
    projections = np.einsum("blik,blk,bljk->blij", vectors, values > 1e-9, vectors)
    return np.ascontiguousarray(np.swapaxes(projections[..., *SYMMETRIC], 1, 2), dtype)


def constrained_at(constrained: Any, row: Any) -> Any:
    """N in a packed row; `constrained` is `ConstrainedRows`, an array (rows, 6, lanes), or () for ()."""


@overload_by_type(constrained_at)
def _constrained_at(constrained, row):
    if isinstance(constrained, types.Array):
        return lambda constrained, row: six(constrained, row, 0)
    if len(constrained) == 0:
        return lambda constrained, row: ()
    return lambda constrained, row: six(constrained.normal, row, 0)


@device_function
def six(data, row, first):
    """Load six numbers of a row, starting at field `first`."""
    return (
        load(data, row, first),
        load(data, row, first + 1),
        load(data, row, first + 2),
        load(data, row, first + 3),
        load(data, row, first + 4),
        load(data, row, first + 5),
    )


def restore_prescribed(constrained: Any, own: Any, batch: Any, x: Any) -> Any:
    """x - N x + N target: displacements of a vertex batch with the prescribed coordinates restored."""


@overload_by_type(restore_prescribed)
def _restore_prescribed(constrained, own, batch, x):
    if len(constrained) == 0:
        return lambda constrained, own, batch, x: x
    return lambda constrained, own, batch, x: add(
        free_part(six(constrained.normal, batch, 0), x), gather(constrained.at, own, batch, 0)
    )
