"""Curved search paths along which elements rotate."""

import numpy as np
import pytest
from problems import (
    HAND_WRITTEN,
    cantilever,
    flattened,
    material,
    membrane,
    net,
    perturbed,
    rotations,
    scrambled,
    tied_blocks,
)
from scipy.linalg import expm

import supple
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers.newton_methods.rotation_path import STRAIGHT_ANGLE, RotationPath, rotation_exponential

MODELS = {
    "block": lambda: build_model(cantilever(material("corotated")), True),
    "two materials, tied": lambda: build_model(
        tied_blocks(material("corotated"), material("stvk"), 1e7), True
    ),
    "linear": lambda: build_model(cantilever(material("linear_elastic")), True),
    "membrane": membrane,
    "net": net,
}
EACH_MODEL = pytest.mark.parametrize("name", MODELS)


def directions(problem, seed=1):
    """Random directions of the free vertices."""
    return np.random.default_rng(seed).normal(size=(problem.model.free.sum(), 3)) * 0.1


def along(problem, d):
    """Path along a direction of the free vertices (f, 3)."""
    records = np.zeros_like(problem.u)
    records[:-1][problem.model.free, :3] = d
    return RotationPath(problem).along(records)


def free_of(problem, records):
    return records[:-1][problem.model.free, :3].copy()


def at(problem, path, t):
    """Displacements (f, 3) of the free vertices at t."""
    path.go(t)
    state = free_of(problem, problem.u)
    problem.u[:] = path.start
    return state


def spin(w):
    """[w]×."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.1, 1.0, 3.0, 7.0])
def test_rotations_are_exponentials(angle):
    w = angle * np.array([2, -1, 2]) / 3
    np.testing.assert_allclose(np.reshape(rotation_exponential(tuple(w)), (3, 3)), expm(spin(w)), atol=2e-11)


@EACH_MODEL
@pytest.mark.parametrize("start", ["near rest", "scrambled", "flattened"])
def test_path_begins_along_d(name, start):
    problem = perturbed(Problem(MODELS[name](), "float64"), 0.05)
    if start != "near rest":
        problem.positions = {"scrambled": scrambled, "flattened": flattened}[start](problem.model)
    d = directions(problem)
    begin = problem.u[:-1][problem.model.free, :3].copy()
    path = along(problem, d)
    np.testing.assert_allclose(at(problem, path, 0.0), begin, atol=1e-12)
    off = [np.abs((at(problem, path, t) - begin) / t - d).max() for t in (1e-2, 1e-3)]
    assert off[1] <= 0.2 * off[0] + 1e-12  # x(t) - x - t d is of second order


def free_block(kind):
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False)
    scene.add_solid(supple.block(3), kind, density=10)
    return Problem(build_model(scene, False), "float64")


@pytest.mark.parametrize("name", [name for name, kind in HAND_WRITTEN.items() if kind.objective])
def test_rigid_rotations_keep_the_energy(name):
    """A deformed block whose vertices all start a rotation about an axis keeps its energy along the path."""
    problem = perturbed(free_block(material(name)), 0.02)
    energy, w, x = problem.energy(), np.array([0.3, -0.5, 0.2]), problem.positions
    path = along(problem, (x - 0.5) @ spin(w).T)
    assert path.typical_rotation == pytest.approx(np.linalg.norm(w), rel=1e-6)
    for t in (0.5, 1.0, 4.0):
        end = problem.model.rest + at(problem, path, t)
        expected = (x - 0.5) @ expm(t * spin(w)).T
        shift = (end - expected).mean(axis=0)
        np.testing.assert_allclose(end - shift, expected, atol=2e-2 * t)
        path.go(t)
        turned = problem.energy()
        problem.u[:] = path.start + t * path.d
        assert abs(turned - energy) < 1e-2 * (problem.energy() - energy) + 1e-9 * energy


def test_paths_of_non_objective_materials_are_straight():
    problem = perturbed(Problem(MODELS["linear"](), "float64"), 0.05)
    d = 3 * directions(problem)
    path = along(problem, d)
    expected = free_of(problem, path.start) + 0.7 * d
    np.testing.assert_allclose(at(problem, path, 0.7), expected, atol=1e-15)


def test_tied_bodies_stay_together_along_the_path():
    """The tie is the only coupling of two rotating bodies."""
    problem = Problem(MODELS["two materials, tied"](), "float64")
    free = problem.model.free
    center = np.array([0.5, 1.0, 0.5])
    d = ((problem.model.rest - center) @ spin([0, 0, 0.8]).T)[free]
    along(problem, d).go(1.0)
    elastic, tie_gaps = (
        problem.diagnostics.stored_energies()[0][:-1].sum(),
        problem.diagnostics.stored_energies()[0][-1],
    )
    assert tie_gaps < 1e-2 * elastic


def test_inertia_straightens_the_path():
    """With heavy vertices the path is the straight line, despite rotations of elements."""
    problem = perturbed(free_block(material("corotated")), 0.02)
    d = (problem.positions - 0.5) @ spin([0, 0, 0.5]).T
    start = free_of(problem, problem.u)
    bent = np.abs(at(problem, along(problem, d), 1.0) - start - d).max()
    problem.loads.set_time_step(1e-6)
    straight = np.abs(at(problem, along(problem, d), 1.0) - start - d).max()
    assert bent > 0.01
    assert straight < 1e-6 * bent


def test_rigid_spin_is_that_of_every_element():
    """For any rotation of a rigidly rotating body."""
    problem = free_block(material("corotated"))
    for Q in rotations(5):
        problem.positions = problem.model.rest @ Q.T + 3.0
        path = along(problem, (problem.positions - 3.0) @ spin([0.1, 0.2, -0.3]).T)
        assert path.typical_rotation == pytest.approx(np.linalg.norm([0.1, 0.2, -0.3]), rel=1e-9)


def test_precompiled_solves_use_curved_paths(monkeypatch):
    """Kernels compiled ahead include those of curved paths."""
    from supple.api import precompile

    turned = []
    plain = RotationPath.along

    def watched(self, d, *gain):
        path = plain(self, d, *gain)
        turned.append(path.typical_rotation)
        return path

    monkeypatch.setattr(RotationPath, "along", watched)
    precompile._compile("corotated", "float64", (supple.Hybrid(),), "cpu")
    assert max(turned) > STRAIGHT_ANGLE
