"""Hyperelastic materials: energy densities ψ(F) of the deformation gradient F, one module per law."""

from supple.materials.arruda_boyce import ArrudaBoyce
from supple.materials.corotated import Corotated
from supple.materials.fung import Fung
from supple.materials.gent import Gent
from supple.materials.hencky import Hencky
from supple.materials.holzapfel import HolzapfelGasserOgden
from supple.materials.isotropic import Isotropic, stress_coefficients
from supple.materials.linear_elastic import LinearElastic
from supple.materials.log_neo_hookean import LogNeoHookean
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
from supple.materials.material import by_element as by_element
from supple.materials.material import evolving as evolving
from supple.materials.material import examples_of as examples_of
from supple.materials.material import stiffest as stiffest
from supple.materials.material_checks import findings as findings
from supple.materials.mooney_rivlin import MooneyRivlin
from supple.materials.muscle import Muscle
from supple.materials.neo_hookean import NeoHookean
from supple.materials.ogden import Ogden
from supple.materials.orthotropic_stvk import OrthotropicStVK
from supple.materials.parameters import Direction, Pa, Parameter
from supple.materials.parameters import is_per_element as is_per_element
from supple.materials.parameters import table_of as table_of
from supple.materials.plane_stress import (
    PlaneStressCorotated,
    PlaneStressNeoHookean,
    PlaneStressStVK,
)
from supple.materials.plastic_hencky import PlasticHencky
from supple.materials.plastic_stvk import PlasticStVK
from supple.materials.preset_library import Preset, preset, presets
from supple.materials.rest_deformation import InelasticMaterial as InelasticMaterial
from supple.materials.rest_deformation import Prestrained, prestrained
from supple.materials.stable_neo_hookean import StableNeoHookean
from supple.materials.stvk import StVK
from supple.materials.transverse_stvk import TransverseStVK
from supple.materials.viscous import ViscousBranch as ViscousBranch
from supple.materials.woven_stvk import WovenStVK
from supple.materials.yeoh import Yeoh
from supple.support.arguments import format_value

MATERIALS: dict[str, type[Material]] = {
    "corotated": Corotated,
    "neo_hookean": NeoHookean,
    "stable_neo_hookean": StableNeoHookean,
    "log_neo_hookean": LogNeoHookean,
    "stvk": StVK,
    "linear_elastic": LinearElastic,
    "mooney_rivlin": MooneyRivlin,
    "yeoh": Yeoh,
    "gent": Gent,
    "arruda_boyce": ArrudaBoyce,
    "fung": Fung,
    "ogden": Ogden,
    "hencky": Hencky,
    "transverse_stvk": TransverseStVK,
    "orthotropic_stvk": OrthotropicStVK,
    "holzapfel_gasser_ogden": HolzapfelGasserOgden,
    "muscle": Muscle,
    "plastic_stvk": PlasticStVK,
    "plastic_hencky": PlasticHencky,
}
"""Solid materials by their names in scene files and on the command line."""

MEMBRANES: dict[str, type[Material]] = {
    "plane_stress_stvk": PlaneStressStVK,
    "plane_stress_neo_hookean": PlaneStressNeoHookean,
    "plane_stress_corotated": PlaneStressCorotated,
    "woven_stvk": WovenStVK,
}
"""Materials for sheets only, by the same kind of name."""


def membrane_materials() -> dict[str, type[Material]]:
    """Return the materials suitable for sheets by name: membrane materials and compatible solid materials."""
    return MEMBRANES | {name: kind for name, kind in MATERIALS.items() if is_membrane_material(kind)}


def is_membrane_material(kind: type[Material]) -> bool:
    """True if sheets can use this material class.

    It must be rotation-invariant, and isotropic or with scalar parameters and in-plane directions, so that
    its energy is the same on both sides of the sheet.
    """
    plain = all(p.kind in ("scalar", "direction") for p in kind.stored)
    return kind.objective and (kind.isotropic or plain)


def register_material(name: str, kind: type[Material]) -> None:
    """Register a user-defined material class under a name for scene files, `list` and the live page.

    Args:
        name: A plain identifier such as "my_rubber".
        kind: Subclass of `Material`.

    Raises:
        TypeError: `kind` is not a subclass of `Material`.
        ValueError: The name is not an identifier, or belongs to another material.
    """
    if not (isinstance(kind, type) and issubclass(kind, Material)):
        raise TypeError(
            f"a material must be a subclass of supple.materials.Material, got {format_value(kind)}"
        )
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            f"a material's name must be a plain word such as 'corotated', got {format_value(name)}"
        )
    known = MATERIALS | MEMBRANES
    if known.get(name, kind) is not kind:
        raise ValueError(
            f"the name {name!r} belongs to the material {known[name].__name__}; choose another name"
        )
    (MEMBRANES if kind.thin else MATERIALS)[name] = kind


def material_name(material: Material) -> str:
    """Return the registered name of a material, or its class name if it is not registered."""
    kind = type(material)
    return next((name for name, known in (MATERIALS | MEMBRANES).items() if known is kind), kind.__name__)


__all__ = [
    "MATERIALS",
    "MEMBRANES",
    "ArrudaBoyce",
    "Corotated",
    "Direction",
    "Fung",
    "Gent",
    "Hencky",
    "HolzapfelGasserOgden",
    "Isotropic",
    "LinearElastic",
    "LogNeoHookean",
    "Material",
    "MooneyRivlin",
    "Muscle",
    "NeoHookean",
    "Ogden",
    "OrthotropicStVK",
    "Pa",
    "Parameter",
    "PlaneStressCorotated",
    "PlaneStressNeoHookean",
    "PlaneStressStVK",
    "PlasticHencky",
    "PlasticStVK",
    "Preset",
    "Prestrained",
    "StVK",
    "StableNeoHookean",
    "TransverseStVK",
    "WovenStVK",
    "Yeoh",
    "bound_coefficients",
    "constraint_pair",
    "hessian_bound",
    "inverse_square_safe_radius",
    "preset",
    "presets",
    "prestrained",
    "psi",
    "register_material",
    "shear_modulus",
    "step_limit",
    "stress",
    "stress_coefficients",
    "stress_differential",
    "traction",
    "vertex_response",
]
