"""Derivatives of graphs, as graphs.

P = ∂ψ/∂F goes backwards through the graph, δP forwards through P's. What a vertex needs, of which F + s gᵀ is
all it can change, goes both ways at once (`along_vertex`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from supple.materials.derived.graph import Node
from supple.materials.derived.rules import partials, second_partials
from supple.materials.derived.walking import depending, reachable

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of symmetric matrices, in their order."""

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
"""About what operations cost, beside 1 for a product."""

WIDEST = 8
"""How many numbers ψ may depend on through a cut that is worth a trial."""

TRIALS = 12
"""How many of them are tried."""


def differential(nodes: Sequence[Node], seeds: dict[Node, Node]) -> list[Node]:
    """The change of nodes when inputs change by their seeds."""
    graph = next(iter(seeds)).graph
    zero = graph.number(0.0)
    involved = depending(nodes, seeds)
    change = dict(seeds)
    for node in reachable(nodes):
        if node in involved and node not in change:
            total = zero
            for arg, slope in partials(node):
                if arg in change:
                    total = total + slope * change[arg]
            change[node] = total
    return [change.get(node, zero) for node in nodes]


class Expansion(NamedTuple):
    """value + slope·s + ½ s·curvature s for a vertex that moves by s: F becomes F + s gᵀ."""

    value: Node
    slope: tuple[Node, ...]
    curvature: tuple[Node, ...]


class AlongVertex(NamedTuple):
    """F, a matrix of inputs, and g, a shape gradient."""

    F: tuple[Node, ...]
    g: tuple[Node, ...]


def expansions(nodes: Iterable[Node], along: AlongVertex) -> dict[Node, Expansion]:
    """First and second derivatives of nodes, and of those that they are made of, by where the vertex is."""
    nodes = list(nodes)
    graph = along.g[0].graph
    zero = graph.number(0.0)
    involved = depending(nodes, along.F)
    found: dict[Node, Expansion] = {}
    for k, F in enumerate(along.F):
        slope = [zero, zero, zero]
        slope[k // 3] = along.g[k % 3]
        found[F] = Expansion(F, tuple(slope), (zero,) * 6)
    for node in reachable(nodes):
        if node in involved and node not in found:
            found[node] = _expanded(node, found, along)
    return found


def _expanded(node: Node, known: dict[Node, Expansion], along: AlongVertex) -> Expansion:
    graph = node.graph
    zero = graph.number(0.0)
    if node.op == "det" and node.args[:9] != along.F:
        A = node.args[:9]
        whole = A[0] * node.args[9] + A[1] * node.args[10] + A[2] * node.args[11]
        return expansions([whole], along)[whole]
    slope, curvature = [zero] * 3, [zero] * 6
    if node.op == "select":
        return _chosen(node, known)
    for a, weight in partials(node):
        if a in known:
            slope = [s + weight * d for s, d in zip(slope, known[a].slope, strict=True)]
            curvature = [c + weight * d for c, d in zip(curvature, known[a].curvature, strict=True)]
    for a, b, weight in second_partials(node):
        if a in known and b in known:
            curvature = [
                c + weight * _pair(known[a].slope, known[b].slope, i, j, a is b)
                for c, (i, j) in zip(curvature, PAIRS, strict=True)
            ]
    return Expansion(node, tuple(slope), tuple(curvature))


def _chosen(node: Node, known: dict[Node, Expansion]) -> Expansion:
    condition, yes, no = node.args
    zero = node.graph.number(0.0)
    flat = Expansion(zero, (zero,) * 3, (zero,) * 6)
    a, b = known.get(yes, flat), known.get(no, flat)

    def chosen(one: tuple[Node, ...], other: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(node.graph.choose(condition, x, y) for x, y in zip(one, other, strict=True))

    return Expansion(node, chosen(a.slope, b.slope), chosen(a.curvature, b.curvature))


def _pair(a: Sequence[Node], b: Sequence[Node], i: int, j: int, same: bool) -> Node:
    """Entry ij of a aᵀ, or of a bᵀ + b aᵀ."""
    return a[i] * a[j] if same else a[i] * b[j] + a[j] * b[i]


def along_vertex(psi: Node, along: AlongVertex) -> Expansion:
    """ψ's own expansion: slope P g and curvature the vertex's block of the Hessian.

    ψ is a function of a few numbers, such as invariants, which are functions of s: coefficients of the first
    part are found backwards, of the second forwards. Where to cut is tried out.
    """
    trials = [_by_cut(psi, cut, along) for cut in _cuts(psi, along.F)]
    return min(trials, key=lambda trial: cost([*trial.slope, *trial.curvature]))


def cost(nodes: Iterable[Node]) -> int:
    return sum(WEIGHTS.get(node.op, 1) for node in reachable(nodes))


def _cuts(psi: Node, F: Sequence[Node]) -> list[frozenset[Node]]:
    """Sets of nodes through which ψ depends on F, narrow ones first; ψ itself is one."""
    involved = depending([psi], F)
    order = [node for node in reachable([psi]) if node in involved]
    last = {arg: node.place for node in order for arg in node.args}
    determinants = [node.place for node in order if node.op == "det"]
    cuts = {}
    for k, node in enumerate(order):
        if node.op == "input" or any(place > node.place for place in determinants):
            continue  # second derivatives of determinants are known below a cut only
        live = frozenset(n for n in order[: k + 1] if last.get(n, psi.place + 1) > node.place)
        if len(live) <= WIDEST:
            cuts[live] = len(live)
    return sorted(cuts, key=lambda cut: cuts[cut])[:TRIALS]


def _by_cut(psi: Node, cut: frozenset[Node], along: AlongVertex) -> Expansion:
    zero = psi.graph.number(0.0)
    first, second = _coefficients(psi, cut)
    known = expansions(cut, along)
    slope, curvature = [zero] * 3, [zero] * 6
    for a, weight in first.items():
        slope = [s + weight * d for s, d in zip(slope, known[a].slope, strict=True)]
        curvature = [c + weight * d for c, d in zip(curvature, known[a].curvature, strict=True)]
    for (a, b), weight in second.items():
        curvature = [
            c + weight * _pair(known[a].slope, known[b].slope, i, j, a is b)
            for c, (i, j) in zip(curvature, PAIRS, strict=True)
        ]
    return Expansion(psi, tuple(slope), tuple(curvature))


def _coefficients(psi: Node, cut: frozenset[Node]) -> tuple[dict[Node, Node], dict[tuple, Node]]:
    """∂ψ/∂a and ∂²ψ/∂a∂b of a cut, by pushing both from ψ down to it [Gower and Mello 2012]."""
    zero = psi.graph.number(0.0)
    involved = depending([psi], cut)
    first: dict[Node, Node] = {psi: psi.graph.number(1.0)}
    second: dict[tuple[Node, Node], Node] = {}

    def push(a: Node, b: Node, weight: Node) -> None:
        pair = (a, b) if a.place <= b.place else (b, a)
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
                push(a, b, weight * curvature)
        for pair in [pair for pair in second if node in pair]:
            _push_down(node, pair, second.pop(pair), slopes, push)
    return first, second


def _push_down(
    node: Node,
    pair: tuple[Node, Node],
    weight: Node,
    slopes: list[tuple[Node, Node]],
    push: Callable[[Node, Node, Node], None],
) -> None:
    """∂²ψ of a pair with this node, told by its args. A pair of two different nodes stands for two entries,
    and so counts twice where both become the same."""
    other = pair[1] if pair[0] is node else pair[0]
    if other is node:
        for i, (a, slope) in enumerate(slopes):
            push(a, a, slope * slope * weight)
            for b, across in slopes[:i]:
                push(a, b, (2.0 if a is b else 1.0) * slope * across * weight)
        return
    for a, slope in slopes:
        push(a, other, (2.0 if a is other else 1.0) * slope * weight)
