"""Tetrahedral meshes of simple shapes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.meshes.checks import MeshError
from supple.meshes.generators import simplices
from supple.meshes.tetmesh import TetMesh
from supple.support.arguments import MAX_LENGTH, MIN_LENGTH, check_integer, format_value, to_floats
from supple.support.keywords import suggest_keywords
from supple.support.memory import format_count, refuse_too_many

log = logging.getLogger(__name__)

SLOW_TET_COUNT = 2e6
"""Number of tets above which mesh generation takes several seconds."""


@suggest_keywords
def block(
    cells: int | Sequence[int] = 10, size: ArrayLike = (1, 1, 1), origin: ArrayLike = (0, 0, 0)
) -> TetMesh:
    """Create a box.

    Each cell is split into five tets: 5 nx ny nz tets, (nx + 1)(ny + 1)(nz + 1) vertices, ordered by x, then
    y, then z.

    Args:
        cells: Number of cells (nx, ny, nz), or one number for all axes.
        size: Edge lengths [m], or one length.
        origin: Lowest corner [m].

    Returns:
        The mesh.

    Raises:
        MeshError: Sizes or numbers of cells are not positive.

    Example: `block((12, 4, 4), size=(3, 1, 1))`.
    """
    counts = _three_counts(cells)
    _announce("block", *block_size(cells))
    edges, corner = _three("size", size), _three("origin", origin)
    if not np.all(edges > 0):
        raise MeshError(f"size must be positive [m], got {size!r}.")
    steps = [np.linspace(0, 1, count + 1) for count in counts]
    points = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
    return TetMesh(corner + edges * points, _five_tets_per_cell(counts))


@suggest_keywords
def ball(radius: float = 1.0, resolution: int = 8) -> TetMesh:
    """Create a ball around the origin.

    The 20 nearly regular tets between the center and the faces of an icosahedron are each divided into
    resolution³ tets, and every layer is projected onto a sphere.

    Args:
        radius: Radius [m].
        resolution: Number of layers of tets.

    Returns:
        The mesh.

    Raises:
        MeshError: Radius or resolution is not positive.
    """
    _announce("ball", *ball_size(resolution))
    points, tets = simplices.ball(check_positive_integer("resolution", resolution))
    return TetMesh(check_positive("radius", radius) * points, tets, repair=True)


@suggest_keywords
def torus(major: float = 1.0, minor: float = 0.35, resolution: int = 4) -> TetMesh:
    """Create a torus around the z axis: a disk swept along a circle.

    Args:
        major: Radius of the circle [m].
        minor: Radius of the disk [m].
        resolution: Number of tets along the minor radius; edge lengths along the circle match.

    Returns:
        The mesh.

    Raises:
        MeshError: A value is not positive, or `minor` is not smaller than `major`.
    """
    n = check_positive_integer("resolution", resolution)
    major, minor = check_positive("major", major), check_positive("minor", minor)
    if minor >= major:
        raise MeshError(f"minor must be smaller than major, got minor={minor} and major={major}.")
    _announce("torus", *torus_size(major, minor, n))
    disk, triangles = simplices.disk(n)
    slices = math.ceil(2 * math.pi * major * n / minor)
    turn = 2 * math.pi * np.arange(slices)[:, None] / slices
    reach = major + minor * disk[:, 0]
    height = np.broadcast_to(minor * disk[:, 1], (slices, len(disk)))
    points = np.stack([reach * np.cos(turn), reach * np.sin(turn), height], axis=-1).reshape(-1, 3)

    # The lower vertex of each disk edge is connected to the higher one of the next slice, so prisms conform.
    a, b, c = np.sort(triangles, axis=1).T
    A, B, C = (corner + len(disk) for corner in (a, b, c))
    prisms = np.stack([a, b, c, C, a, b, B, C, a, A, B, C], axis=1).reshape(-1, 4)
    tets = prisms + len(disk) * np.arange(slices)[:, None, None]
    return TetMesh(points, tets.reshape(-1, 4) % len(points), repair=True)


def block_size(cells: int | Sequence[int] = 10, **_: Any) -> tuple[float, float]:
    """Vertex and tet count of a `block`, computed without building it."""
    counts = [_real(count) for count in _three_counts(cells)]
    return math.prod(count + 1 for count in counts), 5 * math.prod(counts)


def ball_size(resolution: int = 8, **_: Any) -> tuple[float, float]:
    """Vertex and tet count of a `ball`, computed without building it."""
    n = _real(check_positive_integer("resolution", resolution))
    return 1 + 2 * n + 10 * n * (n + 1) * (2 * n + 1) / 6, 20 * n * n * n


def torus_size(major: float = 1.0, minor: float = 0.35, resolution: int = 4) -> tuple[float, float]:
    """Vertex and tet count of a `torus`, computed without building it."""
    n = _real(check_positive_integer("resolution", resolution))
    slices = 2 * math.pi * major * n / minor
    slices = slices if math.isinf(slices) else math.ceil(slices)
    return slices * (1 + 3 * n * (n + 1)), slices * 18 * n * n


SIZES: dict[str, Callable[..., tuple[float, float]]] = {
    "block": block_size,
    "ball": ball_size,
    "torus": torus_size,
}
"""Functions that compute the vertex and tet count of each generator from its arguments."""


def _real(count: int) -> float:
    return float(min(count, 10**300))


def _announce(kind: str, vertices: float, tets: float) -> None:
    """Refuse meshes beyond the available memory, and log slow generation."""
    refuse_too_many(vertices, tets, kind)
    if tets > SLOW_TET_COUNT:
        log.info("Creating a %s of %s tetrahedra", kind, format_count(tets))


_CORNERS = np.array(list(product((0, 1), repeat=3)))
_EVEN = [[0, 6, 3, 5], [1, 0, 3, 5], [2, 0, 6, 3], [4, 0, 5, 6], [7, 3, 6, 5]]
"""Five tets of a cell with corner numbers 4 x + 2 y + z: one in the middle, four at corners."""


def _five_tets_per_cell(counts: np.ndarray) -> np.ndarray:
    """Tets of a grid; every second cell is mirrored in x, so that neighbors split their common face alike."""
    strides = np.array([(counts[1] + 1) * (counts[2] + 1), counts[2] + 1, 1])
    cell = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    odd = cell.sum(axis=1) % 2 == 1
    even = np.array(_EVEN)
    mirrored = (even ^ 4)[:, [0, 1, 3, 2]]  # bit 4 is x; the swap keeps volumes positive
    offsets = _CORNERS @ strides
    tets = np.where(odd[:, None, None], offsets[mirrored], offsets[even]) + (cell @ strides)[:, None, None]
    return tets.reshape(-1, 4)


def _three_counts(cells: int | Sequence[int]) -> np.ndarray:
    counts = np.asarray(cells) if np.isfinite(to_floats(cells)).all() else np.array(0.0)
    if counts.shape not in ((), (3,)) or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise MeshError(
            f"cells must be one whole number or three, all at least 1, got {format_value(cells)}."
        )
    return np.broadcast_to(counts, 3)


def _three(name: str, values: ArrayLike) -> np.ndarray:
    array = to_floats(values)
    if array.shape not in ((), (3,)) or not np.all(np.abs(array) <= MAX_LENGTH):
        raise MeshError(
            f"{name} must be one finite number or three [m], up to {MAX_LENGTH:g}, got "
            f"{format_value(values)}."
        )
    return np.broadcast_to(array, 3)


def check_positive_integer(name: str, value: object) -> int:
    """Validate a whole number, at least 1."""
    try:
        return check_integer(name, value)
    except ValueError as error:
        raise MeshError(f"{error}.") from None


def check_positive(name: str, value: float) -> float:
    """Validate a length [m]."""
    length = to_floats(value)
    if length.ndim or not MIN_LENGTH <= length <= MAX_LENGTH:
        raise MeshError(
            f"{name} must be positive and finite [m], from {MIN_LENGTH:g} to {MAX_LENGTH:g}, got "
            f"{format_value(value)}."
        )
    return float(length)
