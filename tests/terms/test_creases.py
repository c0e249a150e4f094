"""Plastic rest angles: flow, storage in states, and the fold that remains after unloading."""

import pickle

import numpy as np
import pytest
from frame_comparison import frames_equal
from problems import PRECISIONS, model_of, sheet
from test_terms import check_forces

import supple
from supple import CreasedBending, HingeBending, State
from supple.linear.assembly.hessian import Assembly
from supple.problem import Problem
from supple.scene import build_model
from supple.terms import bending_terms, hinges_of
from supple.terms.shells.crease import Crease, wrap_angle
from supple.terms.shells.dihedral import angles

MEMBRANE = supple.materials.PlaneStressStVK(young=1e4, poisson=0.3)


def strip(bending, fold=None, duration=0.2):
    """A strip of two cells across that sticks out of a wall; fold: rotation of its end about y."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.05, frames=12)
    cloth = scene.add_cloth(supple.sheet((6, 2), (0.3, 0.1)), MEMBRANE, bending, density=0.2)
    scene.pin(cloth.where(lambda X: X[:, 0] <= 0.0501))
    if fold is not None:
        turn = supple.Rotate(axis=(0, 1, 0), center=(0.15, 0, 0), angle=fold, duration=duration)
        scene.pin(cloth.where(lambda X: X[:, 0] >= 0.2499), motion=turn)
    return scene


def creased(**changes):
    return CreasedBending(**{"rigidity": 1e-3, "yield_angle": 0.1, "creep": 8.0} | changes)


def fixed_creases(bending):
    """Remaining angles of a strip that was folded for a while and released."""
    folded = list(supple.simulate(strip(bending, -2.0), tolerance=1e-4))[-1].state
    free = strip(bending)
    state = State(folded.displacements, 0 * folded.velocities, folded.history)
    rest = supple.equilibrium(free, initial=state, tolerance=1e-5)
    vertices, _ = hinges_of(free.bodies[0].mesh.triangles)
    return np.abs(angles(rest.positions[vertices]))


def test_fold_remains_after_release():
    """It is smaller for a larger yield angle or a lower limit."""
    left = {
        "elastic": fixed_creases(HingeBending(1e-3)),
        "never": fixed_creases(creased(yield_angle=3.0)),
        "some": fixed_creases(creased()),
        "late": fixed_creases(creased(yield_angle=0.4)),
        "limited": fixed_creases(creased(creep=40.0, max_angle=0.2)),
    }
    assert max(left["elastic"].max(), left["never"].max()) < 1e-3
    assert left["some"].sum() > left["late"].sum() > 0.1
    assert left["limited"].max() == pytest.approx(0.2, rel=0.05)


def test_rest_angles_flow_as_plastic_strains():
    """θ₀ ← θ₀ + Δt γ (θ - θ₀) where |θ - θ₀| > θ_yield, at most θ_max [PBCM section 4.2], also across ±π."""
    crease = Crease(yield_angle=0.2, creep=5.0, max_angle=3.0, rest_angle=np.array([0.0, 0.5, 0.0, 3.0]))
    new = crease.evolve(np.array([1.0, 0.6, -0.21, -3.0]), 0.1)["rest_angle"]
    turned = 3.0 + 0.5 * (2 * np.pi - 6)
    np.testing.assert_allclose(new, [0.5, 0.5, -0.105, min(turned, 3.0)])
    assert crease.evolve(np.array([0.1, 0.5, 0.0, 3.0]), 0.1) == {}
    all_of_it = Crease(yield_angle=0.0, creep=1e3, max_angle=3.0, rest_angle=np.zeros(1))
    np.testing.assert_allclose(all_of_it.evolve(np.array([1.5]), 0.1)["rest_angle"], 1.5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_crease_without_flow_equals_a_hinge(precision):
    """Energies, forces and Hessians, also with rest angles, at any angle."""
    points, triangles = sheet(3)
    vertices, _ = hinges_of(triangles)
    random = np.random.default_rng(0)
    rest = random.uniform(-3, 3, len(vertices))
    now = points + 0.3 * random.standard_normal(points.shape)
    energies = []
    for kind in (HingeBending(2.0, rest=rest), CreasedBending(2.0, rest=rest)):
        problem = Problem(model_of(points, *bending_terms(kind, points, triangles, points)), precision)
        problem.positions = now
        problem.balance()
        hessian = Assembly(problem).hessian("exact").toarray() if precision == "float64" else np.zeros(1)
        energies.append((problem.energy(), problem.states.vectors(problem.states.net)[0].copy(), hessian))
    close = 1e-9 if precision == "float64" else 2e-4
    for plain, flowing in zip(*energies, strict=True):
        np.testing.assert_allclose(flowing, plain, rtol=close, atol=close * np.abs(plain).max())


def test_forces_are_the_derivative_of_the_energy():
    points, triangles = sheet(2)
    rest = np.linspace(-2, 2, len(hinges_of(triangles)[0]))
    terms = bending_terms(CreasedBending(1.0, rest=rest), points, triangles, points)
    check_forces(Problem(model_of(points, *terms), "float64"))


@pytest.mark.parametrize("name", ["pbng", "hybrid", "newton", "gpbd", "xpbd"])
def test_motion_resumed_from_state_is_bitwise_identical(name):
    scene = strip(creased(), -2.0)
    options = {"frames": 5, "max_iterations": 5}
    uninterrupted = list(supple.simulate(scene, solver=name, **options))
    assert np.abs(uninterrupted[-1].state.history["rest_angle"]).max() > 0.01
    state = pickle.loads(pickle.dumps(uninterrupted[1].state))
    for frames, expected in zip(
        supple.simulate(scene, solver=name, initial=state, first_frame=3, **options),
        uninterrupted[2:],
        strict=True,
    ):
        assert frames_equal(frames, expected)


def test_variations_with_creases():
    """Variations give materials of bodies, whose terms precede those of creases."""
    scene = strip(creased(), -1.0)
    body = scene.bodies[0]
    stiffer = supple.materials.PlaneStressStVK(young=2e4, poisson=0.3)
    for result in supple.equilibria(scene, [supple.Variation(materials={body: stiffer})], device="cpu"):
        assert result.report.ok


def test_scene_files_with_creases(tmp_path):
    path = tmp_path / "fold.toml"
    path.write_text(
        """
quasistatic = false
[[cloth]]
mesh = { sheet = { cells = 4 } }
membrane = { plane_stress_stvk = { young = 1e4, poisson = 0.3 } }
bending = { creased = { rigidity = 1e-3, yield_angle = 0.3, creep = 4, max_angle = 1.5 } }
[[pin]]
where = { side = "x-" }
"""
    )
    (cloth,) = supple.load_scene(path).scene.bodies
    assert cloth.bending == CreasedBending(1e-3, yield_angle=0.3, creep=4, max_angle=1.5) or (
        cloth.bending.yield_angle,
        cloth.bending.creep,
        cloth.bending.max_angle,
    ) == (0.3, 4, 1.5)
    assert [term.name for term in build_model(supple.load_scene(path).scene).terms] == [
        "triangles",
        "creases",
    ]


@pytest.mark.parametrize("wrong", [{"yield_angle": -1}, {"creep": "fast"}, {"max_angle": 4.0}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        creased(**wrong)


def test_angles_are_wrapped():
    np.testing.assert_allclose(
        wrap_angle(np.array([0.1, 3.5, -3.5])), [0.1, 3.5 - 2 * np.pi, 2 * np.pi - 3.5]
    )
