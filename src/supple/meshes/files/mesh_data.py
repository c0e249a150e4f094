"""Mesh data: numbers, vectors and tensors per cell or vertex, which rotate with the mesh.

Rows of three floats are vectors and (3, 3) floats are tensors; integers, such as regions, and all other data
are unchanged by transformations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import MeshError
from supple.support.arguments import format_value

Data = Mapping[str, np.ndarray]
Given = Mapping[str, ArrayLike] | None


def check_data(name: str, data: Given, count: int, what: str) -> dict[str, np.ndarray]:
    """Validate data arrays with one row per item; returns read-only copies. Nine floats become a tensor."""
    if not isinstance(data, Mapping | None):
        raise MeshError(f"{name} must be a dictionary of arrays, got {format_value(data)}.")
    arrays = {}
    for key, values in (data or {}).items():
        array = np.array(values)
        if not isinstance(key, str) or array.shape[:1] != (count,) or array.dtype.kind not in "biuf":
            raise MeshError(
                f"{name}[{key!r}] must hold numbers, one row for each of the {count} {what}, "
                f"but has shape {array.shape} and type {array.dtype}."
            )
        array = array.astype(np.uint8) if array.dtype.kind == "b" else array
        array = array.astype(float) if array.dtype.kind == "f" else array
        if array.dtype.kind == "f" and array.shape[1:] == (9,):
            array = array.reshape(count, 3, 3)
        array = array[:, 0] if array.shape[1:] == (1,) else array
        array.setflags(write=False)
        arrays[key] = array
    return arrays


def rotates(values: np.ndarray) -> bool:
    """True for data that rotate with the mesh: vectors and tensors."""
    return values.dtype.kind == "f" and values.shape[1:] in ((3,), (3, 3))


def transform_data(data: Data, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Transform data by x → A x.

    Vectors are directions in the material, v → A v with unchanged length; tensors are rotated by the rotation
    of A.

    Args:
        data: Arrays by name.
        matrix: A, (3, 3) or (m, 3, 3) per row.
    """
    if not any(map(rotates, data.values())):
        return dict(data)
    A = np.broadcast_to(matrix, (len(next(iter(data.values()))), 3, 3))
    return {name: _transform(values, A) if rotates(values) else values for name, values in data.items()}


def _transform(values: np.ndarray, A: np.ndarray) -> np.ndarray:
    if values.ndim == 2:
        transformed = np.einsum("mij,mj->mi", A, values)
        length = np.linalg.norm(transformed, axis=1, keepdims=True)
        before = np.linalg.norm(values, axis=1, keepdims=True)
        return transformed * (before / np.where(length > 0, length, 1.0))
    U, _, V = np.linalg.svd(A)
    R = U @ V
    return R @ values @ R.transpose(0, 2, 1)


def merge_data(parts: Sequence[Data], counts: Sequence[int]) -> dict[str, np.ndarray]:
    """Concatenate the data of several meshes; missing rows are NaN, or -1 for integers."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate(
            [_data_or_missing(name, part, count, parts) for part, count in zip(parts, counts, strict=True)]
        )
        for name in names
    }


def _data_or_missing(name: str, part: Data, count: int, parts: Sequence[Data]) -> np.ndarray:
    if name in part:
        return part[name]
    example = next(other[name] for other in parts if name in other)
    missing = np.nan if example.dtype.kind == "f" else -1
    return np.full((count, *example.shape[1:]), missing, float if example.dtype.kind == "f" else np.int64)


def check_same_shapes(parts: Sequence[Data]) -> None:
    """Refuse data of the same name with different shapes in meshes to be merged."""
    for name in {name for part in parts for name in part}:
        shapes = {part[name].shape[1:] for part in parts if name in part}
        if len(shapes) > 1:
            raise MeshError(
                f"data {name!r} have rows of shapes {' and '.join(map(str, sorted(shapes)))} in the "
                "merged meshes; rename some of them."
            )


def field_of(name: Any, cell_data: Data, point_data: Data, cells: np.ndarray) -> np.ndarray:
    """Data with one row per cell; vertex data are averaged over the corners."""
    if name in cell_data:
        return cell_data[name]
    if name in point_data:
        return point_data[name][cells].mean(axis=1)
    known = ", ".join(sorted({*cell_data, *point_data})) or "none"
    raise MeshError(f"the mesh has no data named {name!r}; it has {known}.")
