"""Symbolic derivatives of graphs, as graphs.

P = ∂ψ/∂F is reverse-mode differentiation, δP forward-mode differentiation of P. Vertex derivatives, of F + s
gᵀ with respect to s, combine both modes (`response.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from supple.materials.autodiff.derivatives import partials, second_partials
from supple.materials.autodiff.expression import Node, depending, reachable

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of a symmetric matrix in storage order."""


def differential(nodes: Sequence[Node], seeds: dict[Node, Node]) -> list[Node]:
    """Directional derivative of nodes for given changes (seeds) of the inputs."""
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
    """Second-order expansion value + slope·s + ½ s·curvature s for a vertex step s: F becomes F + s gᵀ."""

    value: Node
    slope: tuple[Node, ...]
    curvature: tuple[Node, ...]


class AlongVertex(NamedTuple):
    """F, a matrix of inputs, and the shape gradient g of a vertex."""

    F: tuple[Node, ...]
    g: tuple[Node, ...]


def expansions(nodes: Iterable[Node], along: AlongVertex) -> dict[Node, Expansion]:
    """Expand nodes, and all nodes they depend on, to second order in the vertex position."""
    nodes = list(nodes)
    graph = along.g[0].graph
    zero = graph.number(0.0)
    involved = depending(nodes, along.F)
    expanded: dict[Node, Expansion] = {}
    for k, F in enumerate(along.F):
        slope = [zero, zero, zero]
        slope[k // 3] = along.g[k % 3]
        expanded[F] = Expansion(F, tuple(slope), (zero,) * 6)
    for node in reachable(nodes):
        if node in involved and node not in expanded:
            expanded[node] = _expand_node(node, expanded, along)
    return expanded


def _expand_node(node: Node, known: dict[Node, Expansion], along: AlongVertex) -> Expansion:
    """Expansion of a node by the chain rule from those of its arguments."""
    graph = node.graph
    zero = graph.number(0.0)
    if node.op == "det" and node.args[:9] != along.F:
        A = node.args[:9]
        determinant = A[0] * node.args[9] + A[1] * node.args[10] + A[2] * node.args[11]
        return expansions([determinant], along)[determinant]
    slope, curvature = [zero] * 3, [zero] * 6
    if node.op == "select":
        return _expand_select(node, known)
    for a, weight in partials(node):
        if a in known:
            slope = [s + weight * d for s, d in zip(slope, known[a].slope, strict=True)]
            curvature = [c + weight * d for c, d in zip(curvature, known[a].curvature, strict=True)]
    for a, b, weight in second_partials(node):
        if a in known and b in known:
            curvature = [
                c + weight * entry(known[a].slope, known[b].slope, i, j, a is b)
                for c, (i, j) in zip(curvature, PAIRS, strict=True)
            ]
    return Expansion(node, tuple(slope), tuple(curvature))


def _expand_select(node: Node, known: dict[Node, Expansion]) -> Expansion:
    """Expansion of a `where` node."""
    condition, yes, no = node.args
    zero = node.graph.number(0.0)
    flat = Expansion(zero, (zero,) * 3, (zero,) * 6)
    a, b = known.get(yes, flat), known.get(no, flat)

    def choose(one: tuple[Node, ...], other: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(node.graph.choose(condition, x, y) for x, y in zip(one, other, strict=True))

    return Expansion(node, choose(a.slope, b.slope), choose(a.curvature, b.curvature))


def entry(a: Sequence[Node], b: Sequence[Node], i: int, j: int, same: bool) -> Node:
    """Entry ij of a aᵀ if `same`, otherwise of a bᵀ + b aᵀ."""
    return a[i] * a[j] if same else a[i] * b[j] + a[j] * b[i]
