"""What numbers a precision can carry through a problem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from supple.model import Model

SINGLE = 1e15
"""Magnitudes in a float32 problem: squares of them, times strains, must stay below 3e38. Scenes themselves
are within the limits of float64, see `supple.checks`."""


def refuse_beyond(model: Model, precision: str, dt: float | None = None) -> None:
    """Refuse a model whose numbers float32 cannot carry; dt [s]: of a step with inertia."""
    if precision != "float32":
        return
    for what, values, lowest in _quantities(model, dt):
        sizes = np.abs(values[values != 0])
        wrong = sizes[(sizes > SINGLE) | (sizes < lowest)]
        if len(wrong):
            raise ValueError(
                f"{what} of {wrong[0]:.3g} is beyond precision='float32', which can compute with magnitudes "
                f"from {1 / SINGLE:g} to {SINGLE:g}; use precision='float64'"
            )


def _quantities(model: Model, dt: float | None) -> Iterator[tuple[str, np.ndarray, float]]:
    """Names, values and the lowest magnitude that they may have."""
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
            if parameter.unit:  # directions, ratios and the like have any small numbers
                yield f"{parameter.name} [{parameter.unit}] of a material", np.atleast_1d(value), 1 / SINGLE
        if term.material is None:
            yield f"the stiffness of {term.name} [N/m]", term.stiffnesses, 0.0
