"""Extraction and merging of tetrahedral meshes with their data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from supple.checks import each, shown
from supple.meshes.checks import MeshError
from supple.meshes.data import merged, refuse_mixed
from supple.meshes.tetmesh import TetMesh


def select_tets(mesh: TetMesh, tets: ArrayLike) -> TetMesh:
    """Extract tets of a mesh together with their vertices and data.

    Args:
        mesh: Tetrahedral mesh.
        tets: Mask (m,) or ids of the tets, for example `mesh.cell_data["region"] == 2`.
    """
    if not isinstance(mesh, TetMesh):
        raise TypeError(f"select_tets needs a TetMesh, got {shown(mesh)}")
    chosen = np.asarray(tets)
    if chosen.dtype == bool and chosen.shape == (mesh.n_tets,):
        chosen = np.flatnonzero(chosen)
    whole = chosen.ndim == 1 and chosen.dtype.kind in "iu" and chosen.size > 0
    if not whole or chosen.min() < 0 or chosen.max() >= mesh.n_tets:
        raise MeshError(
            f"tets must be True or False for each of the {mesh.n_tets} tets, or numbers from 0 to "
            f"{mesh.n_tets - 1}, at least one; got {shown(tets)}."
        )
    return TetMesh(
        mesh.points,
        mesh.tets[chosen],
        repair=True,
        cell_data={name: values[chosen] for name, values in mesh.cell_data.items()},
        point_data=mesh.point_data,
    )


def merge_meshes(meshes: Iterable[TetMesh]) -> TetMesh:
    """Concatenate meshes without connecting them.

    Data missing in some meshes are NaN there, or -1 for integers.

    Args:
        meshes: Meshes to merge.
    """
    parts = list(each(meshes, "meshes are a list of TetMesh"))
    if not parts or not all(isinstance(part, TetMesh) for part in parts):
        raise TypeError(f"merge_meshes needs a list of at least one TetMesh, got {shown(parts)}")
    for data in ([p.cell_data for p in parts], [p.point_data for p in parts]):
        refuse_mixed(data)
    first = np.cumsum([0, *(part.n_vertices for part in parts)])
    return TetMesh(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.tets + start for part, start in zip(parts, first[:-1], strict=True)]),
        cell_data=merged([p.cell_data for p in parts], [p.n_tets for p in parts]),
        point_data=merged([p.point_data for p in parts], [p.n_vertices for p in parts]),
    )
