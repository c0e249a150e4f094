"""Hencky's energy of logarithmic strains [Hencky 1928]."""

import math
from typing import Any

from supple.materials.isotropic import Isotropic


class Hencky(Isotropic):
    """ψ = μ Σ (log λᵢ)² + λ/2 (log J)², in principal stretches λᵢ; infinite at J = 0.

    Parameters are uniform, or arrays with one entry per element.

    Args:
        young: Young's modulus E [Pa], positive, also called `E`.
        poisson: Poisson's ratio ν, greater than -1 and less than 0.5, also called `nu`.
        mu, lam: Lamé parameters μ > 0 and λ > -2/3 μ [Pa], in place of `young` and `poisson`.
        shear_modulus, bulk_modulus: Moduli μ and κ [Pa], both positive, in place of `young` and `poisson`.
    """

    __slots__ = ()

    def psi(self, stretches: Any) -> Any:
        x, y, z = (math.log(stretch) for stretch in stretches)
        trace = x + y + z
        return self.mu * (x * x + y * y + z * z) + 0.5 * self.lam * trace * trace
