"""Bending of sheets against plate theory, the heavy elastica and catenaries, with degenerate cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
from cloth_shapes import ELASTICA, cantilever, cloth, equilateral, tip
from problems import bent, model_of, rotations, sheet
from scipy.optimize import brentq
from test_terms import net_forces

import supple
from supple.algebra.angle import angle_of
from supple.linear.assembly.hessian import Assembly
from supple.problem import Problem
from supple.terms import BENDINGS, HingeBending, Hinges, IsometricBending, bending_terms, hinges_of
from supple.terms.shells.dihedral import angle_derivatives, angles

EACH_BENDING = pytest.mark.parametrize("bending", BENDINGS.values())


def bending_energy(points, triangles, now, bending):
    problem = Problem(model_of(points, *bending_terms(bending, points, triangles, points)), "float64")
    problem.positions = now
    return float(problem.diagnostics.stored_energies().sum())


def rolled(points, radius):
    """Points rolled about the y axis without stretching."""
    x, y, _ = points.T
    return np.stack([radius * np.sin(x / radius), y, radius * (1 - np.cos(x / radius))], axis=1)


def test_angles_equal_those_of_math_atan2():
    sizes = 2.0 ** np.arange(-100, 100)[:, None]
    for y, x in np.random.default_rng(0).normal(size=(200, 2)) * [1e-3, 1] * sizes:
        assert angle_of(y, x) == pytest.approx(math.atan2(y, x), rel=2e-15)
        assert angle_of(x, y) == pytest.approx(math.atan2(x, y), rel=2e-15)
    assert angle_of(0.0, 0.0) == 0
    assert angle_of(0.0, -1.0) == pytest.approx(math.pi)


def test_derivatives_of_angles():
    x, h = np.random.default_rng(1).normal(size=(6, 4, 3)), 1e-6
    gradient, hessian = angle_derivatives(x)
    for corner in range(4):
        for axis in range(3):
            step = np.zeros((4, 3))
            step[corner, axis] = h
            np.testing.assert_allclose(
                (angles(x + step) - angles(x - step)) / (2 * h), gradient[:, corner, axis], atol=1e-6
            )
            slope = (angle_derivatives(x + step)[0] - angle_derivatives(x - step)[0]) / (2 * h)
            np.testing.assert_allclose(slope, hessian[:, :, corner, :, axis], atol=1e-5)


@EACH_BENDING
@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0])
def test_cylinder_has_the_energy_of_plate_theory(bending, angle):
    """½ B κ² per area on equilateral meshes in any direction; converging with resolution."""
    errors = []
    for cells in (8, 16, 32):
        points, triangles = equilateral(cells, cells)
        area = np.ptp(points[:, 0]) * np.ptp(points[:, 1])
        c, s = np.cos(angle), np.sin(angle)
        turned = points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
        energy = bending_energy(turned, triangles, rolled(turned, 2.0), bending(3.0))
        errors.append(abs(energy / (0.5 * 3.0 / 4 * area) - 1))
    assert errors[-1] < 0.05
    assert errors[2] < 0.6 * errors[1] < 0.36 * errors[0]


def test_unweighted_hinges_equal_the_paper():
    """½ k Σ θ² [PBNG eq. 35]."""
    points, triangles = sheet(3)
    now = rolled(points, 0.7)
    vertices, _ = hinges_of(triangles)
    expected = 0.5 * 2.0 * np.sum(angles(now[vertices]) ** 2)
    energy = bending_energy(points, triangles, now, HingeBending(2.0, weighted=False))
    assert energy == pytest.approx(expected, rel=1e-10)


def test_rest_angles():
    points, triangles = bent()
    vertices, _ = hinges_of(triangles)
    shaped, flat = (
        bending_energy(points, triangles, points, HingeBending(1.0, rest=rest)) for rest in ("shape", "flat")
    )
    assert shaped < 1e-20
    assert flat > 0.1
    own = HingeBending(1.0, rest=angles(points[vertices]))
    assert bending_energy(points, triangles, points, own) < 1e-20
    with pytest.raises(ValueError, match="one angle for each of the 40 edges"):
        bending_energy(points, triangles, points, HingeBending(1.0, rest=[0.1, 0.2]))


def test_isometric_bending_is_for_flat_sheets():
    points, triangles = bent()
    with pytest.raises(ValueError, match=r"flat at rest.*use HingeBending"):
        bending_terms(IsometricBending(1.0), points, triangles, points)


def test_folding_is_continuous():
    """Except near θ = θ₀ ± π; a sheet folded at rest may be opened and closed."""
    square = np.array([[0.0, 0, 0], [1, 0, 0], [0.3, 1, 0], [0.6, -1, 0]])
    hinge = Hinges.of(np.array([[0, 1, 2, 3]]), np.ones(1), np.array([3.0]), square)
    energies = []
    for angle in np.linspace(2.5, 3.7, 13):
        folded = square.copy()
        folded[3] = [0.6, -np.cos(angle), -np.sin(angle)]
        problem = Problem(model_of(square, hinge), "float64")
        problem.positions = folded
        energies.append(problem.diagnostics.stored_energies().sum())
    np.testing.assert_allclose(
        np.sqrt(2 * np.array(energies)), np.abs(np.linspace(2.5, 3.7, 13) - 3.0), atol=1e-9
    )


DEGENERATE = {
    "needle": [[0, 0, 0], [1, 0, 0], [0.5, 0, 0], [0.5, -1, 0]],
    "both": [[0, 0, 0], [1, 0, 0], [0.5, 0, 0], [0.5, 0, 0]],
    "short edge": [[0, 0, 0], [0, 0, 0], [0.5, 1, 0], [0.5, -1, 0]],
    "point": [[0, 0, 0]] * 4,
    "folded": [[0, 0, 0], [1, 0, 0], [0.5, 1, 0], [0.5, 1, 0]],
}


@pytest.mark.parametrize("shape", DEGENERATE)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_degenerate_hinges_have_finite_forces(shape, precision):
    square = np.array([[0.0, 0, 0], [1, 0, 0], [0.3, 1, 0], [0.6, -1, 0]])
    hinge = Hinges.of(np.array([[0, 1, 2, 3]]), np.ones(1), np.zeros(1), square)
    problem = Problem(model_of(square, hinge), precision)
    problem.positions = np.array(DEGENERATE[shape], float)
    assert np.isfinite(net_forces(problem)).all()
    assert np.isfinite(problem.energy())
    supple.PBNG(acceleration="none").begin(problem).advance(3)
    assert np.isfinite(problem.positions).all()
    if precision == "float64":
        assert np.isfinite(Assembly(problem).hessian("projected").toarray()).all()


@pytest.mark.parametrize("size", [1e-4, 1e3])
def test_single_precision_is_accurate_at_all_sizes(size):
    """Far from the origin too, since only differences of positions count."""
    points, triangles = bent()
    points = size * points + 1e3 * size
    now = points + 0.05 * size * np.random.default_rng(0).normal(size=points.shape)
    results = []
    for precision in ("float32", "float64"):
        problem = Problem(
            model_of(points, *bending_terms(HingeBending(1.0), points, triangles, points)), precision
        )
        problem.positions = now
        results.append(net_forces(problem))
    np.testing.assert_allclose(results[0], results[1], atol=1e-3 * np.abs(results[1]).max())


MISTAKES = {
    "more than two triangles": [[0, 1, 2], [1, 0, 3], [0, 1, 4]],
    "two triangles of opposite orientation": [[0, 1, 2], [0, 1, 3]],
}


@pytest.mark.parametrize("what", MISTAKES)
def test_invalid_hinges_are_refused(what):
    with pytest.raises(ValueError, match=f"{what}.*vertices 0 and 1"):
        hinges_of(np.array(MISTAKES[what]))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, "stiff"])
def test_wrong_stiffness_is_refused(wrong):
    with pytest.raises((ValueError, TypeError), match=r"rigidity|number"):
        HingeBending(wrong)


def test_stiffness_of_a_plate():
    assert HingeBending.from_young(2e9, 0.3, 1e-3).rigidity == pytest.approx(2e9 * 1e-9 / 12 / 0.91)


@EACH_BENDING
def test_strip_hangs_as_a_heavy_elastica(bending):
    """ASTM D1388: 41.487 degrees at Γ = 8. The benchmark has the whole table."""
    model = cantilever(8.0, 32, 8, bending)
    result = supple.equilibrium(model)
    assert result.report.ok
    drop, reach = tip(model, result.positions)
    assert math.degrees(math.atan2(drop, reach)) == pytest.approx(41.487, rel=0.01)
    assert (drop, reach) == pytest.approx(ELASTICA[8], abs=0.01)


def test_woven_strip_hangs_as_a_heavy_elastica():
    """Half as stiff transversely, and soft in shear."""
    weave = supple.materials.WovenStVK(
        young_weft=1e9, young_warp=5e8, shear_modulus=1e8, poisson_weft=0.2, poisson_warp=0.1
    )
    model = cantilever(8.0, 32, 8, HingeBending, membrane=weave)
    result = supple.equilibrium(model)
    assert result.report.ok
    assert math.degrees(math.atan2(*tip(model, result.positions))) == pytest.approx(41.487, rel=0.01)


def test_heavy_chain_of_triangles_is_a_catenary():
    """A strip without bending stiffness that is longer than its span."""
    points, triangles = equilateral(32, 2)
    ends = np.flatnonzero((points[:, 0] < 1e-9) | (points[:, 0] > 1 - 1e-9))
    model = cloth(
        points,
        triangles,
        supple.materials.PlaneStressStVK(young=1e6, poisson=0.0),
        None,
        ends,
        np.array([0, 0, -10.0]),
    )
    span = 0.8
    closer = points[ends] * [span, 1, 1]
    result = supple.equilibrium(
        replace(model, prescribed=lambda t: closer),
        initial=np.column_stack([span * points[:, 0], points[:, 1], -points[:, 0] * (1 - points[:, 0])]),
    )
    assert result.report.ok
    a = brentq(lambda a: 2 * a * math.sinh(span / (2 * a)) - 1.0, 0.05, 10)
    sag = a * (math.cosh(span / (2 * a)) - 1)
    assert -result.positions[:, 2].min() == pytest.approx(sag, rel=0.01)


@pytest.mark.parametrize("solver", ["hybrid", "pbng", "newton"])
@pytest.mark.parametrize("bending", [None, HingeBending(1e-3)], ids=["slack", "bending"])
def test_flat_sheet_falls_from_two_corners(solver, bending):
    """At the start it has no transverse stiffness."""
    points, triangles = sheet(6)
    pinned = np.flatnonzero((points[:, 0] == 0) & ((points[:, 1] == 0) | (points[:, 1] == 1)))
    membrane = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)
    model = cloth(points, triangles, membrane, bending, pinned, np.array([0, 0, -10.0]))
    result = supple.equilibrium(model, solver=solver)
    assert result.report.ok
    assert -1.1 < result.positions[:, 2].min() < -0.95


def test_bending_energy_is_rotation_invariant():
    points, triangles = sheet(3)
    now = rolled(points, 0.5)
    turned = now @ rotations(1)[0].T + [1, 2, 3]
    for bending in (HingeBending(1.0), IsometricBending(1.0)):
        assert bending_energy(points, triangles, turned, bending) == pytest.approx(
            bending_energy(points, triangles, now, bending), rel=1e-10
        )
