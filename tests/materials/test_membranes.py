"""Materials of sheets: the properties of all materials, plane stress, and weaves."""

import numpy as np
import pytest
from problems import (
    BIAS_WEAVE,
    POISSON,
    YOUNG,
    deformations,
    flat,
    material,
    matrix,
    rotations,
    sheet,
    stretches,
)
from scipy.optimize import minimize_scalar
from test_materials import P, block, bound, tangent

import supple
from supple.materials import (
    MATERIALS,
    MEMBRANES,
    hessian_bound,
    membrane_materials,
    psi,
    stiffest,
    stress_differential,
)
from supple.terms import TetElasticity, TriangleElasticity

MEMBRANE_MATERIALS = {name: material(name) for name in MEMBRANES} | {"bias": BIAS_WEAVE}
EACH_MATERIAL = pytest.mark.parametrize("name", MEMBRANE_MATERIALS)
ISOTROPIC = {"plane_stress_stvk": "stvk", "plane_stress_neo_hookean": "neo_hookean"}


def sheets(count=8, seed=0):
    """Gradients T + n n₀ᵀ of arbitrarily rotated sheets in the plane z = 0, with stretches from 0.6 to
    1.8."""
    random = np.random.default_rng(seed)
    F = np.zeros((count, 3, 3))
    F[:, 2, 2] = 1
    angle = random.uniform(0, 2 * np.pi, (2, count))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 3, 0, 1)
    F[:, :2, :2] = turn[0] @ (random.uniform(0.6, 1.8, (count, 2, 1)) * turn[1])
    return rotations(count, seed + 1) @ F


def project_to_plane(count=5):
    angle = np.linspace(0.1, 3, count)
    return np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)


@EACH_MATERIAL
def test_derivatives(name):
    kind, h = MEMBRANE_MATERIALS[name], 1e-5
    size = np.abs(tangent(kind, np.eye(3))).max()
    for F, D in zip([*sheets(), *deformations(4)], [*rotations(12, seed=7)], strict=True):
        slope = (psi(kind, flat(F + h * D)) - psi(kind, flat(F - h * D))) / (2 * h)
        assert np.sum(P(kind, F) * D) == pytest.approx(slope, rel=1e-6, abs=1e-6 * size)
        slopes = (P(kind, F + h * D) - P(kind, F - h * D)) / (2 * h)
        exact = matrix(stress_differential(kind, flat(F), flat(D)))
        np.testing.assert_allclose(exact, slopes, rtol=1e-6, atol=1e-6 * size)


@EACH_MATERIAL
def test_rest_has_no_energy_and_rotation_costs_none(name):
    kind = MEMBRANE_MATERIALS[name]
    size = np.abs(tangent(kind, np.eye(3))).max()
    np.testing.assert_allclose(P(kind, np.eye(3)), 0, atol=1e-12 * size)
    for F, Q in zip(sheets(), rotations(8, seed=5), strict=True):
        assert psi(kind, flat(Q)) == pytest.approx(0, abs=1e-12 * size)
        assert psi(kind, flat(F)) > 0
        assert psi(kind, flat(Q @ F)) == pytest.approx(psi(kind, flat(F)), rel=1e-9)


@EACH_MATERIAL
def test_stiffness_bound_is_close_to_the_largest_eigenvalue(name):
    for F in (np.eye(3), *sheets(seed=3)):
        largest = np.linalg.eigvalsh(tangent(MEMBRANE_MATERIALS[name], F))[-1]
        assert 0.7 * largest < stiffest(MEMBRANE_MATERIALS[name], flat(F)) < 5 * largest


@EACH_MATERIAL
def test_bounds_are_positive_definite_and_above_the_exact_block(name):
    kind = MEMBRANE_MATERIALS[name]
    for F in sheets(seed=3):
        exact, above = tangent(kind, F), bound(kind, F)
        np.testing.assert_allclose(above, above.T, atol=1e-9 * np.abs(above).max())
        assert np.linalg.eigvalsh(above)[0] > -1e-9 * np.abs(above).max()
        for g in project_to_plane():
            margin = np.linalg.eigvalsh(block(above, g, g) - block(exact, g, g))[0]
            assert margin > -1e-9 * np.abs(exact).max()


@EACH_MATERIAL
@pytest.mark.parametrize("values", [(1, 0, 1), (0, 0, 1), (3, 0, 1)], ids=str)
def test_collapsed_sheets_have_finite_energies_and_positive_bounds(name, values):
    kind = MEMBRANE_MATERIALS[name]
    for F in stretches(values, 4):
        assert np.isfinite([psi(kind, flat(F)), *P(kind, F).ravel(), *tangent(kind, F).ravel()]).all()
        for g in rotations(4)[:, 0]:
            A = matrix(hessian_bound(kind, flat(F), tuple(g), tuple(g)))
            assert np.linalg.eigvalsh(A)[0] > 0


@pytest.mark.parametrize("name", ISOTROPIC)
@pytest.mark.parametrize("stretch", [(1.2, 1.0), (1.5, 1.3), (0.8, 1.1), (1.3, 1.3)])
def test_energy_is_minimal_over_all_thicknesses(name, stretch):
    """The reference is a search with the material of solids."""
    solid = material(ISOTROPIC[name])
    minimum = minimize_scalar(
        lambda t: psi(solid, flat(np.diag([*stretch, t]))), bounds=(0.1, 2), options={"xatol": 1e-10}
    )
    energy = psi(material(name), flat(np.diag([*stretch, 1.0])))
    assert energy == pytest.approx(minimum.fun, rel=1e-7)


@pytest.mark.parametrize("name", [name for name in MEMBRANES if name.startswith("plane")])
def test_pulled_strip_has_youngs_modulus_and_poissons_ratio(name):
    """Its sides are free; at constant thickness it would be stiffer by 1/(1 - ν²)."""
    kind, e = material(name), 1e-5
    minimum = minimize_scalar(
        lambda t: psi(kind, flat(np.diag([1 + e, 1 + t, 1.0]))), bracket=(-e, e), tol=1e-12
    )
    assert minimum.x / e == pytest.approx(-POISSON, rel=1e-3)
    assert P(kind, np.diag([1 + e, 1 + minimum.x, 1.0]))[0, 0] / e == pytest.approx(YOUNG, rel=1e-3)


def test_balloon_of_nearly_incompressible_rubber():
    """μ/2 (2 s² + s⁻⁴ - 3), the closed form for ν = ½."""
    kind = material("plane_stress_neo_hookean", poisson=0.49999)
    for s in (1.1, 1.5, 3.0):
        assert psi(kind, flat(np.diag([s, s, 1.0]))) == pytest.approx(
            kind.mu / 2 * (2 * s**2 + s**-4 - 3), rel=1e-3
        )


def test_weave_has_two_moduli_and_two_ratios():
    a = np.array(BIAS_WEAVE.direction)
    b = np.array([-a[1], a[0], 0])
    frame, e = np.array([a, b, [0, 0, 1]]).T, 1e-6
    for k, modulus, ratio in (
        (0, BIAS_WEAVE.young_weft, BIAS_WEAVE.poisson_weft),
        (1, BIAS_WEAVE.young_warp, BIAS_WEAVE.poisson_warp),
    ):
        strain = np.full(2, -ratio * e)
        strain[k] = e
        F = frame @ np.diag([*(1 + strain), 1]) @ frame.T
        sigma = frame.T @ P(BIAS_WEAVE, F) @ frame
        assert sigma[k, k] == pytest.approx(modulus * e, rel=1e-4)
        assert abs(sigma[1 - k, 1 - k]) < 1e-4 * modulus * e
    sheared = np.eye(3) + e * np.outer(a, b)
    assert a @ P(BIAS_WEAVE, sheared) @ b == pytest.approx(BIAS_WEAVE.shear_modulus * e, rel=1e-4)


def test_balanced_weave_is_isotropic():
    plain = material("plane_stress_stvk")
    even = supple.materials.WovenStVK(
        young_weft=YOUNG,
        young_warp=YOUNG,
        shear_modulus=plain.mu,
        poisson_weft=POISSON,
        poisson_warp=POISSON,
        direction=(1, 3, 0),
    )
    for F in sheets():
        assert psi(even, flat(F)) == pytest.approx(psi(plain, flat(F)), rel=1e-10)


@pytest.mark.parametrize("name", MEMBRANES)
def test_parameters_round_trip(name):
    kind = MEMBRANE_MATERIALS[name]
    for key, value in kind.given().items():
        np.testing.assert_allclose(value, type(kind).example().given()[key] if "orth" in name else value)
    again = type(kind)(**kind.given())
    np.testing.assert_allclose(np.hstack(again), np.hstack(kind), rtol=1e-12)


def test_inconsistent_poisson_ratios_are_refused():
    with pytest.raises(ValueError, match=r"poisson_warp must be .* = 0.05, .*got 0.2"):
        BIAS_WEAVE.example(young_weft=4e5, young_warp=1e5, poisson_weft=0.2, poisson_warp=0.2)
    with pytest.raises(ValueError, match="less than 1"):
        BIAS_WEAVE.example(poisson_weft=1.2, poisson_warp=1.2)


@pytest.mark.parametrize("name", MEMBRANES)
def test_solids_refuse_materials_of_sheets(name):
    mesh = supple.block(1)
    with pytest.raises(ValueError, match="material for thin sheets"):
        TetElasticity.from_mesh(mesh.points, mesh.tets, MEMBRANE_MATERIALS[name])


def test_directions_are_projected_into_the_sheet():
    points, triangles = sheet(2)
    tilted = BIAS_WEAVE.example(direction=(1, 0, 1))
    term = TriangleElasticity.from_mesh(points, triangles, tilted, 1e-3)
    np.testing.assert_allclose(term.material.direction, (1, 0, 0), atol=1e-15)
    with pytest.raises(ValueError, match="perpendicular to triangle 0"):
        TriangleElasticity.from_mesh(points, triangles, BIAS_WEAVE.example(direction=(0, 0, 1)), 1e-3)


def test_lists_of_materials():
    assert not set(MEMBRANES) & set(MATERIALS)
    assert all(kind.thin for kind in MEMBRANES.values())
    assert "linear_elastic" not in membrane_materials()
    assert "corotated" in membrane_materials()


def test_weave_from_membrane_stiffnesses_and_thickness():
    kind = supple.materials.WovenStVK
    made = kind.from_membrane(weft=2500, warp=3500, shear=60, thickness=3e-4, poisson_weft=0.2)
    assert made.young_weft * 3e-4 == pytest.approx(2500)
    assert made.young_warp * 3e-4 == pytest.approx(3500)
    assert made.shear_modulus * 3e-4 == pytest.approx(60)
    assert made.poisson_weft * made.young_warp == pytest.approx(made.poisson_warp * made.young_weft)
    rows = kind.from_membrane(weft=[100, 200], warp=100, shear=1, thickness=1e-3, direction=(0, 1, 0))
    np.testing.assert_allclose(rows.young_weft, [1e5, 2e5])
    assert rows.direction == (0, 1, 0)
    for wrong, name in (({"weft": 0}, "weft"), ({"shear": -1}, "shear"), ({"thickness": 0}, "thickness")):
        with pytest.raises(ValueError, match=f"^{name} must be positive"):
            kind.from_membrane(**({"weft": 1, "warp": 1, "shear": 1, "thickness": 1e-3} | wrong))
