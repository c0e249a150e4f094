"""Validation of mesh points and cells, and of the arguments of transformations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.measures import squared_edges, volumes
from supple.support.arguments import MAX_LENGTH, MIN_LENGTH, format_value, to_floats

MIN_RELATIVE_VOLUME = 1e-14
"""Ratio |V|/ℓ³, with longest edge ℓ, below which a tet counts as flat: rounding decides the sign of its
volume."""

MAX_RELATIVE_SPACING = 1e-3
"""Largest spacing of float64 coordinates relative to the longest edge of a tet."""


class MeshError(ValueError):
    """Raised for an invalid mesh; the message describes the defect and its repair."""


def check_mesh(points: ArrayLike, tets: ArrayLike, repair: bool) -> tuple[np.ndarray, np.ndarray]:
    """Validate points (n, 3) and tets (m, 4); returns copies as float64 and int32."""
    points = _as_points(points)
    tets = _as_cells(tets, "tet", 4, len(points))
    _refuse_repeated_vertices(tets)
    _refuse_repeated_tets(tets)
    points, tets = _remove_unused(points, tets, repair)
    _refuse_rounded(points, tets)
    volume = volumes(points, tets)
    _refuse_flat(points, tets, volume)
    return points, _orient(tets, volume, repair)


def check_surface(points: ArrayLike, triangles: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Validate points (n, 3) and triangles (m, 3); returns copies as float64 and int32."""
    points = _as_points(points)
    return points, _as_cells(triangles, "triangle", 3, len(points))


def check_uv(values: ArrayLike, triangles: int) -> np.ndarray:
    """Validate texture coordinates (m, 3, 2); returns a read-only copy."""
    uv = np.array(_as_array(values, "uv"), np.float64, order="C")
    if uv.shape != (triangles, 3, 2) or not np.isfinite(uv).all():
        raise MeshError(
            f"uv must be finite and have shape {(triangles, 3, 2)}, two numbers for each corner of each "
            f"triangle; it has shape {uv.shape}."
        )
    uv.setflags(write=False)
    return uv


def format_size(size: np.ndarray) -> str:
    """Format a size as 2 × 1 × 0.5 m."""
    return " × ".join(f"{edge:.4g}" for edge in size) + " m"


def _as_points(values: ArrayLike) -> np.ndarray:
    array = _as_array(values, "points")
    if array.size == 0:
        raise MeshError("The mesh is empty: it has no points.")
    if array.ndim != 2 or array.shape[1] != 3:
        raise MeshError(f"points must have shape (n, 3), x y z of every vertex, but has shape {array.shape}.")
    points = np.array(array, np.float64, order="C")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        raise MeshError(
            f"{len(bad)} of {len(points)} points are NaN or infinite: {format_first(bad)}. "
            "Coordinates must be finite."
        )
    _refuse_size(points)
    return points


def _refuse_size(points: np.ndarray) -> None:
    """Refuse meshes of extreme size or position. Coincident points are left to other checks."""
    low, high = points.min(axis=0), points.max(axis=0)
    largest = max(np.abs(low).max(), np.abs(high).max())
    size = high / 2 - low / 2  # halves avoid overflow
    if largest > MAX_LENGTH:
        problem = f"The points reach {largest:.2g} m from the origin"
    elif 0 < size.max() < MIN_LENGTH / 2:
        problem = f"The mesh is {format_size(2 * size)}"
    else:
        return
    raise MeshError(
        f"{problem}; sizes must be between {MIN_LENGTH:g} and {MAX_LENGTH:g} m. Scale the mesh: lengths "
        "are in meters."
    )


def _as_cells(values: ArrayLike, kind: str, corners: int, n: int) -> np.ndarray:
    """Validate cells as (m, corners) int32 with vertices 0 to n - 1; kind is "tet" or "triangle"."""
    array = _as_array(values, f"{kind}s")
    if array.size == 0:
        raise MeshError(f"The mesh is empty: it has no {kind}s.")
    if array.ndim != 2 or array.shape[1] != corners:
        count = {3: "three", 4: "four"}[corners]
        raise MeshError(
            f"{kind}s must have shape (m, {corners}), {count} vertices a {kind}, but has shape {array.shape}."
        )
    if array.dtype.kind == "f" and len(bad := np.flatnonzero((array != np.floor(array)).any(axis=1))):
        raise MeshError(
            f"{kind}s must hold whole numbers (vertex indices), "
            f"but {kind} {bad[0]} is {array[bad[0]].tolist()}."
        )
    bad = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if len(bad):
        cell = array[bad[0]]
        hint = " Indices seem to start at 1: subtract 1." if array.min() == 1 and array.max() == n else ""
        raise MeshError(
            f"{kind.capitalize()} {bad[0]} uses vertex {cell[(cell < 0) | (cell >= n)][0]}, but vertices go "
            f"from 0 to {n - 1} ({len(bad)} of {len(array)} {kind}s are out of range).{hint}"
        )
    return np.array(array, np.int32, order="C")


def _as_array(values: ArrayLike, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise MeshError(f"{name} must be a rectangular array of numbers ({error}).") from error
    if array.dtype.kind not in "iuf":
        raise MeshError(f"{name} must be an array of numbers, but its type is {array.dtype}.")
    return array


def _refuse_repeated_vertices(tets: np.ndarray) -> None:
    ordered = np.sort(tets, axis=1)
    bad = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(bad):
        raise MeshError(
            f"{len(bad)} of {len(tets)} tets use a vertex twice: tet {bad[0]} is {tets[bad[0]].tolist()}. "
            "Remove these tets; they have no volume."
        )


def _refuse_repeated_tets(tets: np.ndarray) -> None:
    a, b, c, d = np.sort(tets, axis=1).astype(np.int64).T
    n = int(d.max()) + 1
    first, second = a * n + b, c * n + d
    order = np.lexsort((second, first))  # stable: the earlier of two equal tets comes first
    same = (np.diff(first[order]) == 0) & (np.diff(second[order]) == 0)
    if same.any():
        original, copy = order[:-1][same], order[1:][same]
        raise MeshError(
            f"{len(copy)} of {len(tets)} tets repeat another tet: tet {copy[0]} has the vertices of tet "
            f"{original[0]}. Remove the copies; they would make the body stiffer and heavier."
        )


def _remove_unused(points: np.ndarray, tets: np.ndarray, repair: bool) -> tuple[np.ndarray, np.ndarray]:
    used = np.zeros(len(points), bool)
    used[tets] = True
    if used.all():
        return points, tets
    if not repair:
        unused = np.flatnonzero(~used)
        raise MeshError(
            f"{len(unused)} of {len(points)} vertices belong to no tet: {format_first(unused)}. They have no "
            "mass. Remove them, or pass repair=True, which removes them and renumbers the rest."
        )
    renumbered = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return points[used], renumbered[tets]


def _refuse_rounded(points: np.ndarray, tets: np.ndarray) -> None:
    """Refuse small meshes far from the origin, where float64 cannot resolve their tets."""
    size, largest = np.ptp(points, axis=0), np.abs(points).max()
    if not size.any():
        position = ", ".join(f"{x:.4g}" for x in points[0])
        raise MeshError(
            f"All points of the mesh lie at ({position}), so it has no volume. If it is small and far from "
            "the origin, float64 cannot resolve it: move it to the origin."
        )
    longest = np.sqrt(squared_edges(points, tets).max())
    if np.spacing(largest) > MAX_RELATIVE_SPACING * longest:
        raise MeshError(
            f"The mesh is {format_size(size)} and up to {largest:.3g} m from the origin, where float64 "
            f"coordinates are {np.spacing(largest):.2g} m apart. Move it to the origin."
        )


def _refuse_flat(points: np.ndarray, tets: np.ndarray, volume: np.ndarray) -> None:
    longest = np.sqrt(squared_edges(points, tets).max(axis=0))
    bad = np.flatnonzero(~(np.abs(volume) > MIN_RELATIVE_VOLUME * longest**3))
    if len(bad):
        raise MeshError(
            f"{len(bad)} of {len(tets)} tets are flat: {format_first(bad)}. Their four vertices lie in a "
            "plane (or coincide), so they have no volume. Remove these tets or mesh the shape again."
        )


def _orient(tets: np.ndarray, volume: np.ndarray, repair: bool) -> np.ndarray:
    inverted = np.flatnonzero(volume < 0)
    if len(inverted) == 0:
        return tets
    if not repair:
        worst = inverted[np.argsort(volume[inverted], kind="stable")]
        worst_tets = format_first(worst, lambda tet: f"tet {tet} ({volume[tet]:.3g} m³)")
        raise MeshError(
            f"{len(inverted)} of {len(tets)} tets are inverted (negative volume), the worst: {worst_tets}. "
            "Swap two of their vertices, or pass repair=True, which does that."
        )
    tets[inverted] = tets[inverted][:, [0, 1, 3, 2]]
    return tets


def format_first(ids: np.ndarray, text: Callable[[int], str] = str, count: int = 5) -> str:
    """Format the first few ids, followed by the number of omitted ones."""
    more = f" and {len(ids) - count} more" if len(ids) > count else ""
    return ", ".join(text(i) for i in ids[:count].tolist()) + more


def three(name: str, values: ArrayLike) -> np.ndarray:
    """Validate a vector of three finite numbers."""
    vector = to_floats(values)
    if vector.shape != (3,) or not np.all(np.abs(vector) <= MAX_LENGTH):
        raise MeshError(
            f"{name} must be three finite numbers, up to {MAX_LENGTH:g}, got {format_value(values)}."
        )
    return vector


def matrix_of(values: ArrayLike) -> np.ndarray:
    """Validate a finite (3, 3) matrix."""
    matrix = to_floats(values)
    if matrix.shape != (3, 3):
        actual = f"has shape {matrix.shape}" if matrix.ndim else f"is {format_value(values)}"
        raise MeshError(f"matrix must have shape (3, 3), but {actual}.")
    if not np.all(np.abs(matrix) <= MAX_LENGTH):
        raise MeshError(f"matrix must have finite entries, up to {MAX_LENGTH:g}, got {format_value(values)}.")
    return matrix


def scaling(factor: ArrayLike) -> np.ndarray:
    """(3, 3) scaling matrix for one factor, or one factor per axis."""
    factors = to_floats(factor)
    if factors.shape not in ((), (3,)):
        raise MeshError(f"scale must be one number or three, but has shape {factors.shape}.")
    if not np.all((np.abs(factors) <= MAX_LENGTH) & (factors != 0)):
        raise MeshError(
            f"scale must be finite and not 0, got {format_value(factor)}; 1 leaves lengths as they are."
        )
    return np.diag(np.broadcast_to(factors, 3))
