"""Unsupported bodies: rigid drift is no instability, and true instabilities are still detected."""

import numpy as np
import pytest
from problems import HAND_WRITTEN, face, material

import supple
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers import Hybrid
from supple.solvers.newton_methods.error_estimate import estimate_error
from supple.solvers.newton_methods.newton_system import Linearization
from supple.solvers.newton_methods.rigid_modes import RigidModes, deflated_cg

SPHERE = supple.meshes.sphere(0.5, 2)


def balloon(pressure=500.0):
    scene = supple.Scene(gravity=(0, 0, 0))
    cloth = scene.add_cloth(SPHERE, supple.materials.PlaneStressStVK(young=1e6, poisson=0.3), thickness=1e-3)
    scene.add_pressure(cloth, pressure)
    return scene


def free_block(kind, parts=1):
    scene = supple.Scene(gravity=(0, 0, 0))
    for k in range(parts):
        scene.add_solid(supple.block((3, 1, 1), (3, 1, 1), origin=(0, 0, 5 * k)), kind, density=10)
    return scene


def problem_at(scene, move):
    """A problem with vertices moved from X (n, 3) and known forces, and its Linearization."""
    model = build_model(scene)
    problem = Problem(model, "float64", 1)
    problem.u[:-1, :3] = move(model.rest) - model.rest
    problem.balance()
    return problem, Linearization(problem)


def drift_at(problem, linear):
    H = linear.assembly.hessian("exact")
    forces = linear.assembly.restrict(problem.states.net).reshape(-1, 3)
    return H, RigidModes(H, linear.assembly.positions, forces, linear.parts)


@pytest.mark.parametrize(
    "solver", [Hybrid(), Hybrid(max_predicted_sweeps=0)], ids=["default", "newton steps"]
)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_free_balloons_converge_without_drift(solver, tolerance):
    result = supple.equilibrium(balloon(), solver=solver, tolerance=tolerance)
    assert result.report.ok
    assert result.report.error_estimate.stable
    assert np.abs(result.positions.mean(axis=0)).max() < 1e-2, "nothing moves it away"
    radii = np.linalg.norm(result.positions - result.positions.mean(axis=0), axis=1)
    assert 0.5 < radii.min() <= radii.max() < 0.6


def test_two_free_balloons():
    scene = balloon()
    mesh = supple.TriMesh(np.asarray(SPHERE.points) + np.array([3.0, 0, 0]), SPHERE.triangles)
    other = scene.add_cloth(mesh, supple.materials.PlaneStressStVK(young=2e6, poisson=0.3), thickness=1e-3)
    scene.add_pressure(other, 300.0)
    report = supple.equilibrium(scene).report
    assert report.ok
    assert report.error_estimate.stable


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_rigid_motions_are_detected_and_deflated(name):
    """All six motions of each of two bodies, deformed and rotated at random; none of a pinned one."""
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.02, (32, 3))
    problem, linear = problem_at(free_block(material(name), 2), lambda X: X + noise)
    H, drift = drift_at(problem, linear)
    assert drift.free.shape == (2, 6)
    turns = name != "linear_elastic"  # which resists them
    assert drift.free[:, :3].all()
    assert drift.free[:, 3:].all() == turns
    v = rng.normal(size=H.shape[0])
    left = drift.deflate(v)
    np.testing.assert_allclose(drift.deflate(left), left, atol=1e-12)
    assert np.abs(left.reshape(2, -1, 3).sum(axis=1)).max() < 1e-10
    scene = free_block(material(name), 2)
    scene.pin(scene.bodies[0].where(face(0, 0)))
    problem, linear = problem_at(scene, lambda X: X + 0.01 * np.sin(7 * X))
    _, drift = drift_at(problem, linear)
    assert sorted(drift.free[:, 0].tolist()) == [False, True]


@pytest.mark.parametrize("stretch", [1.05, 0.98, 0.8, 0.5])
def test_concave_directions_of_free_bodies_match_eigenvalues(stretch):
    """A stretched block, and one compressed beyond buckling."""
    problem, linear = problem_at(free_block(material("stable_neo_hookean")), lambda X: X * [stretch, 1, 1])
    H, drift = drift_at(problem, linear)
    P = np.array([drift.deflate(row) for row in np.eye(H.shape[0])])
    lowest = np.linalg.eigvalsh(P @ H.toarray() @ P)[0]
    unstable = lowest < -1e-6 * H.diagonal().max()
    b = np.random.default_rng(0).normal(size=H.shape[0])
    x, p, left = deflated_cg(drift, H, lambda r: r / H.diagonal().mean(), b, 1e-2, 1000)
    assert (p is not None) == unstable
    if p is None:
        residual = np.linalg.norm(drift.deflate(H @ x - b)) / np.linalg.norm(drift.deflate(b))
        assert residual < 0.1
        np.testing.assert_allclose(left, [residual], rtol=1e-6)
    if p is not None:
        assert p @ (H @ p) <= 0
        np.testing.assert_allclose(drift.deflate(p), p, atol=1e-9 * np.abs(p).max())


def test_buckling_free_body_is_not_stable():
    """Error estimates of compressed free bodies report it, those of stretched ones do not."""
    stable = [
        estimate_error(
            problem_at(free_block(material("stable_neo_hookean")), lambda X, s=s: X * [s, 1, 1])[0]
        ).stable
        for s in (1.05, 0.5)
    ]
    assert stable == [True, False]


def test_dead_loads_suppress_rotations():
    """Dead forces that compress a free bar would turn it round, so rotations are not free."""
    scene = free_block(material("stable_neo_hookean"))
    (body,) = scene.bodies
    for end, force in ((0.0, 10.0), (3.0, -10.0)):
        scene.add_force(body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9), (force, 0, 0))
    problem, linear = problem_at(scene, lambda X: X * [0.98, 1, 1])
    _, drift = drift_at(problem, linear)
    assert drift.free[0].tolist() == [True, True, True, True, False, False]
    assert not estimate_error(problem).stable


def test_drift_is_excluded_from_the_position_error():
    """A free bar pulled at both ends may translate, and rotate about its axis."""
    scene = free_block(material("stable_neo_hookean"))
    (body,) = scene.bodies
    for end, force in ((0.0, -10.0), (3.0, 10.0)):
        scene.add_force(body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9), (force, 0, 0))
    report = supple.equilibrium(scene, solver="newton", tolerance=1e-8).report
    assert report.error_estimate.stable
    assert report.error_estimate.position_error < 1e-6


def hung(pins, gravity=9.8):
    """A bar that hangs from some of the four vertices of its upper end."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    kind = material("stable_neo_hookean", young=1e5)
    body = scene.add_solid(supple.block((1, 4, 1), (0.2, 1, 0.2)), kind, density=100)
    scene.pin(body.where(np.flatnonzero(body.points[:, 1] > 1 - 1e-9)[:pins]))
    return scene


@pytest.mark.parametrize(("pins", "axes", "in_gravity"), [(1, 3, 1), (2, 1, 0), (3, 0, 0)])
def test_pinned_bodies_may_rotate_about_their_pins(pins, axes, in_gravity):
    """Three rotations about a point, one about a line; under gravity only the one about the vertical."""
    for gravity, expected in ((0.0, axes), (9.8, in_gravity)):
        problem, linear = problem_at(
            hung(pins, gravity), lambda X: X + 0.01 * np.sin(5 * X[:, ::-1]) * X[:, 1:2]
        )
        assert drift_at(problem, linear)[1].free.sum() == expected


@pytest.mark.parametrize("pins", [1, 2])
def test_bodies_hanging_from_a_point_or_line_converge(pins):
    report = supple.equilibrium(hung(pins)).report
    assert report.ok
    assert report.error_estimate.stable
    assert report.error_estimate.position_error <= 1e-4
