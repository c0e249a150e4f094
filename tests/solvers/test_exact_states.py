"""Solves in float32 with Newton steps in float64: they end at the exact state, and report the remaining
rounding."""

import numpy as np
import pytest
from problems import face

import supple
from supple import Outcome
from supple.solve.batch_solve import make_problem
from supple.solvers import Hybrid


def graded(smallest=1e-5):
    """A bar whose cells shrink towards its free end, where rounding to float32 inverts them."""
    mesh = supple.block((30, 2, 2))
    X = np.asarray(mesh.points)
    s = smallest ** (1 - X[:, 0])
    points = np.stack([s, 0.2 * s * (X[:, 1] - 0.5), 0.2 * s * (X[:, 2] - 0.5)], axis=1)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.Corotated(young=1e5, poisson=0.3)
    body = scene.add_solid(supple.TetMesh(points, np.asarray(mesh.tets)), kind, density=1000)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9))
    return scene


def uneven(contrast=1e6):
    """A bar of alternating soft and stiff segments."""
    mesh = supple.block((20, 2, 2), (2, 0.2, 0.2))
    middle = np.asarray(mesh.points)[np.asarray(mesh.tets)].mean(axis=1)[:, 0]
    young = np.where(middle % 0.4 < 0.2, 1e4, 1e4 * contrast)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, supple.Corotated(young=young, poisson=0.4), density=1000)
    scene.pin(body.where(face(0, 0)))
    return scene


def stiff():
    """A bar whose forces are rounding in float32 before it is fully bent."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.StableNeoHookean(young=1e11, poisson=0.3)
    body = scene.add_solid(supple.block((20, 2, 2), (2, 0.1, 0.1)), kind, density=1000)
    scene.pin(body.where(face(0, 0)))
    return scene


def tip():
    """A stiff body that swings down from a tip of a fifth of a millimeter."""
    mesh = supple.block((30, 2, 2))
    X = np.asarray(mesh.points)
    s = 1e-3 ** (1 - X[:, 0])
    points = np.stack([s, 0.2 * s * (X[:, 1] - 0.5), 0.2 * s * (X[:, 2] - 0.5)], axis=1)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.StableNeoHookean(young=1e11, poisson=0.3)
    body = scene.add_solid(supple.TetMesh(points, np.asarray(mesh.tets)), kind, density=1000)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-3 + 1e-6))
    return scene


SCENES = {"graded": graded, "uneven": uneven, "stiff": stiff, "tip": tip}


@pytest.mark.parametrize("name", SCENES)
def test_float32_solves_end_with_an_error_estimate(name):
    scene = SCENES[name]()
    exact = supple.equilibrium(scene, tolerance=1e-8)
    result = supple.equilibrium(scene, precision="float32")
    report = result.report
    assert report.outcome in (Outcome.CONVERGED, Outcome.ROUNDING_LIMIT), report
    assert report.outcome is Outcome.CONVERGED or any("float64" in note for note in report.notes)
    assert report.error_estimate.stable
    assert report.error_estimate.position_error <= 1e-4
    off = np.linalg.norm(result.positions - exact.positions, axis=1).max()
    assert (
        off
        <= 2 * report.error_estimate.worst.position_error_m + 1e-6 * exact.report.error_estimate.worst.size
    )


def test_float32_state_is_the_rounded_exact_state():
    problem = make_problem(stiff(), True, supple.Backend(precision="float32"))
    problem.begin_step(np.inf)
    run = Hybrid(max_predicted_sweeps=0).begin(problem)
    assert run.float64_problem.dtype == np.float64
    for _ in range(2):
        run.advance(1)
    u = run.float64_problem.u
    assert np.abs(u).max() > 0
    np.testing.assert_array_equal(problem.u, u.astype(np.float32))


def test_float64_problems_need_no_second_problem():
    problem = make_problem(stiff(), True, supple.Backend())
    assert Hybrid(max_predicted_sweeps=0).begin(problem).float64_problem is None
