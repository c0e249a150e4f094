"""Tracing of a user's ψ: it is called once with symbolic nodes instead of numbers.

Functions called by ψ, including kernel functions, are run as copies in which `math`, `min`, `max` and
`where` create nodes.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from supple.algebra import matrix3
from supple.algebra.rotation import stretch_trace
from supple.kernels import all_lanes, rounding, where
from supple.materials.autodiff.expression import ROUNDING, Graph, Node
from supple.support.arguments import suggest_name

INVARIANTS = ("I1", "I2", "J")
"""Possible arguments of ψ instead of F: |F|², |cof F|² and det F, which are tr C, ½ (tr²C - tr C²) and √det C
for C = Fᵀ F."""

STRETCHES = "stretches"
"""Alternative argument of ψ: the three principal stretches; the last is negative if F is inverted."""


class TraceError(TypeError):
    """An energy density cannot be differentiated."""


class Trace(NamedTuple):
    """ψ as a graph with its inputs: nine entries of F, or three stretches."""

    psi: Node
    variables: tuple[Node, ...]


def form_of(density: Callable) -> tuple[str, ...]:
    """Return the arguments of a ψ: ("F",), ("stretches",) or some of the invariants.

    Raises:
        TraceError: The arguments are none of these.
    """
    names = tuple(inspect.signature(density).parameters)[1:]
    if names in (("F",), (STRETCHES,)) or (names and set(names) <= set(INVARIANTS)):
        return names
    raise TraceError(
        "psi must be a function of F, of stretches, or of some of I1, I2 and J, such as psi(self, I1, "
        f"J); got psi(self{''.join(f', {name}' for name in names)})"
    )


def trace_psi(cls: Any) -> Trace:
    """Trace the energy density of a material class with a method `psi`.

    Raises:
        TraceError: ψ uses operations without a derivative, or fails.
    """
    graph, form = Graph(), form_of(cls.psi)
    count = 3 if form == (STRETCHES,) else 9
    variables = tuple(graph.input(f"F[{k}]") for k in range(count))
    given: list[Any] = [variables]
    if form[0] in INVARIANTS:
        given = [_invariant(graph, variables, name) for name in form]
    try:
        psi = _Tracer(graph).of(cls.psi)(_Parameters(graph, cls), *given)
        return Trace(graph.node(psi), variables)
    except TypeError as error:
        raise TraceError(
            f"psi of {cls.__name__} cannot be differentiated: {_as_sentence(error)} It may add, multiply, "
            "divide, take powers, use sqrt, log, exp, cosh and similar functions of math or numpy, abs, "
            "min and max, call functions that do the same, and choose by supple.where(condition, a, b) "
            f"instead of `if`; {ARGUMENTS_HINT}"
        ) from error
    except (AttributeError, NameError, ValueError, IndexError) as error:
        raise TraceError(
            f"psi of {cls.__name__} cannot be read: {_as_sentence(error)} {ARGUMENTS_HINT}"
        ) from error


ARGUMENTS_HINT = "F is a tuple of nine numbers, row by row, and stretches are three"
"""Hint on the arguments of ψ in error messages."""


def _as_sentence(error: Exception) -> str:
    """Text of an exception as a sentence."""
    text = str(error)
    return text if text.endswith(("?", ".")) else f"{text}."


def _invariant(graph: Graph, F: tuple[Node, ...], name: str) -> Node:
    if name == "J":
        return graph.det(F)
    terms = F if name == "I1" else graph.cofactor(F)
    total = graph.number(0.0)
    for term in terms:
        total = total + term * term
    return total


class _Parameters:
    """Stand-in for the material in ψ: stored parameters are graph inputs, all else is as in the class."""

    def __init__(self, graph: Graph, cls: Any) -> None:
        self._graph, self._cls = graph, cls
        self._stored = {p.name: p.size for p in cls.stored}

    def __getattr__(self, name: str) -> Any:
        if name in self._stored:
            text, size = f"material.{name}", self._stored[name]
            if size == 1:
                return self._graph.input(text)
            return tuple(self._graph.input(f"{text}[{k}]") for k in range(size))
        attribute = inspect.getattr_static(self._cls, name, None)
        if attribute is None:
            raise AttributeError(
                f"{self._cls.__name__} has no parameter {name!r}; {suggest_name(name, self._stored)}"
            )
        tracer = _Tracer(self._graph)
        if isinstance(attribute, property):
            return tracer.of(attribute.fget)(self)
        if isinstance(attribute, FunctionType):
            return MethodType(tracer.of(attribute), self)
        return tracer.of(getattr(self._cls, name))


class _Namespace:
    """A module whose functions create nodes."""

    def __init__(self, tracer: _Tracer, module: Any) -> None:
        self._tracer, self._module = tracer, module

    def __getattr__(self, name: str) -> Any:
        return self._tracer.of(getattr(self._module, name))


class _Tracer:
    """Copies of functions that operate on nodes."""

    def __init__(self, graph: Graph) -> None:
        self._traced: dict[int, Any] = {}
        self._known: dict[int, Callable] = {
            **_functions_of(graph),
            id(min): lambda *given: _fold_arguments(graph.smallest, given),
            id(max): lambda *given: _fold_arguments(graph.largest, given),
            id(where): graph.choose,
            id(matrix3.det): graph.det,
            id(stretch_trace): graph.stretch_trace,
            id(rounding): lambda example: graph.input(ROUNDING),
            id(all_lanes): _no_branches,
        }

    def of(self, target: Any) -> Any:
        """Return the symbolic counterpart of an object used by ψ."""
        if id(target) in self._known:
            return self._known[id(target)]
        if isinstance(target, ModuleType):
            return _Namespace(self, target)
        if hasattr(target, "py_func"):  # compiled by Numba
            return self.of(target.py_func)
        if not isinstance(target, FunctionType):
            return target
        if id(target) not in self._traced:
            names: dict[str, Any] = {"__builtins__": builtins}
            cells = self._cells(target)
            traced = FunctionType(target.__code__, names, target.__name__, target.__defaults__, cells)
            self._traced[id(target)] = traced
            traced.__kwdefaults__ = target.__kwdefaults__
            names.update(self._globals(target))
        return self._traced[id(target)]

    def _globals(self, function: FunctionType) -> dict[str, Any]:
        namespace = vars(builtins) | function.__globals__
        names = _names(function.__code__)
        return {name: self.of(namespace[name]) for name in names if name in namespace}

    def _cells(self, function: FunctionType) -> tuple[CellType, ...]:
        return tuple(CellType(self.of(cell.cell_contents)) for cell in function.__closure__ or ())


def _functions_of(graph: Graph) -> dict[int, Callable]:
    """Symbolic counterparts of the functions of math and NumPy, by their ids."""

    def log(x: Any, *base: Any) -> Node:
        return graph.apply("log", x) / graph.apply("log", base[0]) if base else graph.apply("log", x)

    def exp(x: Any) -> Node:
        return graph.apply("exp", x)

    def both(x: Any, sign: float) -> Node:
        exponential = exp(x)
        return 0.5 * (exponential + sign / exponential)

    def tanh(x: Any) -> Node:
        """By an exponential that never overflows."""
        x = graph.node(x)
        decay = exp(-2.0 * graph.apply("abs", x))
        size = (1.0 - decay) / (1.0 + decay)
        return graph.choose(x < 0.0, -size, size)

    functions: dict[str, Callable] = {
        "sqrt": lambda x: graph.apply("sqrt", x),
        "log": log,
        "log1p": lambda x: log(1.0 + graph.node(x)),
        "exp": exp,
        "expm1": lambda x: exp(x) - 1.0,
        "cosh": lambda x: both(x, 1.0),
        "sinh": lambda x: both(x, -1.0),
        "tanh": tanh,
        "fabs": lambda x: graph.apply("abs", x),
    }
    known = {id(getattr(math, name)): function for name, function in functions.items()}
    known |= {id(getattr(np, name)): function for name, function in functions.items()}
    return known | {
        id(math.pow): graph.power,
        id(np.power): graph.power,
        id(np.abs): functions["fabs"],
        id(np.minimum): graph.smallest,
        id(np.maximum): graph.largest,
        id(np.where): graph.choose,
        id(np.linalg.det): lambda A: graph.det(tuple(np.ravel(A))),
    }


def _names(code: CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(inner) for inner in nested))


def _fold_arguments(function: Callable, given: Any) -> Any:
    """min or max of two or more numbers, or of a sequence."""
    first, *rest = given if len(given) > 1 else given[0]
    for other in rest:
        first = function(first, other)
    return first


def _no_branches(condition: Any) -> Any:
    raise TypeError("psi cannot branch with `if` on all_lanes; use supple.where(condition, a, b)")
