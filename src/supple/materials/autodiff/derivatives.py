"""Derivatives of single operations, and reverse-mode gradients of graphs."""

from __future__ import annotations

from collections.abc import Sequence

from supple.algebra.rotation import UNIQUE_ROTATION_THRESHOLD
from supple.materials.autodiff.expression import FUNCTIONS, ROUNDING, Node, depending, reachable


def partials(node: Node) -> list[tuple[Node, Node]]:
    """(a, ∂node/∂a) for each argument a."""
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
    """∂t/∂I₁, ∂t/∂II and ∂t/∂J of the largest root t of t⁴ - 2 I₁ t² - 8 J t + I₁² - 4 II = 0.

    Regularized to stay finite at a double root (see `algebra.rotation`).
    """
    graph, (I1, _, J) = t.graph, t.args
    flat = UNIQUE_ROTATION_THRESHOLD * graph.apply("sqrt", graph.input(ROUNDING)) * t * I1 + 1e-30
    slope = graph.largest(4.0 * ((t * t - I1) * t - 2.0 * J), 4.0 * flat)
    inverse = graph.apply("inv", slope)
    return 2.0 * (t * t - I1) * inverse, 4.0 * inverse, 8.0 * t * inverse


def _slope(node: Node) -> Node:
    """f' of a unary function f."""
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
    """(a, b, ∂²node/∂a∂b) of the arguments, each pair once."""
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
