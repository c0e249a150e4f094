"""Derivatives with respect to material parameters, vectorized over elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.materials import Material, Parameter, is_per_element, table_of

CENTRAL_STENCIL = (-2.0, -1.0, 1.0, 2.0), (1 / 12, -8 / 12, 8 / 12, -1 / 12)
ONE_SIDED_STENCIL = (0.0, 1.0, 2.0, 3.0), (-11 / 6, 3.0, -1.5, 1 / 3)
"""Offsets, in steps, and weights of finite differences: central of fourth order, and one-sided of third order
for parameters at a bound."""

RELATIVE_STEP = 1e-3
"""Step size relative to the parameter, or to its distance from an open bound."""


def differentiable_parameters(material: Material) -> dict[str, Parameter]:
    """Differentiable parameters of a material by name, declared and stored ones."""
    return {p.name: p for p in (*material.stored, *material.parameters)}


def parameter_derivative(
    material: Material, name: str, count: int, work: Callable[[Material], np.ndarray]
) -> np.ndarray:
    """Differentiate an element quantity with respect to the element's own parameter, by finite differences.

    Derivatives with respect to a direction are perpendicular to it, since its length has no effect.

    Args:
        material: Material.
        name: Name of the parameter.
        count: Number of elements.
        work: Function of the material that returns the quantity (count,).

    Returns:
        (count, size) derivatives.
    """
    parameter = differentiable_parameters(material)[name]
    values = table_of(getattr(material, name), count)
    derivatives = np.empty((count, parameter.size))
    for k in range(parameter.size):
        h, (offsets, weights) = _step(material, parameter, values[:, k])
        shifted = [work(_shift_parameter(material, name, k, offset * h)) for offset in offsets]
        derivatives[:, k] = sum(w * value for w, value in zip(weights, shifted, strict=True)) / h
    if parameter.kind == "direction":
        derivatives -= np.einsum("ei,ei->e", derivatives, values)[:, None] * values
    return derivatives


def as_given(parameter: Parameter, derivatives: np.ndarray) -> np.ndarray:
    """Convert derivatives (..., size) to the shape of the parameter's argument.

    For a symmetric matrix A, the result is B with δL = B : δA.
    """
    if parameter.kind == "symmetric":
        derivatives = derivatives * np.array([1, 1, 1, 0.5, 0.5, 0.5])
    return derivatives[..., 0] if parameter.kind == "scalar" else parameter.as_given(derivatives)


def _step(material: Material, parameter: Parameter, values: np.ndarray) -> tuple[Any, tuple[Any, Any]]:
    """Finite-difference step, (m,) or a number for a uniform parameter, and stencil, one-sided at a bound."""
    h = RELATIVE_STEP * np.where(values != 0, np.abs(values), _typical(material, parameter))
    if parameter.kind != "scalar":
        h = np.full_like(h, RELATIVE_STEP * max(1.0, float(np.abs(values).max(initial=0))))
    for bound in (parameter.above, parameter.below):
        if bound is not None:
            h = np.minimum(h, RELATIVE_STEP * np.abs(values - bound))
    low = _is_near(values, parameter.at_least, h)
    high = _is_near(values, parameter.at_most, h)
    stencil = ONE_SIDED_STENCIL if (low | high).any() else CENTRAL_STENCIL
    h = np.where(high, -h, h)
    return (h if is_per_element(getattr(material, parameter.name)) else float(h[0])), stencil


def _typical(material: Material, parameter: Parameter) -> float:
    """Typical magnitude for a parameter with value 0."""
    moduli = [float(np.abs(getattr(material, p.name)).max()) for p in material.stored if p.unit == "Pa"]
    if parameter.unit == "Pa":
        return max(moduli, default=1.0) or 1.0
    return float(np.abs(np.asarray(parameter.example or 1.0, float)).max())


def _is_near(values: np.ndarray, bound: float | None, h: np.ndarray) -> np.ndarray:
    return np.zeros(len(values), bool) if bound is None else np.abs(values - bound) < 2 * h


def _shift_parameter(material: Material, name: str, number: int, step: Any) -> Material:
    """Material with one parameter number changed; unchecked, because steps may leave bounds."""
    value = getattr(material, name)
    changed: Any
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed[(..., number) if value.ndim > 1 else ...] += step
    elif isinstance(value, tuple):
        changed = tuple(v + step if k == number else v for k, v in enumerate(value))
    else:
        changed = value + step
    if name not in {p.name for p in material.parameters}:
        return material._replace(**{name: changed})
    given = {p.name: getattr(material, p.name) for p in material.parameters} | {name: changed}
    stored = type(material).store(**given)
    return type(material)._make(stored[field] for field in material._fields)
