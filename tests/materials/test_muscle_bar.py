"""A muscle bar between two walls: force by length and activation."""

import numpy as np
import pytest
from muscle_bars import AREA, SOLVERS, STRENGTH, YOUNG, bar, falling, force
from muscle_bars import pulled as pulled_and_reported

import supple


def pulled(*given, **limits):
    stress, report = pulled_and_reported(*given, **limits)
    assert report.ok
    return stress


@pytest.mark.parametrize("length", [0.55, 0.8, 1.0, 1.2, 1.45])
@pytest.mark.parametrize("optimal", [1.0, 1.1])
def test_force_and_length_match_the_closed_form_of_one_fiber(length, optimal):
    scene, body = bar(length, optimal)
    for activation in (0.0, 0.5, 1.0):
        stress = pulled(scene, body, activation, tolerance=1e-8)
        np.testing.assert_allclose(
            stress, (-force(length, activation, optimal), 0, 0), atol=1e-4 * AREA * YOUNG
        )


def test_isometric_force_is_proportional_to_activation():
    scene, body = bar()
    for activation in (0.0, 0.25, 0.5, 1.0):
        stress = pulled(scene, body, activation, tolerance=1e-8)
        assert -stress[0] == pytest.approx(activation * STRENGTH * AREA, abs=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_find_the_closed_form(solver):
    scene, body = bar(1.2)
    stress = pulled(scene, body, 1.0, SOLVERS[solver], tolerance=1e-4, max_iterations=20_000)
    assert -stress[0] == pytest.approx(force(1.2, 1.0), rel=2e-3)


@pytest.mark.parametrize(
    ("solver", "dt", "iterations", "error"),
    [
        ("pbng", 0.005, 100, 1e-6),
        ("fpxpbd", 0.005, 100, 1e-6),
        ("bpxpbd", 0.005, 100, 1e-6),
        ("gpbd", 0.005, 100, 0.06),
        ("bpxpbd", 0.02, 400, 1e-3),
    ],
)
def test_falling_and_lifted_bar_follows_newton(solver, dt, iterations, error):
    """In GPBD an element's displacement includes components across the strains of later iterations: 4 % here,
    10 % in steps four times as long, for any number of iterations."""
    expected = falling("newton", dt, tolerance=1e-8)
    positions = falling(SOLVERS[solver], dt, tolerance=None, max_iterations=iterations)
    lowest = expected.min()
    assert lowest < -0.015
    assert expected[-1] > 0.5 * lowest
    np.testing.assert_allclose(positions, expected, atol=error * abs(lowest))


def spindle(solver, size, **limits):
    """A light spindle of `length` [m], pinned at its ends and activated in 0.1 s, in steps of 1/30 s."""
    shape = supple.ball(resolution=2)
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=1 / 30, frames=6)
    kind = supple.materials.Muscle(young=2e4, poisson=0.4, strength=3e5, fiber=(1, 0, 0), activation=1.0)
    mesh = supple.TetMesh(shape.points * size * (0.5, 0.11, 0.11), shape.tets)
    body = scene.add_solid(mesh, kind, density=100)
    scene.vary(body, "activation", supple.loads.Ramp(times=(0, 0.1), fractions=(0, 1)))
    scene.pin(body.where(lambda X: np.abs(X[:, 0]) > 0.35 * size))
    *_, last = supple.simulate(scene, solver=solver, **limits)
    return last


def test_bpxpbd_is_stable_without_a_stable_uniform_blend():
    """Fibers make a vertex update of such elements 10⁴ to 10⁶ times as stiff as inertia."""
    large = spindle(supple.BPXPBD(), 1.0, tolerance=None, max_iterations=400)
    expected = spindle("newton", 1.0, tolerance=1e-8).positions
    moved = np.abs(expected - large.model.rest).max()
    assert large.report.inverted == 0
    assert np.abs(large.positions - expected).max() < 0.4 * moved
    blended = spindle(supple.BPXPBD(zeta=0.99), 0.3, tolerance=None, max_iterations=100)
    assert blended.report.outcome is supple.Outcome.FAILED
    small = spindle(supple.BPXPBD(), 0.3, tolerance=None, max_iterations=100)
    assert small.report.outcome is supple.Outcome.FIXED_ITERATIONS
    assert np.abs(small.positions).max() < 0.2
