"""Cables through vertices of bodies: T Σ ℓ for a given tension T, or ½ k (Σ ℓ - L)² if longer than L."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import device_function, load, unroll
from supple.terms.base.constraint import Constraint, ConstraintRows, constraint
from supple.terms.base.term import others_first
from supple.terms.spring import MIN_SQUARED_LENGTH

MAX_POINTS = 12
"""Largest number of points of a cable of given length; each point interacts with all others."""


class TensionRows(ConstraintRows):
    """Packed data of segments of constant tension; no rest data."""

    __slots__ = ()
    corners: ClassVar[int] = 2


class CableSegments(Constraint):
    """T ℓ = ½ T C² with C = √(2 ℓ): each segment has the tension T, independent of its length.

    stiffness (m,): T [N].
    """

    kind = TensionRows
    name: ClassVar[str] = "cables under tension"
    ties: ClassVar[bool] = True
    family: ClassVar[str] = "cable"

    def ends(self, positions: np.ndarray) -> np.ndarray:
        return positions[self.vertices]

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """∇C = n/C and ∇²C = ((I - n nᵀ)/ℓ - n nᵀ/C²)/C."""
        length, n, across = _segment(x[:, 1] - x[:, 0])
        C = np.sqrt(2 * length)
        sign = np.array([-1.0, 1.0])
        along = np.einsum("ei,ej->eij", n, n)
        curvature = across / C[:, None, None] - along / C[:, None, None] ** 3
        return (
            C,
            sign[None, :, None] * (n / C[:, None])[:, None],
            np.einsum("a,b,eij->eabij", sign, sign, curvature),
        )


class LengthRows(ConstraintRows):
    """Packed data of cables of given length.

    Attributes:
        rest: (rows, 1 + pairs, lanes) length L [m], and 1 for each pair of corners that a segment connects,
            starting with the visiting corner; otherwise 0.
    """

    __slots__ = ()


@cache
def length_rows(corners: int) -> Any:
    """Packed data class of cables through `corners` vertices."""
    members = {
        "__slots__": (),
        "corners": corners,
        "__module__": __name__,
        "__qualname__": _class_name(corners),
    }
    return type(_class_name(corners), (LengthRows,), members)


def _class_name(corners: int) -> str:
    return f"LengthRows{corners}"


def __getattr__(name: str) -> Any:
    """Return the packed data class for any number of corners by its name."""
    number = name.removeprefix("LengthRows")
    if number != name and number.isdecimal():
        return length_rows(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True, eq=False)
class Cable(Constraint):
    """C = max(Σ ℓ - L, 0) over the segments of one cable that slides through its points without friction.

    Attributes:
        vertices: (1, k) points in order.
        rest: (1, 1) length L [m].
    """

    name: ClassVar[str] = "cables"
    ties: ClassVar[bool] = True
    family: ClassVar[str] = "cable"

    @property
    def kind(self) -> Any:  # type: ignore[override]
        return length_rows(self.vertices.shape[1])

    @property
    def translatable(self) -> np.ndarray:
        return np.ones(len(self.vertices), bool)

    def rest_of(self, element: np.ndarray, slot: np.ndarray) -> np.ndarray:
        count = self.vertices.shape[1]
        order = np.column_stack([np.arange(count), others_first(count)])
        is_segment = np.zeros((count, count))
        is_segment[np.arange(count - 1), np.arange(1, count)] = 1
        is_segment += is_segment.T
        pairs = list(combinations(range(count), 2))
        weights = np.array([[is_segment[ids[a], ids[b]] for a, b in pairs] for ids in order])
        return np.column_stack([self.rest[element], weights[slot]])

    def ends(self, positions: np.ndarray) -> np.ndarray:
        ids = np.stack([self.vertices[:, :-1], self.vertices[:, 1:]], axis=2).reshape(-1, 2)
        return positions[ids]

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, k = x.shape[:2]
        total, gradient, curvature = np.zeros(m), np.zeros((m, k, 3)), np.zeros((m, k, k, 3, 3))
        for a in range(k - 1):
            b = a + 1
            length, n, across = _segment(x[:, b] - x[:, a])
            total += length
            gradient[:, b] += n
            gradient[:, a] -= n
            curvature[:, a, a] += across
            curvature[:, b, b] += across
            curvature[:, a, b] -= across
            curvature[:, b, a] -= across
        C = total - self.rest[:, 0]
        taut = C > 0
        return np.maximum(C, 0), gradient * taut[:, None, None], curvature * taut[:, None, None, None, None]


def _segment(edge: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ℓ (m,), n (m, 3) and (I - n nᵀ)/ℓ (m, 3, 3) of edges (m, 3)."""
    length = np.sqrt((edge**2).sum(axis=1) + MIN_SQUARED_LENGTH)
    n = edge / length[:, None]
    return length, n, (np.eye(3) - np.einsum("ei,ej->eij", n, n)) / length[:, None, None]


@constraint.of(TensionRows)
def _tension(rows, row, r):
    """κ = 1/(ℓ C), as C ∇²C ≤ I/ℓ."""
    length = math.sqrt(dot(r[0], r[0]) + MIN_SQUARED_LENGTH)
    C = math.sqrt(2.0 * length)
    return C, (scale(1.0 / (length * C), r[0]),), 1.0 / (length * C)


@device_function
def _length(weight, a, b):
    d = sub(b, a)
    return weight * math.sqrt(dot(d, d) + MIN_SQUARED_LENGTH)


@device_function
def _bend(weight, a, b):
    d = sub(b, a)
    return weight / math.sqrt(dot(d, d) + MIN_SQUARED_LENGTH)


@device_function
def _direction(weight, a, b):
    """Unit vector from a to b, 0 for pairs without a segment."""
    d = sub(b, a)
    return scale(weight / math.sqrt(dot(d, d) + MIN_SQUARED_LENGTH), d)


@device_function
def _origin(r):
    zero = 0.0 * r[0]
    return zero, zero, zero


def _segment_weights(count: int) -> list[tuple[int, int, str]]:
    """Pairs of corners with the source text of their weights; r[-1] is the visiting corner's position."""
    pairs = combinations(range(count), 2)
    return [(a, b, f"load(rows.rest, row, {1 + k})") for k, (a, b) in enumerate(pairs)]


def _at(corner: int) -> str:
    return "o" if corner == 0 else f"r[{corner - 1}]"


def _lengths(others: int) -> str:
    return " + ".join(f"_length({w}, {_at(a)}, {_at(b)})" for a, b, w in _segment_weights(others + 1))


def _bends(others: int) -> str:
    return " + ".join(f"_bend({w}, {_at(a)}, {_at(b)})" for a, b, w in _segment_weights(others + 1) if a == 0)


def _directions(others: int) -> str:
    texts = []
    for corner in range(1, others + 1):
        parts = [
            f"_direction({w}, {_at(a if b == corner else b)}, {_at(corner)})"
            for a, b, w in _segment_weights(others + 1)
            if corner in (a, b)
        ]
        text = parts[0]
        for part in parts[1:]:
            text = f"add({text}, {part})"
        texts.append(text)
    return ", ".join(texts) + ","


_total_length = unroll("rows, row, r, o", _lengths, _length, load, over="r")
_total_bend = unroll("rows, row, r, o", _bends, _bend, load, over="r")
_all_directions = unroll("rows, row, r, o", _directions, _direction, add, load, over="r")


@constraint.of(LengthRows)
def _cable(rows, row, r):
    o = _origin(r[0])
    C = _total_length(rows, row, r, o) - load(rows.rest, row, 0)
    return max(C, 0.0 * C), _all_directions(rows, row, r, o), _total_bend(rows, row, r, o)
