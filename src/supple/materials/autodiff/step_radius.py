"""Generated safe step radius of a vertex: any step within it keeps ψ finite.

The radius is computed together with the vertex force and exceeds nearly all steps, which then need no further
check. A number that must stay positive may lose nine tenths of its value. A polynomial of the vertex position
of degree 2 or less gives the radius directly. Other numbers are functions of such polynomials, for example
Gent's 1 - (Ī₁ - 3)/Jₘ of |F|² and det F. The radius then limits the relative change of each polynomial, and
interval arithmetic bounds the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from supple.materials.autodiff.domain import MIN_REMAINING, degree
from supple.materials.autodiff.expression import Node
from supple.materials.autodiff.forward_ad import AlongVertex, Expansion, expansions

MAX_CHANGE = 0.3
"""Largest relative change of polynomials that other numbers depend on."""

ZERO_RADIUS = 1e30
"""1/r² [1/m²] without a known safe radius: every step is checked."""

POWERS = {"inv": -1.0, "sqrt": 0.5, "inverse_cube_root": -1.0 / 3.0}


class Span(NamedTuple):
    """Interval of a node within the safe radius; `parts` are its ends relative to a positive value."""

    low: Node
    high: Node
    parts: tuple[float, float] | None = None


class UnknownSpanError(ValueError):
    """The change of a node cannot be bounded."""


def inverse_square_safe_radius(numbers: Sequence[Node], along: AlongVertex, signs: dict[Node, int]) -> Node:
    """1/r² [1/m²] of a radius r within which all numbers keep a tenth of their values."""
    graph = along.g[0].graph
    changes: dict[Node, float] = {}
    bound = graph.number(0.0)
    try:
        for number in numbers:
            if degree(number, along) <= 2:
                changes[number] = min(changes.get(number, 1.0), 1.0 - MIN_REMAINING)
            else:
                low = _Spans(numbers, along, signs, changes).of(number).low
                bound = graph.largest(bound, graph.choose(low >= MIN_REMAINING * number, 0.0, ZERO_RADIUS))
    except UnknownSpanError:
        return graph.number(ZERO_RADIUS)
    known = expansions(changes, along)
    for number, change in changes.items():
        bound = graph.largest(bound, _tightness(known[number], change))
    return bound


def _tightness(expansion: Expansion, change: float) -> Node:
    """1/r² such that |slope| r + ½ |curvature| r² is at most `change` times the value.

    If slope and curvature are both present, each gets half of the change.
    """
    graph = expansion.value.graph
    zero = graph.number(0.0)
    slope = sum((s * s for s in expansion.slope), zero)
    diagonal, others = expansion.curvature[:3], expansion.curvature[3:]
    inverse = graph.apply("inv", change * expansion.value)
    if all(c is zero for c in expansion.curvature):
        return slope * inverse * inverse
    bend = abs(diagonal[0])
    if any(c is not diagonal[0] for c in diagonal) or any(c is not zero for c in others):
        bend = sum(map(abs, diagonal), zero) + 2.0 * sum(map(abs, others), zero)
    return graph.largest(4.0 * slope * inverse * inverse, bend * inverse)


class _Spans:
    """Intervals of nodes, given relative changes of positive polynomials; records these in `changes`."""

    def __init__(
        self, positive: Sequence[Node], along: AlongVertex, signs: dict[Node, int], changes: dict[Node, float]
    ) -> None:
        self._positive, self._along, self._signs, self._changes = set(positive), along, signs, changes
        self._known: dict[Node, Span] = {}

    def of(self, node: Node) -> Span:
        if node not in self._known:
            self._known[node] = self._span_of(node)
        return self._known[node]

    def _span_of(self, node: Node) -> Span:
        size = degree(node, self._along)
        if size == 0:
            return Span(node, node, (1.0, 1.0) if self._signs.get(node, 0) else None)
        if size <= 2 and (node in self._positive or self._signs.get(node, 0)):
            self._changes[node] = MAX_CHANGE
            return _scaled_span(node, 1.0 - MAX_CHANGE, 1.0 + MAX_CHANGE)
        return self._combine(node, [self.of(arg) for arg in node.args])

    def _combine(self, node: Node, args: list[Span]) -> Span:
        if node.op == "neg":
            return Span(-args[0].high, -args[0].low)
        if node.op == "add":
            return Span(args[0].low + args[1].low, args[0].high + args[1].high)
        if node.op == "sub":
            return Span(args[0].low - args[1].high, args[0].high - args[1].low)
        parts = [arg.parts for arg in args]
        if node.op in POWERS and parts[0] is not None:
            ends = sorted(part ** POWERS[node.op] for part in parts[0])
            return _scaled_span(node, ends[0], ends[1])
        if node.op == "mul":
            return _product(node, args)
        raise UnknownSpanError(node.op)


def _scaled_span(node: Node, low: float, high: float) -> Span:
    return Span(low * node, high * node, (low, high))


def _product(node: Node, args: list[Span]) -> Span:
    """Interval of a product of two positive numbers, or of a constant and any number."""
    one, other = args
    if one.parts is not None and other.parts is not None:
        return _scaled_span(node, one.parts[0] * other.parts[0], one.parts[1] * other.parts[1])
    for factor, span in ((one, other), (other, one)):
        if factor.low is factor.high and factor.parts is not None:
            return Span(factor.low * span.low, factor.low * span.high)
        if factor.low is factor.high and factor.low.op == "number":
            return Span(factor.low * span.high, factor.low * span.low)
    raise UnknownSpanError(node.op)
