"""Triangle meshes of simple shapes, for cloth. Flat shapes use their coordinates [m] as uv."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import MeshError, three
from supple.meshes.generators import simplices
from supple.meshes.generators.solids import ball, check_positive, check_positive_integer
from supple.meshes.trimesh import TriMesh
from supple.support.arguments import MAX_LENGTH, MIN_LENGTH, format_value, to_floats
from supple.support.keywords import suggest_keywords
from supple.support.memory import refuse_too_many

PATTERNS = ("alternating", "parallel", "equilateral")
"""Triangulations of a sheet: squares with alternating diagonals, squares with parallel diagonals, or rows of
nearly equilateral triangles, whose bending does not depend on the direction."""

PLANES = ("xy", "yz", "zx", "yx", "zy", "xz")


@suggest_keywords
def sheet(
    cells: int | Sequence[int] = 16,
    size: ArrayLike = (1, 1),
    pattern: str = "alternating",
    plane: str = "xy",
    origin: ArrayLike = (0, 0, 0),
) -> TriMesh:
    """Create a rectangle; its normal is the cross product of the two axes of its plane.

    Args:
        cells: Number of cells (nu, nv) along the axes, or the number along the first axis for nearly regular
            cells.
        size: Edge lengths [m], or one length.
        pattern: "alternating" or "parallel" diagonals, or "equilateral": rows of triangles, every second row
            shifted by half an edge.
        plane: Axes of the rectangle, such as "xz".
        origin: Corner of the rectangle [m].

    Returns:
        The sheet, with uv coordinates [m] along its axes.

    Raises:
        MeshError: A size or number of cells is out of range.
    """
    edges = _two_lengths(size)
    nu, nv = _two_counts(cells, edges, pattern)
    _announce("sheet", *sheet_size((nu, nv), edges, pattern))
    flat, triangles = (_rows if pattern == "equilateral" else _grid)(nu, nv, pattern)
    return _place_in_plane(flat * edges, triangles, plane, origin)


@suggest_keywords
def disc(
    radius: float = 0.5, resolution: int = 8, plane: str = "xy", center: ArrayLike = (0, 0, 0)
) -> TriMesh:
    """Create a disc.

    Args:
        radius: Radius [m].
        resolution: Number of rings.
        plane: Axes of the disc's plane, such as "xz".
        center: Center [m].

    Returns:
        The disc, with uv coordinates [m] in its plane.

    Raises:
        MeshError: A size or number of cells is out of range.
    """
    _announce("disc", *disc_size(resolution))
    flat, triangles = simplices.disk(check_positive_integer("resolution", resolution))
    return _place_in_plane(
        check_positive("radius", radius) * flat, _counter_clockwise(flat, triangles), plane, center
    )


@suggest_keywords
def tube(
    radius: float = 0.25, length: float = 1.0, cells: int | Sequence[int] = 32, pattern: str = "equilateral"
) -> TriMesh:
    """Create an open tube about the x axis, counter-clockwise seen from outside. Its uv is the unrolled tube.

    Args:
        radius: Radius [m].
        length: Length [m]; the tube starts at x = 0.
        cells: Number of cells (around, along), or around only; even around the tube for alternating
            diagonals.
        pattern: Triangulation, as for a `sheet`.

    Returns:
        The tube, with uv coordinates [m] of the unrolled tube.

    Raises:
        MeshError: A size or number of cells is out of range.
    """
    radius, length = check_positive("radius", radius), check_positive("length", length)
    around = 2 * math.pi * radius
    nu, nv = _two_counts(cells, np.array([around, length]), pattern)
    if nu < 3 or (pattern == "alternating" and nu % 2):
        raise MeshError(
            f"cells around a tube must be at least 3, and even for alternating diagonals; got {nu}."
        )
    _announce("tube", *tube_size(radius, length, (nu, nv), pattern))
    flat, triangles = (_shifted_rows if pattern == "equilateral" else _grid)(nu, nv, pattern)
    turn = 2 * math.pi * flat[:, 0]
    points = np.stack([length * flat[:, 1], radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    column = np.round(2 * nu * flat[:, 0]).astype(np.int64) % (2 * nu)  # in units of half cells
    row = np.round(nv * flat[:, 1]).astype(np.int64)
    _, unique, merged = np.unique(row * 2 * nu + column, return_index=True, return_inverse=True)
    uv = (flat * [around, length])[triangles]
    return TriMesh(points[unique], merged.reshape(-1)[triangles], uv)


@suggest_keywords
def sphere(radius: float = 0.5, resolution: int = 8, center: ArrayLike = (0, 0, 0)) -> TriMesh:
    """Create a closed sphere of 20 resolution² triangles from an icosahedron.

    Args:
        radius: Radius [m].
        resolution: Number of edges along an icosahedron edge.
        center: Center [m].

    Returns:
        The surface.

    Raises:
        MeshError: A size or number of cells is out of range.
    """
    mesh = ball(radius, resolution)
    points = mesh.points[mesh.surface_vertices] + three("center", center)
    return TriMesh(points, np.searchsorted(mesh.surface_vertices, mesh.surface))


@suggest_keywords
def pillow(
    cells: int | Sequence[int] = 16,
    size: ArrayLike = (1, 1),
    pattern: str = "alternating",
    plane: str = "xz",
    origin: ArrayLike = (0, 0, 0),
) -> TriMesh:
    """Create a pillow: two equal sheets sewn together along their edges, closed and initially flat.

    It opens under pressure. Triangles are counter-clockwise seen from outside.

    Args:
        cells: Number of cells (nu, nv) along the axes, or the number along the first axis for nearly regular
            cells.
        size: Edge lengths [m], or one length.
        pattern: "alternating" or "parallel" diagonals, or "equilateral", as for a `sheet`.
        plane: Axes of the two rectangles, such as "xz".
        origin: Corner of the pillow [m].

    Returns:
        The surface, with uv coordinates [m] of both sheets.

    Raises:
        MeshError: A size or number of cells is out of range.
    """
    one = sheet(cells, size, pattern, plane, origin)
    edge = np.zeros(one.n_vertices, bool)
    edge[_border(one.triangles)] = True
    normal = one.area_vectors.sum(axis=0) / one.area
    thin = 1e-4 * float(one.size.max()) * ~edge
    copy = np.where(edge, np.arange(one.n_vertices), one.n_vertices - 1 + np.cumsum(~edge))
    points = np.concatenate(
        [one.points + np.outer(thin, normal), (one.points - np.outer(thin, normal))[~edge]]
    )
    assert one.uv is not None
    triangles = np.concatenate([one.triangles, copy[one.triangles][:, ::-1]])
    return TriMesh(points, triangles, np.concatenate([one.uv, one.uv[:, ::-1]]))


def _border(triangles: np.ndarray) -> np.ndarray:
    from supple.meshes.edges import Edges

    edges = Edges(triangles)
    return np.unique(edges.ends[edges.counts == 1])


def sheet_size(
    cells: int | Sequence[int] = 16, size: ArrayLike = (1, 1), pattern: str = "alternating", **_: Any
) -> tuple[float, float]:
    """Vertex and triangle count of a `sheet`, computed without building it."""
    nu, nv = map(float, _two_counts(cells, _two_lengths(size), pattern))
    if pattern == "equilateral":
        return (nu + 1) * (nv + 1) + nv // 2 + nv % 2, nv * (2 * nu + 1)
    return (nu + 1) * (nv + 1), 2 * nu * nv


def pillow_size(**given: Any) -> tuple[float, float]:
    """Approximate vertex and triangle count of a `pillow`, computed without building it."""
    vertices, triangles = sheet_size(**given)
    return 2 * vertices, 2 * triangles


def disc_size(resolution: int = 8, **_: Any) -> tuple[float, float]:
    """Vertex and triangle count of a `disc`, computed without building it."""
    n = float(check_positive_integer("resolution", resolution))
    return 1 + 3 * n * (n + 1), 6 * n * n


def sphere_size(resolution: int = 8, **_: Any) -> tuple[float, float]:
    """Vertex and triangle count of a `sphere`, computed without building it."""
    n = float(check_positive_integer("resolution", resolution))
    return 10 * n * n + 2, 20 * n * n


def tube_size(
    radius: float = 0.25, length: float = 1.0, cells: int | Sequence[int] = 32, pattern: str = "equilateral"
) -> tuple[float, float]:
    """Vertex and triangle count of a `tube`, computed without building it."""
    nu, nv = map(float, _two_counts(cells, np.array([2 * math.pi * radius, length]), pattern))
    return nu * (nv + 1), 2 * nu * nv


SHEETS: dict[str, Callable[..., tuple[float, float]]] = {
    "sheet": sheet_size,
    "disc": disc_size,
    "tube": tube_size,
    "sphere": sphere_size,
    "pillow": pillow_size,
}
"""Functions that compute the vertex and triangle count of each generator from its arguments."""


def _grid(nu: int, nv: int, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Unit square: points (v, 2) in rows of u, and triangles."""
    u, v = np.meshgrid(np.linspace(0, 1, nu + 1), np.linspace(0, 1, nv + 1), indexing="ij")
    i, j = np.meshgrid(np.arange(nu), np.arange(nv), indexing="ij")
    a = (i * (nv + 1) + j).reshape(-1, 1)
    b, c, d = a + nv + 1, a + nv + 2, a + 1
    rising = np.concatenate([a, b, c, a, c, d], axis=1)
    falling = np.concatenate([a, b, d, b, c, d], axis=1)
    odd = ((i + j) % 2 == 1).reshape(-1, 1) & (pattern == "alternating")
    return np.stack([u.ravel(), v.ravel()], axis=1), np.where(odd, falling, rising).reshape(-1, 3)


def _rows(nu: int, nv: int, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Unit square in rows; every second row has its points at half cells and at both ends."""
    full_row = np.linspace(0, 1, nu + 1)
    between = np.concatenate([[0.0], (np.arange(nu) + 0.5) / nu, [1.0]])
    rows = [between if j % 2 else full_row for j in range(nv + 1)]
    first = np.cumsum([0, *map(len, rows)])
    points = np.concatenate([np.column_stack([u, np.full(len(u), j / nv)]) for j, u in enumerate(rows)])
    k = np.arange(nu)
    triangles = []
    for j in range(nv):
        low, high = (first[j], first[j + 1]) if j % 2 == 0 else (first[j + 1], first[j])
        ends = np.array([[low, high + 1, high], [low + nu, high + nu + 1, high + nu]])
        up = np.column_stack([low + k, low + k + 1, high + k + 1])
        down = np.column_stack([low + k[1:], high + k[1:] + 1, high + k[1:]])
        row = np.concatenate([up, down, ends])
        triangles.append(row if j % 2 == 0 else row[:, ::-1])
    return points, np.concatenate(triangles)


def _shifted_rows(nu: int, nv: int, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Band of width 1 in rows, every second row shifted by half a cell; its two ends fit together."""
    u = np.arange(nu + 1) / nu
    points = np.concatenate(
        [np.column_stack([u + j % 2 / (2 * nu), np.full(nu + 1, j / nv)]) for j in range(nv + 1)]
    )
    k = np.arange(nu)
    triangles = []
    for j in range(nv):
        a, d = j * (nu + 1) + k, (j + 1) * (nu + 1) + k
        b, c = a + 1, d + 1
        pair = [a, b, d, b, c, d] if j % 2 == 0 else [a, b, c, a, c, d]
        triangles.append(np.column_stack(pair).reshape(-1, 3))
    return points, np.concatenate(triangles)


def _place_in_plane(flat: np.ndarray, triangles: np.ndarray, plane: str, origin: ArrayLike) -> TriMesh:
    if not isinstance(plane, str) or plane not in PLANES:
        raise MeshError(
            f"plane must be two different axes, one of {', '.join(PLANES)}; got {format_value(plane)}."
        )
    points = np.zeros((len(flat), 3))
    points[:, ["xyz".index(axis) for axis in plane]] = flat
    return TriMesh(points + three("origin", origin), triangles, flat[triangles])


def _counter_clockwise(flat: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    a, b, c = np.moveaxis(flat[triangles], 1, 0)
    clockwise = (b - a)[:, 0] * (c - a)[:, 1] < (b - a)[:, 1] * (c - a)[:, 0]
    return np.where(clockwise[:, None], triangles[:, ::-1], triangles)


def _two_lengths(size: ArrayLike) -> np.ndarray:
    lengths = to_floats(size)
    if lengths.shape not in ((), (2,)) or not np.all((lengths >= MIN_LENGTH) & (lengths <= MAX_LENGTH)):
        raise MeshError(f"size must be one length or two [m], positive and finite; got {format_value(size)}.")
    return np.broadcast_to(lengths, 2)


def _two_counts(cells: int | Sequence[int], lengths: np.ndarray, pattern: str) -> tuple[int, int]:
    """Cells along both axes; a single number determines the other for nearly regular cells."""
    if not isinstance(pattern, str) or pattern not in PATTERNS:
        raise MeshError(f"pattern must be one of {', '.join(PATTERNS)}; got {format_value(pattern)}.")
    counts = np.asarray(cells) if np.isfinite(to_floats(cells)).all() else np.array(0.0)
    if counts.shape not in ((), (2,)) or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise MeshError(f"cells must be one whole number or two, all at least 1, got {format_value(cells)}.")
    if counts.shape:
        return int(counts[0]), int(counts[1])
    height = float(lengths[0]) / int(counts) * (math.sqrt(0.75) if pattern == "equilateral" else 1)
    return int(counts), max(1, round(float(lengths[1]) / height))


def _announce(kind: str, vertices: float, triangles: float) -> None:
    refuse_too_many(vertices, triangles, kind, cells="triangles")
