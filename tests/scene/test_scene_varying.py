"""Parameters of materials that vary in time."""

import pickle

import numpy as np
import pytest
from fibers import Fibers
from problems import cantilever, face, material

import supple
from supple import SceneError, block
from supple.api.inspect import inspect
from supple.loads import Ramp
from supple.problem import Problem
from supple.scene import build_model, load_scene
from supple.scene.variations import conditions
from supple.solvers import SOLVERS

STIFFENING = Ramp(times=(0, 0.1), fractions=(1, 5))
SOFT = material("corotated")


def swinging(ramp=STIFFENING, quasistatic=False):
    scene = cantilever(SOFT, cells=2)
    scene.quasistatic, scene.dt, scene.frames = quasistatic, 0.02, 6
    if ramp is not None:
        scene.vary(scene.bodies[0], "young", ramp)
    return scene


def two_blocks(young=(1e3, 1e3), ramp=None):
    """Two separate blocks side by side on a wall; the second one stiffens."""
    scene = supple.Scene(gravity=(0, -5, 0), dt=0.02, frames=4)
    for k, E in enumerate(young):
        body = scene.add_solid(block(2, origin=(0, 0, 2 * k)), material("corotated", young=E), density=2)
        scene.pin(body.where(face(0, 0)))
    if ramp is not None:
        scene.vary(scene.bodies[1], "young", ramp)
    return scene


def test_frames_have_the_present_parameter():
    scene = swinging(quasistatic=True)
    for frame in supple.simulate(scene, tolerance=1e-9, frames=6):
        now = cantilever(material("corotated", young=1e3 * STIFFENING(frame.time)), cells=2)
        expected = supple.equilibrium(now, tolerance=1e-9)
        np.testing.assert_allclose(frame.positions, expected.positions, atol=1e-7)
        assert frame.evaluate().stored_energy == pytest.approx(expected.evaluate().stored_energy, rel=1e-5)
        np.testing.assert_allclose(frame.evaluate().von_mises, expected.evaluate().von_mises, rtol=1e-3)


def test_equilibrium_has_the_final_parameter():
    result = supple.equilibrium(swinging(quasistatic=True), tolerance=1e-9)
    stiff = supple.equilibrium(cantilever(material("corotated", young=5e3), cells=2), tolerance=1e-9)
    np.testing.assert_allclose(result.positions, stiff.positions, atol=1e-8)
    assert result.evaluate().stored_energy == pytest.approx(stiff.evaluate().stored_energy, rel=1e-6)


def test_bodies_of_one_class_vary_separately():
    """One term has two bodies, of which one stiffens; the other is unaffected."""
    *_, last = supple.simulate(two_blocks(ramp=STIFFENING), tolerance=1e-9)
    expected = supple.equilibrium(two_blocks((1e3, 1e3 * STIFFENING(0.08))), tolerance=1e-9)
    np.testing.assert_allclose(last.positions, expected.positions, atol=1e-7)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ["pbng", "newton", "hybrid", "xpbd", "bpxpbd", "fpxpbd", "gpbd", "pbd"])
def test_motion_resumed_from_state_is_bitwise_identical(name, precision):
    """In every solver."""
    if precision not in SOLVERS[name].precisions:
        return
    scene, limits = swinging(), {"max_iterations": 4, "precision": precision}
    uninterrupted = [*supple.simulate(scene, solver=name, **limits)]
    parts = [*supple.simulate(scene, solver=name, initial=uninterrupted[2].state, first_frame=4, **limits)]
    for frame, expected in zip(parts, uninterrupted[3:], strict=True):
        np.testing.assert_array_equal(frame.positions, expected.positions)
        np.testing.assert_array_equal(frame.velocities, expected.velocities)
    *_, still = supple.simulate(swinging(None), solver=name, **limits)
    assert name == "pbd" or np.abs(uninterrupted[-1].positions - still.positions).max() > 1e-4


def test_stepper_equals_simulate():
    scene = swinging()
    sim = supple.Stepper(scene, solver="pbng", max_iterations=4)
    for frame in supple.simulate(scene, solver="pbng", max_iterations=4):
        np.testing.assert_array_equal(sim.step().positions, frame.positions)
    sim.reset()
    batched = supple.Stepper(scene, solver="pbng", max_iterations=4, batch_size=2)
    for _ in range(3):
        np.testing.assert_array_equal(batched.step().positions[1], sim.step().positions)


def test_varying_parameters_reuse_layout_and_kernels():
    problem = Problem(build_model(swinging()), "float32")
    problem.begin_step(0.0)
    layout, rows = problem.layout, problem.layout.terms
    signature = [type(value) for value in rows[0].material]
    problem.begin_step(0.05)
    assert problem.layout is layout
    assert problem.layout.terms[0].rest is rows[0].rest
    assert [type(value) for value in problem.layout.terms[0].material] == signature
    assert problem.layout.terms[0].material.mu == pytest.approx(3 * SOFT.mu)


def test_ramp_functions_and_values_by_element():
    scene = supple.Scene(gravity=(0, -5, 0))
    mesh = block(2)
    young = np.linspace(1e3, 2e3, mesh.n_tets)
    body = scene.add_solid(mesh, material("corotated", young=young), density=2)
    scene.pin(body.where(face(0, 0)))
    scene.vary(body, "young", lambda t: 2.0 if t > 1 else 1.0)
    result = supple.equilibrium(scene, tolerance=1e-8)
    np.testing.assert_allclose(result.model.terms[0].material.young, 2 * young)
    early, late = (
        conditions(scene, result.model, supple.Variation(time=t)).materials[0] for t in (0.5, np.inf)
    )
    assert early == body.material
    assert late == result.model.terms[0].material


def test_scenes_with_varying_parameters_can_be_pickled():
    scene = pickle.loads(pickle.dumps(swinging()))
    motions = [supple.simulate(s, solver="pbng", max_iterations=3) for s in (scene, swinging())]
    for a, b in zip(*motions, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)


FILE = """
quasistatic = false
dt = 0.02
frames = 4
[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
density = 2
[[pin]]
where = { side = "x-" }
[[vary]]
parameter = "young"
ramp = { times = [0, 0.1], fractions = [1, 5] }
[solver]
method = "pbng"
[stop]
max_iterations = 4
"""


def test_scene_files_with_varying_parameters(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE)
    file = load_scene(path)
    (varied,) = file.scene.varying_parameters
    assert (varied.parameter, varied.ramp) == ("young", STIFFENING)
    assert inspect(file)["varying"] == [
        {"body": "solid0", "parameter": "young", "ramp": {"times": [0, 0.1], "fractions": [1, 5]}}
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('"young"', '"yung"'), r"vary\[0\]: Corotated of 'solid0' has no parameter 'yung'; .*young"),
        (("fractions = [1, 5]", "fractions = [1, 0]"), "0 times the young of 'solid0', at t = 0.1 s"),
        (("fractions = [1, 5]", "fractions = [1]"), r"vary\[0\].ramp"),
        (('parameter = "young"', 'parameter = "young"\nsolid = "arm"'), r"there is no (solid|body) 'arm'"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, change, sentence):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.replace(*change))
    with pytest.raises(SceneError, match=sentence):
        load_scene(path)


@pytest.mark.parametrize(
    ("parameter", "ramp", "sentence"),
    [
        ("young", None, "needs a ramp"),
        ("young", 2.0, "A ramp must be"),
        ("density", STIFFENING, "has no parameter 'density'"),
        (3, STIFFENING, "has no parameter 3"),
        ("poisson", STIFFENING, "5 times the poisson of 'solid0'"),
        ("young", lambda t: np.nan, "one finite number"),
        ("young", lambda t: 1 - min(t, 2), "-1 times the young of 'solid0', in the end"),
    ],
)
def test_invalid_variations_are_refused(parameter, ramp, sentence):
    scene = cantilever(SOFT, cells=2)

    def build():
        scene.vary(scene.bodies[0], parameter, ramp)
        build_model(scene)

    with pytest.raises(SceneError, match=sentence):
        build()


def test_second_ramp_and_varying_directions_are_refused():
    scene = swinging()
    with pytest.raises(SceneError, match="young of 'solid0' already has a ramp"):
        scene.vary(scene.bodies[0], "young", STIFFENING)
    scene = supple.Scene()
    body = scene.add_solid(block(1), Fibers.example())
    for parameter in Fibers.parameters:
        if parameter.may_vary and np.any(getattr(body.material, parameter.name)):
            scene.vary(body, parameter.name, STIFFENING)
        else:
            with pytest.raises(SceneError, match=f"{parameter.name} of .* (is a .* and cannot vary|is 0)"):
                scene.vary(body, parameter.name, STIFFENING)
