"""Newton, the reference of all other solvers, against closed forms."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from closed_forms import uniaxial
from problems import HAND_WRITTEN, NEWTONS, affine, cantilever, face, material, twisted

import supple
from supple import Newton, Outcome
from supple.linear.assembly.hessian import Assembly
from supple.linear.linear_solvers import Direct
from supple.problem import Problem
from supple.scene import build_model

EACH_MATERIAL = pytest.mark.parametrize("name", HAND_WRITTEN)


def on_rollers(kind, cells=2):
    """A unit block whose faces x = 0, y = 0 and z = 0 slide in their planes only."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), kind)
    for axis, name in enumerate("xyz"):
        scene.pin(body.where(face(axis, 0)), axes=name)
    return scene, body


@EACH_MATERIAL
@pytest.mark.parametrize("stretch", [0.8, 1.3])
def test_uniaxial_stretch(name, stretch):
    """Under the nominal stress of the closed form, the bar has its axial and lateral stretch."""
    kind = material(name)
    lateral, traction = uniaxial(name, stretch, kind.mu, kind.lam)
    scene, body = on_rollers(kind)
    scene.add_traction(body.where(face(0, 1)), (traction, 0, 0))
    result = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, body.points * [stretch, lateral, lateral], atol=1e-9)


@EACH_MATERIAL
def test_small_uniaxial_stretch_shows_young_and_poisson(name):
    """In the limit of small loads every material has E = stress / strain and ν = -lateral / axial strain."""
    kind, strain = material(name, young=2e5, poisson=0.35), 1e-4
    scene, body = on_rollers(kind)
    scene.add_traction(body.where(face(0, 1)), (2e5 * strain, 0, 0))
    x = supple.equilibrium(scene, solver=Newton(), tolerance=1e-9).positions
    corner = np.argmax(body.points.sum(axis=1))
    np.testing.assert_allclose(x[corner] - 1, np.array([1, -0.35, -0.35]) * strain, rtol=1e-3)


def irregular_block(cells=3, seed=0):
    """A block with randomly moved interior vertices, and the mask of these."""
    mesh = supple.block(cells)
    inside = np.all((mesh.points > 1e-9) & (mesh.points < 1 - 1e-9), axis=1)
    points = np.array(mesh.points)
    points[inside] += np.random.default_rng(seed).uniform(-0.07, 0.07, (inside.sum(), 3))
    return supple.TetMesh(points, mesh.tets), inside


@EACH_MATERIAL
def test_patch(name):
    """With an affine boundary motion, the interior follows exactly for any irregular mesh."""
    mesh, inside = irregular_block()
    assert inside.sum() == 8
    A = np.eye(3) + np.array([[0.1, 0.15, 0], [-0.05, -0.1, 0.1], [0.05, 0, 0.08]])
    b = np.array([0.3, -2, 5])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, material(name))
    scene.pin(body.where(~inside), motion=affine(A, b))
    start = mesh.points @ A.T + b
    start[inside] += 0.02
    result = supple.equilibrium(scene, solver=Newton(), tolerance=1e-11, initial=start)
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.iterations > 0
    np.testing.assert_allclose(result.positions, mesh.points @ A.T + b, atol=1e-9)


def rigidly_moved(name, angle):
    mesh, _ = irregular_block(2)
    turn = supple.Rotate(axis=(1, 2, 3), center=(0.2, 0.3, 0.4), angle=angle) + supple.Translate((1, -2, 3))
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, material(name))
    scene.pin(body.where(face(0, 0)), motion=turn)
    start = turn(mesh.points, np.inf) + np.random.default_rng(1).uniform(-0.05, 0.05, mesh.points.shape)
    return supple.equilibrium(scene, solver=Newton(), tolerance=1e-10, initial=start), turn(
        mesh.points, np.inf
    )


@pytest.mark.parametrize("name", [name for name in HAND_WRITTEN if name != "linear_elastic"])
def test_rigid_motions_cost_no_energy(name):
    result, expected = rigidly_moved(name, angle=2.0)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, expected, atol=1e-10)
    assert result.report.energy == pytest.approx(0, abs=1e-12)


def test_linear_elasticity_follows_translations_but_not_rotations():
    result, expected = rigidly_moved("linear_elastic", angle=0.0)
    np.testing.assert_allclose(result.positions, expected, atol=1e-10)
    assert result.report.energy == pytest.approx(0, abs=1e-12)
    result, expected = rigidly_moved("linear_elastic", angle=2.0)
    assert result.report.outcome.ok
    assert result.report.inverted > 0
    assert not result.report.ok
    assert result.report.energy > 1
    assert np.abs(result.positions - expected).max() > 0.1


@EACH_MATERIAL
def test_tolerance_of_1e_10(name):
    result = supple.equilibrium(twisted(material(name)), solver=Newton(), tolerance=1e-10)
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.relative_residual <= 1e-10
    assert result.report.inverted == 0


@pytest.fixture(scope="module")
def reference():
    return supple.equilibrium(twisted(material("corotated")), solver=Newton(hessian="exact"), tolerance=1e-10)


@pytest.mark.parametrize("solver", NEWTONS.values(), ids=NEWTONS)
def test_every_hessian_and_linear_solver_finds_the_same_equilibrium(solver, reference):
    if solver.linear_solver == "amg":
        pytest.importorskip("pyamg")
    result = supple.equilibrium(twisted(material("corotated")), solver=solver, tolerance=1e-9)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-8)


def test_exact_hessian_converges_quadratically():
    history = supple.equilibrium(
        twisted(material("neo_hookean"), angle=0.2),
        solver=Newton(hessian="exact"),
        tolerance=1e-11,
        record_history=True,
    ).report.history
    last = [r for r in history.relative_residual if 1e-11 < r < 1e-2]
    assert len(last) >= 2
    assert all(after < 100 * before**2 + 1e-11 for before, after in pairwise(last))


def test_energy_never_rises_with_line_search():
    history = supple.equilibrium(
        twisted(material("stable_neo_hookean"), angle=2.0),
        solver=Newton(),
        tolerance=1e-8,
        record_history=True,
    ).report.history
    energy = np.array(history.energy)
    assert len(energy) > 3
    assert np.all(np.diff(energy) <= 1e-12 * np.abs(energy).max())


def test_without_line_search():
    result = supple.equilibrium(
        cantilever(material("corotated")), solver=Newton(line_search=False), tolerance=1e-9
    )
    with_search = supple.equilibrium(cantilever(material("corotated")), solver=Newton(), tolerance=1e-9)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, with_search.positions, atol=1e-8)


def test_scipy_replaces_missing_pardiso(monkeypatch, reference):
    import supple.linear.linear_solvers as linear

    monkeypatch.setattr(linear, "find_spec", lambda name: None)
    result = supple.equilibrium(
        twisted(material("corotated")), solver=Newton(linear_solver="direct"), tolerance=1e-9
    )
    assert "linear solver: SuperLU" in result.report.notes
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-8)
    with pytest.raises(ValueError, match=r"needs pyamg: pip install 'supple\[amg\]'"):
        supple.equilibrium(twisted(material("corotated")), solver=Newton(linear_solver="amg"))


@pytest.mark.parametrize("collapse", [(1, 0, 1), (1, 0, 0), (0, 0, 0)], ids=["plane", "line", "point"])
@pytest.mark.parametrize("hessian", ["projected", "exact"])
def test_body_without_volume_unfolds(collapse, hessian):
    """All elements are initially singular, where the rotation has no derivative."""
    scene = cantilever(material("corotated"), gravity=0)
    start = scene.bodies[0].points * collapse
    result = supple.equilibrium(scene, solver=Newton(hessian=hessian), tolerance=1e-8, initial=start)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, scene.bodies[0].points, atol=1e-8)


def test_non_finite_hessian_reaches_no_linear_solver(monkeypatch):
    """Pardiso would crash the process, so no step is taken."""
    honest = Assembly.matrix

    def poisoned(self, kind, new_memory=False):
        H = honest(self, kind, new_memory)
        H.blocks[0, 0, 0] = np.nan
        return H

    def forbidden(self, H, b, accuracy):
        raise AssertionError

    monkeypatch.setattr(Assembly, "matrix", poisoned)
    monkeypatch.setattr(Direct, "solve_on_host", forbidden)
    result = supple.equilibrium(
        cantilever(material("corotated")), solver=Newton(linear_solver="direct"), tolerance=1e-8
    )
    assert result.report.outcome is Outcome.STAGNATED
    np.testing.assert_array_equal(result.positions, result.model.rest)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's memory from /proc")
def test_factorizations_are_released():
    """Pardiso keeps 2 MB per factorization until they are released."""
    assembly = Assembly(Problem(build_model(cantilever(material("corotated"), cells=8)), "float64"))
    H, b = assembly.hessian("projected"), np.ones(assembly.size)
    megabytes = []
    for _ in range(30):
        Direct(assembly).solve_on_host(H, b, 0.0)
        megabytes.append(int(Path("/proc/self/statm").read_text().split()[1]) / 256)
    assert megabytes[-1] - megabytes[9] < 12


def test_newton_refuses_single_precision():
    with pytest.raises(
        ValueError, match="newton supports precision='float64' only; use pbng, mpbng, hybrid, xpbd"
    ):
        supple.equilibrium(cantilever(material("corotated")), solver=Newton(), precision="float32")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hessian": "approximate"}, "hessian must be 'exact', 'projected' or 'bound'"),
        (
            {"linear_solver": "lu"},
            "linear_solver must be 'auto', 'multilevel', 'direct', 'amg', 'cg', 'gauss_seidel', ",
        ),
        ({"iterations": 0}, "iterations must be a whole number of at least 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Newton(**options)
