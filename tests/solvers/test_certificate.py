"""Error estimates of reports against true distances from the equilibrium."""

import json
import math

import numpy as np
import pytest
from problems import HAND_WRITTEN, cantilever, face, material, membrane, net, tied_blocks, twisted

import supple
from supple import PBNG, Outcome, StopCriteria
from supple.scene import build_model
from supple.solve.batch_solve import solve
from supple.solvers import Hybrid
from supple.solvers.newton_methods.error_estimate import estimate_error


def bar(cells=(20, 2, 2), young=1e8, gravity=9.8):
    """A cantilever of 10:1:1 with little bending, [m]."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    kind = material("corotated", young=young)
    body = scene.add_solid(supple.block(cells, (2, 0.2, 0.2)), kind, density=1000)
    scene.pin(body.where(face(0, 0)))
    return scene


def wrung(gravity=0.0):
    """A bar whose end is rotated by two radians."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    body = scene.add_solid(
        supple.block((10, 2, 2), (1, 0.2, 0.2)), material("corotated", young=1e5), density=1000
    )
    scene.pin(body.where(face(0, 0)))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.1, 0.1), angle=2.0)
    scene.pin(body.where(face(0, 1)), motion=turn)
    return scene


def soft_next_to_stiff():
    """Two separate bodies; the forces in one are ten thousand times larger."""
    scene = supple.Scene(gravity=(0, -0.1, 0))
    stiff = scene.add_solid(supple.block(3), material("corotated", young=1e8), density=1000, name="stiff")
    scene.pin(stiff.where(face(0, 0)))
    scene.pin(stiff.where(face(0, 1)), motion=supple.Translate((0.5, 0, 0)))
    mesh = supple.block((8, 2, 2), (2, 0.3, 0.3), origin=(0, 0, 5))
    soft = scene.add_solid(mesh, material("corotated", young=1e4), density=1000, name="soft")
    scene.pin(soft.where(face(0, 0)))
    return scene


def missing(scene, result, **options):
    """The largest distance of a vertex from its equilibrium position [m], and the remaining energy [J]."""
    truth = supple.equilibrium(
        scene, solver=Hybrid(max_predicted_sweeps=0), stop=StopCriteria(tolerance=1e-11), **options
    )
    off = np.linalg.norm(result.positions - truth.positions, axis=1).max()
    return off, result.report.energy - truth.report.energy


CASES = {
    "cantilever": bar,
    "wrung": wrung,
    "soft beside stiff": soft_next_to_stiff,
    "tied": lambda: tied_blocks(material("corotated"), material("neo_hookean"), stiffness=1e6),
    "twisted": lambda: twisted(material("stable_neo_hookean")),
    "membrane": membrane,
    "net": net,
    **{f"{name} block": lambda name=name: cantilever(material(name), gravity=5) for name in HAND_WRITTEN},
}


@pytest.mark.parametrize("name", CASES)
def test_position_errors_are_within_a_factor_of_two(name):
    """Measured some sweeps before convergence, where forces are a poor indicator."""
    scene = CASES[name]()
    before = supple.equilibrium(
        scene, solver=PBNG(), stop=StopCriteria(tolerance=1e-3, position_tolerance=0.9)
    )
    off, energy = missing(scene, before)
    error_estimate = before.report.error_estimate
    assert error_estimate.stable
    assert error_estimate.worst.position_error_m == pytest.approx(off, rel=0.5)
    if energy > 1e-9 * abs(before.report.energy):
        assert error_estimate.energy_error == pytest.approx(energy, rel=0.5)


def test_refined_cantilevers_with_small_residuals_are_far_from_equilibrium():
    """At 1e-4, 5 % and more of the displacement is missing; the default continues until it is reached."""
    scene = bar((40, 4, 4))
    by_forces = supple.equilibrium(scene, solver=PBNG(), stop=StopCriteria(tolerance=1e-4))
    off, _ = missing(scene, by_forces)
    assert by_forces.report.outcome is Outcome.CONVERGED
    assert off > 0.02 * np.abs(by_forces.positions - by_forces.model.rest).max()
    for result in (supple.equilibrium(scene, solver=Hybrid()), supple.equilibrium(scene, solver=PBNG())):
        off, _ = missing(scene, result)
        assert result.report.outcome is Outcome.CONVERGED
        assert off < 2e-4 * 2.0
        assert result.report.error_estimate.position_error <= 1e-4


def test_warm_start_with_added_gravity():
    """The relative residual is below 1e-4 from the start, while all of the new displacement is missing."""
    begin = supple.equilibrium(wrung(), solver=Hybrid(), tolerance=1e-8).positions
    scene = wrung(gravity=0.02)
    idle = supple.equilibrium(scene, stop=StopCriteria(tolerance=1e-4), initial=begin)
    assert idle.report.iterations == 0
    off, _ = missing(scene, idle, initial=begin)
    result = supple.equilibrium(scene, solver=Hybrid(), initial=begin, position_tolerance=1e-5)
    assert result.report.iterations > 0
    assert missing(scene, result, initial=begin)[0] < 0.1 * off


def test_soft_body_next_to_a_stretched_stiff_one():
    """Each body is judged by its own forces."""
    scene = soft_next_to_stiff()
    for solver in (PBNG(), Hybrid()):
        result = supple.equilibrium(scene, solver=solver)
        assert result.report.outcome is Outcome.CONVERGED
        assert missing(scene, result)[0] < 2e-4 * 2.0
    names = [body.body for body in result.report.error_estimate.bodies]
    assert names == ["stiff", "soft"]


def test_resting_bodies_next_to_a_distant_one():
    """In float32, the rounding of a body that moves by a kilometer does not affect another."""
    scene = supple.Scene(gravity=(0, 0, 0))
    distant = scene.add_solid(supple.block(2), material("corotated", young=1e5), density=1)
    scene.pin(distant.where(face(0, 0)), motion=supple.Translate((1000, 0, 0)))
    near = scene.add_solid(supple.block(2, origin=(0, 0, 5)), material("corotated", young=1e3), density=1)
    scene.pin(near.where(face(0, 0)))
    scene.pin(near.where(face(0, 1)), motion=supple.Translate((1e-4, 0, 0)))
    model = build_model(scene, True)
    start = model.rest.copy()
    start[distant.vertices] += [1000, 0, 0]
    result = supple.equilibrium(
        model, solver=PBNG(), initial=start, precision="float32", stop=StopCriteria(tolerance=1e-3)
    )
    stretched = result.positions[near.vertices] - near.points
    middle = np.abs(near.points[:, 0] - 0.5) < 1e-9
    np.testing.assert_allclose(stretched[middle, 0], 5e-5, rtol=0.1)


def test_unstable_equilibria_are_reported():
    """A compressed straight column would buckle; a pulled one is stable."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((2, 20, 2), (0.1, 1, 0.1)), material("corotated", young=1e5))
    scene.pin(body.where(face(1, 0)))
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0, -0.15, 0)))
    problem = supple.solve.batch_solve.make_problem(scene, True, supple.Backend())
    problem.positions = problem.model.rest * [1, 0.85, 1]
    error_estimate = estimate_error(problem)
    assert not error_estimate.stable
    assert "not stable" in str(error_estimate)
    problem.positions = problem.model.rest * [1, 1.15, 1]
    assert estimate_error(problem).stable


def test_position_errors_at_rest_and_of_unsupported_bodies():
    """All forces are rounding."""
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(2), material("corotated"))
    report = supple.equilibrium(scene).report
    assert report.error_estimate.worst.position_error_m == 0
    assert report.error_estimate.stable


def test_vanishing_forces_away_from_rest_are_not_stable():
    """With all vertices at one point stable neo-Hookean has no forces, but large energy."""
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(2), material("stable_neo_hookean"))
    problem = supple.solve.batch_solve.make_problem(scene, True, supple.Backend())
    problem.positions = np.zeros_like(problem.model.rest)
    assert problem.balance().at_rest
    assert not estimate_error(problem).stable


def test_error_estimate_is_omitted_without_position_tolerance():
    scene = cantilever(material("corotated"))
    assert supple.equilibrium(scene, position_tolerance=None).report.error_estimate is None
    assert supple.equilibrium(scene, max_iterations=10, tolerance=None).report.error_estimate is None
    assert next(supple.simulate(scene, quasistatic=False, frames=1)).report.error_estimate is None
    assert next(supple.simulate(scene, quasistatic=True, frames=1)).report.error_estimate is not None


def test_limits_take_precedence_over_the_position_tolerance():
    """The solve ends at its limit and reports its distance."""
    report = supple.equilibrium(bar(), solver=PBNG(), max_iterations=30).report
    assert report.outcome is Outcome.MAX_ITERATIONS
    assert report.error_estimate.position_error > 1e-4
    timed = supple.equilibrium(bar(), solver=PBNG(), time_limit=1e-3).report
    assert timed.outcome is Outcome.TIME_LIMIT
    assert timed.error_estimate is None
    assert any("time limit was reached before" in note for note in timed.notes)
    assert not any("time limit" in note for note in report.notes)


def test_reports_are_plain_data():
    report = supple.equilibrium(soft_next_to_stiff()).report
    error_estimate = json.loads(json.dumps(report.to_dict()))["error_estimate"]
    assert [body["body"] for body in error_estimate["bodies"]] == ["stiff", "soft"]
    assert error_estimate["bodies"][1]["position_error"] == pytest.approx(
        error_estimate["bodies"][1]["position_error_m"] / 2.0
    )
    assert "distance to the equilibrium" in str(report)


def test_position_error_relative_to_zero_displacement():
    """At rest all of the displacement is missing."""
    problem = supple.solve.batch_solve.make_problem(bar(), True, supple.Backend())
    solve(problem, PBNG(), StopCriteria(max_iterations=1))
    problem.positions = problem.model.rest
    error_estimate = estimate_error(problem)
    assert error_estimate.worst.of_displacement == math.inf
    assert error_estimate.worst.position_error_m > 0


@pytest.mark.parametrize("position_tolerance", [0, -1, 1, math.nan, "near"])
def test_position_tolerances_are_checked(position_tolerance):
    with pytest.raises((ValueError, TypeError), match="position_tolerance"):
        StopCriteria(position_tolerance=position_tolerance)
