"""Time in scenes: varying loads, initial velocities, substeps and damping."""

import math

import numpy as np
import pytest

import supple
from supple.scene import SceneError, SceneFileError, build_model, load_scene
from supple.scene.variations import conditions

MATERIAL = supple.Corotated(young=1e3, poisson=0.3)
UP_AND_DOWN = supple.loads.Ramp(times=(0, 1, 3), fractions=(0, 1, -0.5))


def pinned_scene(**options) -> tuple[supple.Scene, supple.scene.Body]:
    scene = supple.Scene(**options)
    body = scene.add_solid(supple.block(2), MATERIAL, density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene, body


@pytest.mark.parametrize(
    ("t", "fraction"), [(-1, 0), (0.25, 0.25), (1, 1), (2, 0.25), (9, -0.5), (math.inf, -0.5)]
)
def test_ramp_is_linear_between_its_times_and_constant_outside(t, fraction):
    assert UP_AND_DOWN(t) == pytest.approx(fraction)


def test_loads_of_equal_ramps_are_merged_with_constant_ones():
    scene, body = pinned_scene(gravity=(0, -1, 0), gravity_ramp=UP_AND_DOWN)
    top = body.where(lambda X: X[:, 1] >= 1)
    scene.add_force(body, (27.0, 0, 0))
    scene.add_force(top, (0, 0, 9.0), ramp=supple.loads.Ramp((0, 1, 3), (0, 1, -0.5)))
    scene.add_traction(top, (0, 0, 2.0), ramp=lambda t: min(t, 10.0))
    model = build_model(scene)
    assert len(model.varying) == 2
    for t in (0.0, 0.5, 2.0, math.inf):
        part, total = UP_AND_DOWN(t), model.force_at(t).sum(axis=0)
        np.testing.assert_allclose(total, [27, -10 * part, 9 * part + 2 * min(t, 10.0)], atol=1e-12)


def test_equilibrium_has_final_loads_and_frames_have_present_ones():
    scene, body = pinned_scene(gravity=(0, 0, 0), dt=0.5, frames=2)
    scene.add_force(body, (0, -20.0, 0), ramp=supple.loads.Ramp((0, 1), (0, 1)))
    half, uninterrupted = supple.simulate(scene, solver=supple.Newton(), tolerance=1e-10)
    end = supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-10)
    np.testing.assert_allclose(uninterrupted.positions, end.positions, atol=1e-9)
    constant, body = pinned_scene(gravity=(0, 0, 0))
    constant.add_force(body, (0, -10.0, 0))
    result = supple.equilibrium(constant, solver=supple.Newton(), tolerance=1e-10)
    np.testing.assert_allclose(half.positions, result.positions, atol=1e-9)
    assert np.abs(half.positions - uninterrupted.positions).max() > 1e-3


def test_variations_take_loads_at_their_time():
    scene, body = pinned_scene(gravity=(0, -2, 0), gravity_ramp=UP_AND_DOWN)
    scene.add_force(body, (0, 0, 27.0), ramp=UP_AND_DOWN)
    model = build_model(scene)

    def total(**options):
        return conditions(scene, model, supple.Variation(**options)).force.sum(axis=0)

    np.testing.assert_allclose(total(), [0, 10, -13.5], atol=1e-12)
    np.testing.assert_allclose(total(time=0.5), [0, -10, 13.5], atol=1e-12)
    np.testing.assert_allclose(total(time=0.5, gravity=(4, 0, 0)), [20, 0, 13.5], atol=1e-12)
    np.testing.assert_allclose(total(time=1.0, forces={body: (1, 0, 0)}), [1, -20, 27], atol=1e-12)


def test_unsupported_bodies_are_refused_under_vanishing_loads():
    """The ramp ends at 0."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(1), MATERIAL)
    scene.add_force(body, (1, 0, 0), ramp=supple.loads.Ramp((0, 1, 2), (0, 1, 0)))
    with pytest.raises(SceneError, match="it would fall forever"):
        build_model(scene)


def test_initial_velocity_and_spin_about_the_center_of_mass():
    scene = supple.Scene(quasistatic=False)
    scene.add_solid(supple.block(1, origin=(5, 0, 0)), MATERIAL)
    body = scene.add_solid(
        supple.block(2), MATERIAL, density=10, velocity=(1, 2, 3), angular_velocity=(0, 0, 4)
    )
    v = build_model(scene).velocities
    assert not v[: body.first].any()
    mass = body.mesh.masses(10)
    np.testing.assert_allclose(mass @ v[body.vertices] / mass.sum(), (1, 2, 3))
    (corner,) = np.flatnonzero((body.points == 1).all(axis=1))
    np.testing.assert_allclose(v[body.first + corner], (1 - 4 * 0.5, 2 + 4 * 0.5, 3))
    assert build_model(pinned_scene()[0]).velocities is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: supple.loads.Ramp((0, 0), (0, 1)), "times .* must increase"),
        (lambda: supple.loads.Ramp((0, 1), (0,)), "A Ramp must have one fraction for each time"),
        (lambda: supple.loads.Ramp((), ()), "one fraction for each time"),
        (lambda: supple.loads.Ramp((0, math.inf), (0, 1)), "times .* finite"),
        (lambda: supple.Scene(damping=1.0), "damping must be less than 1, got 1.0"),
        (lambda: supple.Scene(damping=-0.1), "damping must be at least 0"),
        (lambda: supple.Scene(substeps=0), "substeps must be a whole number of at least 1"),
        (lambda: supple.Scene(substeps=1.5), "substeps must be a whole number"),
        (lambda: supple.Scene(gravity_ramp=0.5), r"A ramp must be for example supple.loads.Ramp\(times="),
        (lambda: (lambda s, b: s.add_force(b, (1, 0, 0), ramp=(0, 1)))(*pinned_scene()), "A ramp must be"),
        (
            lambda: supple.Scene().add_solid(supple.block(1), MATERIAL, velocity=(1, 0)),
            "velocity .* three numbers",
        ),
        (
            lambda: supple.Scene().add_solid(supple.block(1), MATERIAL, angular_velocity=(1, 0, math.nan)),
            "angular_velocity .* finite",
        ),
    ],
)
def test_impossible_settings_are_refused(wrong, sentence):
    with pytest.raises(SceneError, match=sentence):
        wrong()


def test_non_numeric_ramp_function_is_named_with_the_time():
    scene, body = pinned_scene()
    scene.add_force(body, (1, 0, 0), ramp=lambda t: math.nan)
    with pytest.raises(SceneError, match="A ramp must give one finite number; at t = 2 s it gives nan"):
        build_model(scene).force_at(2.0)


FILE = """
quasistatic = false
substeps = 4
damping = 0.01
gravity_ramp = { times = [0, 1], fractions = [0, 1] }

[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
velocity = [1, 0, 0]
angular_velocity = [0, 0, 5]

[[force]]
force = [0, 1, 0]
ramp = { times = [0, 2], fractions = [1, 0] }

[[traction]]
where = { side = "x+" }
traction = [1, 0, 0]
ramp = { times = [1], fractions = [0.5] }
"""


def write(folder, text):
    path = folder / "scene.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_scene_files_have_all_time_settings(tmp_path):
    scene = load_scene(write(tmp_path, FILE)).scene
    assert (scene.substeps, scene.damping) == (4, 0.01)
    assert scene.gravity_ramp == supple.loads.Ramp((0, 1), (0, 1))
    assert [load.ramp for load in scene.loads] == [
        supple.loads.Ramp((0, 2), (1, 0)),
        supple.loads.Ramp((1,), (0.5,)),
    ]
    (body,) = scene.bodies
    assert (body.velocity, body.angular_velocity) == ((1, 0, 0), (0, 0, 5))


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        ("damping = 0.01", "damping = 1", ["damping: got 1; it should be less than 1"]),
        ("substeps = 4", "substeps = 0", ["substeps: got 0; it should be at least 1"]),
        (
            "fractions = [1, 0]",
            "fractions = [1]",
            ["force[0].ramp: A Ramp must have one fraction for each time"],
        ),
        ("fractions = [0, 1]", "fractions = [0]", ["gravity_ramp: A Ramp must have one fraction"]),
        ("times = [0, 2]", "times = [2, 0]", ["force[0].ramp: times [s] must increase"]),
        ("times = [1], ", "", ["traction[0].ramp.times: is missing. Times [s]"]),
        ("velocity = [1, 0, 0]", "velocity = 1", ["solid[0].velocity: got 1"]),
        (
            "quasistatic = false",
            "[view]",  # a table of its own, so that all that follows it is elsewhere
            ["view.substeps: unknown key"],
        ),
    ],
)
def test_mistakes_in_scene_files(tmp_path, old, new, sentences):
    with pytest.raises(SceneFileError) as caught:
        load_scene(write(tmp_path, FILE.replace(old, new, 1)))
    for sentence in sentences:
        assert sentence in str(caught.value)


def test_dynamic_settings_are_refused_in_quasistatic_scenes(tmp_path):
    text = FILE.replace("quasistatic = false", "quasistatic = true") + '\n[[pin]]\nwhere = { side = "x-" }\n'
    with pytest.raises(SceneFileError) as caught:
        load_scene(write(tmp_path, text))
    for name in ("substeps", "damping", "solid[0].velocity", "solid[0].angular_velocity"):
        assert f"{name}: has no effect in a quasistatic scene" in str(caught.value)
