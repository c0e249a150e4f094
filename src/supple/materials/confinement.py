"""How far a vertex may go without a look at where it leads."""

from supple.kernels import generic
from supple.materials.material import Material


@generic
def confinement(material, F, g):
    """q = 1/r² [1/m²] of a distance r that a vertex may go in any direction without making ψ(F + step gᵀ)
    infinite, so that within it nobody has to ask for the `step_limit`; 0 where ψ is finite everywhere."""


@confinement.of(Material)
def _confinement(material, F, g):
    return 0.0 * F[0] + 1e30
