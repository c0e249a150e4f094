"""Derivatives of graphs, as graphs.

P = ∂ψ/∂F goes backwards through the graph, δP forwards through P's. What a vertex needs, of which F + s gᵀ is
all it can change, goes both ways at once (`along_vertex`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from supple.algebra.rotation import DEGENERATE
from supple.materials.derived.graph import FUNCTIONS, ROUNDING, Node, depending, reachable

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


def partials(node: Node) -> list[tuple[Node, Node]]:
    """(a, ∂node/∂a) of its args a."""
    graph, args = node.graph, node.args
    one = graph.number(1.0)
    if node.op == "add":
        return [(args[0], one), (args[1], one)]
    if node.op == "sub":
        return [(args[0], one), (args[1], -one)]
    if node.op == "mul":
        return [(args[0], args[1]), (args[1], args[0])]
    if node.op == "det":
        return list(zip(args[:9], graph.cofactor(args[:9]), strict=True))
    if node.op == "stretch_trace":
        return list(zip(args, _stretch_slopes(node), strict=True))
    if node.op == "select":
        zero = graph.number(0.0)
        return [
            (args[1], graph.choose(args[0], one, zero)),
            (args[2], graph.choose(args[0], zero, one)),
        ]
    if node.op in ("min", "max"):
        first = args[0] < args[1] if node.op == "min" else args[0] > args[1]
        return [(args[0], graph.choose(first, one, 0.0)), (args[1], graph.choose(first, 0.0, one))]
    return [(args[0], _slope(node))] if node.op in FUNCTIONS else []


def _stretch_slopes(t: Node) -> tuple[Node, ...]:
    """∂t/∂I₁, ∂t/∂II and ∂t/∂J of the largest root t of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0, kept finite
    where it is a double one (see `algebra.rotation`)."""
    graph, (I1, _, J) = t.graph, t.args
    flat = DEGENERATE * graph.apply("sqrt", graph.input(ROUNDING)) * t * I1 + 1e-30
    slope = graph.largest(4.0 * ((t * t - I1) * t - 2.0 * J), 4.0 * flat)
    inverse = graph.apply("inv", slope)
    return 2.0 * (t * t - I1) * inverse, 4.0 * inverse, 8.0 * t * inverse


def _slope(node: Node) -> Node:
    """f' of a function f of one number."""
    graph, x = node.graph, node.args[0]
    if node.op == "neg":
        return graph.number(-1.0)
    if node.op == "inv":
        return -(node * node)
    if node.op == "log":
        return graph.apply("inv", x)
    if node.op == "exp":
        return node
    if node.op == "inverse_cube_root":
        return -1.0 / 3.0 * graph.power(node, 4)
    if node.op == "sqrt":
        return 0.5 * graph.apply("inv", node)
    return graph.choose(x < 0.0, -1.0, 1.0)  # abs


def second_partials(node: Node) -> list[tuple[Node, Node, Node]]:
    """(a, b, ∂²node/∂a∂b) of its args, each pair once."""
    graph = node.graph
    if node.op == "mul":
        a, b = node.args
        return [(a, a, graph.number(2.0))] if a is b else [(a, b, graph.number(1.0))]
    if node.op == "stretch_trace":
        return _stretch_curvatures(node)
    if not node.args:
        return []
    x = node.args[0]
    if node.op == "inv":
        return [(x, x, 2.0 * node * node * node)]
    if node.op == "log":
        slope = graph.apply("inv", x)
        return [(x, x, -(slope * slope))]
    if node.op == "exp":
        return [(x, x, node)]
    if node.op == "inverse_cube_root":
        return [(x, x, 4.0 / 9.0 * graph.power(node, 7))]
    if node.op == "sqrt":
        slope = graph.apply("inv", node)
        return [(x, x, -0.25 * slope * slope * slope)]
    return []


def _stretch_curvatures(t: Node) -> list[tuple[Node, Node, Node]]:
    slopes = _stretch_slopes(t)
    return [(t.args[i], t.args[j], gradient(slopes[i], t.args)[j]) for i in range(3) for j in range(i + 1)]


def gradient(node: Node, inputs: Sequence[Node]) -> list[Node]:
    """∂node/∂input for each input."""
    graph = node.graph
    zero = graph.number(0.0)
    involved = depending([node], inputs)
    adjoint = {node: graph.number(1.0)}
    for one in reversed(reachable([node])):
        if one in involved and one in adjoint:
            for arg, slope in partials(one):
                if arg in involved:
                    adjoint[arg] = adjoint.get(arg, zero) + adjoint[one] * slope
    return [adjoint.get(x, zero) for x in inputs]


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


def _push_down(node, pair, weight, slopes, push) -> None:
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
