"""Properties of all materials."""

import numpy as np
import pytest
from problems import (
    NEARLY_CANCELLING,
    YOUNG,
    deformations,
    flat,
    material,
    matrix,
    rotations,
    stretches,
)

from supple.materials import (
    MATERIALS,
    Isotropic,
    evolving,
    hessian_bound,
    inverse_square_safe_radius,
    psi,
    shear_modulus,
    step_limit,
    stiffest,
    stress,
    stress_differential,
    vertex_response,
)

BARRIERS = [name for name, kind in MATERIALS.items() if kind.barrier]
FINITE = [name for name, kind in MATERIALS.items() if not kind.barrier]
DERIVED = [name for name, kind in MATERIALS.items() if hasattr(kind, "psi")]
BY_YOUNG_AND_POISSON = [name for name, kind in MATERIALS.items() if issubclass(kind, Isotropic)]

OBJECTIVE = [name for name, kind in MATERIALS.items() if kind.objective]

EACH_MATERIAL = pytest.mark.parametrize("name", MATERIALS)

# Each material with deformation gradients for which it is smooth.
STATES = [(name, False) for name in MATERIALS] + [(name, True) for name in FINITE]
SMOOTH = pytest.mark.parametrize(("name", "inverted"), STATES)


def P(kind, F):
    return matrix(stress(kind, flat(F)))


def tangent(kind, F):
    """∂P/∂F as a 9×9 matrix."""
    return np.column_stack([stress_differential(kind, flat(F), tuple(unit)) for unit in np.eye(9).tolist()])


def bound(kind, F):
    """The bound as a 9×9 matrix: C_ijkl = A(e_j, e_l)_ik."""
    unit = [tuple(e) for e in np.eye(3).tolist()]
    C = [[matrix(hessian_bound(kind, flat(F), unit[j], unit[l])) for l in range(3)] for j in range(3)]
    return np.array(C).transpose(2, 0, 3, 1).reshape(9, 9)


def block(C, g, h):
    """The block of two vertices with shape gradients g and h: Σ C_ijkl g_j h_l."""
    return np.einsum("ijkl,j,l->ik", C.reshape(3, 3, 3, 3), g, h)


@SMOOTH
def test_stress_is_the_derivative_of_the_energy(name, inverted):
    kind, h = material(name), 1e-5
    for F, D in zip(deformations(8, inverted=inverted), rotations(8, seed=7), strict=True):
        slope = (psi(kind, flat(F + h * D)) - psi(kind, flat(F - h * D))) / (2 * h)
        assert np.sum(P(kind, F) * D) == pytest.approx(slope, rel=1e-6, abs=1e-6 * YOUNG)


@SMOOTH
def test_stress_differential_is_the_derivative_of_the_stress(name, inverted):
    kind, h = material(name), 1e-5
    for F, D in zip(deformations(8, inverted=inverted), deformations(8, seed=7), strict=True):
        slope = (P(kind, F + h * D) - P(kind, F - h * D)) / (2 * h)
        exact = matrix(stress_differential(kind, flat(F), flat(D)))
        np.testing.assert_allclose(exact, slope, rtol=1e-6, atol=1e-6 * YOUNG)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("values", NEARLY_CANCELLING, ids=str)
def test_derivatives_are_exact_for_nearly_cancelling_stretches(name, values):
    """Difference steps are small against σ₂ + σ₃, the scale over which the rotation changes."""
    kind, h = material(name), 1e-4 * (values[1] + values[2])
    for F, D in zip(stretches(values, 8), rotations(8, seed=7), strict=True):
        slope = (psi(kind, flat(F + h * D)) - psi(kind, flat(F - h * D))) / (2 * h)
        assert np.sum(P(kind, F) * D) == pytest.approx(slope, rel=1e-6, abs=1e-6 * YOUNG)
        slopes = (P(kind, F + h * D) - P(kind, F - h * D)) / (2 * h)
        exact = matrix(stress_differential(kind, flat(F), flat(D)))
        np.testing.assert_allclose(exact, slopes, atol=1e-5 * np.abs(exact).max())


@EACH_MATERIAL
def test_quadratic_materials_have_constant_second_derivatives(name):
    """Other materials do not."""
    kind = material(name)
    at_rest = tangent(kind, np.eye(3))
    same = [np.allclose(tangent(kind, F), at_rest, rtol=1e-9) for F in deformations(4)]
    assert all(same) if kind.quadratic else not any(same)


@SMOOTH
def test_second_derivative_is_symmetric(name, inverted):
    for F in deformations(8, inverted=inverted):
        C = tangent(material(name), F)
        np.testing.assert_allclose(C, C.T, atol=1e-9 * np.abs(C).max())


def poissons(states):
    """Each state with several ν, if the material has one."""
    return [
        (*state, poisson)
        for state in states
        for poisson in ((-0.3, 0.0, 0.3, 0.49) if state[0] in BY_YOUNG_AND_POISSON else (0.3,))
    ]


@pytest.mark.parametrize(("name", "inverted", "poisson"), poissons(STATES))
def test_hessian_bound_is_positive_definite(name, inverted, poisson):
    kind = material(name, poisson=poisson)
    for F in deformations(8, inverted=inverted):
        C = bound(kind, F)
        np.testing.assert_allclose(C, C.T, atol=1e-9 * np.abs(C).max())
        values = np.linalg.eigvalsh(C)
        assert values[0] > -1e-9 * values[-1]
        for g in rotations(3)[:, 0]:
            assert np.linalg.eigvalsh(block(C, g, g))[0] > 0.01 * shear_modulus(kind)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("values", [(1, 1, 0), (1, 0, 0), (0, 0, 0)], ids=str)
def test_hessian_bound_is_positive_definite_for_singular_matrices(name, values):
    for F in stretches(values, 4):
        for g in rotations(4)[:, 0]:
            A = matrix(hessian_bound(material(name), flat(F), tuple(g), tuple(g)))
            assert np.linalg.eigvalsh(A)[0] > 0.01 * shear_modulus(material(name))


@pytest.mark.parametrize(("name", "poisson"), poissons([(name,) for name in MATERIALS]))
def test_hessian_bound_is_above_the_exact_block_of_a_vertex(name, poisson):
    """A step with too small a Hessian overshoots."""
    kind = material(name, poisson=poisson)
    for F in deformations(8, seed=3):
        exact, above = tangent(kind, F), bound(kind, F)
        for g in rotations(5)[:, 0]:
            margin = np.linalg.eigvalsh(block(above, g, g) - block(exact, g, g))[0]
            assert margin > -1e-9 * np.abs(exact).max()


def test_hessian_bound_of_linear_elasticity_is_exact():
    for F in deformations(3):
        kind = material("linear_elastic")
        np.testing.assert_allclose(bound(kind, F), tangent(kind, F), atol=1e-10 * YOUNG)


@pytest.mark.parametrize("name", ["neo_hookean", "log_neo_hookean"])
def test_hessian_bound_of_one_vertex_is_exact_for_energies_convex_in_the_volume(name):
    kind = material(name)
    for F in deformations(5):
        for g in rotations(3)[:, 0]:
            exact, above = (block(C(kind, F), g, g) for C in (tangent, bound))
            np.testing.assert_allclose(above, exact, atol=1e-9 * np.abs(exact).max())


@EACH_MATERIAL
def test_hessian_bound_is_close_at_rest(name):
    """Twice the exact Hessian would halve the convergence rate of a sweep."""
    kind = material(name)
    for g in rotations(5)[:, 0]:
        exact, above = (np.trace(block(C(kind, np.eye(3)), g, g)) for C in (tangent, bound))
        assert above < (1.7 if kind.isotropic else 4.5) * exact


@EACH_MATERIAL
def test_stiffness_bound_is_close_to_the_largest_eigenvalue(name):
    """Fibers are included, on which the stability of B-PXPBD depends."""
    kind = material(name, activation=1.0)
    least = {True: 1 - 1e-9, False: 0.7}
    for F in (np.eye(3), *deformations(8, seed=3)):
        largest = np.linalg.eigvalsh(tangent(kind, F))[-1]
        assert least[F[0, 1] == 0] * largest < stiffest(kind, flat(F)) < 3.5 * largest


@pytest.mark.parametrize(("name", "inverted"), [state for state in STATES if state[0] in DERIVED])
def test_vertex_response_is_traction_and_lifted_diagonal_block(name, inverted):
    kind = material(name)
    for F, g in zip(deformations(8, inverted=inverted), rotations(8, seed=5)[:, 0], strict=True):
        f, A, _ = vertex_response(kind, flat(F), tuple(g))
        np.testing.assert_allclose(f, P(kind, F) @ g, atol=1e-9 * np.abs(P(kind, F)).max())
        exact, above = block(tangent(kind, F), g, g), matrix(A)
        values, size = np.linalg.eigvalsh(exact), np.abs(exact).max()
        floor = 0.25 * shear_modulus(kind) * (g @ g)
        assert np.linalg.eigvalsh(above - exact)[0] > -1e-9 * size
        assert np.linalg.eigvalsh(above)[0] > 0.99 * min(max(floor, abs(values[0])), floor) - 1e-4 * size
        if values[0] > floor + 1e-3 * size:
            np.testing.assert_allclose(above, exact, atol=1e-9 * size)


@pytest.mark.parametrize("name", OBJECTIVE)
def test_rotating_the_body_changes_no_energy(name):
    kind = material(name)
    for F, Q in zip(deformations(8), rotations(8, seed=5), strict=True):
        assert psi(kind, flat(Q @ F)) == pytest.approx(psi(kind, flat(F)), rel=1e-10)
        np.testing.assert_allclose(P(kind, Q @ F), Q @ P(kind, F), atol=1e-10 * np.abs(P(kind, F)).max())


@pytest.mark.parametrize("name", [name for name in MATERIALS if name not in OBJECTIVE])
def test_non_objective_materials_resist_rotation(name):
    assert psi(material(name), flat(rotations(1)[0])) > 0.01 * YOUNG


FLOWED = {
    "plastic_stvk": {"plastic_strain": np.diag([0.3, -0.1, 0.0])},
    "plastic_hencky": {"plastic_shape": np.diag([1.3, 1 / 1.3, 1.0])},
}
"""History values that make plastic materials anisotropic."""


@EACH_MATERIAL
def test_isotropic_materials_are_isotropic(name):
    kind = material(name)
    if evolving(type(kind)):
        kind = type(kind).example(**FLOWED[name])
    if not kind.isotropic:
        F = deformations(1)[0]
        energies = [psi(kind, flat(F @ Q)) for Q in rotations(5, seed=5)]
        assert np.ptp(energies) > 1e-3 * max(energies)
        return
    for F, Q in zip(deformations(8), rotations(8, seed=5), strict=True):
        turned = Q.T @ F @ Q if name == "linear_elastic" else F @ Q
        assert psi(kind, flat(turned)) == pytest.approx(psi(kind, flat(F)), rel=1e-10)


@EACH_MATERIAL
def test_rest_has_no_energy_and_no_stress(name):
    kind = material(name)
    assert psi(kind, flat(np.eye(3))) == pytest.approx(0, abs=1e-12 * YOUNG)
    np.testing.assert_allclose(P(kind, np.eye(3)), 0, atol=1e-12 * YOUNG)


@EACH_MATERIAL
def test_energy_is_positive_away_from_rest(name):
    for F in deformations(20, seed=4):
        assert psi(material(name), flat(F)) > 0


@pytest.mark.parametrize("name", BY_YOUNG_AND_POISSON)
@pytest.mark.parametrize(("young", "poisson"), [(1e3, 0.3), (2e5, 0.0), (1.0, 0.49), (1e9, -0.4)])
def test_linearization_at_rest_is_linear_elasticity(name, young, poisson):
    """Hooke's law in its E, ν form: E ε = (1 + ν) σ - ν tr(σ) I; rotations cost no energy."""
    C = tangent(material(name, young, poisson), np.eye(3))
    for D in deformations(5, seed=6):
        strain = 0.5 * (D + D.T)
        sigma = matrix(C @ D.ravel())
        hooke = (1 + poisson) * sigma - poisson * np.trace(sigma) * np.eye(3)
        np.testing.assert_allclose(hooke, young * strain, atol=1e-9 * young)
        np.testing.assert_allclose(C @ (D - D.T).ravel(), 0, atol=1e-9 * young)


CORNERS = [(1, 1, 0), (1, 0.5, 0), (1, 0, 0), (0, 0, 0), (1, 1, -1), (1, 1, -0.2), (1, 0.5, -0.5)]


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("values", CORNERS, ids=str)
def test_singular_and_inverted_matrices_have_finite_energy_and_stress(name, values):
    kind = material(name)
    for F in stretches(values, 5):
        assert np.isfinite(psi(kind, flat(F)))
        assert np.isfinite(P(kind, F)).all()
        assert np.abs(P(kind, F)).max() < 20 * YOUNG
        assert np.isfinite(tangent(kind, F)).all()
        assert np.isfinite(bound(kind, F)).all()


@pytest.mark.parametrize(
    "values", [*CORNERS[:4], (3, 0, 0), (2, 1, 0.5), (1, 1, -0.2), (1.5, 1, -0.3)], ids=str
)
def test_corotated_energy_equals_that_of_the_principal_stretches(values):
    """ψ = μ Σ (σᵢ - 1)² + λ/2 (J - 1)², also for non-unique rotations."""
    kind = material("corotated")
    s = np.array(values, float)
    expected = kind.mu * np.sum((s - 1) ** 2) + 0.5 * kind.lam * (np.prod(s) - 1) ** 2
    for F in stretches(values, 5):
        assert psi(kind, flat(F)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["log_neo_hookean", "gent", "ogden"])
@pytest.mark.parametrize("values", [(1, 1, 0), (1, 1, -0.5), (0, 0, 0)], ids=str)
def test_barriers_are_not_finite_for_singular_and_inverted_matrices(name, values):
    """In compiled code, whose non-finite results the solvers reject."""
    import material_targets

    F = np.diag(np.array(values, float)).reshape(1, 9)
    results = material_targets.by_scalars(material(name), F, np.ones((1, 9)))[0]
    assert not np.isfinite(results[0])
    assert not np.isfinite(results[1:10]).all()


def energy_or_infinity(kind, F):
    """Energy of compiled code, which has no exceptions."""
    try:
        return psi(kind, flat(F))
    except OverflowError:
        return 1e300
    except (ValueError, ZeroDivisionError):
        return np.inf


@pytest.mark.parametrize("name", BARRIERS)
def test_barriers_rise_without_bound(name):
    kind = material(name)
    energies = [energy_or_infinity(kind, np.diag([1, 1, s])) for s in (1e-1, 1e-3, 1e-6, 1e-12, 1e-24)]
    finite = [energy for energy in energies if energy < 1e300]
    assert energies == sorted(energies)
    assert np.all(np.diff(finite) > YOUNG)
    assert energies[-1] > 50 * YOUNG


@pytest.mark.parametrize("name", BARRIERS)
def test_limited_steps_never_invert(name):
    kind = material(name)
    random = np.random.default_rng(8)
    for F in deformations(40, seed=8):
        g, step = random.normal(size=3), random.normal(size=3) * 10 ** random.uniform(-2, 3)
        t = step_limit(kind, flat(F), tuple(g), tuple(step))
        assert 0 < t <= 1
        assert np.linalg.det(F + t * np.outer(step, g)) >= 0.0999 * np.linalg.det(F)
        safe = np.linalg.det(F + np.outer(step, g)) > 0.2 * np.linalg.det(F)
        assert t > 1 - 1e-12 or not safe or name == "gent"
        assert np.isfinite(energy_or_infinity(kind, F + t * np.outer(step, g)))


@pytest.mark.parametrize("name", BARRIERS)
def test_vertex_steps_within_the_confinement_are_safe(name):
    kind = material(name)
    random = np.random.default_rng(9)
    near = 0
    for F in deformations(40, seed=9):
        g = random.normal(size=3)
        q = inverse_square_safe_radius(kind, flat(F), tuple(g))
        if q > 1e20:  # nothing is known, and steps are looked at one by one
            continue
        near += 1
        assert vertex_response(kind, flat(F), tuple(g))[2] == pytest.approx(q) if name in DERIVED else q > 0
        cofactor = np.linalg.det(F) * np.linalg.inv(F).T
        directions = [*random.normal(size=(6, 3)), -cofactor @ g, F @ g]
        for way in directions:
            step = way / np.linalg.norm(way) / np.sqrt(q)
            assert step_limit(kind, flat(F), tuple(g), tuple(step)) > 1 - 1e-9
            assert np.isfinite(energy_or_infinity(kind, F + np.outer(step, g)))
            assert np.linalg.det(F + np.outer(step, g)) >= 0.0999 * np.linalg.det(F)
    assert near > 20
