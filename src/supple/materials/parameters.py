"""Declarations of material parameters, used by scene files, validation, tables, sliders and tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import Parameter as Argument
from typing import Any, Literal, NewType

import numpy as np

from supple.support.arguments import MAX_MAGNITUDE, MIN_MAGNITUDE, format_value, suggest_name, to_floats
from supple.support.keywords import suggest_keywords

SHAPES: dict[str, tuple[int, ...]] = {"scalar": (), "direction": (3,), "tensor": (3, 3), "symmetric": (3, 3)}
"""Input shape of each kind for a uniform value; values per element have an additional leading axis."""

SIZES = {"scalar": 1, "direction": 3, "tensor": 9, "symmetric": 6}
"""Number of kernel values of each kind: tensors row by row, symmetric ones as xx yy zz xy xz yz."""

SYMMETRIC_ENTRIES = (0, 4, 8, 1, 2, 5)
_NINE = {9: list(range(9)), 6: [0, 3, 4, 3, 1, 5, 4, 5, 2]}


def _freeze(value: Any) -> Any:
    """Convert nested numbers to nested tuples, which are comparable and hashable."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


@suggest_keywords
@dataclass(frozen=True)
class Parameter:
    """Declaration of one material parameter.

    Attributes:
        name: Identifier in Python and in scene files.
        meaning: Short description.
        unit: Unit in tables, "" for none.
        symbol: Symbol in tables, "" for none.
        kind: "scalar"; "direction", a vector that is normalized to unit length; "tensor", 3×3; or
            "symmetric", 3×3.
        above, below: Open bounds of a scalar.
        at_least, at_most: Closed bounds of a scalar.
        default: Value of an omitted argument; None for a required parameter.
        example: Typical value for sliders, tables and tests.
        slider: Usual range of a slider.
        advice: Suggestion in error messages about values out of bounds.
        aliases: Other names of the argument, such as "E" for "young".
        evolves: True for an internal variable that every step updates, see `Material.evolve`; the argument is
            its initial value.

    Raises:
        ValueError: The declaration is inconsistent.
    """

    name: str
    meaning: str
    unit: str = ""
    symbol: str = ""
    kind: Literal["scalar", "direction", "tensor", "symmetric"] = "scalar"
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    default: Any = None
    example: Any = None
    slider: tuple[float, float] | None = None
    advice: str = ""
    evolves: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def argument(self) -> Argument:
        """Keyword-only argument of the constructor's signature."""
        default = Argument.empty if self.default is None else self.default
        return Argument(self.name, Argument.KEYWORD_ONLY, default=default)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name.startswith("_"):
            raise ValueError(f"a parameter's name must be a plain word such as 'young', got {self.name!r}")
        if self.kind not in SHAPES:
            raise ValueError(f"kind of {self.name} must be one of {', '.join(SHAPES)}, got {self.kind!r}")
        bounded = any(b is not None for b in (self.above, self.at_least, self.below, self.at_most))
        if bounded and self.kind != "scalar":
            raise ValueError(f"only scalar parameters can have bounds, and {self.name} is a {self.kind}")
        for name in ("default", "example"):
            value = getattr(self, name)
            if value is not None:
                self.check(value)
                object.__setattr__(self, name, _freeze(value))

    @property
    def label(self) -> str:
        """Symbol, or name, with unit, such as "E [Pa]"."""
        return f"{self.symbol or self.name}{f' [{self.unit}]' if self.unit else ''}"

    @property
    def description(self) -> str:
        """Sentence such as "Young's modulus E [Pa], positive.", with meaning, symbol, unit and range."""
        symbol = f" {self.symbol}" if self.symbol else ""
        unit = f" [{self.unit}]" if self.unit else ""
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.meaning}{symbol}{unit}, {self.range}{advice}."

    @property
    def range(self) -> str:
        """Admissible values, in words."""
        if self.kind != "scalar":
            return {
                "direction": "three numbers, not all zero",
                "tensor": "three rows of three numbers",
                "symmetric": "three rows of three numbers, symmetric",
            }[self.kind]
        low = self.above if self.at_least is None else self.at_least
        high = self.below if self.at_most is None else self.at_most
        if low is not None and high is not None:
            ends = [f"{end:g}" for end, open in ((low, self.above), (high, self.below)) if open is not None]
            excluded = "both excluded" if len(ends) == 2 else f"{ends[0]} excluded" if ends else ""
            return f"between {low:g} and {high:g}" + (f", {excluded}" if excluded else "")
        if low is not None:
            if low == 0:
                return "not negative" if self.above is None else "positive"
            return f"at least {low:g}" if self.above is None else f"greater than {low:g}"
        if high is not None:
            return f"at most {high:g}" if self.below is None else f"less than {high:g}"
        return "any number"

    @property
    def may_vary(self) -> bool:
        """True for scalars without evolution law; only these may be scaled over time."""
        return self.kind == "scalar" and not self.evolves

    @property
    def size(self) -> int:
        """Number of kernel values."""
        return SIZES[self.kind]

    def check(self, given: Any) -> Any:
        """Validate and normalize a value.

        Args:
            given: One value for the whole body, or an array with one entry per element.

        Returns:
            A float or a tuple of `size` floats for a whole body; otherwise a read-only array (m,) or (m,
            size).

        Raises:
            ValueError: The value is out of bounds, not finite or of the wrong shape.
        """
        values, shape = to_floats(given), SHAPES[self.kind]
        if self.kind == "scalar":
            self._refuse_outside(given, values)
        self._refuse_shape(given, values)
        if self.kind != "scalar":
            values = self._flatten(given, values)
        if values.ndim == (0 if self.kind == "scalar" else 1):
            return float(values) if not shape else tuple(values.tolist())
        values = values.copy()
        values.setflags(write=False)
        return values

    def as_given(self, value: Any) -> Any:
        """Convert a checked value to the form of the constructor's argument.

        Args:
            value: Value as `check` returns it, uniform or per element.

        Returns:
            Tensors as (3, 3) or (m, 3, 3), other values unchanged.
        """
        if self.size < 6:
            return value
        numbers = np.asarray(value)[..., _NINE[self.size]]
        return numbers.reshape(*numbers.shape[:-1], 3, 3)

    def _refuse_outside(self, given: Any, values: np.ndarray) -> None:
        inside = np.isfinite(values)
        with np.errstate(invalid="ignore"):
            for bound, holds in (
                (self.above, np.greater),
                (self.at_least, np.greater_equal),
                (self.below, np.less),
                (self.at_most, np.less_equal),
            ):
                inside = inside if bound is None else inside & holds(values, bound)
        if not values.size or not inside.all():
            raise ValueError(f"{self.name} must {self._requirement}, got {format_value(given)}{self._advice}")
        positive = self.above is not None and self.above >= 0
        lowest, size = (MIN_MAGNITUDE if positive else 0.0), np.abs(values)
        if size.max() > MAX_MAGNITUDE or (size.min() < lowest):
            raise ValueError(
                f"{self.name} must lie between {lowest if positive else -MAX_MAGNITUDE:g} and "
                f"{MAX_MAGNITUDE:g}{f' {self.unit}' if self.unit else ''}, got {format_value(given)}"
            )

    @property
    def _requirement(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        if self.range.startswith("between"):
            return f"lie {self.range}{unit}"
        return f"be {self.range} and finite{unit}" if self.range != "any number" else f"be finite{unit}"

    @property
    def _advice(self) -> str:
        return f"; {self.advice}" if self.advice else ""

    def _refuse_shape(self, given: Any, values: np.ndarray) -> None:
        shape = SHAPES[self.kind]
        if (
            values.shape[values.ndim - len(shape) :] == shape
            and values.ndim <= len(shape) + 1
            and values.size
        ):
            return
        each = ("m", *map(str, shape))
        expected = f"({', '.join(each)})" if shape else "(m,)"
        actual = f"it has shape {values.shape}" if values.ndim else f"got {format_value(given)}"
        raise ValueError(
            f"{self.name} must have shape {shape} for the whole body or {expected} with one entry per "
            f"tetrahedron; {actual}"
        )

    def _flatten(self, given: Any, values: np.ndarray) -> np.ndarray:
        """Normalize directions and flatten tensors, to (size,) or (m, size) numbers."""
        rows = values.reshape(-1, int(np.prod(SHAPES[self.kind])))
        wrong = np.flatnonzero(~(np.isfinite(rows).all(axis=1) & (np.abs(rows).max(axis=1) <= MAX_MAGNITUDE)))
        if len(wrong):
            raise ValueError(
                f"{self.name} must be finite, got {format_value(rows[wrong[0]].tolist())}{_at(wrong)}"
            )
        if self.kind == "direction":
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            if len(zero := np.flatnonzero(length[:, 0] < MIN_MAGNITUDE)):
                raise ValueError(
                    f"{self.name} is a direction and must not be zero, got "
                    f"{format_value(rows[zero[0]].tolist())}{_at(zero)}{self._advice}"
                )
            rows = rows / length
        if self.kind == "symmetric":
            matrices = rows.reshape(-1, 3, 3)
            skew = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2))
            if len(wrong := np.flatnonzero(skew > 1e-6 * np.abs(rows).max(axis=1))):
                raise ValueError(
                    f"{self.name} must be symmetric, got "
                    f"{format_value(matrices[wrong[0]].tolist())}{_at(wrong)}"
                )
            rows = (0.5 * (matrices + matrices.transpose(0, 2, 1))).reshape(-1, 9)[:, SYMMETRIC_ENTRIES]
        return rows[0] if values.ndim == len(SHAPES[self.kind]) else rows


Pa = NewType("Pa", float)
"""Type annotation of a positive modulus [Pa] of a material."""

Direction = NewType("Direction", tuple[float, float, float])
"""Type annotation of a direction of a material."""

_ANNOTATIONS: dict[str, dict[str, Any]] = {
    "Pa": {"unit": "Pa", "above": 0, "example": 1e5},
    "float": {"example": 1.0},
    "Direction": {"kind": "direction", "example": (1.0, 0.0, 0.0)},
}


def annotated_parameters(cls: type) -> dict[str, Parameter]:
    """Return the parameters declared by a class's annotations: `mu: Pa`, `Jm: float = 30`."""
    parameters = {}
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        kind = getattr(annotation, "__name__", str(annotation)).split(".")[-1]
        if kind in _ANNOTATIONS:
            given = {"default": vars(cls).get(name), "symbol": name, **_ANNOTATIONS[kind]}
            parameters[name] = Parameter(name, name.replace("_", " "), **given)
    return parameters


def resolve_aliases(called: str, declared: Iterable[Parameter], given: dict[str, Any]) -> dict[str, Any]:
    """Replace aliases by the names of their parameters.

    Args:
        called: Name of the material in messages.
        declared: Parameters; a parameter's own name takes precedence over an alias of another one.
        given: Values by name or alias.

    Raises:
        TypeError: One parameter is given twice.
    """
    declared = list(declared)
    names = {alias: p.name for p in declared for alias in p.aliases} | {p.name: p.name for p in declared}
    values: dict[str, Any] = {}
    for name, value in given.items():
        own = names.get(name, name)
        if own in values:
            raise TypeError(f"{called} got {own} twice: {name!r} is an alias of it")
        values[own] = value
    return values


def suggest_parameter(cls: type, name: str, names: list[str]) -> str:
    """Sentence with suggestions for an unknown parameter name of a class."""
    for base in cls.__mro__:
        annotation = vars(base).get("__annotations__", {}).get(name)
        if annotation is not None:
            kind = getattr(annotation, "__name__", str(annotation))
            return (
                f"its annotation is {kind}, but parameters are annotated as supple.materials.Pa, float or "
                "supple.materials.Direction; use one parameter for each number, and a class constant "
                "without annotation for a fixed value"
            )
    return suggest_name(name, names) if names else "it has none"


def _at(wrong: np.ndarray) -> str:
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return "" if len(wrong) == 1 and wrong[0] == 0 else f" for tetrahedron {wrong[0]}{more}"


def is_per_element(value: Any) -> bool:
    """True if a checked value has one entry per element."""
    return isinstance(value, np.ndarray)


def table_of(value: Any, count: int) -> np.ndarray:
    """Expand a checked value to one row per element.

    Args:
        value: Checked value, uniform or per element.
        count: Number of elements m.

    Returns:
        (m, size) numbers.
    """
    rows = np.asarray(value, float)
    rows = rows.reshape(len(rows), -1) if is_per_element(value) else rows.reshape(1, -1)
    return np.broadcast_to(rows, (count, rows.shape[1]))


def element_count(values: Iterable[tuple[str, Any]]) -> int | None:
    """Return the common number of elements of named values, or None if all are uniform.

    Raises:
        ValueError: The numbers of elements differ.
    """
    named = [(name, value) for name, value in values if is_per_element(value)]
    if len({len(value) for _, value in named}) > 1:
        shapes = " and ".join(f"{name} has shape {value.shape}" for name, value in named)
        raise ValueError(
            "material parameters must be uniform or have one entry per tetrahedron, with equal counts; "
            f"{shapes}"
        )
    return len(named[0][1]) if named else None
