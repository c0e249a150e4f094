"""Derivatives by what belongs to one body: its density and the parameters of its material."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import closest
from supple.gradients.elements import response
from supple.gradients.parameters import as_given, declared, derivative
from supple.materials import is_per_element
from supple.model import Model
from supple.problem.element_values import is_deformed
from supple.scene import Body
from supple.scene.build import elastic_groups

if TYPE_CHECKING:
    from supple.gradients.gradient import Gradient


def groups_of(model: Model) -> list[list[Body]]:
    """The bodies of each elasticity term of a model, in the order of its elements."""
    return elastic_groups([body for body in model.bodies if isinstance(body, Body)])


class BodyGradient:
    """What belongs to one body of a `Gradient`: `density`, and every parameter that its material declares or
    stores, by its name, one number where the material has one for the whole body, else one for each cell."""

    def __init__(self, whole: Gradient, body: Body) -> None:
        self._whole, self._body = whole, body
        self._found: dict[str, np.ndarray] = {}

    @property
    def density(self) -> float:
        """By the density."""
        own = self._body.vertices
        return float(self._whole.model.mass[own] @ self._whole._by_mass[own]) / self._body.density

    @property
    def forces(self) -> np.ndarray:
        """(k, 3) by the forces on its vertices [1/N]."""
        return self._whole.forces[self._body.vertices]

    @property
    def rest(self) -> np.ndarray:
        """(k, 3) by the rest positions of its vertices [1/m]."""
        return self._whole.rest[self._body.vertices]

    def each(self, name: str) -> np.ndarray:
        """(m, ...) by a parameter of the material of every cell, each for itself."""
        parameter = self._parameter(name)
        if name not in self._found:
            self._found[name] = self._derivative(name)
        return as_given(parameter, self._found[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = self.each(name)
        if is_per_element(getattr(self._body.material, name)):
            return values
        total = values.sum(axis=0)
        return float(total) if np.ndim(total) == 0 else total

    def _parameter(self, name: str) -> Any:
        known = declared(self._body.material)
        if name not in known:
            raise AttributeError(
                f"{type(self._body.material).__name__} of {self._body.name!r} has no parameter {name!r}; "
                f"{closest(name, ['density', *known])}"
            )
        return known[name]

    def _derivative(self, name: str) -> np.ndarray:
        """(m, size): -∂(V P : G)/∂θ of its elements."""
        whole, problem = self._whole, self._whole._problem
        k, first = self._place()
        if not is_deformed(problem, k):
            raise ValueError(
                f"{self._body.name!r} is of a fabric, by whose parameters cannot be differentiated yet."
            )
        term: Any = problem.model.terms[k]

        def work(material: Any) -> np.ndarray:
            return response(problem, k, whole.forces, material).work

        found = -derivative(term.material, name, len(term.vertices), work)
        return found[first : first + self._body.mesh.n_cells]

    def _place(self) -> tuple[int, int]:
        """The number of its term, and that of its first element there."""
        for k, group in enumerate(groups_of(self._whole.model)):
            first = 0
            for body in group:
                if body is self._body:
                    return k, first
                first += body.mesh.n_cells
        raise ValueError(f"{self._body.name!r} has no elements of a material")
