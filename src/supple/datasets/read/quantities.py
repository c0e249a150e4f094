"""Storable quantities of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.model.model import Model, Step
from supple.postprocess.evaluation import QUANTITIES, VERTEX_QUANTITIES

SAMPLE_QUANTITIES = {
    "positions": "of all vertices [m]",
    "displacements": "positions minus rest positions [m]",
    "body_energies": "strain energy of each body [J]",
    "reactions": "force and moment of each pin [N, N m]",
}
SHORT_NAMES = {
    "forces": "reaction_force",
    "energies": "body_energies",
    "stresses": "cauchy",
    "contact": "contact_force",
    "F": "deformation_gradient",
}
"""Short names of quantities."""

ALL_QUANTITIES = {
    **SAMPLE_QUANTITIES,
    **QUANTITIES,
    **{short: f"the same as {name}" for short, name in SHORT_NAMES.items()},
}

MATRIX_QUANTITIES = ("deformation_gradient", "piola", "cauchy")
PRINCIPAL_QUANTITIES = ("principal_stresses", "principal_stretches")


@dataclass(frozen=True)
class Quantity:
    """Name, shape and axes of a stored quantity of one sample."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]

    @property
    def text(self) -> str:
        return ALL_QUANTITIES[self.name]


def quantities_of(names: list[str], model: Model) -> list[Quantity]:
    """Stored quantities of a model for the given names, without duplicates."""
    return [_quantity(name, model) for name in dict.fromkeys(SHORT_NAMES.get(name, name) for name in names)]


def _quantity(name: str, model: Model) -> Quantity:
    vertices, cells = model.vertices, len(model.cells)
    if name in ("positions", "displacements") or name in VERTEX_QUANTITIES:
        return Quantity(name, (vertices, 3), ("vertex", "xyz"))
    if name == "body_energies":
        return Quantity(name, (len(model.bodies),), ("body",))
    if name == "reactions":
        return Quantity(name, (len(model.supports), 6), ("pin", "force_and_moment"))
    if name in MATRIX_QUANTITIES:
        return Quantity(name, (cells, 3, 3), ("cell", "row", "column"))
    if name in PRINCIPAL_QUANTITIES:
        return Quantity(name, (cells, 3), ("cell", "principal"))
    return Quantity(name, (cells,), ("cell",))


class SampleQuantities:
    """Quantities of one sample, evaluated lazily.

    Args:
        model: The model.
        positions: (n, 3) positions [m].
        force: (n, 3) external forces [N].
        materials: Materials of the sample, if they vary.
        history: History variables, such as the friction state of contacts.
    """

    def __init__(
        self,
        model: Model,
        positions: np.ndarray,
        force: np.ndarray,
        materials: tuple[Any, ...] | None,
        history: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.model, self.positions, self.force, self.materials = model, positions, force, materials
        self._history = history or {}
        self._evaluation: Any = None

    @property
    def evaluation(self) -> Any:
        if self._evaluation is None:
            from supple.postprocess.evaluate import evaluate_model

            numbers = [k for k, term in enumerate(self.model.terms) if term.material is not None]
            own = None if self.materials is None else dict(zip(numbers, self.materials, strict=True))
            step = Step(np.inf, self.positions, self.force, own, history=self._history)
            self._evaluation = evaluate_model(self.model, self.positions, step)
        return self._evaluation

    def value(self, name: str) -> np.ndarray:
        if name == "positions":
            return self.positions
        if name == "displacements":
            return self.positions - self.model.rest
        if name == "body_energies":
            return np.array([*self.evaluation.body_energies.values()])
        if name == "reactions":
            reactions = self.evaluation.reactions
            return np.stack(
                [
                    np.concatenate([reactions[pin].force, reactions[pin].moment])
                    for pin, *_ in self.model.supports
                ]
            )
        return np.asarray(getattr(self.evaluation, name))
