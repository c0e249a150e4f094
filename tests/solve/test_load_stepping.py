"""Load stepping: loads and motions that grow in steps."""

from dataclasses import replace

import numpy as np
import pytest
from problems import HAND_WRITTEN, cantilever, face, material

import supple
from supple import Outcome
from supple.solve.batch_solve import solve
from supple.solve.load_stepping import calls_for_shorter_steps


def squeezed(name, by, cells=(8, 2, 2)):
    """A compressed bar; in a single step its last layer would invert."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells, (1, 0.5, 0.5)), material(name, young=1e5))
    scene.pin(body.where(face(0, 0)))
    scene.pin(body.where(face(0, 1)), motion=supple.Translate((-by, 0, 0), duration=3, start_time=1))
    return scene


def wrung(turns):
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((12, 2, 2), (1, 0.2, 0.2)), material("corotated", young=1e5))
    scene.pin(body.where(face(0, 0)))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.1, 0.1), angle=2 * np.pi * turns)
    scene.pin(body.where(face(0, 1)), motion=turn)
    return scene


def test_rotations_are_stepped():
    """Two full turns end at the identity."""
    at_once, in_steps = (supple.equilibrium(wrung(2), load_steps=steps) for steps in (1, 20))
    assert at_once.report.energy == pytest.approx(0, abs=1e-9)
    assert in_steps.report.ok
    assert in_steps.report.energy > 1
    assert len(in_steps.stages) == 19
    energies = [stage.report.energy for stage in in_steps.stages[:5]]
    assert energies == sorted(energies)  # later it writhes, which releases some


def test_stages_are_equilibria_under_partial_loads():
    """Those of half of the gravity; forces are evaluated with the acting load."""
    full_load, half = (cantilever(material("corotated"), gravity=g) for g in (2.0, 1.0))
    (stage,) = supple.equilibrium(full_load, load_steps=2, tolerance=1e-8).stages
    expected = supple.equilibrium(half, tolerance=1e-8)
    np.testing.assert_allclose(stage.positions, expected.positions, atol=1e-6)
    loads = [result.evaluate().net_force for result in (stage, expected)]
    np.testing.assert_allclose(*loads, atol=1e-6 * np.abs(loads).max())


@pytest.mark.parametrize("by", [0.2, 0.6])
def test_barrier_materials_trigger_load_steps(by):
    scene = squeezed("log_neo_hookean", by)
    result = supple.equilibrium(scene, tolerance=1e-8)
    assert result.report.outcome is Outcome.CONVERGED, result.report
    assert result.report.inverted == 0
    assert result.stages
    assert any("were applied in" in note for note in result.report.notes)


@pytest.mark.parametrize("name", [name for name in HAND_WRITTEN if name != "log_neo_hookean"])
def test_easy_equilibria_need_no_steps(name):
    result = supple.equilibrium(squeezed(name, 0.2))
    assert result.report.outcome is Outcome.CONVERGED
    assert not result.stages


def test_starts_of_infinite_energy_still_fail():
    """Partial loads do not help solvers that cannot recover inverted elements."""
    scene = cantilever(material("log_neo_hookean"), gravity=1.0)
    start = np.concatenate([body.points for body in scene.bodies]) * [1, -1, 1]
    result = supple.equilibrium(scene, solver="pbng", initial=start)
    assert result.report.outcome is Outcome.FAILED
    assert not result.stages


def test_load_steps_are_checked():
    with pytest.raises(ValueError, match="load_steps"):
        supple.equilibrium(squeezed("corotated", 0.1), load_steps=0)


def test_stagnating_equilibrium_is_reached_in_shorter_steps():
    """A moved pin stretches one layer of cells beyond the locking stretch of Gent's material."""
    scene = supple.Scene(gravity=(0, 0, 0))
    material = supple.materials.Gent(shear_modulus=1e4, limit=3.0, bulk_modulus=1e5)
    bar = scene.add_solid(supple.block((16, 2, 2), size=(1, 0.25, 0.25)), material)
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    scene.pin(bar.where(lambda X: X[:, 0] >= 1), motion=supple.Translate((0.3, 0, 0)))
    result = supple.equilibrium(scene)
    stepped = supple.equilibrium(scene, load_steps=16)
    assert result.report.outcome is supple.Outcome.CONVERGED
    assert result.report.energy == pytest.approx(stepped.report.energy, rel=1e-6)
    assert any("longer steps did not converge" in note for note in result.report.notes)


@pytest.mark.parametrize("by", ["motion", "positions"])
def test_stagnating_batch_is_reached_in_shorter_steps(by):
    scene = supple.Scene(gravity=(0, 0, 0))
    material = supple.materials.Gent(shear_modulus=1e4, limit=3.0, bulk_modulus=1e5)
    bar = scene.add_solid(supple.block((16, 2, 2), size=(1, 0.25, 0.25)), material)
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    end = bar.where(lambda X: X[:, 0] >= 1)
    scene.pin(end)
    pulled = [supple.Translate((way, 0, 0)) for way in (0.3, 0.01)]
    targets = pulled if by == "motion" else [motion(end.points, np.inf) for motion in pulled]
    distant, near = supple.equilibria(scene, [supple.Variation(pins={end: target}) for target in targets])
    assert distant.report.outcome is near.report.outcome is supple.Outcome.CONVERGED
    assert any("longer steps did not converge" in note for note in distant.report.notes)
    assert not any("longer steps" in note for note in near.report.notes)
    scene.pins[-1] = replace(scene.pins[-1], motion=pulled[0])
    reference = supple.equilibrium(scene, load_steps=8)
    np.testing.assert_allclose(distant.positions, reference.positions, atol=1e-4)


def pressed_pad(way):
    """A pad, and a plate above it that moves down as a whole."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="weak")
    pad = scene.add_solid(supple.block((3, 6, 3), (0.5, 1, 0.5)), supple.Corotated(young=1e5, poisson=0.3))
    plate = supple.block((4, 1, 4), (0.8, 0.2, 0.8), origin=(-0.15, 1.01, -0.15))
    scene.pin(pad.where(face(1, 0)))
    body = scene.add_solid(plate, supple.Corotated(young=1e5, poisson=0.3))
    scene.pin(body.all, motion=supple.Translate((0, -way, 0)))
    return scene


def test_surfaces_that_pass_each_other_at_once_meet_in_shorter_steps():
    """At once, the plate jumps into the pad by more than the search depth: converged, and without force."""
    result, stepped = (supple.equilibrium(pressed_pad(0.15), load_steps=steps) for steps in (1, 4))
    assert result.report.outcome is stepped.report.outcome is supple.Outcome.CONVERGED
    forces = [each.report.contact.bodies.forces["solid0"][1] for each in (result, stepped)]
    assert forces[0] == pytest.approx(forces[1], rel=1e-2)
    assert forces[0] < -1000
    assert any("longer steps did not converge" in note for note in result.report.notes)


@pytest.mark.parametrize(
    ("outcome", "residual", "expected"),
    [
        (Outcome.STAGNATED, 1e-3, True),
        (Outcome.FAILED, np.inf, True),
        (Outcome.INTERSECTING, 1e-5, True),
        (Outcome.ROUNDING_LIMIT, 0.3, True),
        (Outcome.ROUNDING_LIMIT, 1e-3, False),
        (Outcome.MAX_ITERATIONS, 0.3, False),
        (Outcome.CONVERGED, 1e-5, False),
    ],
)
def test_outcomes_that_call_for_shorter_steps(outcome, residual, expected):
    report = replace(supple.equilibrium(squeezed("corotated", 0.01)).report, outcome=outcome)
    assert calls_for_shorter_steps(replace(report, relative_residual=residual)) is expected


def test_nothing_is_repeated_where_no_step_would_differ(monkeypatch):
    """Without loads and motions, an equilibrium that intersects is solved once."""
    solves = []

    def intersecting(*args):
        report = solve(*args)
        solves.append(report)
        return replace(report, outcome=Outcome.INTERSECTING)

    monkeypatch.setattr("supple.solve.load_stepping.solve", intersecting)
    for way, count in ((0.0, 1), (0.02, 4)):
        solves.clear()
        result = supple.equilibrium(pressed_pad(way))
        assert result.report.outcome is Outcome.INTERSECTING
        assert len(solves) <= count
        assert len(solves) > 1 or way == 0
