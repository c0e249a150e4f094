"""Registration of generated kernel functions and properties for materials defined by `psi` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.materials.autodiff import generate as formulas
from supple.materials.autodiff import principal_stretches as stretches
from supple.materials.autodiff.spd_bounds import (
    general_coefficients,
    isotropic_coefficients,
    tangent,
)
from supple.materials.autodiff.trace import form_of
from supple.materials.material import (
    _traction,
    bound_coefficients,
    inverse_square_safe_radius,
    psi,
    shear_modulus,
    step_limit,
    stress,
    stress_differential,
    traction,
    vertex_response,
)
from supple.materials.material_checks import is_isotropic, is_objective
from supple.materials.principal import principal_hessian


class ComputedAttribute:
    """Class attribute computed by a function on each access."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self._compute(owner)


def derive(cls: Any) -> None:
    """Register generated kernel functions for a material class with a method `psi`.

    Functions with a handwritten implementation are kept.
    """
    form = form_of(cls.psi)
    generator: Any = stretches if form == ("stretches",) else formulas
    psi.write(cls, generator.write_psi)
    stress.write(cls, generator.write_stress)
    stress_differential.write(cls, generator.write_stress_differential)
    traction.write(cls, lambda cls: _traction)
    vertex_response.write(cls, generator.write_vertex_response)
    shear_modulus.write(cls, formulas.write_shear_modulus)
    step_limit.write(cls, formulas.write_step_limit)
    inverse_square_safe_radius.write(cls, formulas.write_inverse_square_safe_radius)
    bound_coefficients.write(cls, _coefficients)
    if generator is formulas:
        tangent.write(cls, formulas.write_tangent)
    principal_hessian.write(cls, generator.write_principal_hessian)
    members = vars(cls)
    if "barrier" not in members:
        cls.barrier = ComputedAttribute(formulas.has_barrier)
    if "isotropic" not in members:
        cls.isotropic = True if form != ("F",) else ComputedAttribute(is_isotropic)
    if "objective" not in members and form == ("F",):
        cls.objective = ComputedAttribute(is_objective)


def _coefficients(cls: Any) -> Callable:
    chosen: Any = isotropic_coefficients if cls.isotropic else general_coefficients
    return getattr(chosen, "py_func", chosen)
