"""Multiplicative plasticity: return mapping in logarithmic strains, with hardening."""

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, face, material

import supple
from supple.problem import Problem
from supple.scene import build_model

MU = 1e3 / 2.6


def metal(**changes):
    return supple.materials.PlasticHencky(
        **({"young": 1e3, "poisson": 0.3, "yield_stress": 40.0, "hardening": 200.0} | changes)
    )


def driven(kind, path, precision="float64"):
    """The von Mises stress of τ, its sign, and ᾱ of a block with F = diag(e^a, e^-a, 1) for a in a path."""
    model = build_model(cantilever(kind, cells=1))
    problem, stresses = Problem(model, precision), []
    for a in path:
        problem.positions = model.rest * [np.exp(a), np.exp(-a), 1]
        problem.history.evolve(0.1)
        history = problem.state.history
        elastic = np.exp(a) * history["unflowed"][0, 0]
        stresses.append((2 * MU * np.log(elastic), history["equivalent_plastic_strain"][0]))
        volume = np.linalg.det(history["unflowed"].reshape(-1, 3, 3))
        np.testing.assert_allclose(volume, 1, rtol=1e-12 if precision == "float64" else 1e-5)
    return np.array(stresses)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_cycle_of_pure_shear_matches_the_closed_form(precision):
    """The strain is (a, -a, 0), so q = 2√3 μ a: elastic to q = σ_y, then q = σ_y + H ᾱ with ᾱ = (2√3 μ a -
    σ_y)/(3μ + H); back, elastic over 2 (σ_y + H ᾱ), and on along the mirrored line."""
    H, y, root = 200.0, 40.0, np.sqrt(3)
    forth = np.linspace(0, 0.1, 26)
    back = np.linspace(0.1, -0.1, 51)
    stresses = driven(metal(), [*forth, *back[1:]], precision)
    q, flowed = root * stresses[:, 0], stresses[:, 1]
    eps = 1e-9 if precision == "float64" else 1e-4
    alpha = np.maximum(0, (2 * root * MU * forth - y) / (3 * MU + H))
    np.testing.assert_allclose(flowed[:26], alpha, atol=eps)
    np.testing.assert_allclose(q[:26], np.minimum(2 * root * MU * forth, y + H * alpha), atol=eps * 1e3)
    top = alpha[-1]
    trial = y + H * top - 2 * root * MU * (0.1 - back)
    second_cycle = np.maximum(0, (-trial - y - H * top) / (3 * MU + H))
    np.testing.assert_allclose(flowed[25:], top + second_cycle, atol=eps)
    np.testing.assert_allclose(q[25:], np.maximum(trial, -(y + H * (top + second_cycle))), atol=eps * 1e3)
    assert flowed[-1] > 2 * top > 0


def test_hencky_below_the_yield_stress():
    strong, elastic = metal(yield_stress=1e9), material("hencky", young=1e3, poisson=0.3)
    forces = []
    for kind in (strong, elastic):
        model = build_model(cantilever(kind, cells=1))
        problem = Problem(model, "float64")
        problem.positions = model.rest + 0.1 * np.random.default_rng(2).uniform(-1, 1, model.rest.shape)
        problem.history.evolve(0.1)
        problem.balance()
        forces.append(problem.states.vectors(problem.states.net)[0].astype(float))
    np.testing.assert_allclose(*forces, atol=1e-9 * np.abs(forces[0]).max())


def test_forces_are_derivatives_of_the_energy_during_flow():
    random = np.random.default_rng(1)
    model = build_model(cantilever(metal(), cells=1))
    problem = Problem(model, "float64")
    problem.positions = model.rest + 0.2 * random.uniform(-1, 1, model.rest.shape)
    problem.history.evolve(0.1)
    assert problem.state.history["equivalent_plastic_strain"].max() > 0.01
    problem.positions = problem.positions + 0.05 * random.uniform(-1, 1, model.rest.shape)
    x, way = problem.positions, random.standard_normal(model.rest.shape) * model.free[:, None]
    problem.balance()
    net = problem.states.vectors(problem.states.net)[0].astype(float)
    energies = []
    for h in (1e-5, -1e-5):
        problem.positions = x + h * way
        energies.append(problem.energy())
    assert (energies[0] - energies[1]) / 2e-5 == pytest.approx(-(net * way).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["plastic_stvk", "plastic_hencky"])
def test_files_have_plastic_strains(kind, tmp_path):
    plastic = metal() if kind == "plastic_hencky" else supple.materials.PlasticStVK(
        young=1e3, poisson=0.3, yield_strain=0.01, creep=50.0
    )  # fmt: skip
    scene = cantilever(plastic, cells=2, gravity=40)
    frames = list(supple.simulate(scene, solver="newton", dt=0.1, frames=4, tolerance=1e-3))
    first, last = (frame.evaluate().plastic_strain for frame in (frames[0], frames[-1]))
    assert first.any() == (kind == "plastic_hencky"), "PBCM's rule is explicit: it flows after a step"
    assert last.max() > 1e-3
    assert np.isnan(
        supple.equilibrium(cantilever(material("stvk"), cells=1), solver="newton").evaluate().plastic_strain
    ).all()
    again = supple.simulate(
        scene, solver="newton", dt=0.1, frames=4, first_frame=4, initial=frames[2].state, tolerance=1e-3
    )
    np.testing.assert_array_equal(next(iter(again)).evaluate().plastic_strain, last)


def test_pbd_flow_follows_the_paper():
    """PBCM's solver and material: a twisted and released bar keeps a part of the twist."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.02, frames=10)
    kind = supple.materials.PlasticStVK(young=1e4, poisson=0.3, yield_strain=0.02, creep=20.0)
    bar = scene.add_solid(supple.block((4, 1, 1), size=(4, 1, 1)), kind, density=10)
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    end = bar.where(lambda X: X[:, 0] >= 4)
    scene.pin(end, supple.Rotate(axis=(1, 0, 0), center=(4, 0.5, 0.5), angle=1.0, duration=0.1))
    *_, last = supple.simulate(scene, solver=supple.PBD(iterations=20))
    assert np.isfinite(last.positions).all()
    assert np.linalg.norm(last.state.history["plastic_strain"], axis=1).max() > 0.02


E, NU, Y = 1e6, 0.3, 1e4


def pulled(hardening, motion=None, **about):
    """A block in uniaxial stress along x, optionally pulled by a motion of its end face."""
    scene = supple.Scene(gravity=(0, 0, 0), **about)
    kind = supple.materials.PlasticHencky(young=E, poisson=NU, yield_stress=Y, hardening=hardening)
    body = scene.add_solid(supple.block(1), kind)
    for axis, name in enumerate("xyz"):
        scene.pin(body.where(face(axis, 0)), axes=name)
    if motion is not None:
        moved = body.where(face(0, 1))
        scene.pin(moved, axes="x", motion=lambda X, t: X + np.array([motion(t), 0, 0]))
    return scene, body


def return_mapping(path, hardening):
    """Kirchhoff stress [Pa] and ᾱ along a path of logarithmic strains, by 1-D return mapping."""
    flow, alpha, stresses = 0.0, 0.0, []
    for strain in path:
        trial = E * (strain - flow)
        step = max(0.0, abs(trial) - Y - hardening * alpha) / (E + hardening)
        flow, alpha = flow + step * np.sign(trial), alpha + step
        stresses.append((E * (strain - flow), alpha))
    return np.array(stresses)


def cauchy(tau):
    return tau / np.exp((1 - 2 * NU) * tau / E)


@pytest.mark.parametrize("hardening", [0.0, E / 10])
def test_stresses_of_a_cycle_equal_return_mapping_in_every_frame(hardening):
    """Under radial loading implicit return mapping is exact for any steps."""

    def stretch(t):
        return 0.05 * np.interp(t, [0, 1, 3], [0, 1, -1])

    frames = list(supple.simulate(pulled(hardening, stretch, dt=0.25, frames=12)[0], tolerance=1e-9))
    tau, alpha = return_mapping([np.log1p(stretch(frame.time)) for frame in frames], hardening).T
    seen = [frame.evaluate() for frame in frames]
    np.testing.assert_allclose([e.von_mises.max() for e in seen], np.abs(cauchy(tau)), rtol=1e-7)
    np.testing.assert_allclose([e.plastic_strain.min() for e in seen], alpha, rtol=1e-6)
    assert alpha[-1] > 0.1


def test_equilibrium_under_forces_keeps_its_plastic_strain():
    """P = τ e^(-ε) in uniaxial stress, with ε = τ/E + (τ - σ_y)/H."""
    scene, body = pulled(E / 10)
    end = body.where(face(0, 1))
    tau, strain = 12e3, 12e3 / E + 0.02
    scene.add_traction(end, (tau * np.exp(-strain), 0, 0))
    loaded = [supple.equilibrium(scene, tolerance=1e-9, load_steps=steps) for steps in (1, 3)]
    for result in loaded:
        assert result.positions[end.vertices, 0] == pytest.approx(np.exp(strain), rel=1e-7)
        assert result.evaluate().plastic_strain == pytest.approx(0.02, rel=1e-6)
    relaxed = supple.equilibrium(pulled(E / 10)[0], initial=loaded[0].state, tolerance=1e-9)
    assert relaxed.positions[end.vertices, 0] == pytest.approx(np.exp(0.02), rel=1e-6)


def test_rotating_flow_direction_converges_to_first_order():
    """The block is pulled and then sheared, so that the flow direction turns within steps."""

    def path(X, t):
        return X * [1 + 0.03 * min(t, 1), 1, 1] + 0.05 * max(t - 1, 0) * X[:, [1]] * [1, 0, 0]

    def rotated_bar(n):
        scene = supple.Scene(gravity=(0, 0, 0), dt=2 / n, frames=n)
        kind = supple.materials.PlasticHencky(young=E, poisson=NU, yield_stress=Y)
        body = scene.add_solid(supple.block(2), kind)
        scene.pin(body.where(lambda X: (np.abs(X - 0.5) > 0.4).any(axis=1)), motion=path)
        return list(supple.simulate(scene, solver="newton", tolerance=1e-9))[-1].evaluate().cauchy[0]

    exact, *step_errors = (rotated_bar(n) for n in (512, 8, 16, 32))
    errors = [np.abs(one - exact).max() / Y for one in step_errors]
    assert errors[0] < 0.05
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < 0.6 * errors[1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"yield_stress": 0.0}, "yield_stress"),
        ({"hardening": -1.0}, "hardening"),
        ({"plastic_shape": np.zeros((3, 3))}, "positive determinant"),
    ],
)
def test_bad_input_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        metal(**changes)
