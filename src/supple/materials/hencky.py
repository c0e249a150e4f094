"""Hencky's energy of logarithmic strains [Hencky 1928]."""

import math
from typing import Any

from supple.materials.isotropic import Isotropic


class Hencky(Isotropic):
    """ψ = μ Σ (log λᵢ)² + λ/2 (log J)², in principal stretches λᵢ; infinite at J = 0."""

    __slots__ = ()

    def psi(self, stretches: Any) -> Any:
        x, y, z = (math.log(stretch) for stretch in stretches)
        trace = x + y + z
        return self.mu * (x * x + y * y + z * z) + 0.5 * self.lam * trace * trace
