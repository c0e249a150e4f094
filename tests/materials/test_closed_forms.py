"""Stresses of every material in closed form: uniaxial, biaxial, sheared and volumetric, in both precisions.

The tested stresses are those of kernels on packs; the closed forms are the textbooks' stresses in principal
stretches, independent of supple.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from material_targets import stresses_by_packs
from problems import POISSON, YOUNG, material

from supple.materials import MATERIALS, stress

MU, LAM = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))


def isochoric(slopes):
    """Principal P of ψ(Ī₁, Ī₂) + κ/2 (J - 1)², from ∂ψ/∂Ī₁ and ∂ψ/∂Ī₂:
    λᵢ Pᵢ = 2 a (λ̄ᵢ² - Ī₁/3) - 2 b (λ̄ᵢ⁻² - Ī₂/3) + κ J (J - 1)."""

    def principal(kind, s):
        J = np.prod(s)
        bar = s / J ** (1 / 3)
        I1, I2 = np.sum(bar**2), np.sum(bar**-2.0)
        a, b = slopes(kind, I1, I2)
        return (
            2 * a * (bar**2 - I1 / 3) - 2 * b * (bar**-2.0 - I2 / 3) + kind.bulk_modulus * J * (J - 1)
        ) / s

    return principal


def arruda_boyce(kind, I1, I2):
    series = (1 / 2, 1 / 20, 11 / 1050, 19 / 7000, 519 / 673750)
    return kind.shear_modulus * sum(
        (k + 1) * c * I1**k / kind.locking ** (2 * k) for k, c in enumerate(series)
    ), 0


def ogden(kind, s):
    J = np.prod(s)
    bar = s / J ** (1 / 3)
    total = np.full(3, kind.bulk_modulus * J * (J - 1))
    for mu, alpha in ((kind.mu1, kind.alpha1), (kind.mu2, kind.alpha2), (kind.mu3, kind.alpha3)):
        total += mu * (bar**alpha - np.mean(bar**alpha))
    return total / s


def corotated(kind, s):
    return 2 * MU * (s - 1) + LAM * (np.prod(s) - 1) * np.prod(s) / s


def fibers_along_x(kind, s):
    """Muscle pulls along x: σ/λₒ (fₚ' + α fₐ')."""
    x = s[0] / kind.optimal
    passive = 0.05 * (math.exp(6.6 * (x - 1)) - 1) if x > 1 else 0
    active = 9 * (x - 0.4) ** 2 if x < 0.6 else 1 - 4 * (x - 1) ** 2 if x < 1.4 else 9 * (x - 1.6) ** 2
    active = 0 if not 0.4 < x < 1.6 else active
    stress = kind.strength / kind.optimal * (passive + kind.activation * active)
    return corotated(kind, s) + np.array([stress, 0, 0])


def orthotropic(kind, s):
    E, nu = (kind.young1, kind.young2, kind.young3), (kind.poisson12, kind.poisson13, kind.poisson23)
    S = np.diag(1 / np.array(E))
    for (i, j), ratio in zip(((0, 1), (0, 2), (1, 2)), nu, strict=True):
        S[i, j] = S[j, i] = -ratio / E[i]
    return s * np.linalg.solve(S, 0.5 * (s**2 - 1))


def transverse(kind, s):
    Ea, E, na, n = kind.young_along, kind.young_across, kind.poisson_along, kind.poisson_across
    S = np.array([[1 / Ea, -na / Ea, -na / Ea], [-na / Ea, 1 / E, -n / E], [-na / Ea, -n / E, 1 / E]])
    return s * np.linalg.solve(S, 0.5 * (s**2 - 1))


def holzapfel(kind, s):
    """Fibers in the plane of x and y, with direction cosines squared c and 1 - c."""
    J = np.prod(s)
    squares = (s / J ** (1 / 3)) ** 2
    weights = np.array([0.64, 0.36, 0.0])
    E = max(weights @ squares - 1, 0)
    stress = 2 * 2 * kind.fiber_modulus * E * math.exp(kind.fiber_exponent * E * E)  # two families
    deviator = kind.shear_modulus * (squares - squares.mean()) + stress * (
        weights * squares - weights @ squares / 3
    )
    return (deviator + kind.bulk_modulus * J * (J - 1)) / s


def yielding(kind, s):
    """Hencky stress whose deviatoric strain is returned to the yield surface."""
    strain = np.log(s)
    deviator = strain - strain.mean()
    mises = np.sqrt(6) * MU * np.linalg.norm(deviator)
    flow = max(0.0, mises - kind.yield_stress) / (3 * MU + kind.hardening)
    left = 1 - 3 * MU * flow / mises if flow > 0 else 1.0
    return (2 * MU * left * deviator + (2 * MU + 3 * LAM) * strain.mean()) / s


PRINCIPAL = {
    "corotated": corotated,
    "neo_hookean": lambda kind, s: MU * s + ((LAM + MU) * (np.prod(s) - 1) - MU) * np.prod(s) / s,
    "stable_neo_hookean": lambda kind, s: (
        4 / 3 * MU * s * (1 - 1 / (1 + s @ s)) + ((LAM + 5 / 6 * MU) * (np.prod(s) - 1) - MU) * np.prod(s) / s
    ),
    "log_neo_hookean": lambda kind, s: MU * s + (LAM * math.log(np.prod(s)) - MU) / s,
    "stvk": lambda kind, s: s * (MU * (s**2 - 1) + 0.5 * LAM * np.sum(s**2 - 1)),
    "linear_elastic": lambda kind, s: 2 * MU * (s - 1) + LAM * np.sum(s - 1),
    "mooney_rivlin": isochoric(lambda kind, I1, I2: (kind.c10, kind.c01)),
    "yeoh": isochoric(
        lambda kind, I1, I2: (kind.c10 + 2 * kind.c20 * (I1 - 3) + 3 * kind.c30 * (I1 - 3) ** 2, 0)
    ),
    "gent": isochoric(
        lambda kind, I1, I2: (0.5 * kind.shear_modulus * kind.limit / (kind.limit - I1 + 3), 0)
    ),
    "arruda_boyce": isochoric(arruda_boyce),
    "fung": isochoric(
        lambda kind, I1, I2: (0.5 * kind.shear_modulus * math.exp(kind.stiffening * (I1 - 3)), 0)
    ),
    "ogden": ogden,
    "hencky": lambda kind, s: (2 * MU * np.log(s) + LAM * np.sum(np.log(s))) / s,
    "plastic_hencky": yielding,
    "transverse_stvk": transverse,
    "orthotropic_stvk": orthotropic,
    "holzapfel_gasser_ogden": holzapfel,
    "muscle": fibers_along_x,
}

STRETCHES = {
    "uniaxial": [(x, y, y) for x, y in ((0.7, 1.15), (1.3, 0.9), (1.8, 0.8))],
    "biaxial": [(x, x, z) for x, z in ((0.8, 1.4), (1.2, 0.75), (1.5, 0.6))],
    "volumetric": [(x, x, x) for x in (0.7, 0.95, 1.2)],
    "none equal": [(1.4, 0.8, 1.1), (0.75, 1.2, 0.9)],
}

WITHOUT_CLOSED_FORM = [name for name in MATERIALS if name not in PRINCIPAL]


def kind_of(name):
    return material(name, **({"activation": 0.6} if name == "muscle" else {}))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("name", PRINCIPAL)
def test_principal_stresses(name, precision):
    kind = kind_of(name)
    states = [s for states in STRETCHES.values() for s in states]
    F = np.array([np.diag(s) for s in states]).reshape(-1, 9)
    stress = stresses_by_packs(kind, F, precision)
    eps = 1e-5 if precision == np.float32 else 1e-11
    for s, P in zip(states, stress, strict=True):
        expected = PRINCIPAL[name](kind, np.array(s))
        size = np.abs(expected).max() + YOUNG
        np.testing.assert_allclose(P.reshape(3, 3), np.diag(expected), atol=20 * eps * size)


@pytest.mark.parametrize("name", [n for n in PRINCIPAL if MATERIALS[n].isotropic and MATERIALS[n].objective])
def test_simple_shear_equals_its_principal_stresses(name):
    """F = I + γ e₁ e₂ᵀ has the stretches λ, 1/λ, 1 with λ - 1/λ = γ; Rivlin's relation: σ₁₁ - σ₂₂ = γ σ₁₂."""
    kind, shear = kind_of(name), 0.6
    F = np.eye(3)
    F[0, 1] = shear
    P = stresses_by_packs(kind, F.reshape(1, 9), np.float64)[0].reshape(3, 3)
    U, s, Vt = np.linalg.svd(F)
    expected = U @ np.diag(PRINCIPAL[name](kind, s)) @ Vt
    np.testing.assert_allclose(P, expected, atol=1e-9 * YOUNG)
    cauchy = P @ F.T
    assert cauchy[0, 0] - cauchy[1, 1] == pytest.approx(shear * cauchy[0, 1], rel=1e-9)


def test_every_material_has_a_closed_form():
    assert set(WITHOUT_CLOSED_FORM) <= {"plastic_stvk", "woven_stvk"}, "write it down in PRINCIPAL"


@pytest.mark.parametrize(
    ("x", "passive", "active"),
    [
        (0.3, 0, 0),
        (0.5, 0, 0.09),
        (0.8, 0, 0.84),
        (1.0, 0, 1),
        (1.2, 0.137, 0.84),
        (1.5, 1.3055, 0.09),
        (1.7, 5.03, 0),
    ],
)
def test_muscle_curves_equal_those_of_blemker(x, passive, active):
    """Slopes of PXPBD eq. 7 and 8, whose constants have four digits: 0.0076·6.6 = 0.0502, 1.33·3 = 3.99."""
    base = material("muscle", strength=1.0, young=1e-6)
    F = np.diag([x, 1, 1]).reshape(1, 9)

    def fiber_stress(activation):
        kind = material("muscle", strength=1.0, young=1e-6, activation=activation)
        return stresses_by_packs(kind, F, np.float64)[0][0]

    published = 0.0076 * 6.6 * math.exp(6.6 * (x - 1)) - 0.05 if x > 1 else 0
    assert base.activation == 0
    assert fiber_stress(0.0) == pytest.approx(published, rel=0.01, abs=1e-3)
    assert fiber_stress(0.0) == pytest.approx(passive, rel=0.02, abs=1e-3)
    assert fiber_stress(1.0) - fiber_stress(0.0) == pytest.approx(active, abs=1e-6)
    assert fiber_stress(0.5) - fiber_stress(0.0) == pytest.approx(0.5 * active, abs=1e-6)


def test_stresses_equal_those_of_felupe():
    """Four materials under arbitrary F; see benchmarks/felupe_stresses.py."""
    output = json.loads((Path(__file__).parent / "felupe.json").read_text(encoding="utf-8"))
    assert len(output["materials"]) == 4
    for name, row in output["materials"].items():
        kind = MATERIALS[name](**row["parameters"])
        for F, P in zip(output["F"], row["P"], strict=True):
            expected = np.array(P)
            ours = np.reshape(stress(kind, tuple(np.ravel(F).tolist())), (3, 3))
            np.testing.assert_allclose(ours, expected, atol=1e-6 * np.abs(expected).max(), err_msg=name)
