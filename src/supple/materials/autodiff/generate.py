"""Generated kernel functions of a material with a method `psi`, written on first use.

For ψ of F or of invariants, all functions come from one graph. For ψ of principal stretches, the graph has
three inputs, and `stretches` supplies the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from supple.kernels import all_lanes, device_function, where
from supple.materials.autodiff.derivatives import gradient
from supple.materials.autodiff.domain import barriers, margin_after, signs_of, step_fraction
from supple.materials.autodiff.expression import ROUNDING, Node, depending
from supple.materials.autodiff.forward_ad import AlongVertex, differential
from supple.materials.autodiff.printer import compile_function
from supple.materials.autodiff.spd_bounds import shift_to_positive
from supple.materials.autodiff.step_radius import inverse_square_safe_radius
from supple.materials.autodiff.trace import STRETCHES, Trace, TraceError, form_of, trace_psi
from supple.materials.autodiff.vertex_block import along_vertex

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@cache
def trace_of(cls: Any) -> Trace:
    """Trace ψ of a class to a graph, cached.

    Raises:
        TraceError: ψ does not depend on F.
    """
    trace = trace_psi(cls)
    if trace.psi not in depending([trace.psi], trace.variables):
        raise TraceError(f"psi of {cls.__name__} does not depend on {', '.join(form_of(cls.psi))}")
    return trace


def is_of_stretches(cls: Any) -> bool:
    """True if ψ is a function of the principal stretches."""
    return form_of(cls.psi) == (STRETCHES,)


@cache
def has_barrier(cls: Any) -> bool:
    """True if ψ is infinite or undefined for some F."""
    trace = trace_of(cls)
    return bool(barriers(trace.psi, trace.variables, cls.stored))


def _inputs(trace: Trace, name: str, count: int) -> tuple[Node, ...]:
    return tuple(trace.psi.graph.input(f"{name}[{k}]") for k in range(count))


def _at_rest(trace: Trace, nodes: Sequence[Node]) -> list[Node]:
    """Substitute the rest state for the variables of nodes."""
    graph = trace.psi.graph
    rest = IDENTITY if len(trace.variables) == 9 else (1.0, 1.0, 1.0)
    known = dict(zip(trace.variables, map(graph.number, rest), strict=True))
    return graph.substitute(nodes, known | {graph.input(ROUNDING): graph.number(0.0)})


def _second(trace: Trace, direction: Sequence[Any]) -> list[Node]:
    """δP along a direction of numbers or nodes."""
    slope = gradient(trace.psi, trace.variables)
    seeds = map(trace.psi.graph.node, direction)
    return differential(slope, dict(zip(trace.variables, seeds, strict=True)))


def write_psi(cls: Any) -> Callable:
    """Generate ψ of F or of stretches."""
    return compile_function("psi", "material, F", [trace_of(cls).psi], cls.__module__)


def write_stress(cls: Any) -> Callable:
    """Generate ∂ψ/∂F."""
    trace = trace_of(cls)
    return compile_function("stress", "material, F", gradient(trace.psi, trace.variables), cls.__module__)


def write_stress_differential(cls: Any) -> Callable:
    trace = trace_of(cls)
    nodes = _second(trace, _inputs(trace, "dF", 9))
    return compile_function("stress_differential", "material, F, dF", nodes, cls.__module__)


def write_tangent(cls: Any) -> Callable:
    """Generate ∂²ψ/∂F∂F, nine 9-tuples."""
    trace = trace_of(cls)
    unit = [[float(p == q) for p in range(9)] for q in range(9)]
    entries = [node for direction in unit for node in _second(trace, direction)]
    flat = device_function(compile_function("tangent", "material, F", entries, cls.__module__))
    rows = ", ".join(f"({', '.join(f'C[{9 * q + p}]' for p in range(9))})" for q in range(9))
    return _define("tangent", "material, F", f"C = flat(material, F)\n    return ({rows})", cls, flat=flat)


def write_second(cls: Any) -> Callable:
    """Generate ∂²ψ/∂σ∂σ of stretches, nine numbers."""
    trace = trace_of(cls)
    nodes = [node for k in range(3) for node in _second(trace, [float(i == k) for i in range(3)])]
    return compile_function("second", "material, F", nodes, cls.__module__)


def _positive_numbers(cls: Any) -> list[Node]:
    """Numbers that a vertex step must keep positive, as functions of F; J for ψ of stretches."""
    trace = trace_of(cls)
    if len(trace.variables) == 3:
        return [trace.psi.graph.det(_inputs(trace, "F", 9))]
    return barriers(trace.psi, trace.variables, cls.stored)


def _along(cls: Any) -> AlongVertex:
    trace = trace_of(cls)
    return AlongVertex(_inputs(trace, "F", 9), _inputs(trace, "g", 3))


def _inverse_square_safe_radius(cls: Any) -> Node:
    numbers = _positive_numbers(cls)
    return inverse_square_safe_radius(numbers, _along(cls), signs_of(trace_of(cls).psi, cls.stored))


def write_inverse_square_safe_radius(cls: Any) -> Callable:
    return compile_function(
        "inverse_square_safe_radius", "material, F, g", [_inverse_square_safe_radius(cls)], cls.__module__
    )


def write_vertex_response(cls: Any) -> Callable:
    """Generate (P g, A, q), with A the exact vertex block shifted to positive definiteness."""
    response = along_vertex(trace_of(cls).psi, _along(cls))
    nodes = [*response.slope, *response.curvature, _inverse_square_safe_radius(cls)]
    exact = device_function(compile_function("exact", "material, F, g", nodes, cls.__module__))
    body = (
        "x = exact(material, F, g)\n"
        "    A = shift_to_positive(material, (x[3], x[4], x[5], x[6], x[7], x[8]), g)\n"
        "    return (x[0], x[1], x[2]), A, x[9]"
    )
    return _define(
        "vertex_response", "material, F, g", body, cls, exact=exact, shift_to_positive=shift_to_positive
    )


def write_principal_hessian(cls: Any) -> Callable:
    """Generate the twelve numbers of ∂²ψ/∂F∂F at F = diag(s), with vanishing terms eliminated."""
    trace = trace_of(cls)
    graph = trace.psi.graph
    s, zero = _inputs(trace, "s", 3), graph.number(0.0)
    diagonal = (s[0], zero, zero, zero, s[1], zero, zero, zero, s[2])
    substitution = dict(zip(trace.variables, diagonal, strict=True))

    def column(k: int) -> list[Node]:
        return graph.substitute(_second(trace, [float(p == k) for p in range(9)]), substitution)

    x, y, z, xy, xz, yz = map(column, (0, 4, 8, 1, 2, 5))
    nodes = [x[0], y[4], z[8], y[0], z[0], z[4], xy[1] + xy[3], xz[2] + xz[6], yz[5] + yz[7]]
    nodes += [xy[1] - xy[3], xz[2] - xz[6], yz[5] - yz[7]]
    flat = device_function(
        compile_function("principal", "material, s", nodes, cls.__module__, example="s[0]")
    )
    body = (
        "x = flat(material, s)\n"
        "    return (x[0], x[1], x[2], x[3], x[4], x[5]), (x[6], x[7], x[8]), (x[9], x[10], x[11])"
    )
    return _define("principal_hessian", "material, s", body, cls, flat=flat)


def write_shear_modulus(cls: Any) -> Callable:
    """Generate the minimum of ∂²ψ/∂Fᵢⱼ² over i ≠ j at rest, a function of the parameters only."""
    trace = trace_of(cls)
    graph = trace.psi.graph
    if len(trace.variables) == 3:
        first = _second(trace, (1.0, 0.0, 0.0))
        nodes = [0.5 * (first[0] - first[1])]
    else:
        nodes = [_second(trace, [float(p == k) for p in range(9)])[k] for k in (1, 2, 3, 5, 6, 7)]
    least, *others = _at_rest(trace, nodes)
    for other in others:
        least = graph.smallest(least, other)
    example = f"material.{next(p.name for p in cls.stored if p.size == 1)}"
    return compile_function("shear_modulus", "material", [abs(least)], cls.__module__, example)


def write_step_limit(cls: Any) -> Callable:
    """Generate the step limit of a vertex.

    For ψ of stretches, the limit keeps J positive. An energy that is finite everywhere allows the full step.
    Nearly all steps may be taken in full, which is checked first.
    """
    numbers, along = _positive_numbers(cls), _along(cls)
    step, arguments = _inputs(trace_of(cls), "step", 3), "material, F, g, step"
    if not numbers:
        return _define("step_limit", arguments, "return 0.0 * F[0] + 1.0", cls)
    body = (
        "margin = full_margin(material, F, g, step)\n"
        "    one = 0.0 * margin + 1.0\n"
        "    if all_lanes(margin >= 0.0):\n"
        "        return one\n"
        "    return select(margin >= 0.0, one, part(material, F, g, step))"
    )
    names = {
        "full_margin": device_function(
            compile_function("full_margin", arguments, [margin_after(numbers, along, step)], cls.__module__)
        ),
        "part": device_function(
            compile_function("part", arguments, [step_fraction(numbers, along, step)], cls.__module__)
        ),
        "all_lanes": all_lanes,
        "select": where,
    }
    return _define("step_limit", arguments, body, cls, **names)


def _define(name: str, arguments: str, body: str, cls: Any, **names: Any) -> Callable:
    """Define a function of a few lines that calls other functions."""
    space = {"__name__": cls.__module__, **names}
    exec(f"def {name}({arguments}):\n    {body}", space)
    return space[name]
