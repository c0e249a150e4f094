"""Code generation from graphs, for Python, SIMD packs and CUDA threads alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from supple.algebra.rotation import stretch_trace
from supple.kernels import inverse_cube_root, rounding, where
from supple.materials.autodiff.expression import COMPARISONS, Node, reachable

SIGNS = {"add": "+", "sub": "-", "mul": "*", **COMPARISONS, "and": "&"}

MAX_INLINE_LENGTH = 60
"""Largest length, in characters, of an expression that is inlined instead of assigned to a variable."""


def compile_function(
    name: str, arguments: str, nodes: Sequence[Node], module: str, example: str = "F[0]"
) -> Callable:
    """Compile a function that returns the values of nodes; a single node is returned without a tuple.

    Args:
        name: Function name.
        arguments: Argument list.
        nodes: Returned nodes.
        module: Module name, part of the kernel cache key.
        example: Expression of the type that constants are converted to, because all entries of a tuple must
            have one type.
    """
    text = source_text(name, arguments, nodes, example)
    names: dict[str, Any] = {"__name__": module, "math": math, "select": where, "rounding": rounding}
    names |= {"stretch_trace": stretch_trace, "inverse_cube_root": inverse_cube_root}
    exec(compile(text, f"<{name} of {module}>", "exec"), names)
    return names[name]


def source_text(name: str, arguments: str, nodes: Sequence[Node], example: str = "F[0]") -> str:
    """Source text of the function that `compile_function` compiles."""
    uses = Counter(arg for node in reachable(nodes) for arg in _operands(node))
    uses.update(nodes)
    texts: dict[Node, str] = {}
    divisors = {
        arg.index
        for node in reachable(nodes)
        if node.op == "mul"
        for arg in node.args
        if arg.op == "inv" and uses[arg] == 1
    }
    lines = [f"def {name}({arguments}):"]
    for node in reachable(nodes):
        if node.op == "number":
            texts[node] = repr(node.value) if math.isfinite(node.value) else "math.nan"
            continue
        if node.index in divisors:  # x (1/y) with a single use of 1/y is x/y
            texts[node] = f"/ {texts[node.args[0]]}"
            continue
        text = _text(node, texts)
        if node.op == "select" and not _varies(node.args[1:]):
            condition, yes, no = (texts[arg] for arg in node.args)
            text = f"select({condition}, 0.0 * {example} + {yes}, {no})"
        if node.op != "input" and (uses[node] > 1 or len(text) > MAX_INLINE_LENGTH):
            lines.append(f"    x{len(lines)} = {text}")
            text = f"x{len(lines) - 1}"
        texts[node] = text if text.isidentifier() or node.op == "input" else f"({text})"
    results = [f"0.0 * {example} + {texts[n]}" if n.op == "number" else texts[n] for n in nodes]
    lines.append(f"    return {results[0]}" if len(nodes) == 1 else f"    return ({', '.join(results)})")
    return "\n".join(lines)


def _varies(nodes: Sequence[Node]) -> bool:
    """True if nodes depend on inputs other than parameters, which are packs in kernels."""
    return any(n.op == "input" and not n.value.startswith("material") for n in reachable(nodes))


def _operands(node: Node) -> tuple[Node, ...]:
    return (*node.args[:3], *node.args[9:]) if node.op == "det" else node.args


def _text(node: Node, texts: dict[Node, str]) -> str:
    args = [texts[arg] for arg in _operands(node)]
    if node.op == "input":
        return node.value
    if node.op == "mul" and any(text.startswith("/") for text in args):
        return " ".join(sorted(args, key=lambda text: text.startswith("/")))
    if node.op in SIGNS:
        return f"{args[0]} {SIGNS[node.op]} {args[1]}"
    if node.op == "neg":
        return f"-{args[0]}"
    if node.op == "inv":
        return f"1.0 / {args[0]}"
    if node.op == "det":
        return f"{args[0]} * {args[3]} + {args[1]} * {args[4]} + {args[2]} * {args[5]}"
    if node.op in ("min", "max", "abs", "select", "stretch_trace", "inverse_cube_root"):
        return f"{node.op}({', '.join(args)})"
    return f"math.{node.op}({', '.join(args)})"
