"""The parameters that all isotropic materials share, and what a material must provide."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from supple.algebra.isotropic import matrix_of, times
from supple.algebra.matrix3 import add_diagonal, cofactor, dot, matvec, outer, scaled
from supple.checks import LARGEST, SMALLEST, floats, shown
from supple.kernels import generic


def _refuse_outside(name: str, given: Any, moduli: np.ndarray) -> None:
    if moduli.size == 0 or not np.all(np.isfinite(moduli) & (moduli > 0)):
        raise ValueError(f"{name} must be positive and finite [Pa], got {shown(given)}")
    if not np.all((moduli >= SMALLEST) & (moduli <= LARGEST)):
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g} Pa, got {shown(given)}")


def _refuse_other_shapes(**parameters: np.ndarray) -> None:
    shapes = {values.shape for values in parameters.values() if values.ndim}
    if len(shapes) > 1 or any(len(shape) > 1 for shape in shapes):
        told = " and ".join(f"{name} has shape {values.shape}" for name, values in parameters.items())
        raise ValueError(f"material parameters are numbers, or arrays with one entry per tetrahedron; {told}")


class _Lame(NamedTuple):
    mu: Any
    lam: Any


class Isotropic(_Lame):
    """An isotropic energy density ψ(F), given by Young's modulus E [Pa] and Poisson's ratio ν.

    The Lamé parameters [Pa] are μ = E / (2 (1 + ν)) and λ = E ν / ((1 + ν)(1 - 2 ν)) [PBNG eq. 9]; every
    material re-parametrises its energy so that its Hessian at F = I equals linear elasticity with them.
    E and ν are numbers, or arrays with one entry per tetrahedron. A material is a tuple of its parameters,
    so kernels are specialised on its class.
    """

    __slots__ = ()

    barrier: ClassVar[bool] = False
    """True when ψ is infinite or undefined for some F, such as inverted ones."""

    objective: ClassVar[bool] = True
    """Whether turning a body costs nothing: ψ(Q F) = ψ(F)."""

    def __new__(cls, *, young: Any, poisson: Any) -> Self:
        E, nu = floats(young), floats(poisson)
        _refuse_outside("young", young, E)
        if nu.size == 0 or not np.all((nu > -1) & (nu < 0.5)):
            raise ValueError(
                f"poisson must lie between -1 and 0.5, both excluded, got {shown(poisson)}; "
                "for nearly incompressible bodies use for example 0.499"
            )
        _refuse_other_shapes(young=E, poisson=nu)
        return cls._of(E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu)))

    @classmethod
    def from_lame(cls, mu: Any, lam: Any) -> Self:
        """From the Lamé parameters μ > 0 and λ > -2μ/3 [Pa] of linear elasticity."""
        m, l = floats(mu), floats(lam)
        _refuse_outside("mu", mu, m)
        _refuse_other_shapes(mu=m, lam=l)
        if l.size == 0 or not np.all((l <= LARGEST) & (3 * l > -2 * m)):
            raise ValueError(
                f"Lamé parameters must satisfy mu > 0 and lam > -2/3 mu, and lam be at most {LARGEST:g} Pa, "
                f"got mu={shown(mu)}, lam={shown(lam)}"
            )
        return cls._of(m, l)

    @classmethod
    def _of(cls, mu: np.ndarray, lam: np.ndarray) -> Self:
        mu, lam = np.broadcast_arrays(mu, lam)
        return cls._make((float(mu), float(lam)) if mu.ndim == 0 else (mu.copy(), lam.copy()))

    @property
    def young(self) -> Any:
        """Young's modulus E = μ (3λ + 2μ) / (λ + μ) [Pa]."""
        return self.mu * (3 * self.lam + 2 * self.mu) / (self.lam + self.mu)

    @property
    def poisson(self) -> Any:
        """Poisson's ratio ν = λ / (2 (λ + μ))."""
        return self.lam / (2 * (self.lam + self.mu))

    def __eq__(self, other: object) -> bool:
        """Whether energy and parameters are the same: the class counts, which a tuple's equality would
        miss."""
        return type(self) is type(other) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(parameter).tobytes() for parameter in self)))

    def __reduce__(self) -> tuple:
        return type(self)._make, (tuple(self),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(young={self.young!r}, poisson={self.poisson!r})"


@generic
def psi(material, F):
    """Energy density ψ(F) [J/m³]; F is a row-major 9-tuple."""


@generic
def stress(material, F):
    """First Piola-Kirchhoff stress P = ∂ψ/∂F [Pa], a 9-tuple."""


@generic
def stress_coefficients(material, F):
    """P = a F + b cof F + c F Fᵀ F as `Quadratic` or `Cubic` coefficients [Pa]; every isotropic stress is of
    this form."""


@stress.of(Isotropic)
def _stress(material, F):
    return matrix_of(stress_coefficients(material, F), F)


@generic
def traction(material, F, g):
    """P g: with a vertex's shape gradient g [1/m], minus the force density [N/m³] on it."""


@traction.of(Isotropic)
def _traction(material, F, g):
    return times(stress_coefficients(material, F), F, g)


@generic
def stress_differential(material, F, dF):
    """Directional derivative δP = (∂²ψ/∂F∂F) : δF [Pa], a 9-tuple."""


@generic
def bound_coefficients(material, F):
    """(a, b) [Pa] such that a I + b cof F ⊗ cof F is a positive definite approximation of ∂²ψ/∂F∂F [PBNG
    eq. 32]."""


@bound_coefficients.of(Isotropic)
def _lame_coefficients(material, F):
    """2μ and λ, which match every isotropic energy at rest [PBNG section 9]; a negative λ is left out."""
    return 2.0 * material.mu, max(material.lam, 0.0 * material.lam)


@generic
def hessian_bound(material, F, g, h):
    """The block A(g, h), a 9-tuple, of a positive definite approximation of ∂²ψ/∂F∂F [PBNG eq. 32]:
    Aᵢₖ = Σ Cᵢⱼₖₗ gⱼ hₗ for two vertices with shape gradients g and h [1/m]. For one vertex (g = h) it
    bounds the exact Hessian from above wherever F is not inverted."""


@hessian_bound.of(Isotropic)
def _hessian_bound(material, F, g, h):
    """a (g·h) I + b (cof F g)(cof F h)ᵀ."""
    a, b = bound_coefficients(material, F)
    C = cofactor(F)
    return add_diagonal(scaled(b, outer(matvec(C, g), matvec(C, h))), a * dot(g, h))


@generic
def step_limit(material, F, g, step):
    """The fraction, at most 1, of a vertex's step that keeps ψ(F + step gᵀ) finite; for materials with a
    `barrier` only."""


@generic
def constraint_pair(material, F):
    """(C, D, k, C', D', k'): ψ = k/2 C² + k'/2 C'² + constant as two constraints with their derivatives
    D = ∂C/∂F and stiffnesses k [Pa], for materials that can be written so."""
