"""Viscosity and Rayleigh damping of solids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.materials import Isotropic, ViscousBranch, is_per_element, stress_differential
from supple.scene.errors import SceneError
from supple.scene.value_checks import format_value, number
from supple.support.keywords import suggest_keywords


class Viscosity(ABC):
    """Base class of viscosity and damping models, for `Scene.add_solid(viscosity=)`.

    Each is a potential of every time step, which residuals and error estimates include.
    """

    drag: float = 0.0
    """α [1/s] of the force -α m v on every vertex."""

    @abstractmethod
    def branch(self, material: Any, name: str) -> ViscousBranch | None:
        """Build the viscous branch of a body, None without viscous stress.

        Args:
            material: Material of the body.
            name: Name of the body in messages.

        Returns:
            Viscosities [Pa s] and relaxation time [s] of the branch, or None.
        """


@suggest_keywords
@dataclass(frozen=True)
class KelvinVoigt(Viscosity):
    """Dashpot in parallel with the material: S = 2η (Ė - tr(Ė)/3 I) + ζ tr(Ė) I, E Green's strain.

    Args:
        shear_viscosity: Shear viscosity η [Pa s].
        bulk_viscosity: Bulk viscosity ζ [Pa s].

    Raises:
        SceneError: A viscosity is negative, or both are 0.
    """

    shear_viscosity: float
    bulk_viscosity: float = 0.0

    def __post_init__(self) -> None:
        number(self.shear_viscosity, "shear_viscosity [Pa s] of KelvinVoigt", at_least=0)
        number(self.bulk_viscosity, "bulk_viscosity [Pa s] of KelvinVoigt", at_least=0)
        if not self.shear_viscosity and not self.bulk_viscosity:
            raise SceneError("KelvinVoigt needs a shear or a bulk viscosity [Pa s] that is not 0.")

    def branch(self, material: Any, name: str) -> ViscousBranch:
        return ViscousBranch(
            shear_viscosity=self.shear_viscosity,
            second_viscosity=self.bulk_viscosity - 2 / 3 * self.shear_viscosity,
        )


@suggest_keywords
@dataclass(frozen=True)
class Maxwell(Viscosity):
    """Spring and dashpot in series, in parallel with the material; stress relaxes as e^(-t/τ).

    Args:
        young: Young's modulus E of the spring [Pa].
        poisson: Poisson's ratio ν of the spring.
        time: Relaxation time τ [s].

    Raises:
        SceneError: A modulus, Poisson's ratio or the relaxation time is out of range.
    """

    young: float
    poisson: float
    time: float

    def __post_init__(self) -> None:
        number(self.young, "young of a Maxwell branch [Pa]", above=0)
        if not -1 < number(self.poisson, "poisson of a Maxwell branch") < 0.5:
            raise SceneError(
                f"poisson of a Maxwell branch must lie between -1 and 0.5, got {format_value(self.poisson)}."
            )
        number(self.time, "relaxation time [s] of a Maxwell branch", above=0)

    def branch(self, material: Any, name: str) -> ViscousBranch:
        moduli = Isotropic.store(young=self.young, poisson=self.poisson)
        return ViscousBranch(
            shear_viscosity=self.time * moduli["mu"],
            second_viscosity=self.time * moduli["lam"],
            time=self.time,
        )


@suggest_keywords
@dataclass(frozen=True)
class Rayleigh(Viscosity):
    """Damping proportional to rest stiffness and mass.

    An oscillation of ω [rad/s] has the damping ratio ζ = β ω/2 + α/(2 ω). The mass part also slows rigid
    motions, like a surrounding fluid.

    Args:
        stiffness_factor: β [s].
        mass_factor: α [1/s].

    Raises:
        SceneError: A factor is negative, or both are 0.
    """

    stiffness_factor: float = 0.0
    mass_factor: float = 0.0

    def __post_init__(self) -> None:
        number(self.stiffness_factor, "stiffness_factor [s], β of Rayleigh's damping,", at_least=0)
        number(self.mass_factor, "mass_factor [1/s], α of Rayleigh's damping,", at_least=0)
        if not self.stiffness_factor and not self.mass_factor:
            raise SceneError("Rayleigh needs a stiffness_factor [s] or a mass_factor [1/s] that is not 0.")

    @property
    def drag(self) -> float:  # type: ignore[override]
        """Mass factor α [1/s] of the force -α m v on every vertex."""
        return self.mass_factor

    def branch(self, material: Any, name: str) -> ViscousBranch | None:
        if not self.stiffness_factor:
            return None
        mu, lam = moduli_at_rest(material, name)
        return ViscousBranch(
            shear_viscosity=self.stiffness_factor * mu, second_viscosity=self.stiffness_factor * lam
        )


def moduli_at_rest(material: Any, name: str) -> tuple[Any, Any]:
    """Return Lamé's parameters [Pa] of a material at rest, uniform or per element.

    For anisotropic materials these are means over the directions.
    """
    if hasattr(material, "mu") and hasattr(material, "lam"):
        return material.mu, material.lam
    if any(map(is_per_element, material)):
        raise SceneError(
            f"Rayleigh's damping of {name!r} needs the moduli of its material at rest, which are not "
            f"available for {type(material).__name__} with parameters by element; use "
            "KelvinVoigt(...)."
        )
    rest, units = tuple(np.eye(3).ravel().tolist()), np.eye(9)
    change = np.array([stress_differential(material, rest, tuple(unit.tolist())) for unit in units])
    along = np.array([[change[4 * i, 4 * j] for j in range(3)] for i in range(3)])
    lam = (along.sum() - np.trace(along)) / 6
    return max((np.trace(along) / 3 - lam) / 2, 1e-30), lam


def check_viscosity(given: Any) -> tuple[Viscosity, ...]:
    """Return viscosities as a tuple."""
    viscosities = [given] if isinstance(given, Viscosity) else given
    if not isinstance(viscosities, Sequence) or not all(isinstance(each, Viscosity) for each in viscosities):
        raise SceneError(
            "viscosity must be for example supple.KelvinVoigt(shear_viscosity=10.0), or a list of "
            f"viscosities; got {format_value(given)}."
        )
    return tuple(viscosities)
