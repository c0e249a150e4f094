"""Default blend factor ζ of B-PXPBD, the fraction of XPBD's update that is kept [PXPBD eq. 21].

The fixed-point part of an update is explicit in the stiffness κ of an element across its constraint
gradients. A visit changes the displacement of the element by the fraction 1 - ζ of its error, and that error
depends on the displacement by a factor of about 1 + q, q = κ V tr Γ. Sequential visits, each to its own
element, converge if (1 - ζ)(1 + q) stays below 2 in every element, for any neighbors. κ depends on the strain
and on the activation of a muscle, so every visit evaluates it. The paper's ζ is ½.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from supple.kernels import device_function, generic, overload_by_type
from supple.materials import Material, bound_coefficients, shear_modulus, stiffest
from supple.solvers.elementwise.projection import Projection, require

MAX_EXPLICIT_STIFFNESS = 2.0
"""Upper bound of (1 - ζ) q.

On a clamped falling block, the limit of stability lies between 2 and 4, because tr Γ exceeds the largest
eigenvalue of Γ.
"""


@generic
def stiffness_across(projection, material, F):
    """Approximate largest stiffness κ [Pa] of an element across the gradients of its constraints."""


def stiffness_of_pair(projection: Any, material: Any, F: Any) -> Any:
    """2μ, because the stiff directions of a two-constraint material lie along the gradients."""
    return 2.0 * shear_modulus(material)


def stiffness_of_root(projection: Any, material: Any, F: Any) -> Any:
    """Largest stiffness of the material; a single constraint leaves all directions but one."""
    return stiffest(material, F)


def zeta_of(projection: Any, material: Any, F: Any, element_compliance: Any) -> Any:
    """Blend factor ζ for a visit of an element.

    Args:
        projection: Projection, whose first option is ζ as (1,), or () for 1 - min(½, 2/q).
        material: Material of the elements.
        F: Deformation gradient.
        element_compliance: V tr Γ [1/Pa], the change of F of an element per unit stress.
    """


@overload_by_type(zeta_of)
def _zeta_of(projection, material, F, element_compliance):
    if isinstance(projection[Projection._fields.index("options")][0], types.BaseTuple):
        return lambda projection, material, F, element_compliance: _stable_zeta(
            element_compliance, stiffness_across(projection, material, F)
        )
    return lambda projection, material, F, element_compliance: projection.options[0][0]


@device_function
def _stable_zeta(element_compliance, stiffness):
    zero = 0.0 * element_compliance
    return 1.0 - min(zero + 0.5, MAX_EXPLICIT_STIFFNESS / max(element_compliance * stiffness, zero + 1e-30))


def zeta_option(method: Any, material: Any, root: bool) -> Any:
    """Return ζ as projection option: (1,) if the user set it, otherwise ()."""
    require(method.name, material, shear_modulus)
    if method.zeta is not None:
        return np.array([method.zeta], float)
    if root and stiffest.owner(type(material)) is Material:
        require(method.name, material, bound_coefficients)
    return ()
