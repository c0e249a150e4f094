"""Comparison of gradients with central differences of equilibria."""

from __future__ import annotations

from typing import Any

import numpy as np

import supple
from supple.gradients.inputs import input_derivative, parse_inputs, replace_inputs


class Loss:
    """L = Σ w · x + ½ c |x|² with random weights."""

    def __init__(self, vertices: int, seed: int = 0) -> None:
        self.w = np.random.default_rng(seed).normal(size=(vertices, 3))

    def __call__(self, x: np.ndarray) -> float:
        return float((self.w * x).sum() + 0.5 * (x * x).sum())

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.w + x


def scalars_of(material: supple.materials.Material) -> dict[str, float]:
    """Scalar inputs of an equilibrium, away from the bounds of their ranges."""
    scalars = {}
    for p in material.parameters:
        if p.kind == "scalar" and p.name not in ("yield_strain", "creep", "max_plastic_strain"):
            value = getattr(material, p.name)
            scalars[p.name] = 0.1 if value in (p.at_least, p.at_most) else value
    return scalars


def exact(scene: supple.Scene, start: np.ndarray | None = None, solver: str = "newton") -> np.ndarray:
    """Positions of an equilibrium, exact to rounding."""
    result = supple.equilibrium(scene, solver=solver, initial=start, tolerance=1e-6, position_tolerance=None)
    return supple.gradient(result, np.zeros_like(result.positions)).positions


def check(
    scene: supple.Scene,
    given: dict[str, Any],
    relative: float = 1e-6,
    step: float = 1e-3,
    solver: str = "newton",
) -> supple.gradients.Gradient:
    """Check every input alone and all together, along a direction with about equal contributions to the
    slope, so that an error in any input shows."""
    pairs = parse_inputs(scene, given)
    inputs = [each for each, _ in pairs]
    values = [np.asarray(value, float) for _, value in pairs]
    base = replace_inputs(scene, inputs, values)
    loss = Loss(base.bodies[-1].vertices.stop)
    result = supple.equilibrium(base, solver=solver, tolerance=1e-4)
    gradient = supple.gradient(result, loss.gradient)
    assert gradient.report.relative_residual < 1e-9
    assert gradient.report.stable
    rng = np.random.default_rng(1)
    directions, slopes = [], []
    for each, value in zip(inputs, values, strict=True):
        own = input_derivative(gradient, scene, each, value)
        assert own.shape == value.shape
        size = np.abs(value).max() or 1.0
        d = size * rng.uniform(0.5, 1.0, value.shape) * np.where(own < 0, -1, 1)
        directions.append(d)
        slopes.append(float((own * d).sum()))
    largest = max(slopes)
    assert largest > 0
    scales = [largest / slope if slope > 1e-9 * largest else 1.0 for slope in slopes]
    scales = [min(scale, 10.0) for scale in scales]

    def at(t: float) -> float:
        moved = [v + t * s * d for v, s, d in zip(values, scales, directions, strict=True)]
        return loss(exact(replace_inputs(scene, inputs, moved), gradient.positions, solver))

    h = step / max(scales)
    slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    expected = sum(scale * own for scale, own in zip(scales, slopes, strict=True))
    assert abs(slope - expected) < relative * abs(expected), (slope, expected)
    return gradient
