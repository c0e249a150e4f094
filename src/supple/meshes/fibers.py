"""Fiber directions between two ends of a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

from supple.meshes.checks import MeshError
from supple.meshes.tetmesh import TetMesh
from supple.support.arguments import format_value
from supple.support.keywords import suggest_keywords

Selection = Callable[[np.ndarray], np.ndarray] | np.ndarray | list[int]


@suggest_keywords
def fibers_between(mesh: TetMesh, origin: Selection, insertion: Selection) -> np.ndarray:
    """Compute fiber directions from one end of a body to the other: directions of heat flow.

    They are the normalized gradients of the harmonic function that is 0 at the origin, 1 at the insertion and
    has no flux through the rest of the surface. They follow the body like the fibers of a muscle between its
    tendons.

    Args:
        mesh: Mesh of the body.
        origin: Vertices of the first end: a function of rest points (n, 3) that returns a mask, a mask, or
            vertex ids.
        insertion: Vertices of the other end, likewise.

    Returns:
        (m, 3) unit vectors per tetrahedron.

    Raises:
        MeshError: Empty or overlapping ends, or tetrahedra without a direction.
    """
    if not isinstance(mesh, TetMesh):
        raise TypeError(f"fibers_between needs a TetMesh, got {format_value(mesh)}")
    low, high = (
        _vertices(mesh, chosen, name) for chosen, name in ((origin, "origin"), (insertion, "insertion"))
    )
    if len(shared := np.intersect1d(low, high)):
        raise MeshError(f"origin and insertion of fibers must not share vertices; they share {len(shared)}")
    gradients = _gradients(mesh)
    potential = _harmonic(mesh, gradients, low, high)
    direction = np.einsum("ea,eai->ei", potential[mesh.tets], gradients)
    length = np.linalg.norm(direction, axis=1)
    if len(lost := np.flatnonzero(~(length > 1e-9 * length.max()))):
        raise MeshError(
            f"{len(lost)} tetrahedra have no fiber direction, the first is {lost[0]}: they are not "
            "between origin and insertion of the fibers, or all of their vertices belong to one end"
        )
    return direction / length[:, None]


def _vertices(mesh: TetMesh, chosen: Any, name: str) -> np.ndarray:
    selection = np.asarray(chosen(mesh.points) if callable(chosen) else chosen)
    if selection.dtype == bool and selection.shape != (mesh.n_vertices,):
        raise MeshError(
            f"{name} of fibers: a mask must have one value for each of the {mesh.n_vertices} vertices"
        )
    numbers = np.flatnonzero(selection) if selection.dtype == bool else np.unique(selection)
    if not len(numbers):
        raise MeshError(f"{name} of fibers selects no vertex of the mesh; it needs at least one")
    if numbers.dtype.kind not in "iu" or numbers[0] < 0 or numbers[-1] >= mesh.n_vertices:
        given = (
            f"a function that gives {format_value(selection)}" if callable(chosen) else format_value(chosen)
        )
        raise MeshError(
            f"{name} of fibers must be vertices of the mesh, 0 to {mesh.n_vertices - 1}, got {given}"
        )
    return numbers


def _gradients(mesh: TetMesh) -> np.ndarray:
    """(m, 4, 3) gradients of the shape functions [1/m]."""
    corners = mesh.points[mesh.tets]
    inner = np.linalg.inv(corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    return np.concatenate([-inner.sum(axis=1, keepdims=True), inner], axis=1)


def _harmonic(mesh: TetMesh, gradients: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n,) solution of Laplace's equation; 0 in components connected to neither end."""
    n, tets = mesh.n_vertices, mesh.tets
    entries = mesh.volumes[:, None, None] * np.einsum("eai,ebi->eab", gradients, gradients)
    rows, columns = np.repeat(tets, 4, axis=1).ravel(), np.tile(tets, (1, 4)).ravel()
    K = coo_matrix((entries.ravel(), (rows, columns)), shape=(n, n)).tocsr()
    potential = np.zeros(n)
    potential[high] = 1.0
    labels = mesh.components
    hanging = np.isin(labels, labels[np.concatenate([low, high])])
    free = np.setdiff1d(np.flatnonzero(hanging), np.concatenate([low, high]))
    if len(free):
        potential[free] = spsolve(K[free][:, free].tocsc(), -K[free] @ potential)
    return potential
