"""ζ, how much of XPBD's update B-PXPBD keeps [PXPBD eq. 21], where nobody has chosen it.

What an element resists across the gradients of its constraints, with a stiffness k, the fixed-point part of
an update treats explicitly: a visit changes the element's displacement by 1 - ζ of what it lacks, and what it
lacks depends on that displacement by about 1 + q, q = V k tr Γ. Visits one after the other, each of its own
element, come to an end as long as (1 - ζ)(1 + q) stays below 2 in every element, whatever its neighbours are
like. Since k depends on how a material is strained, and on how much a muscle is activated, it is found anew
in every visit. ½ is the paper's ζ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from supple.kernels import chosen_by_type, generic, physics
from supple.materials import Material, bound_coefficients, shear_modulus, stiffest
from supple.solvers.elements.projection import Projection, require

SAFE = 2.0
"""(1 - ζ) q at most. On a clamped falling block the bound lies between 2 and 4, for tr Γ is more than the
largest eigenvalue of Γ."""


@generic
def stiffness_across(projection, material, F):
    """About the largest stiffness k [Pa] of an element across the gradients of its constraints."""


def stiffness_of_pair(projection: Any, material: Any, F: Any) -> Any:
    """2μ: what is stiff about a material with two constraints is along their gradients."""
    return 2.0 * shear_modulus(material)


def stiffness_of_root(projection: Any, material: Any, F: Any) -> Any:
    """One constraint leaves all but one direction."""
    return stiffest(material, F)


def zeta_of(projection: Any, material: Any, F: Any, reach: Any) -> Any:
    """ζ in a visit of an element: of the options of its projection the first, (1,), or 1 - min(½, 2/q) where
    that is (). reach: V tr Γ [1/Pa]."""


@chosen_by_type(zeta_of)
def _zeta_of(projection, material, F, reach):
    if isinstance(projection[Projection._fields.index("options")][0], types.BaseTuple):
        return lambda projection, material, F, reach: _safe(reach, stiffness_across(projection, material, F))
    return lambda projection, material, F, reach: projection.options[0][0]


@physics
def _safe(reach, stiffness):
    zero = 0.0 * reach
    return 1.0 - min(zero + 0.5, SAFE / max(reach * stiffness, zero + 1e-30))


def zeta_option(method: Any, material: Any, root: bool) -> Any:
    """What options of projections have of ζ: (1,) where it was chosen, else ()."""
    require(method.name, material, shear_modulus)
    if method.zeta is not None:
        return np.array([method.zeta], float)
    if root and stiffest.owner(type(material)) is Material:
        require(method.name, material, bound_coefficients)
    return ()
