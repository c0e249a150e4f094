"""Safe step radius of a vertex, within which ψ stays finite."""

from supple.kernels import generic
from supple.materials.material import Material


@generic
def confinement(material, F, g):
    """q = 1/r² [1/m²] of a radius r within which any vertex step keeps ψ(F + step gᵀ) finite.

    Steps within r need no `step_limit`. It is used for materials with a `barrier`; without an implementation,
    q is 1e30, so that every step needs `step_limit`.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Shape gradient of the vertex [1/m], (3,).

    Returns:
        q [1/m²].
    """


@confinement.of(Material)
def _confinement(material, F, g):
    return 0.0 * F[0] + 1e30
