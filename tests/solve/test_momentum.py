"""Balance of momentum in time steps of bodies with large internal forces."""

from dataclasses import replace

import numpy as np
import pytest

import supple
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.scene import build_model
from supple.solve.error_control import ErrorControl
from supple.solve.momentum import MomentumBalance
from supple.solve.report import Outcome
from supple.solvers.pbng import PBNG

MEMBRANE = supple.materials.PlaneStressStVK(young=2e6, poisson=0.45)


def balloon(pressure, resolution=4):
    """Inflated sphere, pinned at one vertex; it swings down under gravity."""
    scene = supple.Scene(quasistatic=False, dt=0.01)
    mesh = supple.meshes.sphere(radius=0.15, resolution=resolution)
    cloth = scene.add_cloth(mesh, MEMBRANE, thickness=3e-4, density=0.3)
    scene.add_cavity(cloth, pressure)
    scene.pin(cloth.where([int(np.argmax(mesh.points[:, 0]))]))
    return scene


def hanging_sheet(pins, cells=12, **options):
    scene = supple.Scene(quasistatic=False, dt=1 / 48, **options)
    material = supple.materials.PlaneStressStVK(young=5e5, poisson=0.3)
    cloth = scene.add_cloth(
        supple.sheet(cells, (0.8, 0.8), plane="zx"), material, thickness=4e-4, density=0.15
    )
    scene.pin(cloth.where(pins))
    return scene


def last_frame(scene, frames, **options):
    *_, frame = supple.simulate(scene, frames=frames, **options)
    return frame


@pytest.mark.parametrize("pressure", [1e3, 3e4])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_converged_balloon_falls_as_it_should(pressure, precision):
    """Forces of the membrane are a thousand times the weight."""
    scene = balloon(pressure)
    frame = last_frame(scene, 10, precision=precision)
    reference = last_frame(scene, 10, tolerance=1e-9)
    assert frame.report.ok
    assert frame.report.momentum_error <= 1
    fall, expected = (each.positions[:, 1].mean() for each in (frame, reference))
    assert expected < -0.02
    assert fall == pytest.approx(expected, rel=0.03)


CELLS, YOUNG, STRETCH, THICKNESS, DENSITY = 200, 5e5, 1.1, 4e-4, 0.15


def taut_strip(*young):
    """Strips stretched between pins; the tension of one with YOUNG is ten thousand times its weight."""
    scene = supple.Scene(quasistatic=False, dt=1 / 30, damping=0.05)
    mesh = supple.sheet((CELLS, 2), size=(1, 2 / CELLS), plane="xz")
    rest = supple.TriMesh(mesh.points / (STRETCH, 1, 1), mesh.triangles)
    for each in young or (YOUNG,):
        material = supple.materials.PlaneStressStVK(young=each, poisson=0.0)
        strip = scene.add_cloth(mesh, material, None, density=DENSITY, thickness=THICKNESS, rest=rest)
        scene.pin(strip.where(lambda X: (X[:, 0] <= 1e-9) | (X[:, 0] >= 1 - 1e-9)))
    return scene


@pytest.mark.parametrize("solver", ["hybrid", "pbng"])
def test_a_taut_strip_sags_by_its_weight(solver):
    """The sag of a string is ρ g L² / 8 T."""
    frame = last_frame(taut_strip(), 20, solver=solver)
    tension = YOUNG * (STRETCH**2 - 1) / 2 * STRETCH * THICKNESS
    assert frame.report.ok
    sag = -(frame.positions - frame.model.rest)[:, 1].min()
    assert sag == pytest.approx(DENSITY / STRETCH * 9.81 / 8 / tension, rel=0.02)


def hovering(scene):
    """Problem at the start of a step whose bodies have not moved, and its error control."""
    problem = Problem(build_model(scene), "float64")
    problem.loads.set_time_step(scene.dt)
    problem.begin_step(scene.dt, scene.dt)
    stop = StopCriteria(tolerance=2e-4, position_tolerance=None)
    return problem, stop, PBNG().begin(problem)


@pytest.mark.parametrize("position_tolerance", [None, 0.5])
def test_no_path_accepts_a_strip_that_hovers(position_tolerance):
    """Neither members refined in batches nor stagnated solves converge with unbalanced momentum."""
    problem, stop, run = hovering(taut_strip())
    balances = problem.diagnostics.balances()
    assert balances[0].relative_residual < stop.tolerance
    control = ErrorControl(problem, replace(stop, position_tolerance=position_tolerance), run)
    assert control.momentum_error(stop.tolerance, balances[0]) > 1
    assert control.accurate_members(dict(balances)) == []
    assert not control.accepts(balances[0])
    assert control.judge_outcome(Outcome.STAGNATED, balances[0]) is Outcome.STAGNATED


def test_forces_in_another_body_do_not_hide_the_momentum_of_a_strip():
    alone = momentum_error_of(*hovering(taut_strip())[:2])
    assert momentum_error_of(*hovering(taut_strip(YOUNG, 1e6 * YOUNG))[:2]) == pytest.approx(alone, rel=1e-6)


def momentum_error_of(problem, stop):
    return MomentumBalance(problem).error(stop.tolerance, problem.balance(), supported=True)


@pytest.mark.parametrize("pins", [[0], [0, 12]], ids=["corner", "two corners"])
def test_a_sheet_that_falls_too_slowly_is_far_from_balance(pins):
    few = last_frame(hanging_sheet(pins), 4, solver=supple.PBNG(iterations=8))
    reference = last_frame(hanging_sheet(pins), 4, tolerance=1e-9)
    assert few.positions[:, 1].mean() > 0.8 * reference.positions[:, 1].mean()
    assert few.report.momentum_error > 1
    assert not few.report.ok
    assert any("loads and inertia" in note for note in few.report.notes)
    many = last_frame(hanging_sheet(pins), 4, solver=supple.PBNG(iterations=400))
    assert many.report.ok
    assert many.report.momentum_error < 1


def test_pins_prevent_all_rigid_motions_of_a_clamped_body():
    scene = supple.Scene(quasistatic=False, dt=0.01)
    body = scene.add_solid(supple.block(2), supple.NeoHookean(young=1e5, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] == 0))
    assert last_frame(scene, 2, solver=supple.PBNG(iterations=1)).report.momentum_error == 0


def test_only_the_rotation_about_a_hinge_counts():
    """Two bodies joined by attachments are one component; two pins on a line leave one rotation."""
    scene = supple.Scene(quasistatic=False, dt=0.01)
    material = supple.NeoHookean(young=1e5, poisson=0.3)
    left = scene.add_solid(supple.block(1), material, density=1000)
    right = scene.add_solid(supple.block(1, origin=(1, 0, 0)), material, density=1000)
    scene.attach(left.where(lambda X: X[:, 0] == 1), right, stiffness=1e5)
    scene.pin(left.where(lambda X: (X[:, 0] == 0) & (X[:, 1] == 0)))
    problem = Problem(build_model(scene), "float64")
    balance = MomentumBalance(problem)
    count, component, _ = balance._components
    assert count == 1
    assert not component.any()
    assert not balance.applies  # no time step has begun
    problem.loads.set_time_step(0.01)
    problem.begin_step(0.01, 0.01)
    error = MomentumBalance(problem).error(1e-4, problem.balance())
    assert error == pytest.approx(100, rel=0.05)  # û without the weight: all of it is missing, 1/√1e-4


def test_a_body_without_loads_at_rest_has_no_error():
    frame = last_frame(hanging_sheet([0], gravity=(0, 0, 0)), 2)
    assert frame.report.ok
    assert frame.report.momentum_error == 0


@pytest.mark.parametrize("solver", ["hybrid", "pbng"])
def test_loads_that_cancel_do_not_prevent_convergence(solver):
    """A bar is compressed at its sides: the sum of the loads is rounding, so that momentum says nothing."""
    scene = supple.Scene(quasistatic=False, dt=0.01, gravity=(0, 0, 0))
    bar = scene.add_solid(
        supple.block((8, 2, 2), size=(4, 1, 1)), supple.NeoHookean(young=1e5, poisson=0.3), density=1000
    )
    scene.pin(bar.where(lambda X: X[:, 0] <= X[:, 0].min() + 1e-9))
    for side in (-1, 1):
        face = bar.where(lambda X, side=side: np.abs(X[:, 1] - X[:, 1].mean() - side / 2) < 1e-9)
        scene.add_force(face, (0, -1e4 * side / 27, 0))
    frame = last_frame(scene, 3, solver=solver)
    assert frame.report.ok
    assert frame.report.momentum_error == 0
