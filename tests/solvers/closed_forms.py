"""Principal stresses of each material, derived here from its energy as references."""

import numpy as np
from scipy.optimize import brentq


def _corotated(s, mu, lam):
    J = np.prod(s)
    return 2 * mu * (s - 1) + lam * (J - 1) * J / s


def _neo_hookean(s, mu, lam):
    J = np.prod(s)
    return mu * s + ((lam + mu) * (J - 1) - mu) * J / s


def _stable_neo_hookean(s, mu, lam):
    J = np.prod(s)
    m, l = 4 / 3 * mu, lam + 5 / 6 * mu
    return m * (1 - 1 / (1 + s @ s)) * s + l * (J - 1 - 0.75 * m / l) * J / s


def _log_neo_hookean(s, mu, lam):
    return mu * (s - 1 / s) + lam * np.log(np.prod(s)) / s


def _stvk(s, mu, lam):
    E = (s**2 - 1) / 2
    return s * (2 * mu * E + lam * E.sum())


def _linear_elastic(s, mu, lam):
    return 2 * mu * (s - 1) + lam * (s - 1).sum()


PRINCIPAL_STRESS = {
    "corotated": _corotated,
    "neo_hookean": _neo_hookean,
    "stable_neo_hookean": _stable_neo_hookean,
    "log_neo_hookean": _log_neo_hookean,
    "stvk": _stvk,
    "linear_elastic": _linear_elastic,
}
"""P_i(σ₁, σ₂, σ₃; μ, λ) [Pa]."""


def uniaxial(name, stretch, mu, lam):
    """(lateral stretch, nominal stress [Pa]) of a bar stretched along its axis with free sides."""
    law = PRINCIPAL_STRESS[name]

    def side(lateral):
        return law(np.array([stretch, lateral, lateral]), mu, lam)[1]

    lateral = brentq(side, 0.5, 1.5, xtol=1e-15, rtol=1e-14)
    return lateral, law(np.array([stretch, lateral, lateral]), mu, lam)[0]
