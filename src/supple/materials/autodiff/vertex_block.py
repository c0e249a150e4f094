"""Generated force and stiffness of a vertex: derivatives of ψ(F + s gᵀ) with respect to the vertex step s.

ψ is usually a function of a few numbers, such as invariants. Its derivatives with respect to these are
computed backward [Gower and Mello 2012], the expansions of the numbers in s forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from supple.materials.autodiff.derivatives import partials, second_partials
from supple.materials.autodiff.expression import Node, depending, reachable
from supple.materials.autodiff.forward_ad import PAIRS, AlongVertex, entry, expansions

WEIGHTS = {
    "inv": 4,
    "sqrt": 4,
    "log": 16,
    "inverse_cube_root": 16,
    "exp": 16,
    "input": 0,
    "number": 0,
    "neg": 0,
    "det": 5,
    "stretch_trace": 60,
}
"""Approximate cost of operations relative to a multiplication."""

MAX_CUT = 8
"""Largest number of nodes in a cut that is tried."""

MAX_TRIALS = 12
"""Number of cuts tried."""


class VertexResponse(NamedTuple):
    """Derivatives of ψ with respect to a vertex position: slope P g and curvature, the Hessian block."""

    slope: tuple[Node, ...]
    curvature: tuple[Node, ...]

    def cost(self) -> int:
        return cost([*self.slope, *self.curvature])


def along_vertex(psi: Node, along: AlongVertex) -> VertexResponse:
    """Expand ψ in the vertex step at least cost.

    A cut is a set of nodes, such as invariants, through which ψ depends on F. Derivatives above the cut are
    computed backward, below it forward. The cheapest combination of cut and summation order is chosen.
    """
    trials = [trial for cut in _cuts(psi, along.F) for trial in _expand_cut(psi, cut, along)]
    return min(trials, key=VertexResponse.cost)


def cost(nodes: Iterable[Node]) -> int:
    """Total weight of the operations of an expression."""
    return sum(WEIGHTS.get(node.op, 1) for node in reachable(nodes))


def _cuts(psi: Node, F: Sequence[Node]) -> list[frozenset[Node]]:
    """Sets of nodes through which ψ depends on F, smallest first; {ψ} is one of them."""
    involved = depending([psi], F)
    order = [node for node in reachable([psi]) if node in involved]
    last = {arg: node.index for node in order for arg in node.args}
    determinants = [node.index for node in order if node.op == "det"]
    cuts = {}
    for k, node in enumerate(order):
        if node.op == "input" or any(index > node.index for index in determinants):
            continue  # second derivatives of determinants are available below a cut only
        live = frozenset(n for n in order[: k + 1] if last.get(n, psi.index + 1) > node.index)
        if len(live) <= MAX_CUT:
            cuts[live] = len(live)
    return sorted(cuts, key=lambda cut: cuts[cut])[:MAX_TRIALS]


def _expand_cut(psi: Node, cut: frozenset[Node], along: AlongVertex) -> Iterator[VertexResponse]:
    """Expansions through a cut, one per summation order of the last product.

    The block is K + S H Sᵀ with the curvatures K and slopes S of the cut's numbers and H = ∂²ψ/∂a∂b. S H Sᵀ
    is summed pair by pair, or row by row.
    """
    zero = psi.graph.number(0.0)
    first, second = _coefficients(psi, cut)
    known = expansions(cut, along)
    slope, block = [zero] * 3, [zero] * 6
    for a, weight in first.items():
        slope = [s + weight * d for s, d in zip(slope, known[a].slope, strict=True)]
        block = [c + weight * d for c, d in zip(block, known[a].curvature, strict=True)]
    slopes = {a: known[a].slope for a in cut}
    for sum_products in (_pair_by_pair, _row_by_row):
        curvature = [c + d for c, d in zip(block, sum_products(second, slopes, zero), strict=True)]
        yield VertexResponse(tuple(slope), tuple(curvature))


Pairs = dict[tuple[Node, Node], Node]
Slopes = dict[Node, tuple[Node, ...]]


def _pair_by_pair(second: Pairs, slopes: Slopes, zero: Node) -> list[Node]:
    total = [zero] * 6
    for (a, b), weight in second.items():
        total = [
            c + weight * entry(slopes[a], slopes[b], i, j, a is b)
            for c, (i, j) in zip(total, PAIRS, strict=True)
        ]
    return total


def _row_by_row(second: Pairs, slopes: Slopes, zero: Node) -> list[Node]:
    rows: dict[Node, list[Node]] = {a: [zero] * 3 for a in slopes}
    for (a, b), weight in second.items():
        rows[a] = [r + weight * s for r, s in zip(rows[a], slopes[b], strict=True)]
        if a is not b:
            rows[b] = [r + weight * s for r, s in zip(rows[b], slopes[a], strict=True)]
    total = [zero] * 6
    for a, row in rows.items():
        total = [c + slopes[a][i] * row[j] for c, (i, j) in zip(total, PAIRS, strict=True)]
    return total


def _coefficients(psi: Node, cut: frozenset[Node]) -> tuple[dict[Node, Node], dict[tuple, Node]]:
    """∂ψ/∂a and ∂²ψ/∂a∂b of a cut, by edge pushing from ψ down to the cut [Gower and Mello 2012]."""
    zero = psi.graph.number(0.0)
    involved = depending([psi], cut)
    first: dict[Node, Node] = {psi: psi.graph.number(1.0)}
    second: dict[tuple[Node, Node], Node] = {}

    def accumulate(a: Node, b: Node, weight: Node) -> None:
        pair = (a, b) if a.index <= b.index else (b, a)
        second[pair] = second.get(pair, zero) + weight

    for node in reversed(reachable([psi])):
        if node not in involved or node in cut:
            continue
        slopes = [(a, slope) for a, slope in partials(node) if a in involved]
        weight = first.pop(node, zero)
        for a, slope in slopes:
            first[a] = first.get(a, zero) + weight * slope
        for a, b, curvature in second_partials(node):
            if a in involved and b in involved:
                accumulate(a, b, weight * curvature)
        for pair in [pair for pair in second if node in pair]:
            _push_edges(node, pair, second.pop(pair), slopes, accumulate)
    return first, second


def _push_edges(
    node: Node,
    pair: tuple[Node, Node],
    weight: Node,
    slopes: list[tuple[Node, Node]],
    accumulate: Callable[[Node, Node, Node], None],
) -> None:
    """Push ∂²ψ of a pair that contains this node down to the node's arguments.

    A pair of two different nodes stands for two symmetric entries, so it counts twice if both become the same
    node.
    """
    other = pair[1] if pair[0] is node else pair[0]
    if other is node:
        for i, (a, slope) in enumerate(slopes):
            accumulate(a, a, slope * slope * weight)
            for b, across in slopes[:i]:
                accumulate(a, b, (2.0 if a is b else 1.0) * slope * across * weight)
        return
    for a, slope in slopes:
        accumulate(a, other, (2.0 if a is other else 1.0) * slope * weight)
