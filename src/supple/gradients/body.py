"""Derivatives with respect to density and material parameters of one body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.gradients.elements import element_response
from supple.gradients.parameter_derivatives import as_given, differentiable_parameters, parameter_derivative
from supple.materials import is_per_element
from supple.model.model import Model
from supple.problem.element_quantities import is_deformed
from supple.scene import Body
from supple.scene.build import elastic_groups
from supple.scene.regions import densities, region_named
from supple.support.arguments import suggest_name

if TYPE_CHECKING:
    from supple.gradients.gradient import Gradient


def element_groups(model: Model) -> list[list[Any]]:
    """Bodies, or portions of bodies, per elasticity term of a model, in element order."""
    return elastic_groups([body for body in model.bodies if isinstance(body, Body)])


def cell_densities(part: Any) -> np.ndarray:
    """(k,) cell densities of a body or a portion [kg/m³]; 0 for viscous branches."""
    body = getattr(part, "body", part)
    all_densities = np.broadcast_to(densities(body.regions, body.density, body.n_cells), body.n_cells)
    return (
        np.zeros(part.n_cells)
        if getattr(part, "branch", 0)
        else all_densities[getattr(part, "numbers", slice(None))]
    )


def volume_forces(model: Model, part: Any, time: float) -> np.ndarray:
    """(k, 3) volume forces on cells of a body or a portion at a time [s] [N/m³]; 0 for viscous branches."""
    body = getattr(part, "body", part)
    total = np.zeros((body.n_cells, 3))
    for name, fraction, per_volume in model.volume_forces if not getattr(part, "branch", 0) else ():
        total += fraction(time) * per_volume if name == body.name else 0.0
    return total[getattr(part, "numbers", slice(None))]


class BodyGradient:
    """Derivatives with respect to one body's properties, as attributes.

    `density`, and every declared or stored parameter of its material by name: one number for a uniform
    parameter, otherwise one per cell. For a body with regions, these are the properties outside of all
    regions; `region(name)` has those of a region.
    """

    def __init__(self, gradient: Gradient, body: Body, part: Any = None) -> None:
        self._gradient, self._body = gradient, body
        self._part = body.parts[0] if part is None else part
        self._derivatives: dict[str, np.ndarray] = {}

    def region(self, name: str) -> BodyGradient:
        """Derivatives with respect to properties of one region."""
        return BodyGradient(self._gradient, self._body, region_named(self._body, name))

    @property
    def density(self) -> float:
        """Density derivative; excludes regions with separate density."""
        body = self._body
        cell_numbers = self._numbers
        if self._part.name == body.name:
            separate = [region.where for region in body.regions if region.density is not None]
            cell_numbers = np.setdiff1d(
                np.arange(body.n_cells), np.concatenate([np.empty(0, int), *separate])
            )
        by_mass = self._gradient._by_mass[body.cells].mean(axis=1)
        return float((body.rest_measures * by_mass)[cell_numbers].sum())

    @property
    def forces(self) -> np.ndarray:
        """(k, 3) derivatives with respect to forces on the body's vertices [1/N]."""
        return self._gradient.forces[self._body.vertices]

    @property
    def rest(self) -> np.ndarray:
        """(k, 3) derivatives with respect to rest positions of the body's vertices [1/m]."""
        return self._gradient.rest[self._body.vertices]

    def per_element(self, name: str) -> np.ndarray:
        """Derivatives with respect to a material parameter, separately per cell.

        Args:
            name: Name of a declared or stored parameter.

        Returns:
            (m, ...) derivatives; 0 for cells of another material.
        """
        parameter = self._parameter(name)
        if name not in self._derivatives:
            self._derivatives[name] = self._derivative(name)
        return as_given(parameter, self._derivatives[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = self.per_element(name)
        if is_per_element(getattr(self._part.material, name)):
            return values[self._numbers]
        total = values.sum(axis=0)
        return float(total) if np.ndim(total) == 0 else total

    def _parameter(self, name: str) -> Any:
        by_name = differentiable_parameters(self._part.material)
        if name not in by_name:
            raise AttributeError(
                f"{type(self._part.material).__name__} of {self._body.name!r} has no parameter {name!r}; "
                f"{suggest_name(name, ['density', *by_name])}"
            )
        return by_name[name]

    def _derivative(self, name: str) -> np.ndarray:
        """(m, size) derivatives -∂(V P : G)/∂θ of the body's elements."""
        gradient, problem = self._gradient, self._gradient._problem
        k, first = self._locate()
        if not is_deformed(problem, k):
            raise ValueError(
                f"derivatives with respect to fabric parameters, here of {self._body.name!r}, are "
                "not available yet."
            )
        term: Any = problem.model.terms[k]

        def work(material: Any) -> np.ndarray:
            return element_response(problem, k, gradient.forces, material).work

        derivatives = -parameter_derivative(term.material, name, len(term.vertices), work)
        rows = np.zeros((self._body.n_cells, derivatives.shape[1]))
        rows[self._numbers] = derivatives[first : first + self._part.n_cells]
        return rows

    @property
    def _numbers(self) -> Any:
        """Cell numbers of this portion within the body."""
        return getattr(self._part, "numbers", slice(None))

    def _locate(self) -> tuple[int, int]:
        """Term number of the body, and number of its first element."""
        for k, group in enumerate(element_groups(self._gradient.model)):
            first = 0
            for part in group:
                if part.name == self._part.name:
                    return k, first
                first += part.n_cells
        raise ValueError(f"{self._body.name!r} has no elements of a material")
