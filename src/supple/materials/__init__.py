"""Energy densities of the deformation gradient F, one file each, used by every solver and target."""

from supple.materials.corotated import Corotated
from supple.materials.linear_elastic import LinearElastic
from supple.materials.log_neo_hookean import LogNeoHookean
from supple.materials.material import (
    Isotropic,
    bound_coefficients,
    constraint_pair,
    hessian_bound,
    psi,
    step_limit,
    stress,
    stress_coefficients,
    stress_differential,
    traction,
)
from supple.materials.neo_hookean import NeoHookean
from supple.materials.stable_neo_hookean import StableNeoHookean
from supple.materials.stvk import StVK

MATERIALS: dict[str, type[Isotropic]] = {
    "corotated": Corotated,
    "neo_hookean": NeoHookean,
    "stable_neo_hookean": StableNeoHookean,
    "log_neo_hookean": LogNeoHookean,
    "stvk": StVK,
    "linear_elastic": LinearElastic,
}
"""Every material by the name it has in scene files and on the command line."""

__all__ = [
    "MATERIALS",
    "Corotated",
    "Isotropic",
    "LinearElastic",
    "LogNeoHookean",
    "NeoHookean",
    "StVK",
    "StableNeoHookean",
    "bound_coefficients",
    "constraint_pair",
    "hessian_bound",
    "psi",
    "step_limit",
    "stress",
    "stress_coefficients",
    "stress_differential",
    "traction",
]
