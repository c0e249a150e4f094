"""Energies and forces at any positions, and of results and frames."""

import pickle

import numpy as np
import pytest
from evaluated_bodies import NAMES, TET, balanced, body_of, piola
from fake_device import fake_device  # noqa: F401
from problems import (
    PRECISIONS,
    cantilever,
    material,
    membrane,
    net,
    tied_blocks,
    twisted,
)

import supple
from supple.postprocess.evaluation import Deformations, SpringForces
from supple.problem import Problem


@NAMES
def test_forces_are_derivatives_of_the_energy(name):
    """At every vertex, including pinned ones, with loads and attachments."""
    scene = tied_blocks(material(name), material("corotated"), cells=1)
    scene.add_force(scene.bodies[0], (1.0, 2.0, 3.0))
    model, random = supple.scene.build_model(scene), np.random.default_rng(0)
    x = model.rest + random.uniform(-0.05, 0.05, model.rest.shape)
    evaluation, h = supple.evaluate(model, x), 1e-6
    for direction in random.normal(size=(5, *x.shape)):
        ends = [supple.evaluate(model, x + s * h * direction).energy for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert -(evaluation.net_force * direction).sum() == pytest.approx(slope, rel=1e-6)


@NAMES
def test_energies_add_up(name):
    scene = tied_blocks(material(name), material("corotated"), cells=1)
    model = supple.scene.build_model(scene)
    x = model.rest + np.random.default_rng(1).uniform(-0.05, 0.05, model.rest.shape)
    evaluation, problem = supple.evaluate(model, x), Problem(model, "float64")
    problem.positions = x
    assert evaluation.stored_energy == pytest.approx(problem.diagnostics.stored_energies().sum(), rel=1e-12)
    pulls = next(term for term in evaluation.terms if isinstance(term, SpringForces))
    assert sum(evaluation.body_energies.values()) + pulls.element_energy.sum() == pytest.approx(
        evaluation.stored_energy, rel=1e-12
    )
    assert list(evaluation.body_energies) == ["solid0", "solid1"]
    assert min(evaluation.body_energies.values()) > 0
    volumes = np.concatenate([body.mesh.volumes for body in scene.bodies])
    np.testing.assert_allclose(evaluation.energy_density * volumes, evaluation.element_energy, rtol=1e-12)
    assert evaluation.load_energy == pytest.approx(-(model.force * (x - model.rest)).sum(), rel=1e-12)


def test_tetrahedra_are_ordered_by_body():
    """Although bodies of one material class are one term."""
    scene = supple.Scene(gravity=(0, 0, 0))
    names = "corotated", "neo_hookean", "corotated"
    for k, name in enumerate(names):
        scene.add_solid(supple.block(1, origin=(2.0 * k, 0, 0)), material(name))
    model = supple.scene.build_model(scene)
    x = model.rest.copy()
    for body, stretch in zip(scene.bodies, (1.1, 1.2, 1.3), strict=True):
        x[body.vertices] *= [stretch, 1, 1]
    evaluation = supple.evaluate(model, x)
    np.testing.assert_array_equal(evaluation.vertices, model.tets)
    np.testing.assert_allclose(evaluation.volume_ratio, np.repeat([1.1, 1.2, 1.3], 5))


def test_evaluation_of_membranes_and_springs():
    """Membranes have plane stress, and springs a force."""
    model = membrane("neo_hookean")
    evaluation = supple.evaluate(model, model.rest * [1.3, 0.8, 1])
    (sheet,) = evaluation.terms
    assert isinstance(sheet, Deformations)
    assert len(evaluation.von_mises) == 0
    expected = piola("neo_hookean", np.diag([1.3, 0.8, 1])) * 1e5 / material("neo_hookean").young
    np.testing.assert_allclose(sheet.piola, np.broadcast_to(expected, sheet.piola.shape), atol=1e-5)
    model = net(stiffness=300.0)
    evaluation = supple.evaluate(model, model.rest * 1.1)
    (springs,) = evaluation.terms
    length = np.linalg.norm(np.diff(model.rest[springs.vertices], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(springs.force, axis=1), 300.0 * 0.1 * length)
    np.testing.assert_allclose(springs.element_energy, 0.5 * 300.0 * (0.1 * length) ** 2)
    assert evaluation.reactions["pins"].vertices.tolist() == model.pinned.tolist()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "make", [net, membrane, lambda: supple.scene.build_model(SCENE)], ids=["net", "membrane", "solid"]
)
def test_devices_agree(precision, make, fake_device):  # noqa: F811
    model = make()
    x = model.rest + np.random.default_rng(4).uniform(-0.03, 0.03, model.rest.shape)
    cpu, device = (supple.evaluate(model, x, precision=precision, device=d) for d in ("cpu", "cuda"))
    atol = 1e-12 if precision == "float64" else 1e-4
    for name in ("internal_force", "cauchy", "deformation_gradient", "element_energy"):
        a, b = getattr(cpu, name), getattr(device, name)
        np.testing.assert_allclose(a, b, atol=atol * max(1, np.abs(a).max(initial=0)))
    for one, other in zip(cpu.terms, device.terms, strict=True):
        np.testing.assert_allclose(one.element_energy, other.element_energy, atol=atol)


SCENE = tied_blocks(material("corotated"), material("stvk"), cells=1)


def test_results_and_frames_evaluate_under_their_loads():
    """With ramped gravity a frame has that of its time, and a result of a variation its own."""
    scene = cantilever(material("neo_hookean"), cells=2)
    scene.gravity_ramp = supple.loads.Ramp(times=(0, 1), fractions=(0, 1))
    frame = next(iter(supple.simulate(scene, dt=0.25, frames=1, tolerance=1e-9)))
    model = frame.model
    np.testing.assert_allclose(frame.evaluate().external_force, model.force_at(0.25))
    assert np.abs(frame.evaluate().net_force[model.free]).max() < 1e-5
    late = supple.evaluate(scene, frame.positions)
    np.testing.assert_allclose(late.external_force, model.force_at(1.0))
    early = supple.evaluate(scene, frame.positions, time=0.25)
    np.testing.assert_array_equal(early.net_force, frame.evaluate().net_force)
    (varied,) = supple.equilibria(scene, [supple.Variation(gravity=(0, -3, 0))])
    assert np.abs(varied.evaluate().net_force[model.free]).max() < 1e-3


def test_frames_of_a_motion_balance_with_inertia():
    """Also after pickling; a swinging body pulls at its pin by more than its weight."""
    scene = cantilever(material("neo_hookean"), cells=2)
    scene.quasistatic = False
    *_, frame = supple.simulate(scene, dt=0.02, frames=4, tolerance=1e-9)
    evaluation = pickle.loads(pickle.dumps(frame)).evaluate()
    assert np.abs(evaluation.inertial_force).max() > 0.1
    assert np.abs(evaluation.net_force[frame.model.free]).max() < 1e-4
    total = evaluation.reaction_force + evaluation.external_force + evaluation.inertial_force
    np.testing.assert_allclose(total.sum(axis=0), 0, atol=1e-4)
    again = pickle.loads(pickle.dumps(evaluation))
    np.testing.assert_array_equal(again.net_force, evaluation.net_force)
    frame.step = type(frame.step)(frame.step.dt, None)
    assert frame.evaluate().von_mises.shape == evaluation.von_mises.shape
    with pytest.raises(ValueError, match="several substeps"):
        _ = frame.evaluate().net_force


def test_energy_equals_that_of_the_report():
    result, evaluation = balanced(twisted(material("corotated"), cells=2))
    assert evaluation.energy == pytest.approx(result.report.energy, rel=1e-12)


def test_all_vertices_may_be_pinned_or_none():
    scene = body_of("corotated", gravity=(0, -1, 0))
    (tet,) = scene.bodies
    loose = supple.evaluate(scene, TET.points)
    assert loose.reactions == {"pins": loose.reactions["pins"]}
    np.testing.assert_array_equal(loose.reactions["pins"].force, 0)
    scene.pin(tet)
    evaluation = supple.evaluate(scene, TET.points)
    np.testing.assert_allclose(evaluation.reactions["pin0"].force, [0, 3 * TET.volumes.sum(), 0], atol=1e-12)
    assert repr(evaluation.reactions["pin0"]).startswith("<Reaction: force [")
    assert "1 cell" in repr(evaluation)


REFUSED = {
    "shape": ((np.zeros((3, 3)),), {}, r"positions must have shape \(4, 3\)"),
    "NaN": ((TET.points * np.nan,), {}, "positions has NaN or infinite values for 4 of 4"),
    "text": (("here",), {}, "positions must have shape"),
    "time": ((TET.points,), {"time": -1}, "time .* must not be negative"),
    "no time": ((TET.points,), {"time": np.nan}, "time .* must not be negative"),
    "precision": ((TET.points,), {"precision": "half"}, "precision must be"),
    "device": ((TET.points,), {"device": "tpu"}, "device must be"),
    "threads": ((TET.points,), {"threads": 0}, "threads must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_refused(case):
    args, options, sentence = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence):
        supple.evaluate(body_of("corotated"), *args, **options)


def test_model_without_scene_is_refused():
    with pytest.raises(TypeError, match="needs a scene"):
        supple.evaluate("scene.toml", TET.points)
    with pytest.raises(ValueError, match="no bodies"):
        supple.evaluate(supple.Scene(), TET.points)


def test_energy_of_a_stiff_body_in_float32_is_as_accurate_as_its_positions():
    """The default solver keeps a float64 state; rounding of float32 would change the energy by 1e-3."""
    scene = supple.Scene()
    body = scene.add_solid(supple.block((8, 2, 2), size=(4, 1, 1)), supple.NeoHookean(young=1e8, poisson=0.3))
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    result = supple.equilibrium(scene, precision="float32")
    assert result.report.ok
    assert result.report.energy == pytest.approx(result.evaluate().energy, rel=1e-5)
