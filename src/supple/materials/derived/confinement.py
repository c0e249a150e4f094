"""How far a vertex may go in any direction so that ψ stays finite: a distance that is found along with its
force, long before the step is known, and nearly always longer than that.

What must stay positive may lose nine tenths of itself. Where it is a polynomial of where the vertex is, of
degree 2 at most, that is a bound on the distance. Elsewhere it is made of such polynomials, as Gent's
1 - (Ī₁ - 3)/Jₘ is of |F|² and det F: the distance is one over which each of them changes by little, and
intervals tell what that leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from supple.materials.derived.differentiation import AlongVertex, Expansion, expansions
from supple.materials.derived.domains import KEPT, degree
from supple.materials.derived.graph import Node

CHANGES = 0.7, 0.3
"""By what part of themselves polynomials change that others are made of: most of it where that leaves enough
of these, else less."""

NOWHERE = 1e30
"""1/r² [1/m²] where nothing is known: steps have to be looked at one by one."""

POWERS = {"inv": -1.0, "sqrt": 0.5, "inverse_cube_root": -1.0 / 3.0}


class Span(NamedTuple):
    """Between which numbers a node stays, and which parts of itself these are where it is positive."""

    low: Node
    high: Node
    parts: tuple[float, float] | None = None


class UnknownSpanError(ValueError):
    """Nothing is known of how far a node changes."""


def confinement(numbers: Sequence[Node], along: AlongVertex, signs: dict[Node, int]) -> Node:
    """1/r² [1/m²] of a distance r over which all numbers keep a tenth of themselves."""
    graph = along.g[0].graph
    try:
        found = [
            _tightest({number: 1.0 - KEPT}, along)
            if degree(number, along) <= 2
            else _by_spans(number, numbers, along, signs)
            for number in numbers
        ]
    except UnknownSpanError:
        return graph.number(NOWHERE)
    return reduce(graph.largest, found) if found else graph.number(0.0)


def _by_spans(number: Node, numbers: Sequence[Node], along: AlongVertex, signs: dict[Node, int]) -> Node:
    """1/r² of the largest change of polynomials that leaves a tenth of a number which is made of them."""
    graph = number.graph
    q = graph.number(NOWHERE)
    for change in reversed(CHANGES):
        spans = _Spans(numbers, along, signs, change)
        enough = spans.of(number).low >= KEPT * number
        q = graph.choose(enough, _tightest(dict.fromkeys(spans.polynomials, change), along), q)
    return q


def _tightest(changes: dict[Node, float], along: AlongVertex) -> Node:
    """1/r² such that no polynomial changes by more than its part of itself."""
    known, graph = expansions(changes, along), along.g[0].graph
    return reduce(graph.largest, [_tightness(known[number], change) for number, change in changes.items()])


def _tightness(expansion: Expansion, change: float) -> Node:
    """1/r² such that |slope| r + ½ |curvature| r² is at most this part of the value: where there are both,
    half of it each."""
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
    """Where nodes stay while the positive polynomials that they are made of change by a part of
    themselves."""

    def __init__(
        self, positive: Sequence[Node], along: AlongVertex, signs: dict[Node, int], change: float
    ) -> None:
        self._positive, self._along, self._signs, self._change = set(positive), along, signs, change
        self._known: dict[Node, Span] = {}
        self.polynomials: dict[Node, None] = {}

    def of(self, node: Node) -> Span:
        if node not in self._known:
            self._known[node] = self._found(node)
        return self._known[node]

    def _found(self, node: Node) -> Span:
        size = degree(node, self._along)
        if size == 0:
            return Span(node, node, (1.0, 1.0) if self._signs.get(node, 0) else None)
        if size <= 2 and (node in self._positive or self._signs.get(node, 0)):
            self.polynomials[node] = None
            return _scaled(node, 1.0 - self._change, 1.0 + self._change)
        return self._made(node, [self.of(arg) for arg in node.args])

    def _made(self, node: Node, args: list[Span]) -> Span:
        if node.op == "neg":
            return Span(-args[0].high, -args[0].low)
        if node.op == "add":
            return Span(args[0].low + args[1].low, args[0].high + args[1].high)
        if node.op == "sub":
            return Span(args[0].low - args[1].high, args[0].high - args[1].low)
        parts = [arg.parts for arg in args]
        if node.op in POWERS and parts[0] is not None:
            ends = sorted(part ** POWERS[node.op] for part in parts[0])
            return _scaled(node, ends[0], ends[1])
        if node.op == "mul":
            return _product(node, args)
        raise UnknownSpanError(node.op)


def _scaled(node: Node, low: float, high: float) -> Span:
    return Span(low * node, high * node, (low, high))


def _product(node: Node, args: list[Span]) -> Span:
    """Of two that are positive, or of a constant and any other."""
    one, other = args
    if one.parts is not None and other.parts is not None:
        return _scaled(node, one.parts[0] * other.parts[0], one.parts[1] * other.parts[1])
    for factor, span in ((one, other), (other, one)):
        if factor.low is factor.high and factor.parts is not None:
            return Span(factor.low * span.low, factor.low * span.high)
        if factor.low is factor.high and factor.low.op == "number":
            return Span(factor.low * span.high, factor.low * span.low)
    raise UnknownSpanError(node.op)
