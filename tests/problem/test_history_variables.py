"""History variables of elements: plastic strains [PBCM section 4.2], and their storage in states."""

import pickle

import numpy as np
import pytest
from frame_comparison import frames_equal
from problems import PRECISIONS, cantilever, face, material, tied_blocks, twisted

import supple
from supple import State
from supple.io.frames import SavedFrame, read_frame, write_frame
from supple.io.saved_bodies import concatenate_bodies
from supple.materials import PlasticStVK, by_element
from supple.problem import Problem
from supple.scene import build_model

SOLVERS = ["pbng", "hybrid", "newton", "gpbd", "bpxpbd"]


def plastic(**changes):
    given = {"young": 1e3, "poisson": 0.3, "yield_strain": 0.02, "creep": 8.0}
    return PlasticStVK(**(given | changes))


def flow(F, plastic_strain, dt, yield_strain, creep, most):
    """PBCM's flow rule for one element, with matrices."""
    elastic = 0.5 * (F.T @ F - np.eye(3)) - plastic_strain
    deviator = elastic - np.trace(elastic) / 3 * np.eye(3)
    if np.linalg.norm(deviator) > yield_strain:
        plastic_strain = plastic_strain + dt * creep * deviator
    size = np.linalg.norm(plastic_strain)
    return plastic_strain * most / size if size > most else plastic_strain


@pytest.mark.parametrize("most", [1e6, 0.1])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_cyclic_shear_of_an_element_flows_as_in_the_paper(most, precision):
    kind = plastic(max_plastic_strain=most)
    model = build_model(cantilever(kind, cells=1))
    problem = Problem(model, precision)
    expected = np.zeros((3, 3))
    for t in np.linspace(0, 3, 40):
        F = np.eye(3)
        F[0, 1], F[2, 2] = 0.4 * np.sin(4 * t), 1 + 0.1 * t
        problem.positions = model.rest @ F.T
        problem.history.evolve(0.02)
        expected = flow(F, expected, 0.02, 0.02, 8.0, most)
    (name, history), *others = problem.state.history.items()
    assert name == "plastic_strain"
    assert not others
    rows = np.tile(expected.ravel()[[0, 4, 8, 1, 2, 5]], (len(history), 1))
    np.testing.assert_allclose(history, rows, atol=1e-12 if precision == "float64" else 1e-6)
    assert np.linalg.norm(expected) > 0.05


@pytest.mark.parametrize("precision", PRECISIONS)
def test_forces_with_plastic_strains_are_derivatives_of_the_energy(precision):
    random = np.random.default_rng(0)
    scene = cantilever(plastic(), cells=2)
    model = build_model(scene)
    problem = Problem(model, precision)
    strains = 0.1 * random.standard_normal((model.elements, 6))
    problem.state = State(
        0.1 * random.standard_normal(model.rest.shape), 0 * model.rest, {"plastic_strain": strains}
    )
    problem.balance()
    net = problem.states.vectors(problem.states.net)[0].astype(float)
    exact = Problem(model, "float64")
    exact.state = problem.state
    x, way = exact.positions, random.standard_normal(model.rest.shape) * model.free[:, None]
    h, energies = 1e-5, []
    for sign in (1, -1):
        exact.positions = x + sign * h * way
        energies.append(exact.energy())
    slope = (energies[0] - energies[1]) / (2 * h)
    assert slope == pytest.approx(-(net * way).sum(), rel=1e-6 if precision == "float64" else 1e-4)


def test_initial_plastic_strains_set_the_rest_shape():
    """F with Fᵀ F = I + 2 εₚ costs no energy."""
    strain = np.diag([0.3, -0.1, 0.0])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), plastic(plastic_strain=strain), density=1.0)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    result = supple.equilibrium(scene, tolerance=1e-9)
    expected = body.mesh.points * np.sqrt(1 + 2 * np.diag(strain))
    np.testing.assert_allclose(result.positions, expected, atol=1e-6)


@pytest.mark.parametrize("quasistatic", [False, True], ids=["dynamic", "quasistatic"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SOLVERS)
def test_motion_resumed_from_state_is_bitwise_identical(name, precision, quasistatic, tmp_path):
    """A file stores the strains of the state, too."""
    if precision not in supple.solvers.SOLVERS[name].precisions:
        pytest.skip(f"{name} does not compute in {precision}")
    scene = twisted(plastic(), cells=3)
    options = {
        "dt": 0.2, "frames": 5, "quasistatic": quasistatic, "max_iterations": 5, "precision": precision,
    }  # fmt: skip
    uninterrupted = list(supple.simulate(scene, solver=name, **options))
    strains = [frame.state.history["plastic_strain"] for frame in uninterrupted]
    assert not strains[0].any()
    assert np.abs(strains[2] - strains[1]).max() > 1e-3
    frame = uninterrupted[1]
    saved = SavedFrame(frame.positions, frame.velocities, frame.index, frame.time, frame.state)
    write_frame(tmp_path, saved, concatenate_bodies(scene.bodies))
    for start in (pickle.loads(pickle.dumps(frame.state)), read_frame(tmp_path, 2).state):
        parts = list(supple.simulate(scene, solver=name, initial=start, first_frame=3, **options))
        for actual, expected in zip(parts, uninterrupted[2:], strict=True):
            assert frames_equal(actual, expected)
            of_both = (each.state.history["plastic_strain"] for each in (actual, expected))
            np.testing.assert_array_equal(*of_both)


def test_plastic_deformation_remains_after_unloading():
    """It is larger for faster flow, and smaller for a larger yield strain or a lower limit, as in PBCM Fig.
    8."""
    left = {}
    for name, changes in {
        "a": {}, "faster": {"creep": 40.0}, "later": {"yield_strain": 0.2},
        "limited": {"max_plastic_strain": 0.05}, "elastic": {"yield_strain": 1e3},
    }.items():  # fmt: skip
        scene = supple.Scene(gravity=(0, 0, 0), dt=0.05, frames=10)
        bar = scene.add_solid(supple.block((6, 2, 2), size=(3, 1, 1)), plastic(**changes), density=1.0)
        scene.pin(bar.where(face(0, 0)))
        bent = scene.bodies[0].where(face(0, 3))
        scene.pin(bent, supple.Rotate(axis=(1, 0, 0), center=(3, 0.5, 0.5), angle=1.5, duration=0.2))
        last = list(supple.simulate(scene, tolerance=1e-3))[-1]
        free = supple.Scene(gravity=(0, 0, 0))
        again = free.add_solid(bar.mesh, plastic(**changes), density=1.0)
        free.pin(again.where(face(0, 0)))
        state = State(last.state.displacements, 0 * last.state.velocities, last.state.history)
        rest = supple.equilibrium(free, initial=state, tolerance=1e-5)
        left[name] = np.abs(rest.positions - bar.mesh.points).max()
    assert left["elastic"] < 1e-4
    assert left["faster"] > left["a"] > left["later"] > 0.01
    assert left["a"] > left["limited"] > 0.01


def test_batched_steppers_have_separate_histories():
    scene = cantilever(plastic(), cells=2)
    scene.quasistatic = False
    options = {"dt": 0.1, "max_iterations": 10}
    forces = np.zeros((2, len(scene.bodies[0].points), 3))
    forces[1, :, 0] = 0.5
    batched = supple.Stepper(scene, batch_size=2, **options)
    for _ in range(4):
        frames = batched.step(forces=forces)
    for k in range(2):
        single = supple.Stepper(scene, **options)
        for _ in range(4):
            frame = single.step(forces=forces[k])
        np.testing.assert_array_equal(frames[k].positions, frame.positions)
        strains = [one.state.history["plastic_strain"] for one in (frames[k], frame)]
        np.testing.assert_array_equal(*strains)
        assert strains[0].any()


def test_changed_parameters_keep_the_history():
    model = build_model(tied_blocks(plastic(), material("corotated")))
    problem = Problem(model, "float64")
    strains = np.random.default_rng(0).standard_normal((model.terms[0].vertices.shape[0], 6))
    problem.state = State(0 * model.rest, 0 * model.rest, {"plastic_strain": strains})
    problem.set_parameters(0, by_element(plastic(young=5e3), len(strains)))
    np.testing.assert_array_equal(problem.state.history["plastic_strain"], strains)
    assert problem.model.terms[0].material.young == pytest.approx(5e3)


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        ({"plastic": np.zeros((6, 6))}, r"does not have \(it has: plastic_strain\)"),
        ({"plastic_strain": np.zeros((7, 6))}, r"shape \(\d+, 6\)"),
        ({"plastic_strain": np.full((48, 6), np.nan)}, "finite"),
    ],
)
def test_foreign_history_is_refused(history, sentence):
    scene = cantilever(plastic(), cells=2)
    rest = scene.bodies[0].mesh.points
    with pytest.raises(ValueError, match=sentence):
        supple.equilibrium(scene, initial=State(0 * rest, 0 * rest, history))
