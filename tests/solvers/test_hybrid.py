"""The hybrid solver converges monotonically in energy, to at most that of Newton."""

import math
from itertools import pairwise

import numpy as np
import pytest
from problems import (
    BARRIERS,
    FINITE,
    HAND_WRITTEN,
    cantilever,
    face,
    flattened,
    material,
    membrane,
    net,
    scrambled,
    tied_blocks,
    twisted,
)
from test_exact_states import uneven

import supple
from supple import PBNG, Newton, Outcome
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers import Hybrid
from supple.solvers.newton_methods.float64_problem import to_float64
from supple.solvers.newton_methods.line_search import Start, quarter_until_lower
from supple.solvers.newton_methods.rate_estimate import RateEstimate, TimeBudget


def slender(kind, gravity=0.1):
    """A bar of 16:1:1 with large bending."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    body = scene.add_solid(supple.block((16, 2, 2), (4, 0.25, 0.25)), kind, density=10)
    scene.pin(body.where(face(0, 0)))
    return scene


def two_bodies(kind):
    """Two distant bodies, one a thousand times stiffer."""
    scene = slender(kind)
    other = type(kind)(young=1e3 * kind.young, poisson=kind.poisson)
    body = scene.add_solid(supple.block((3, 3, 3), (1, 1, 1), origin=(0, 0, 50)), other, density=10)
    scene.pin(body.where(face(0, 0)))
    return scene


SCENES = {
    "slender": slender,
    "block": lambda kind: cantilever(kind, gravity=20),
    "twisted": lambda kind: twisted(kind, angle=1.0),
    "tied": lambda kind: tied_blocks(kind, kind, stiffness=1e8),
    "two bodies": two_bodies,
}
STARTS = {"scrambled": scrambled, "flattened": flattened}
EACH_MATERIAL = pytest.mark.parametrize("name", HAND_WRITTEN)


def descend(scene, tolerance=1e-8, **options):
    """Report of Newton steps alone, with a check that the energy never rises."""
    solver = Hybrid(max_predicted_sweeps=0)
    report = supple.equilibrium(
        scene, solver=solver, tolerance=tolerance, record_history=True, **options
    ).report
    noise = 1e-9 * max(map(abs, report.history.energy))
    assert all(b <= a + noise for a, b in pairwise(report.history.energy))
    return report


@EACH_MATERIAL
@pytest.mark.parametrize("scene", SCENES)
def test_newton_steps_converge(name, scene):
    """To 1e-8 in few steps, with at most the energy of Newton."""
    made = SCENES[scene](material(name))
    report = descend(made)
    assert report.outcome is Outcome.CONVERGED, report
    assert report.iterations <= 40
    newton = supple.equilibrium(made, solver=Newton(), tolerance=1e-6, max_iterations=300).report
    assert report.energy <= newton.energy + 1e-6 * abs(newton.energy)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("start", STARTS)
def test_all_starts_converge(name, start):
    model = build_model(cantilever(material(name), gravity=1.0), True)
    begin = STARTS[start](model)
    swept = supple.equilibrium(model, solver=Hybrid(), tolerance=1e-8, initial=begin).report
    for report in (descend(model, initial=begin), swept):
        assert report.outcome is Outcome.CONVERGED, report


@pytest.mark.parametrize("make", [membrane, net])
def test_elements_of_other_kinds(make):
    report = descend(make())
    assert report.outcome is Outcome.CONVERGED, report


def test_nearly_incompressible_bodies():
    report = descend(slender(material("stable_neo_hookean", poisson=0.4995)))
    assert report.outcome is Outcome.CONVERGED, report


def test_easy_scenes_use_sweeps_only():
    """Their number and result equal those of PBNG."""
    scene = twisted(material("corotated"))
    sweeps = supple.equilibrium(scene, solver=PBNG(), tolerance=1e-4)
    hybrid = supple.equilibrium(scene, solver=Hybrid(), tolerance=1e-4)
    assert hybrid.report.iterations == sweeps.report.iterations
    np.testing.assert_array_equal(hybrid.positions, sweeps.positions)


def test_hard_scenes_switch_to_newton_early():
    scene = slender(material("corotated"))
    report = supple.equilibrium(scene, solver=Hybrid(), tolerance=1e-8).report
    assert report.outcome is Outcome.CONVERGED
    assert report.iterations < 100
    assert any("Newton step" in note for note in report.notes)


def test_max_iterations_count_sweeps():
    """An iteration budget without tolerance equals PBNG's."""
    scene = slender(material("corotated"))
    for solver in (Hybrid(), Hybrid(iterations=60)):
        limit = {"max_iterations": 60} if solver.iterations is None else {}
        a = supple.equilibrium(scene, solver=solver, tolerance=None, **limit)
        b = supple.equilibrium(scene, solver=PBNG(), tolerance=None, max_iterations=60)
        np.testing.assert_array_equal(a.positions, b.positions)


@pytest.mark.parametrize("name", ["corotated", "neo_hookean"])
def test_float32_ends_at_its_rounding_limit_and_reports_it(name):
    scene = slender(material(name))
    report = supple.equilibrium(scene, solver=Hybrid(), tolerance=1e-10, precision="float32").report
    reference = supple.equilibrium(scene, solver=Hybrid(), tolerance=1e-10).report
    assert report.outcome is Outcome.ROUNDING_LIMIT, report
    assert any("float64" in note for note in report.notes)
    assert report.energy == pytest.approx(reference.energy, rel=1e-4)


def test_time_steps_equal_those_of_newton():
    """Backward Euler with long steps, on which sweeps alone would take hundreds."""
    scene = slender(material("corotated", young=1e5), gravity=1.0)
    frames = [
        [
            frame.positions
            for frame in supple.simulate(
                scene, solver=solver, dt=0.5, frames=4, quasistatic=False, tolerance=1e-8
            )
        ]
        for solver in (Hybrid(max_predicted_sweeps=0), Newton())
    ]
    for a, b in zip(*frames, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_bodies_in_flight():
    """Only inertia restrains them."""
    scene = supple.Scene(gravity=(0, -10, 0), quasistatic=False)
    scene.add_solid(supple.block((6, 2, 2), (3, 1, 1)), material("stable_neo_hookean"), density=10)
    *_, last = supple.simulate(scene, solver=Hybrid(max_predicted_sweeps=0), dt=0.1, frames=3, tolerance=1e-8)
    assert last.report.ok
    fall = last.positions - last.model.rest
    np.testing.assert_allclose(fall, np.broadcast_to([0, -10 * 0.01 * 6, 0], fall.shape), atol=1e-6)


def test_saddle_points_are_left():
    """A compressed straight column is at a saddle; slightly perturbed, it buckles completely."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((2, 20, 2), (0.1, 1, 0.1)), material("corotated", young=1e5))
    scene.pin(body.where(face(1, 0)))
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0, -0.1, 0)))
    model = build_model(scene, True)
    perturbation = np.zeros_like(model.rest)
    perturbation[:, 0] = 1e-6 * np.sin(np.pi * model.rest[:, 1])
    report = descend(model, initial=model.rest + perturbation)
    straight = 0.5 * 1e5 * 0.1**2 * 0.01  # ½ E ε² V [J]
    assert report.outcome is Outcome.CONVERGED
    assert report.energy < 0.8 * straight


def test_barriers_are_not_crossed():
    """Steps that would invert elements of infinite energy are shortened."""
    scene = twisted(material("log_neo_hookean"), angle=1.2, stretch=-0.2)
    report = descend(scene)
    assert report.outcome is Outcome.CONVERGED
    assert report.inverted == 0


def test_unloaded_body_at_rest_needs_no_iteration():
    """A body at rest without loads stays there."""
    report = descend(cantilever(material("corotated"), gravity=0))
    assert report.outcome is Outcome.CONVERGED
    assert report.iterations == 0


def test_straight_paths_converge_more_slowly():
    """Straight and curved paths reach the same energy."""
    scene = slender(material("corotated"))
    rotation, straight = (
        supple.equilibrium(scene, solver=Hybrid(max_predicted_sweeps=0, path=path), tolerance=1e-8).report
        for path in ("rotation", "straight")
    )
    assert straight.ok
    assert straight.energy == pytest.approx(rotation.energy, rel=1e-9)
    assert rotation.iterations < straight.iterations


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_predicted_sweeps": -1}, "max_predicted_sweeps"),
        ({"max_rotation": 0}, "max_rotation"),
        ({"path": "curved"}, "path"),
        ({"iterations": 0}, "iterations"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Hybrid(**options)


def test_rate_estimates():
    """A constant rate is extrapolated; without decrease the estimate is infinite."""
    steady, stuck, short = RateEstimate(1e-8), RateEstimate(1e-8), RateEstimate(1e-8)
    for k in range(5):
        steady.record(10 * k, 10.0**-k)
        stuck.record(10 * k, 0.5)
    short.record(10, 0.1)
    assert steady.remaining == pytest.approx(40)
    assert stuck.remaining == math.inf
    assert short.remaining == 0
    before = steady.remaining
    steady.record(50, math.inf)
    assert before < steady.remaining < math.inf


@pytest.mark.parametrize("name", ["corotated", "neo_hookean", "stable_neo_hookean"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_unstable_equilibria_are_left(name, tolerance):
    """Straight under compression, forces balance to the last digit, and sweeps change nothing."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((2, 20, 2), (0.1, 1, 0.1)), material(name, young=1e5))
    scene.pin(body.where(face(1, 0)))
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0, -0.1, 0)))
    start = supple.equilibrium(scene, solver=PBNG(), stop=supple.StopCriteria(1e-10)).positions
    for precision in ("float64", "float32"):
        report = supple.equilibrium(scene, tolerance=tolerance, initial=start, precision=precision).report
        assert report.error_estimate.stable, report
        assert report.energy < 4.5
        assert report.outcome is Outcome.CONVERGED or precision == "float32"


INVERTED = {
    **STARTS,
    "mirrored": lambda model: model.rest * [-1, 1, 1],
    "at one point": lambda model: np.full_like(model.rest, 0.5),
}


@pytest.mark.parametrize("name", BARRIERS)
@pytest.mark.parametrize("start", INVERTED)
def test_inverted_bodies_with_a_barrier_are_recovered(name, start):
    """Their initial energy is infinite; they reach the equilibrium from rest, with a note."""
    scene = cantilever(material(name), gravity=1.0)
    model = build_model(scene, True)
    righted = supple.equilibrium(scene, tolerance=1e-8, initial=INVERTED[start](model))
    from_rest = supple.equilibrium(scene, tolerance=1e-8)
    assert righted.report.outcome is Outcome.CONVERGED, righted.report
    assert righted.report.inverted == 0
    assert any("removed the inversions" in note for note in righted.report.notes)
    np.testing.assert_allclose(righted.positions, from_rest.positions, atol=1e-5)


@pytest.mark.parametrize("name", BARRIERS)
def test_pinned_inverted_bodies_fail_with_the_reason(name):
    """Elements with four pinned corners cannot be recovered, and the state is unchanged."""
    scene = supple.Scene(gravity=(0, -1, 0))
    body = scene.add_solid(supple.block((3, 1, 1)), material(name), density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 0.5))
    model = build_model(scene, True)
    problem = Problem(model, "float64")
    mirrored = model.rest * [-1, 1, 1]
    problem.positions = mirrored
    report = supple.solve.batch_solve.solve(problem, Hybrid(), supple.StopCriteria(1e-4))
    assert report.outcome is Outcome.FAILED
    assert any("load_steps=" in note for note in report.notes)
    np.testing.assert_allclose(problem.positions, mirrored)


def test_quadratic_energy_needs_one_step():
    for tolerance in (1e-4, 1e-8):
        report = descend(slender(material("linear_elastic")), tolerance)
        assert report.iterations == 1, report


def test_negative_curvature_of_few_elements_is_detected():
    """The energy is lower only very near, so that the first step is too long."""
    at = []
    problem = type("Parabola", (), {"energy": lambda self: at[-1] * (at[-1] - 1e-4)})()
    reached = quarter_until_lower(problem, at.append, Start(0.0, 1e-15, 1.0), 0.0, 1.0)
    assert reached is not None
    assert reached.t < 1e-4
    assert quarter_until_lower(problem, lambda t: at.append(-t), Start(0.0, 1e-15, 1.0), 0.0, 1.0) is None


def test_remaining_time_limits_newton_steps():
    """The first Newton step waits until the time of sweeps is known; later ones are predicted by the last."""
    allowance, endless = TimeBudget(10.0), TimeBudget(None)
    assert endless.allows_newton
    assert not allowance.allows_newton
    for each in (allowance, endless):
        with each.charge_sweeps(5):
            pass
        with each.charge_steps(1):
            pass
        assert each.allows_newton
        assert each.allows_step
    assert 0 < allowance.step < 10.0
    allowance.left = 0.5 * allowance.step
    assert not allowance.allows_step
    with allowance.charge_sweeps(1):
        pass
    assert not allowance.allows_step


def test_time_limits_are_respected():
    """A limit too short for Newton steps is used for sweeps; no step begins that would exceed it."""
    scene = slender(material("corotated"))
    supple.equilibrium(scene, tolerance=1e-8)
    report = supple.equilibrium(scene, stop=supple.StopCriteria(1e-8, time_limit=1e-3)).report
    assert report.outcome is Outcome.TIME_LIMIT
    assert not any("Newton step" in note for note in report.notes)


def test_active_set_problems_have_the_same_constraints():
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), material("corotated"))
    scene.pin(body.where(face(0, 0)), motion=supple.Translate((0.5, 0, 0)), axes="x")
    problem = Problem(build_model(scene, True), "float32")
    problem.begin_step(math.inf)
    twin = to_float64(problem)
    assert np.abs(twin.states.constrained_at).max() == pytest.approx(0.5)
    np.testing.assert_allclose(twin.states.constrained_at, problem.states.constrained_at)


@pytest.mark.parametrize("contrast", [1e3, 1e6])
def test_stiff_segments_in_a_soft_bar(contrast):
    """Paths rotate the stiff segments without stretching them."""
    report = supple.equilibrium(uneven(contrast)).report
    assert report.outcome is Outcome.CONVERGED, report
    assert report.iterations < 100


def test_newton_steps_follow_sweeps_at_the_rounding_limit():
    """In float32, the forces of a stiff bar of long cells are rounding far from the equilibrium."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.Corotated(young=1e12, poisson=0.3)
    body = scene.add_solid(supple.block((40, 2, 2), (40, 0.2, 0.2)), kind, density=1000)
    scene.pin(body.where(face(0, 0)))
    report = supple.equilibrium(scene, precision="float32").report
    assert report.outcome in (Outcome.CONVERGED, Outcome.ROUNDING_LIMIT)
    assert report.error_estimate.position_error <= 1e-4


def test_stiff_body_swings_on_its_thin_tip():
    """Cells grow from 0.1 mm at the pin to 0.1 m: stretch along the path of a step would outweigh its gain
    unless the path is followed closely."""
    mesh = supple.block((40, 2, 2))
    X = np.asarray(mesh.points)
    s = 1e-3 ** (1 - X[:, :1])
    scene = supple.Scene(gravity=(0, -9.8, 0))
    tapered = supple.TetMesh(np.concatenate([s, 0.2 * s * (X[:, 1:] - 0.5)], axis=1), np.asarray(mesh.tets))
    body = scene.add_solid(tapered, supple.StableNeoHookean(young=1e11, poisson=0.3), density=1000)
    scene.pin(body.where(face(0, 1e-3)))
    report = supple.equilibrium(scene).report
    assert report.outcome is Outcome.CONVERGED
    assert report.error_estimate.stable
    assert report.iterations < 60


def test_energy_rise_in_the_first_sweeps_returns_to_the_start():
    """Sweeps of a strong muscle overshoot into its stiff range before the first check. Its fibers start at
    the length of vanishing total stress."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = supple.materials.Muscle(young=1e4, poisson=0.0, strength=1e5, fiber=(1, 0, 0), activation=1.0)
    body = scene.add_solid(supple.block(3), kind)
    for axis, name in enumerate("xyz"):
        scene.pin(body.where(face(axis, 0)), axes=name)
    results = [supple.equilibrium(scene, **limit) for limit in ({}, {"time_limit": 60.0})]
    for result in results:
        assert result.report.outcome is supple.Outcome.CONVERGED
        assert result.positions[:, 0].max() == pytest.approx(0.47628, abs=1e-5)
