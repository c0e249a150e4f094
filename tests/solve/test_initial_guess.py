"""Initial guess of a step: free fall is exact for any number of iterations."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import PBNG
from supple.problem import Problem
from supple.problem.initial_guess import connect_bodies, neighbors
from supple.solve.integrators import RULES
from supple.solvers import SOLVERS

FRAMES, STEP = 4, 1 / 48
FALL = {"backward_euler": FRAMES * (FRAMES + 1) / 2, "bdf2": FRAMES**2 / 2, "trapezoidal": FRAMES**2 / 2}
"""Of a body that starts at rest, in g Δt²: the sums of each rule in closed form."""


def stiff_sheet(**options):
    scene = supple.Scene(quasistatic=False, dt=STEP, frames=FRAMES, **options)
    mesh, material = (
        supple.sheet(6, (0.8, 0.8), plane="xz"),
        supple.materials.PlaneStressStVK(young=5e5, poisson=0.3),
    )
    return scene, scene.add_cloth(mesh, material, density=375.0, thickness=4e-4)


def stiff_block(**options):
    """Of a material that every method knows."""
    scene = supple.Scene(quasistatic=False, dt=STEP, frames=FRAMES, **options)
    return scene, scene.add_solid(supple.block(2), supple.Corotated(young=1e5, poisson=0.3), density=1e3)


def fallen(scene, body, solver, **options):
    *_, last = supple.simulate(scene, solver=solver, **options)
    return last.positions_of(body) - body.mesh.points


@pytest.mark.parametrize("integrator", FALL)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize("name", SOLVERS)
def test_free_fall_is_exact_for_any_solver_and_number_of_iterations(name, iterations, precision, integrator):
    if precision not in SOLVERS[name].precisions:
        pytest.skip(f"{name} does not compute in {precision}")
    if integrator in RULES and not SOLVERS[name]().balances_forces:
        pytest.skip(f"{name} has no forces for {integrator}")
    scene, body = stiff_block(integrator=integrator)
    expected = np.array([0.0, -9.81 * FALL[integrator] * STEP**2, 0.0])
    moved = fallen(scene, body, SOLVERS[name](iterations=iterations), precision=precision)
    assert np.abs(moved - expected).max() <= 1e-5 * np.abs(expected).max()


JOINTS = ("attachment", "spring", "cable", "weak contact")


def joined_blocks(joint):
    """Two blocks that share a side, and are joined to nothing else."""
    contact = supple.Contact("weak" if joint == "weak contact" else "none")
    scene = supple.Scene(quasistatic=False, dt=STEP, frames=FRAMES, contact=contact)
    first, second = (
        scene.add_solid(
            supple.block(n).translated((k, 0, 0)), supple.Corotated(young=1e5, poisson=0.3), density=d
        )
        for k, n, d in ((0, 2, 1e3), (1, 2 if joint == "spring" else 3, 5e2))
    )
    side = first.where(lambda X: X[:, 0] >= 1)
    if joint == "attachment":
        scene.attach(side, second, stiffness=1e6)
    elif joint == "spring":
        scene.add_springs(first.where([0, 1]), second.where([5, 7]), stiffness=1e4)
    elif joint == "cable":
        scene.add_springs(first.where([0]), second.where([0]), stiffness=1e4)
        scene.add_cable(first, [(0, 0, 0), (1, 1, 1)], length=9.0, stiffness=1e4)
    return scene, first, second


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize("name", SOLVERS)
def test_bodies_joined_only_to_each_other_fall_freely(name, iterations, joint):
    """They fell 0.005 to 0.5 of the way: a tie to another body counted as support."""
    if name == "fpxpbd" and joint in ("spring", "cable"):
        pytest.skip("fpxpbd has no projection for springs and cables")
    scene, *bodies = joined_blocks(joint)
    *_, last = supple.simulate(scene, solver=SOLVERS[name](iterations=iterations))
    fall = -9.81 * FALL["backward_euler"] * STEP**2
    for body in bodies:
        moved = last.positions_of(body) - body.mesh.points
        assert np.abs(moved - (0.0, fall, 0.0)).max() <= 1e-5 * abs(fall)


@pytest.mark.parametrize("support", ["pin", "point", "spring", "obstacle"])
def test_a_support_of_one_body_supports_all_that_are_joined_to_it(support):
    scene, first, second = joined_blocks("attachment")
    low = first.where(lambda X: X[:, 1] <= 0)
    if support == "pin":
        scene.pin(low)
    elif support == "point":
        scene.attach(low, None, stiffness=1e5)
    elif support == "spring":
        scene.add_springs(low, (0.0, -1.0, 0.0), stiffness=1e5)
    else:
        scene.add_obstacle(supple.Box(size=(0.5, 0.2, 2), center=(0, -0.1, 0.5)))
    problem = Problem(supple.scene.build_model(scene, False), "float64")
    problem.loads.set_time_step(STEP)
    problem.begin_step(STEP, STEP, guess="adaptive")
    np.testing.assert_array_equal(problem.positions, problem.model.rest)


@pytest.mark.parametrize("joint", JOINTS)
def test_a_load_on_one_body_accelerates_all_that_are_joined_to_it(joint):
    scene, first, _ = joined_blocks(joint)
    scene.gravity = (0, 0, 0)
    scene.add_force(first.where(lambda X: X[:, 0] <= 0), (0, 30, 0))
    problem = Problem(supple.scene.build_model(scene, False), "float64")
    problem.loads.set_time_step(STEP)
    problem.begin_step(STEP, STEP, guess="adaptive")
    moved, mass = problem.positions - problem.model.rest, problem.model.mass.sum()
    force = problem.loads.force.sum(axis=0)
    np.testing.assert_allclose(moved, np.tile(force / mass * STEP**2, (len(moved), 1)), rtol=1e-9)


def test_a_load_on_one_vertex_accelerates_the_full_body():
    scene, body = stiff_sheet(gravity=(0, 0, 0))
    scene.add_force(body.where(lambda X: (X <= 1e-9).all(axis=1)), (0.3, 0, 0))
    problem = Problem(supple.scene.build_model(scene, False), "float64")
    problem.loads.set_time_step(STEP)
    problem.begin_step(STEP, STEP, guess="adaptive")
    moved, mass = problem.positions - problem.model.rest, problem.model.mass.sum()
    np.testing.assert_allclose(moved, np.tile([0.3 / mass * STEP**2, 0, 0], (len(moved), 1)), rtol=1e-9)


@pytest.mark.parametrize("neighbor", ["far", "falling along"])
def test_bodies_fall_freely_where_bodies_may_touch(neighbor):
    """Alone, or with another at a small distance that falls as fast; and a motion goes on bit by bit."""
    scene, body = stiff_sheet(contact=supple.Contact("weak"))
    away = (20, 0, 0) if neighbor == "far" else (0, 0.11, 0)
    other = scene.add_solid(
        supple.block(1, (0.8, 0.1, 0.8)).translated(away), supple.Corotated(young=1e5, poisson=0.3)
    )
    if neighbor == "far":
        scene.pin(other.where(lambda X: X[:, 1] <= 0))
    frames = list(supple.simulate(scene, solver=PBNG(iterations=4)))
    moved = frames[-1].positions_of(body) - body.mesh.points
    fall = -9.81 * FALL["backward_euler"] * STEP**2
    np.testing.assert_allclose(moved, np.tile([0, fall, 0], (len(moved), 1)), atol=1e-9 * abs(fall))
    resumed = supple.simulate(scene, solver=PBNG(iterations=4), initial=frames[1].state, first_frame=3)
    for uninterrupted, rest in zip(frames[2:], resumed, strict=True):
        np.testing.assert_array_equal(uninterrupted.positions, rest.positions)


def test_groups_hold_bodies_that_are_near_each_other():
    boxes = [(np.array([[x, 0.0, 0.0], [x + 1, 1.0, 1.0]]),) for x in (0.0, 1.05, 2.5, 3.4)]
    first, second, third, fourth = connect_bodies(np.argwhere(neighbors(boxes, 0.1)), len(boxes))
    assert first == second != third == fourth


def test_bodies_at_rest_on_others_start_where_they_are():
    """The group has a body that is pinned."""
    scene, _ = stiff_block(contact=supple.Contact("weak"))
    floor = scene.add_solid(
        supple.block(1, (3, 1, 3)).translated((-1, -1.001, -1)), supple.Corotated(young=1e5, poisson=0.3)
    )
    scene.pin(floor.where(lambda X: X[:, 1] < -0.5))
    problem = Problem(supple.scene.build_model(scene, False), "float64")
    problem.loads.set_time_step(STEP)
    problem.begin_step(STEP, STEP, guess="adaptive")
    np.testing.assert_array_equal(problem.positions, problem.model.rest)


def test_bodies_at_rest_on_a_plane_start_where_they_are():
    scene = supple.Scene(quasistatic=False, dt=0.01, frames=3)
    scene.add_solid(supple.block((2, 2, 2), (0.1, 0.1, 0.1)), supple.Corotated(young=1e5, poisson=0.3))
    scene.add_obstacle(supple.Plane(normal=(0, 1, 0)))
    frames = {
        guess: list(supple.simulate(scene, solver=PBNG(), tolerance=1e-5, initial_guess=guess))
        for guess in ("adaptive", "coast")
    }
    for adaptive, predicted in zip(*frames.values(), strict=True):
        assert np.array_equal(adaptive.positions, predicted.positions)
        assert adaptive.report.iterations == predicted.report.iterations


def test_the_guess_of_the_paper_is_an_option():
    scene, body = stiff_sheet()
    scene.pin(body.where(lambda X: X[:, 2] <= 0))
    free = body.mesh.points[:, 2] > 0.7
    drops = {
        guess: fallen(scene, body, PBNG(iterations=1), frames=1, initial_guess=guess)[free].mean(axis=0)[1]
        for guess in ("inertial", "coast")
    }
    assert drops["inertial"] < 0.9 * -9.81 * STEP**2 < 0.5 * drops["coast"] <= 0


def test_a_guess_that_is_none_is_refused():
    with pytest.raises(ValueError, match="initial_guess"):
        next(iter(supple.simulate(stiff_sheet()[0], initial_guess="newton")))
    with pytest.raises(ValueError, match="initial_guess"):
        supple.Scene(initial_guess="newton")
