"""Multiplicative plasticity: return mapping in logarithmic strains, with hardening."""

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, material

import supple
from supple.problem import Problem
from supple.scene import build_model

MU = 1e3 / 2.6


def metal(**changes):
    return supple.PlasticHencky(
        **({"young": 1e3, "poisson": 0.3, "yield_stress": 40.0, "hardening": 200.0} | changes)
    )


def driven(kind, path, precision="float64"):
    """The von Mises stress of τ, its sign, and ᾱ of a block whose F is diag(e^a, e^-a, 1) for a in a path."""
    model = build_model(cantilever(kind, cells=1))
    problem, found = Problem(model, precision), []
    for a in path:
        problem.positions = model.rest * [np.exp(a), np.exp(-a), 1]
        problem.remembered.evolve(0.1)
        history = problem.state.remembered
        elastic = np.exp(a) * history["unflowed"][0, 0]
        found.append((2 * MU * np.log(elastic), history["equivalent_plastic_strain"][0]))
        volume = np.linalg.det(history["unflowed"].reshape(-1, 3, 3))
        np.testing.assert_allclose(volume, 1, rtol=1e-12 if precision == "float64" else 1e-5)
    return np.array(found)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_cycle_of_pure_shear_is_the_closed_form(precision):
    """The strain is (a, -a, 0), so q = 2√3 μ a: elastic to q = σ_y, then q = σ_y + H ᾱ with
    ᾱ = (2√3 μ a - σ_y)/(3μ + H); back, elastic over 2 (σ_y + H ᾱ), and on along the mirrored line."""
    H, y, root = 200.0, 40.0, np.sqrt(3)
    forth = np.linspace(0, 0.1, 26)
    back = np.linspace(0.1, -0.1, 51)
    found = driven(metal(), [*forth, *back[1:]], precision)
    q, flowed = root * found[:, 0], found[:, 1]
    eps = 1e-9 if precision == "float64" else 1e-4
    alpha = np.maximum(0, (2 * root * MU * forth - y) / (3 * MU + H))
    np.testing.assert_allclose(flowed[:26], alpha, atol=eps)
    np.testing.assert_allclose(q[:26], np.minimum(2 * root * MU * forth, y + H * alpha), atol=eps * 1e3)
    top = alpha[-1]
    trial = y + H * top - 2 * root * MU * (0.1 - back)
    further = np.maximum(0, (-trial - y - H * top) / (3 * MU + H))
    np.testing.assert_allclose(flowed[25:], top + further, atol=eps)
    np.testing.assert_allclose(q[25:], np.maximum(trial, -(y + H * (top + further))), atol=eps * 1e3)
    assert flowed[-1] > 2 * top > 0


def test_below_the_yield_stress_it_is_hencky():
    strong, elastic = metal(yield_stress=1e9), material("hencky", young=1e3, poisson=0.3)
    forces = []
    for kind in (strong, elastic):
        model = build_model(cantilever(kind, cells=1))
        problem = Problem(model, "float64")
        problem.positions = model.rest + 0.1 * np.random.default_rng(2).uniform(-1, 1, model.rest.shape)
        problem.remembered.evolve(0.1)
        problem.balance()
        forces.append(problem.states.vectors(problem.states.net)[0].astype(float))
    np.testing.assert_allclose(*forces, atol=1e-9 * np.abs(forces[0]).max())


def test_forces_are_those_of_the_energy_once_it_has_flowed():
    random = np.random.default_rng(1)
    model = build_model(cantilever(metal(), cells=1))
    problem = Problem(model, "float64")
    problem.positions = model.rest + 0.2 * random.uniform(-1, 1, model.rest.shape)
    problem.remembered.evolve(0.1)
    assert problem.state.remembered["equivalent_plastic_strain"].max() > 0.01
    x, way = problem.positions, random.standard_normal(model.rest.shape) * model.free[:, None]
    problem.balance()
    net = problem.states.vectors(problem.states.net)[0].astype(float)
    energies = []
    for h in (1e-5, -1e-5):
        problem.positions = x + h * way
        energies.append(problem.energy())
    assert (energies[0] - energies[1]) / 2e-5 == pytest.approx(-(net * way).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["plastic_stvk", "plastic_hencky"])
def test_plastic_strains_are_a_field_of_files(kind, tmp_path):
    plastic = metal() if kind == "plastic_hencky" else supple.PlasticStVK(
        young=1e3, poisson=0.3, yield_strain=0.01, creep=50.0
    )  # fmt: skip
    scene = cantilever(plastic, cells=2, gravity=40)
    frames = list(supple.simulate(scene, "newton", dt=0.1, frames=4, tolerance=1e-3))
    first, last = (frame.evaluate().plastic_strain for frame in (frames[0], frames[-1]))
    assert not first.any()
    assert last.max() > 1e-3
    assert np.isnan(
        supple.equilibrium(cantilever(material("stvk"), cells=1), "newton").evaluate().plastic_strain
    ).all()
    again = supple.simulate(
        scene, "newton", dt=0.1, frames=4, first_frame=4, start=frames[2].state, tolerance=1e-3
    )
    np.testing.assert_array_equal(next(iter(again)).evaluate().plastic_strain, last)


def test_pbd_flows_as_the_paper_has_it():
    """PBCM's own solver and material: a bar that is twisted and let go keeps a part of the twist."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.02, frames=10)
    kind = supple.PlasticStVK(young=1e4, poisson=0.3, yield_strain=0.02, creep=20.0)
    bar = scene.add_solid(supple.block((4, 1, 1), size=(4, 1, 1)), kind, density=10)
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    end = bar.where(lambda X: X[:, 0] >= 4)
    scene.pin(end, supple.Rotate(axis=(1, 0, 0), centre=(4, 0.5, 0.5), angle=1.0, duration=0.1))
    *_, last = supple.simulate(scene, supple.PBD(iterations=20))
    assert np.isfinite(last.positions).all()
    assert np.linalg.norm(last.state.remembered["plastic_strain"], axis=1).max() > 0.02


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"yield_stress": 0.0}, "yield_stress"),
        ({"hardening": -1.0}, "hardening"),
        ({"plastic_shape": np.zeros((3, 3))}, "positive determinant"),
    ],
)
def test_bad_input_is_told(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        metal(**changes)
