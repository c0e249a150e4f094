"""Error estimates of separate bodies in one scene."""

import numpy as np
import pytest
from problems import face, material

import supple
from supple import PBNG, StopCriteria
from supple.linear import Assembly, Parts
from supple.problem import Problem
from supple.scene import build_model
from supple.solve.batch_solve import solve
from supple.solvers import Hybrid
from supple.solvers.newton_methods.error_estimate import ACCURACY, estimate_error
from supple.solvers.newton_methods.newton_system import Linearization

BARS = {"soft": (1e3, 0.01), "stiff": (1e9, 1e4)}
"""E [Pa] and density [kg/m³] of bars with equal deflection."""


def next_to(slow):
    """A soft and a stiff bar; one is slender and nearly incompressible, so that it converges slowly."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    for k, (name, (young, density)) in enumerate(BARS.items()):
        cells, nu = ((30, 1, 1), 0.4995) if name == slow else ((5, 2, 2), 0.3)
        mesh = supple.block(cells, (2, 0.2, 0.2), origin=(0, 0, k))
        kind = material("stable_neo_hookean", young=young, poisson=nu)
        body = scene.add_solid(mesh, kind, density=density, name=name)
        scene.pin(body.where(face(0, 0)))
    return scene


def after_sweeps(scene, count=30):
    problem = Problem(build_model(scene), "float64")
    solve(problem, PBNG(), StopCriteria(max_iterations=count))
    problem.balance()
    return problem


@pytest.mark.parametrize("slow", BARS)
def test_position_errors_of_soft_and_stiff_bodies_are_accurate(slow):
    scene = next_to(slow)
    problem = after_sweeps(scene)
    estimate = estimate_error(problem)
    truth = supple.equilibrium(
        scene, solver=Hybrid(max_predicted_sweeps=0), stop=StopCriteria(tolerance=1e-10)
    ).positions
    start = problem.positions
    assert estimate.stable
    for body, (name, own) in zip(estimate.bodies, problem.model.body_vertices, strict=True):
        off = np.linalg.norm(start[own] - truth[own], axis=1).max()
        assert off > 1e-3, "there is something to be told"
        assert body.position_error_m == pytest.approx(off, rel=0.5), name


@pytest.mark.parametrize("slow", BARS)
def test_every_body_is_solved_to_the_requested_accuracy(slow):
    """Against one exact solve, also of the body with a millionth of the energy."""
    problem = after_sweeps(next_to(slow))
    linear = Linearization(problem)
    direction = linear.direction(ACCURACY, 0.0, probe=True)
    assert linear.parts.count == len(direction.errors) == 2
    assert direction.errors.max() <= ACCURACY
    H = linear.assembly.hessian("exact").toarray()
    d = direction.d[linear.free, :3].ravel()
    exact = np.linalg.solve(H, linear.assembly.restrict(problem.states.net))
    for part in range(2):
        own = np.repeat(linear.parts.number == part, 3)
        error, size = (v @ (H[np.ix_(own, own)] @ v) for v in (d[own] - exact[own], exact[own]))
        assert error < (10 * ACCURACY) ** 2 * size


def pinned_and_free(stretch=1.1):
    """A bending pinned bar and an unsupported block, with their start."""
    scene = supple.Scene(gravity=(0, 0, 0))
    pinned_bar = scene.add_solid(
        supple.block((10, 2, 2), (2, 0.2, 0.2)), material("corotated", young=1e6), name="held"
    )
    scene.pin(pinned_bar.where(face(0, 0)))
    scene.add_force(pinned_bar.where(face(0, 2)), (0, -1, 0))
    mesh = supple.block((3, 2, 2), origin=(0, 3, 0))
    free = scene.add_solid(mesh, material("stable_neo_hookean", young=1e3), name="free")
    model = build_model(scene)
    start = model.rest.copy()
    start[free.vertices, 0] *= stretch
    return scene, start


def aligned(points, like):
    """Points (n, 3) moved rigidly to the closest fit of others."""
    a, b = points - points.mean(axis=0), like - like.mean(axis=0)
    U, _, V = np.linalg.svd(b.T @ a)
    turn = U @ np.diag([1, 1, np.linalg.det(U @ V)]) @ V
    return a @ turn.T + like.mean(axis=0)


def test_position_error_of_a_free_body_excludes_its_drift():
    scene, start = pinned_and_free(1.02)
    problem = Problem(build_model(scene), "float64")
    problem.positions = start
    problem.balance()
    bodies = {body.body: body for body in estimate_error(problem).bodies}
    truth = supple.equilibrium(scene, initial=start, tolerance=1e-10)
    assert truth.report.ok
    for name, own in problem.model.body_vertices:
        true_positions = truth.positions[own]
        true_positions = aligned(true_positions, start[own]) if name == "free" else true_positions
        off = np.linalg.norm(start[own] - true_positions, axis=1).max()
        assert bodies[name].position_error_m == pytest.approx(off, rel=0.5), name


def test_free_body_next_to_a_pinned_one_does_not_drift():
    scene, start = pinned_and_free()
    for solver in (Hybrid(), Hybrid(max_predicted_sweeps=0)):
        result = supple.equilibrium(scene, solver=solver, initial=start)
        own = scene.bodies[1].vertices
        assert result.report.ok
        assert result.report.error_estimate.stable
        moved = result.positions[own].mean(axis=0) - start[own].mean(axis=0)
        assert np.abs(moved).max() < 1e-2, "as far as sweeps move it, which is little"
        assert np.ptp(result.positions[own], axis=0) == pytest.approx([1, 1, 1], abs=2e-3)


def test_parts_are_connected_by_elements_and_ties():
    """Two tied bodies are one part; parts with fewer than three pinned points are loose."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = material("corotated")
    top, low, other, isolated = (
        scene.add_solid(supple.block(2, origin=(0, -k, 0)), kind) for k in (0, 1, 5, 9)
    )
    scene.pin(top.where(face(1, 1)))
    scene.attach(low.where(face(1, 0)), top, stiffness=1e4)
    scene.pin(other.where(lambda X: (X[:, 0] == 0) & (X[:, 2] == 0)))  # an edge
    assembly = Assembly(Problem(build_model(scene), "float64"))
    parts, of = Parts(assembly), {}
    for name, body in (("top", top), ("low", low), ("other", other), ("alone", isolated)):
        inside = np.isin(assembly.free, np.arange(len(assembly.problem.model.rest))[body.vertices])
        (of[name],) = np.unique(parts.number[inside])
    assert of["top"] == of["low"]
    assert parts.count == len(set(of.values())) == 3
    assert [bool(parts.loose[of[name]]) for name in ("top", "other", "alone")] == [False, True, True]
