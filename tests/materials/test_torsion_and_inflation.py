"""Closed forms of whole bodies: Poynting's effect in torsion, and thick spheres under pressure."""

import numpy as np
import pytest
from bodies_in_closed_form import (
    C01,
    C10,
    closed_inflation,
    closed_torsion,
    inflated_sphere,
    inflation,
    torsion,
    twisted_cylinder,
)

import supple
from supple.materials import stress

KIND = supple.MooneyRivlin(c10=C10, c01=C01, bulk_modulus=1e7)


def cauchy(F):
    """σ = P Fᵀ of a volume-preserving deformation."""
    P = np.array(stress(KIND, tuple(np.asarray(F, float).ravel().tolist()))).reshape(3, 3)
    return P @ np.asarray(F, float).T


def integral(f, low, high):
    """By Gauss' rule of 20 points."""
    x, w = np.polynomial.legendre.leggauss(20)
    at = low + 0.5 * (high - low) * (x + 1)
    return 0.5 * (high - low) * sum(weight * f(abscissa) for weight, abscissa in zip(w, at, strict=True))


def test_twisted_cylinder_lengthens():
    """At constant length it needs the torque π a⁴ ψ (c₁ + c₂) and the thrust π a⁴ ψ²/2 (c₁ + 2 c₂) [Rivlin
    1948]; the pressure follows from dσᵣᵣ/dr = (σ_θθ - σᵣᵣ)/r."""
    radius, twist = 0.7, 1.1

    def at(r):
        return cauchy([[1, 0, 0], [0, 1, twist * r], [0, 0, 1]])

    def radial(r):
        return -integral(lambda s: (at(s)[1, 1] - at(s)[0, 0]) / s, r, radius)

    torque = 2 * np.pi * integral(lambda r: at(r)[1, 2] * r**2, 0, radius)
    thrust = 2 * np.pi * integral(lambda r: (radial(r) + at(r)[2, 2] - at(r)[0, 0]) * r, 0, radius)
    assert torque == pytest.approx(np.pi * radius**4 * twist * (C10 + C01), rel=1e-9)
    assert thrust == pytest.approx(-np.pi * radius**4 * twist**2 / 2 * (C10 + 2 * C01), rel=1e-9)


@pytest.mark.parametrize("stretch", [1.3, 3.0])
def test_pressure_of_a_thick_sphere_matches_the_closed_form(stretch):
    """p = 4 c₁ [1/λ + 1/(4 λ⁴)] - 4 c₂ [λ - 1/(2 λ²)] from the inner to the outer wall [Green and Zerna
    1954], with 1 + (λ³ - 1) R³ constant."""
    A, B = 1.0, 1.6
    volume_change = (stretch**3 - 1) * A**3
    inner, outer = stretch * A, (B**3 + volume_change) ** (1 / 3)

    def slope(r):
        along = r / (r**3 - volume_change) ** (1 / 3)
        s = cauchy(np.diag([along**-2, along, along]))
        return 2 * (s[1, 1] - s[0, 0]) / r

    def primitive(x):
        return 4 * C10 * (1 / x + 1 / (4 * x**4)) - 4 * C01 * (x - 1 / (2 * x**2))

    expected = primitive(outer / B) - primitive(stretch)
    assert integral(slope, inner, outer) == pytest.approx(expected, rel=1e-7)


def test_radial_solutions_converge_to_the_closed_forms():
    """The error is proportional to the reciprocal of the bulk modulus."""
    for bulk in (1e3, 1e5):
        actual, exact = torsion(0.7, 1.1, bulk * (C10 + C01)), closed_torsion(0.7, 1.1)
        np.testing.assert_allclose((actual.torque, actual.thrust), exact, rtol=2 / bulk)
        pressure = inflation(1.0, 1.6, 1.3, bulk * (C10 + C01))
        assert pressure == pytest.approx(closed_inflation(1.0, 1.6, 1.3), rel=5 / bulk)


BULK = 10 * (C10 + C01)


def test_twisted_cylinder_mesh_converges_to_the_closed_form():
    """Torque and thrust, Poynting's effect, at second order in the size of cells."""
    radius, length, twist = 0.5, 0.5, 1.2
    exact = torsion(radius, twist, BULK)
    errors = []
    for resolution in (4, 8):
        torque, thrust, report = twisted_cylinder(radius, length, twist, BULK, resolution)
        assert report.ok
        errors.append((torque / exact.torque - 1, thrust / exact.thrust - 1))
    coarse, fine = np.abs(errors)
    assert exact.thrust < 0
    assert np.all(fine < (0.05, 0.005))
    assert np.all(fine < 0.3 * coarse)


def test_inflated_hollow_sphere_mesh_converges_to_the_closed_form():
    inner, outer, stretch = 1.0, 1.6, 1.3
    pressure = inflation(inner, outer, stretch, BULK)
    errors = []
    for resolution in (4, 8):
        displacement, report = inflated_sphere(inner, outer, pressure, BULK, resolution)
        assert report.ok
        errors.append(abs(displacement - stretch) / (stretch - 1))
    assert errors[1] < 0.06
    assert errors[1] < 0.36 * errors[0]


def wall_moved(resolution):
    """Computed and exact outward displacement [m] of the wall of a hollow ball under pressure: u(a) = p a/E
    ((1 - 2ν) a³ + (1 + ν) b³/2)/(b³ - a³)."""
    ball = supple.ball(radius=1.0, resolution=resolution)
    shell = ball.extract_cells(np.linalg.norm(ball.points[ball.tets].mean(axis=1), axis=1) > 0.5)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(shell, supple.StVK(young=1e5, poisson=0.3), density=1.0)
    for axis in range(3):
        scene.pin(body.where(np.abs(body.points[:, axis]) < 1e-9), axes="xyz"[axis])
    wall = body.where(lambda X: np.linalg.norm(X, axis=1) < 0.55)
    scene.add_cavity(wall, pressure=100.0)
    u = supple.equilibrium(scene, solver="newton", tolerance=1e-7).positions - body.points
    length = np.linalg.norm(wall.points, axis=1)
    a, displacement = length.mean(), np.einsum("ni,ni->n", u[wall.indices], wall.points) / length
    return displacement.mean(), 100 * a / 1e5 * (0.4 * a**3 + 1.3 / 2) / (1 - a**3)


def test_hollow_ball_under_pressure_converges_to_lame():
    errors = [1 - actual / expected for actual, expected in map(wall_moved, (4, 8))]
    assert 0 < errors[1] < 0.12
    assert errors[1] < 0.5 * errors[0]
