"""Domain of an energy density: numbers that must stay positive, and step limits of a vertex.

log x, 1/x and non-integer powers of x are undefined or infinite at x = 0. This is a barrier unless x is
positive by construction, such as 1 + |F|².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from supple.materials.autodiff.expression import Node, depending, reachable
from supple.materials.autodiff.forward_ad import PAIRS, AlongVertex, expansions

MIN_REMAINING = 0.1
"""Smallest fraction of a positive number that remains after a step."""

MAX_SHORTENINGS = 4
"""Number of times a step is cut to a quarter if its limit has no closed form."""


def barriers(psi: Node, F: Sequence[Node], declared: Sequence[Any]) -> list[Node]:
    """Return the nodes that must stay positive.

    Args:
        psi: Node of the energy density.
        F: Nodes of the inputs.
        declared: Parameters passed to kernels.
    """
    signs = signs_of(psi, declared)
    involved = depending([psi], F)
    positive: dict[Node, None] = {}
    for node in reachable([psi]):
        if node.op in ("log", "inv", "sqrt", "inverse_cube_root") and node in involved:
            inner, op = node.args[0], node.op
            if not (signs[inner] == 2 or (op == "sqrt" and signs[inner] >= 1)):
                positive[_unwrap(inner)] = None
    return list(positive)


def _unwrap(node: Node) -> Node:
    """x of x², c x and √x, which vanish together with x."""
    if node.op == "mul" and (node.args[0] is node.args[1] or node.args[0].op == "number"):
        return _unwrap(node.args[1])
    return _unwrap(node.args[0]) if node.op == "sqrt" else node


def signs_of(psi: Node, declared: Sequence[Any]) -> dict[Node, int]:
    """Sign of each node by construction: 2 for positive, 1 for non-negative, 0 for unknown."""
    lowest = {f"material.{p.name}": _sign_of(p) for p in declared if p.size == 1}
    signs: dict[Node, int] = {}
    for node in reachable([psi]):
        args = [signs[arg] for arg in node.args]
        sign = 0
        if node.op == "number":
            sign = 2 if node.value > 0 else 1 if node.value == 0 else 0
        elif node.op == "input":
            sign = lowest.get(node.value, 0)
        elif node.op == "exp":
            sign = 2
        elif node.op == "abs":
            sign = 2 if args[0] == 2 else 1
        elif node.op in ("sqrt", "inv", "inverse_cube_root"):
            sign = args[0]
        elif node.op == "add":
            sign = max(args) if min(args) >= 1 else 0
        elif node.op == "mul":
            sign = max(args[0], 1) if node.args[0] is node.args[1] else min(args)
        elif node.op == "max":
            sign = max(args)
        elif node.op == "min":
            sign = min(args)
        elif node.op == "select":
            sign = min(args[1:])
        signs[node] = sign
    return signs


def _sign_of(parameter: Any) -> int:
    bounds = [b for b in (parameter.above, parameter.at_least) if b is not None]
    if not bounds or max(bounds) < 0:
        return 0
    return 2 if parameter.above is not None or max(bounds) > 0 else 1


def margin_after(numbers: Sequence[Node], along: AlongVertex, step: Sequence[Node]) -> Node:
    """Smallest excess of all numbers over a tenth of their values, after the full step."""
    graph = step[0].graph
    substitution = {F: F + step[k // 3] * along.g[k % 3] for k, F in enumerate(along.F)}
    least, *others = (
        new_number - MIN_REMAINING * number
        for number, new_number in zip(numbers, graph.substitute(numbers, substitution), strict=True)
    )
    for other in others:
        least = graph.smallest(least, other)
    return least


def step_fraction(numbers: Sequence[Node], along: AlongVertex, step: Sequence[Node]) -> Node:
    """Fraction t ≤ 1 of a step up to which every number keeps a tenth of its value.

    d(t) = d + d' t + ½ d'' t² is exact for J, which is affine in one vertex, and for quadratic numbers such
    as |F|². For numbers of higher degree, t is quartered until it suffices. A positive d'' is neglected.
    """
    graph = step[0].graph
    fraction = graph.number(1.0)
    known = expansions(numbers, along)
    for number in sorted(numbers, key=lambda number: degree(number, along)):
        d = known[number]
        slope = sum((a * s for a, s in zip(d.slope, step, strict=True)), graph.number(0.0))
        bend = graph.number(0.0)
        for c, (i, j) in zip(d.curvature, PAIRS, strict=True):
            bend = bend + (1.0 if i == j else 2.0) * c * step[i] * step[j]
        margin = 2.0 * (1.0 - MIN_REMAINING) * number
        loss = graph.apply("sqrt", slope * slope - margin * graph.smallest(bend, 0.0)) - slope
        t = margin / graph.largest(loss, margin)
        fraction = t if fraction.op == "number" else graph.smallest(fraction, t)
        if degree(number, along) > 2:
            fraction = _shorten(fraction, number, along, step)
    return fraction


def _shorten(t: Node, number: Node, along: AlongVertex, step: Sequence[Node]) -> Node:
    """Cut t to a quarter, up to SHORTENINGS times, while the number loses too much."""
    for _ in range(MAX_SHORTENINGS):
        substitution = {F: F + t * step[k // 3] * along.g[k % 3] for k, F in enumerate(along.F)}
        (new_number,) = number.graph.substitute([number], substitution)
        t = number.graph.choose(new_number >= MIN_REMAINING * number, t, 0.25 * t)
    return t


def degree(number: Node, along: AlongVertex) -> float:
    """Polynomial degree of a number in the position of one vertex; infinite if it is not a polynomial."""
    degrees: dict[Node, float] = {}
    for node in reachable([number]):
        args = [degrees[arg] for arg in node.args]
        if node in along.F:
            degree = 1.0
        elif not any(args):
            degree = 0.0
        elif node.op in ("add", "sub", "neg"):
            degree = max(args)
        elif node.op == "mul":
            degree = sum(args)
        elif node.op == "det" and node.args[:9] == along.F:
            degree = 1.0
        else:
            degree = math.inf
        degrees[node] = degree
    return degrees[number]
