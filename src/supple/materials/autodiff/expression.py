"""Expression graph of an energy density, built by operator overloading, with its operations and traversals.

Equal operations on equal arguments share one node, which eliminates common subexpressions. Zero terms and
constants are folded before a node is created.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from supple.algebra.rotation import stretch_trace
from supple.kernels import inverse_cube_root
from supple.support.arguments import format_value

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "abs": abs,
    "neg": lambda x: -x,
    "inv": lambda x: 1.0 / x,
    "inverse_cube_root": inverse_cube_root,
}
"""Unary operations."""

ROUNDING = "rounding(F[0])"
"""Input that stands for the relative rounding error of the working precision."""

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def fold_constant(function: Callable[[float], float], value: float) -> float:
    """Evaluate a function without exceptions, like compiled code: NaN instead."""
    try:
        return function(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan


def reachable(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes and everything they depend on, in topological order."""
    visited: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in visited:
            visited.add(node)
            stack.extend(node.args)
    return sorted(visited, key=lambda node: node.index)


def depending(nodes: Iterable[Node], on: Iterable[Node]) -> set[Node]:
    """Return the given inputs, and the nodes reachable from `nodes` that depend on them."""
    dependent = set(on)
    for node in reachable(nodes):
        if any(arg in dependent for arg in node.args):
            dependent.add(node)
    return dependent


class Node:
    """A symbolic number.

    Attributes:
        op: Operation.
        args: Argument nodes.
        value: Value of a constant, or text of an input.
        index: Topological index, larger than those of all arguments.
    """

    __slots__ = ("args", "graph", "index", "op", "value")

    def __init__(self, graph: Graph, op: str, args: tuple[Node, ...], value: Any, index: int) -> None:
        self.graph, self.op, self.args, self.value, self.index = graph, op, args, value, index

    def __add__(self, other: Any) -> Node:
        return self.graph.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Node:
        return self.graph.add(self, -self.graph.node(other))

    def __rsub__(self, other: Any) -> Node:
        return self.graph.add(other, -self)

    def __mul__(self, other: Any) -> Node:
        return self.graph.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Node:
        return self.graph.mul(self, self.graph.apply("inv", other))

    def __rtruediv__(self, other: Any) -> Node:
        return self.graph.mul(other, self.graph.apply("inv", self))

    def __neg__(self) -> Node:
        return self.graph.apply("neg", self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return self.graph.apply("abs", self)

    def __pow__(self, exponent: Any) -> Node:
        return self.graph.power(self, exponent)

    def __rpow__(self, base: Any) -> Node:
        return self.graph.power(base, self)

    def __lt__(self, other: Any) -> Node:
        return self.graph.make("lt", self, self.graph.node(other))

    def __le__(self, other: Any) -> Node:
        return self.graph.make("le", self, self.graph.node(other))

    def __gt__(self, other: Any) -> Node:
        return self.graph.make("gt", self, self.graph.node(other))

    def __ge__(self, other: Any) -> Node:
        return self.graph.make("ge", self, self.graph.node(other))

    def __and__(self, other: Any) -> Node:
        return self.graph.make("and", self, self.graph.node(other))

    def __bool__(self) -> bool:
        raise TypeError(
            "psi cannot branch with `if` on a value that differs between elements; use "
            "supple.where(condition, a, b)"
        )

    def __float__(self) -> float:
        raise TypeError(
            "psi cannot convert a value that differs between elements to a float; use functions of math "
            "or numpy"
        )

    def __getitem__(self, index: Any) -> Node:
        raise TypeError(f"a number cannot be indexed, got [{index}]")


class Graph:
    """A set of hash-consed nodes, with algebraic simplification."""

    def __init__(self) -> None:
        self._known: dict[tuple, Node] = {}

    def make(self, op: str, *args: Node, value: Any = None) -> Node:
        """Create a node without simplification, or return the existing one with equal op, args and value."""
        key = (op, value, *(arg.index for arg in args))
        if key not in self._known:
            self._known[key] = Node(self, op, args, value, len(self._known))
        return self._known[key]

    def number(self, value: float) -> Node:
        return self.make("number", value=float(value))

    def input(self, text: str) -> Node:
        return self.make("input", value=text)

    def node(self, given: Any) -> Node:
        """Return nodes unchanged and numbers as constants."""
        if isinstance(given, Node):
            return given
        if isinstance(given, (int, float)) or hasattr(given, "__float__"):
            return self.number(float(given))
        raise TypeError(f"expected a number, got {format_value(given)}")

    def apply(self, op: str, given: Any) -> Node:
        """Apply a function of one number."""
        x = self.node(given)
        if x.op == "number":
            return self.number(fold_constant(FUNCTIONS[op], x.value))
        if (op, x.op) in (("log", "exp"), ("exp", "log"), ("neg", "neg"), ("inv", "inv")):
            return x.args[0]
        if op == "neg" and x.op == "mul" and x.args[0].op == "number":
            return self.mul(-x.args[0].value, x.args[1])
        if op == "inv":
            if (root := self._known.get(("inverse_cube_root", None, x.index))) is not None:
                return root * root * root
            if x.op == "neg":
                return -self.apply("inv", x.args[0])
            if x.op == "mul" and x.args[0].op == "number":
                return self.mul(1.0 / x.args[0].value, self.apply("inv", x.args[1]))
        if op == "abs" and x.op in ("abs", "exp", "sqrt"):
            return x
        return self.make(op, x)

    def add(self, a: Any, b: Any) -> Node:
        x, y = self.node(a), self.node(b)
        if x.op == "number" and y.op == "number":
            return self.number(x.value + y.value)
        if x.op == "number" and x.value == 0:
            return y
        if y.op == "number" and y.value == 0:
            return x
        if x is y:
            return self.mul(2.0, x)
        if x.op == "neg" and y.op == "neg":
            return -self.add(x.args[0], y.args[0])
        if y.op == "neg" or x.op == "neg":
            plus, minus = (x, y.args[0]) if y.op == "neg" else (y, x.args[0])
            return self.number(0.0) if plus is minus else self.make("sub", plus, minus)
        if x.op == "number" or (y.op != "number" and x.index > y.index):
            x, y = y, x
        if y.op == "number" and x.op == "add" and x.args[1].op == "number":
            return self.add(x.args[0], x.args[1].value + y.value)
        if x.op == y.op == "mul" and x.args[0] is y.args[0] and x.args[0].op == "number":
            return self.mul(x.args[0], self.add(x.args[1], y.args[1]))
        return self.make("add", x, y)

    def mul(self, a: Any, b: Any) -> Node:
        """Multiply; the result has a constant factor first and the sign outermost."""
        x, y = self.node(a), self.node(b)
        if x.op == "number" and y.op == "number":
            return self.number(x.value * y.value)
        if y.op == "number" or (x.op != "number" and x.index > y.index):
            x, y = y, x
        if x.op == "number":
            if x.value in (0.0, 1.0):
                return y if x.value else x
            if x.value == -1.0:
                return -y
            if y.op == "neg":
                return self.mul(-x.value, y.args[0])
            if y.op == "mul" and y.args[0].op == "number":
                return self.mul(x.value * y.args[0].value, y.args[1])
            if y.op == "select" and any(arg.op == "number" for arg in y.args[1:]):
                return self.choose(y.args[0], x * y.args[1], x * y.args[2])
            return self.make("mul", x, y)
        if x.op == "neg" or y.op == "neg":
            signs = (x.op == "neg") + (y.op == "neg")
            product = self.mul(x.args[0] if x.op == "neg" else x, y.args[0] if y.op == "neg" else y)
            return -product if signs == 1 else product
        for one, other in ((x, y), (y, x)):
            if one.op == "mul" and one.args[0].op == "number":
                return self.mul(one.args[0].value, self.mul(one.args[1], other))
            if one.op == "inv" and one.args[0] is other:
                return self.number(1.0)
            if one.op == "select" and all(arg.op == "number" for arg in one.args[1:]):
                condition, yes, no = one.args
                return self.choose(condition, yes * other, no * other)
        return self.make("mul", x, y)

    def power(self, base: Any, exponent: Any) -> Node:
        """Raise to a power: integers by products, halves and thirds by roots, others as exp(b log a)."""
        x, n = self.node(base), self.node(exponent)
        if n.op != "number":
            return self.apply("exp", n * self.apply("log", x))
        if n.value < 0 and n.value * 2 == int(n.value * 2):
            return self.apply("inv", self.power(x, -n.value))
        if n.value == int(n.value) and n.value <= 64:
            return self._integer_power(x, int(n.value))
        if n.value * 2 == int(n.value * 2) and n.value <= 64:
            return self._integer_power(x, int(n.value)) * self.apply("sqrt", x)
        thirds = round(3 * n.value)
        if abs(3 * n.value - thirds) < 1e-12 and abs(thirds) <= 64:
            integer = max(-(-thirds // 3), 0)
            root = self._integer_power(self.apply("inverse_cube_root", x), 3 * integer - thirds)
            return self._integer_power(x, integer) * root
        return self.apply("exp", n * self.apply("log", x))

    def _integer_power(self, x: Node, n: int) -> Node:
        if n == 0:
            return self.number(1.0)
        half = self._integer_power(x, n // 2)
        return half * half * x if n % 2 else half * half

    def choose(self, condition: Any, yes: Any, no: Any) -> Node:
        """`yes` if the condition holds, otherwise `no`."""
        if not isinstance(condition, Node):
            return self.node(yes if condition else no)
        a, b = self.node(yes), self.node(no)
        return a if a is b else self.make("select", condition, a, b)

    def largest(self, a: Any, b: Any) -> Node:
        return self._extreme("max", max, self.node(a), self.node(b))

    def smallest(self, a: Any, b: Any) -> Node:
        return self._extreme("min", min, self.node(a), self.node(b))

    def _extreme(self, op: str, function: Callable, x: Node, y: Node) -> Node:
        if x.op == "number" and y.op == "number":
            return self.number(function(x.value, y.value))
        return x if x is y else self.make(op, x, y)

    def det(self, A: Sequence[Any]) -> Node:
        """det A as a single node: its derivative is the cofactor matrix, whose first row appears in det A."""
        matrix = tuple(map(self.node, A))
        C = self.cofactor(matrix)
        if all(node.op == "number" for node in matrix):
            return matrix[0] * C[0] + matrix[1] * C[1] + matrix[2] * C[2]
        return self.make("det", *matrix, *C[:3])

    def cofactor(self, A: Sequence[Node]) -> tuple[Node, ...]:
        others = ((1, 2), (2, 0), (0, 1))
        return tuple(
            A[3 * p + r] * A[3 * q + s] - A[3 * p + s] * A[3 * q + r] for p, q in others for r, s in others
        )

    def stretch_trace(self, I1: Any, II: Any, J: Any) -> Node:
        """σ₁ + σ₂ + σ₃ of a matrix with these invariants, as a single node; evaluated by Newton's method."""
        return self.make("stretch_trace", *map(self.node, (I1, II, J)))

    def substitute(self, nodes: Iterable[Node], replacements: dict[Node, Node]) -> list[Node]:
        """Substitute nodes in expressions and simplify the result.

        Args:
            nodes: Expressions.
            replacements: Replacement of each substituted node.
        """
        expressions = list(nodes)
        substituted = dict(replacements)
        for node in reachable(expressions):
            if node not in substituted:
                substituted[node] = self._rebuild(node, [substituted[arg] for arg in node.args])
        return [substituted[node] for node in expressions]

    def _rebuild(self, node: Node, args: list[Node]) -> Node:
        if node.op in ("add", "mul"):
            return self.add(*args) if node.op == "add" else self.mul(*args)
        if node.op == "sub":
            return args[0] - args[1]
        if node.op in FUNCTIONS:
            return self.apply(node.op, args[0])
        if node.op == "det":
            return self.det(args[:9])
        if node.op == "select":
            return self.choose(*args)
        if node.op in ("min", "max"):
            return (self.smallest if node.op == "min" else self.largest)(*args)
        if node.op == "stretch_trace" and all(arg.op == "number" for arg in args):
            return self.number(stretch_trace(*(arg.value for arg in args)))
        return self.make(node.op, *args, value=node.value)
