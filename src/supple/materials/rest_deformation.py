"""Materials with an inelastic rest deformation per element: growth, swelling, shrinkage or plastic flow.

F = Fₑ F₀ with the rest deformation F₀ and the elastic part Fₑ = F F₀⁻¹ [Rodriguez et al. 1994]. A rest volume
is det F₀ times the volume in the mesh, so ψ(F) = det F₀ ψ₀(F F₀⁻¹) with the energy density ψ₀ of the base
material. The stress is det F₀ P₀ F₀⁻ᵀ, and second derivatives follow by the chain rule.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from supple.algebra.matrix3 import contract, det, matmul, matvec, scale, scale_matrix, transpose
from supple.kernels import base_of, generic
from supple.kernels.compile.code_hash import UnknownError, identity
from supple.materials.material import (
    Material,
    bound_coefficients,
    constraint_pair,
    hessian_bound,
    inverse_square_safe_radius,
    psi,
    shear_modulus,
    step_limit,
    stress,
    stress_differential,
    traction,
    vertex_response,
)
from supple.materials.parameters import Parameter, is_per_element
from supple.materials.preset_library import Preset
from supple.support.arguments import format_value

SWELLING = Parameter(
    "swelling", "growth of every length at rest", symbol="s", above=-1, default=0.0, slider=(-0.5, 0.5)
)
REST_SHAPE = Parameter(
    "rest_deformation", "deformation at rest", symbol="F₀", kind="tensor", default=np.eye(3)
)
INVERSE_REST_DEFORMATION = Parameter("shrunk", "inverse of the shape at rest", symbol="F₀⁻¹", kind="tensor")


class InelasticMaterial(Material):
    """ψ(F) = det F₀ ψ₀(F F₀⁻¹) with the energy density ψ₀ of a `base` material.

    The stored numbers of the base come first.
    """

    __slots__ = ()

    base: ClassVar[type[Material]]
    relaxed: ClassVar[bool] = False

    @property
    def base_material(self) -> Any:
        """Base material, without the rest deformation."""
        return base_of(self)


class Prestrained(InelasticMaterial):
    """A material with rest deformation (1 + s) F₀ per element. `prestrained` creates its subclasses."""

    __slots__ = ()

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        swelling, shape = parameters.pop("swelling"), parameters.pop("rest_deformation")
        return cls.base.store(**parameters) | {"swelling": swelling, "shrunk": inverse(shape)}

    @property
    def rest_deformation(self) -> Any:
        """Rest deformation F₀, without the swelling: a row-major 9-tuple, or (m, 9)."""
        return inverse(self.shrunk)

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Evolve the internal variables of the base material.

        Args:
            F: (m, 3, 3) deformation gradients; the base material receives F F₀⁻¹/(1 + s).
            dt: Time step [s].

        Returns:
            Changed internal variables of the base material by name.
        """
        s = np.asarray(self.swelling, float)
        shrunk = np.asarray(self.shrunk, float).reshape(-1, 3, 3) / (1 + s.reshape(-1, 1, 1))
        return self.base_material.evolve(F @ shrunk, dt)

    def plastic_strains(self) -> np.ndarray | None:
        return self.base_material.plastic_strains()

    def __reduce__(self) -> tuple:
        return _rebuild_prestrained, (self.base, tuple(self))


def inverse(shape: Any) -> Any:
    """Invert a checked tensor.

    Args:
        shape: (9,) or (m, 9) numbers of F₀.

    Returns:
        (9,) or (m, 9) numbers of F₀⁻¹.

    Raises:
        ValueError: det F₀ is not positive.
    """
    matrices = np.asarray(shape, float).reshape(-1, 3, 3)
    wrong = np.flatnonzero(~(np.linalg.det(matrices) > 0))
    if len(wrong):
        raise ValueError(
            "rest_deformation must have a positive determinant, got "
            f"{format_value(matrices[wrong[0]].tolist())}"
            + (f" for tetrahedron {wrong[0]}" if len(matrices) > 1 else "")
        )
    inverses = np.linalg.inv(matrices).reshape(-1, 9)
    return inverses if is_per_element(shape) else tuple(inverses[0].tolist())


def prestrained(material: Any, swelling: Any = 0.0, rest_deformation: Any = None) -> Any:
    """Return a material that is stress-free at F = (1 + swelling) rest_deformation instead of F = I.

    Use it for growth, drying, thermal expansion and residual strains.

    Args:
        material: Solid material without a rest deformation; a preset stays a preset, with its density.
        swelling: Relative growth of all lengths, such as α ΔT of thermal expansion; a number or (m,) per
            element. `Scene.vary` with "swelling" varies it over time.
        rest_deformation: (3, 3) or (m, 3, 3) rest deformation; by default the identity.

    Returns:
        The material, of a subclass of `Prestrained`; a preset for a preset.

    Raises:
        TypeError: The first argument is not a material.
        ValueError: The material is for sheets or has a rest deformation of its own, or det F₀ is not
            positive.

    Example: `supple.materials.prestrained(supple.StVK(young=1e5, poisson=0.3), swelling=0.1)`.
    """
    if isinstance(material, Preset):
        return replace(material, material=prestrained(material.material, swelling, rest_deformation))
    if not isinstance(material, Material):
        raise TypeError(
            f"prestrained needs a material such as StVK(young=1e5, poisson=0.3), got {format_value(material)}"
        )
    if isinstance(material, InelasticMaterial):
        raise ValueError(f"{type(material).__name__} already has a rest deformation")
    if material.thin:
        raise ValueError(
            f"{type(material).__name__} is a material for sheets; set their rest shape with "
            "add_cloth(rest=...)"
        )
    shape = np.eye(3) if rest_deformation is None else rest_deformation
    return prestrained_class(type(material))(**material.given(), swelling=swelling, rest_deformation=shape)


@cache
def prestrained_class(kind: type[Material]) -> Any:
    """Create the subclass of `Prestrained` for a base class."""
    own = kind.__module__.split(".")[0] == "supple"
    name = f"Prestrained{kind.__name__}"
    members: dict[str, Any] = {
        "__slots__": (),
        "__doc__": f"{kind.__name__} whose elements have rest shapes of their own.",
        "__module__": __name__ if own else kind.__module__,
        "__qualname__": name,
        "base": kind,
        "barrier": kind.barrier,
        "objective": kind.objective,
        "parameters": (*kind.parameters, SWELLING, REST_SHAPE),
        "stored": (*kind.stored, SWELLING, INVERSE_REST_DEFORMATION),
    }
    stored = {p.name for p in kind.stored}
    members |= {p.name: _of_base(p.name) for p in kind.parameters if p.name not in stored}
    if not own:
        members["computes"] = _compilation_key(kind)
    subclass: Any = type(name, (Prestrained,), members)
    register_base_functions(subclass)
    return subclass


def _of_base(name: str) -> property:
    return property(lambda self: getattr(self.base_material, name))


def _compilation_key(kind: type[Material]) -> str:
    """Compilation key that distinguishes a user's class from others of the same name."""
    try:
        return identity(kind)
    except UnknownError:
        return f"{id(kind)} of this process"


def register_base_functions(kind: type[InelasticMaterial]) -> None:
    """Register the optional functions that the base class implements."""
    for function, implementation in (
        (vertex_response, _vertex_response),
        (constraint_pair, _constraint_pair),
    ):
        if function.has_implementation(kind.base):
            function.of(kind)(implementation)


def _rebuild_prestrained(kind: type[Material], values: tuple) -> Any:
    """Rebuild a pickled prestrained material."""
    return prestrained_class(kind)._make(values)


def __getattr__(name: str) -> Any:
    """Return a class of `prestrained_class` by its name, such as PrestrainedStVK, for unpickling."""
    if name.startswith("Prestrained"):
        known = [Material]
        for kind in known:
            known += kind.__subclasses__()
            if f"Prestrained{kind.__name__}" == name and kind.__module__.startswith("supple."):
                return prestrained_class(kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@generic
def inverse_rest_deformation(material):
    """F₀⁻¹, a 9-tuple."""


@inverse_rest_deformation.of(Prestrained)
def _inverse_rest_deformation(material):
    return scale_matrix(1.0 / (1.0 + material.swelling), material.shrunk)


@psi.of(InelasticMaterial)
def _psi(material, F):
    G = inverse_rest_deformation(material)
    return psi(base_of(material), matmul(F, G)) / det(G)


@stress.of(InelasticMaterial)
def _stress(material, F):
    G = inverse_rest_deformation(material)
    P = stress(base_of(material), matmul(F, G))
    return scale_matrix(1.0 / det(G), matmul(P, transpose(G)))


@traction.of(InelasticMaterial)
def _traction(material, F, g):
    G = inverse_rest_deformation(material)
    return scale(1.0 / det(G), traction(base_of(material), matmul(F, G), matvec(transpose(G), g)))


@stress_differential.of(InelasticMaterial)
def _stress_differential(material, F, dF):
    G = inverse_rest_deformation(material)
    dP = stress_differential(base_of(material), matmul(F, G), matmul(dF, G))
    return scale_matrix(1.0 / det(G), matmul(dP, transpose(G)))


@hessian_bound.of(InelasticMaterial)
def _hessian_bound(material, F, g, h):
    G = inverse_rest_deformation(material)
    Gt = transpose(G)
    A = hessian_bound(base_of(material), matmul(F, G), matvec(Gt, g), matvec(Gt, h))
    return scale_matrix(1.0 / det(G), A)


def _vertex_response(material: Any, F: Any, g: Any) -> Any:
    """Vertex response through the base; registered only for bases that implement it."""
    G = inverse_rest_deformation(material)
    volume = 1.0 / det(G)
    f, A, q = vertex_response(base_of(material), matmul(F, G), matvec(transpose(G), g))
    return scale(volume, f), scale_matrix(volume, A), q


@bound_coefficients.of(InelasticMaterial)
def _bound_coefficients(material, F):
    """cof(F G) : δF G = det G cof F : δF, and |δF G|² ≤ (tr M⁴)^¼ |δF|² with M = G Gᵀ."""
    G = inverse_rest_deformation(material)
    J, M = det(G), matmul(G, transpose(G))
    square = matmul(M, M)
    a, b = bound_coefficients(base_of(material), matmul(F, G))
    return a * math.sqrt(math.sqrt(contract(square, square))) / J, b * J


@shear_modulus.of(InelasticMaterial)
def _shear_modulus(material):
    return shear_modulus(base_of(material))


@step_limit.of(InelasticMaterial)
def _step_limit(material, F, g, step):
    G = inverse_rest_deformation(material)
    return step_limit(base_of(material), matmul(F, G), matvec(transpose(G), g), step)


@inverse_square_safe_radius.of(InelasticMaterial)
def _inverse_square_safe_radius(material, F, g):
    G = inverse_rest_deformation(material)
    return inverse_square_safe_radius(base_of(material), matmul(F, G), matvec(transpose(G), g))


def _constraint_pair(material: Any, F: Any) -> Any:
    """Constraint pair through the base; registered only for bases that implement it."""
    G = inverse_rest_deformation(material)
    volume, Gt = 1.0 / det(G), transpose(G)
    C, D, k, C2, D2, k2 = constraint_pair(base_of(material), matmul(F, G))
    return C, matmul(D, Gt), k * volume, C2, matmul(D2, Gt), k2 * volume
