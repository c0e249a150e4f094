"""Check that the magnitudes of a model fit the working precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from supple.model.model import Model

MAX_FLOAT32 = 1e15
"""Largest magnitude in a float32 problem: squares of it, times strains, must stay below 3e38.
`supple.support.arguments` ensures the limits of float64."""


def check_float_range(model: Model, precision: str, dt: float | None = None) -> None:
    """Check that a model's numbers fit its working precision.

    Args:
        model: Model.
        precision: "float32" or "float64".
        dt: Time step with inertia [s], or None.

    Raises:
        ValueError: A number is too large or too small for float32.
    """
    if precision != "float32":
        return
    for what, values, lowest in _quantities(model, dt):
        sizes = np.abs(values[values != 0])
        wrong = sizes[(sizes > MAX_FLOAT32) | (sizes < lowest)]
        if len(wrong):
            raise ValueError(
                f"{what} of {wrong[0]:.3g} is outside the range of precision='float32', magnitudes "
                f"from {1 / MAX_FLOAT32:g} to {MAX_FLOAT32:g}; use precision='float64'"
            )


def _quantities(model: Model, dt: float | None) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield name, values and lowest allowed magnitude of each quantity."""
    yield "a force [N]", model.force, 0.0
    for _, force in model.varying:
        yield "a force [N]", force, 0.0
    yield "a mass [kg]", model.mass, 0.0
    if dt is not None:
        yield "inertia, a mass over dt² [kg/s²],", model.mass / (dt * dt), 0.0
    for term in model.terms:
        for parameter, value in zip(
            term.material.stored if term.material else (), term.material or (), strict=True
        ):
            if parameter.unit:  # dimensionless numbers, such as directions and ratios, may be small
                yield (
                    f"{parameter.name} [{parameter.unit}] of a material",
                    np.atleast_1d(value),
                    1 / MAX_FLOAT32,
                )
        if term.material is None:
            yield f"the stiffness of {term.name} [N/m]", term.stiffnesses, 0.0
