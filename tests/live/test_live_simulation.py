"""Updates of a live scene against the library's results for the same scene."""

from dataclasses import replace

import numpy as np
import pytest
from live_scenes import BLOCK, LOOSE, SWING, Exploding, relax, simulation
from scipy.spatial.transform import Rotation

import supple
from supple.live.movable_pins import Placement
from supple.live.simulation import extent_ratio
from supple.live.solver_track import DivergedError

EXACT = {"precision": "float64", "tolerance": 1e-9, "solvers": (supple.PBNG(acceleration="chebyshev"),)}


def equilibrium(scene):
    return supple.equilibrium(scene, tolerance=1e-9).positions


def test_live_scene_converges_to_the_equilibrium(tmp_path):
    live = simulation(tmp_path, **EXACT)
    np.testing.assert_allclose(relax(live), equilibrium(live.file.scene), atol=1e-7)


def test_dynamic_update_is_a_frame_of_simulate(tmp_path):
    solver = supple.PBNG()
    live = simulation(tmp_path, SWING, precision="float64", solvers=(solver,), sweeps=7)
    frames = supple.simulate(live.file.scene, solver=solver, frames=5, max_iterations=7)
    for frame in frames:
        live.update()
        np.testing.assert_allclose(live.tracks[0].positions, frame.positions, atol=1e-12)
        np.testing.assert_allclose(live.tracks[0].velocities, frame.velocities, atol=1e-10)


VARIES = "[[vary]]\nparameter = 'young'\nramp = { times = [0, 0.1], fractions = [1, 4] }\n"


def test_parameters_vary_as_in_simulate(tmp_path):
    solver = supple.PBNG()
    live = simulation(tmp_path, SWING + VARIES, precision="float64", solvers=(solver,), sweeps=7)
    for frame in supple.simulate(live.file.scene, solver=solver, frames=5, max_iterations=7):
        live.update()
        np.testing.assert_allclose(live.tracks[0].positions, frame.positions, atol=1e-12)


def test_updates_continue_while_a_parameter_varies(tmp_path):
    live = simulation(tmp_path, BLOCK + VARIES, dt=0.02, **EXACT)
    relax(live)
    assert live.time > 0.1
    assert live.model.bodies[0].material.young == pytest.approx(1e4)
    np.testing.assert_allclose(live.tracks[0].positions, equilibrium(live.file.scene), atol=1e-7)


TOSSED = (
    SWING.replace("dt = 0.02", "dt = 0.04\nsubsteps = 2\ndamping = 0.1")
    .replace("density = 100", "density = 100\nvelocity = [0, 1, 0]\nangular_velocity = [0, 0, 2]")
    .replace(
        "[[pin]]", "[[force]]\nforce = [0, 0, 90]\nramp = { times = [0, 0.1], fractions = [1, -1] }\n[[pin]]"
    )
)


def test_time_settings_of_the_scene_are_used(tmp_path):
    """An update is one of the substeps."""
    solver = supple.PBNG()
    live = simulation(tmp_path, TOSSED, precision="float64", solvers=(solver,), sweeps=7)
    for frame in supple.simulate(live.file.scene, solver=solver, frames=3, max_iterations=7):
        for _ in range(2):
            live.update()
        np.testing.assert_allclose(live.tracks[0].positions, frame.positions, atol=1e-12)
        np.testing.assert_allclose(live.tracks[0].velocities, frame.velocities, atol=1e-10)
        np.testing.assert_allclose(live.tracks[0].step.force, frame.step.force)
    live.reset()
    assert live.tracks[0].velocities[:, 1].max() > 1


def test_varying_loads_wake_resting_bodies(tmp_path):
    text = BLOCK + "\n[[force]]\nforce = [0, -90, 0]\nramp = { times = [10, 11], fractions = [0, 1] }\n"
    live = simulation(tmp_path, text, **EXACT)
    relax(live)
    still = live.tracks[0].positions.copy()
    while live.time < 12:
        if not live.skip_if_at_rest():
            live.update()
    np.testing.assert_allclose(relax(live), equilibrium(live.file.scene), atol=1e-7)
    assert np.abs(live.tracks[0].positions - still).max() > 1e-3


def test_material_can_change_during_updates(tmp_path):
    live = simulation(tmp_path, **EXACT)
    before = relax(live).copy()
    soft = supple.StableNeoHookean(young=1e4, poisson=0.45)
    live.change(replace(live.settings, materials=(soft,)))
    after = relax(live)
    scene = live._scene()
    assert scene.bodies[0].material is soft
    np.testing.assert_allclose(after, equilibrium(scene), atol=1e-7)
    assert np.abs(after - before).max() > 1e-3


def test_manually_placed_pin_overrides_its_motion(tmp_path):
    live = simulation(tmp_path, **EXACT)
    relax(live)
    pins = live.pins.sets[1]
    placed = pins.targets(live.time)
    turn = Rotation.from_rotvec([0, 0.3, 0])
    live.place(1, Placement(np.array([1.5, 0.6, 0.5]), turn, np.array([1.0, 1.2, 0.8])))
    positions = relax(live)[pins.vertices]
    middle = placed.mean(axis=0)
    expected = [1.5, 0.6, 0.5] + ((placed - middle) * [1.0, 1.2, 0.8]) @ turn.as_matrix().T
    np.testing.assert_allclose(positions, expected, atol=1e-12)
    live.reset()
    np.testing.assert_allclose(relax(live), equilibrium(live.file.scene), atol=1e-7)


def test_grabbed_vertices_follow_the_hand_and_return_after_release(tmp_path):
    live = simulation(tmp_path, **EXACT)
    before = relax(live).copy()
    corner = int(np.argmin(np.linalg.norm(live.model.rest - [0.5, 1, 0.5], axis=1)))
    live.grab(corner, radius=0.3, hand="left")
    grabbed = live.pins.grabbed
    assert corner in grabbed
    assert len(grabbed) == np.count_nonzero(np.linalg.norm(live.model.rest - [0.5, 1, 0.5], axis=1) <= 0.3)
    live.drag([0, 0.3, 0.1], hand="left")
    pulled = relax(live)
    np.testing.assert_allclose(pulled[grabbed], before[grabbed] + [0, 0.3, 0.1], atol=1e-12)
    live.release("left", keep=False)
    np.testing.assert_allclose(relax(live), before, atol=1e-6)


def test_two_hands_hold_separate_vertices(tmp_path):
    live = simulation(tmp_path)
    free = np.flatnonzero(live.model.free)
    live.grab(free[0], 0.0, "left")
    live.grab(free[-1], 0.0, "right")
    live.release("left", keep=True)
    assert set(live.pins.grabbed) == {free[0], free[-1]}
    live.release("right", keep=False)
    assert set(live.pins.grabbed) == {free[0]}
    live.release_all()
    assert not len(live.pins.grabbed)


def test_pinned_vertex_cannot_be_grabbed(tmp_path):
    live = simulation(tmp_path)
    with pytest.raises(ValueError, match="already pinned"):
        live.grab(int(live.model.pinned[0]), 0.0, None)


def test_two_solvers_follow_the_same_motion(tmp_path):
    solvers = supple.PBNG(), supple.Newton()
    live = simulation(tmp_path, precision="float64", tolerance=1e-6, solvers=solvers)
    relax(live, 2000)
    first, second = (track.positions for track in live.tracks)
    np.testing.assert_array_equal(first[live.model.pinned], second[live.model.pinned])
    np.testing.assert_allclose(first, second, atol=1e-4)
    assert [number for number, _ in live.tracks[0].history] == [
        number for number, _ in live.tracks[1].history
    ]


def test_added_solver_starts_at_the_state_of_the_first(tmp_path):
    live = simulation(tmp_path)
    live.update()
    live.change(replace(live.settings, solvers=(supple.PBNG(), supple.XPBD())))
    live.prepare()
    np.testing.assert_array_equal(live.tracks[0].positions, live.tracks[1].positions)


def test_unusable_settings_are_undone(tmp_path):
    live = simulation(tmp_path, LOOSE)
    valid_settings = live.settings
    live.change(replace(valid_settings, quasistatic=True))
    with pytest.raises(ValueError, match="Nothing holds"):
        live.prepare()
    assert live.settings is valid_settings
    live.prepare()
    live.update()
    assert live.updates == 1


def test_diverging_solver_keeps_the_last_good_state(tmp_path):
    live = simulation(tmp_path)
    live.update()
    good, time = live.tracks[0].positions.copy(), live.time
    live.change(replace(live.settings, solvers=(Exploding(),)))
    live.prepare()
    with pytest.raises(DivergedError, match="exploding diverged"):
        live.update()
    np.testing.assert_array_equal(live.tracks[0].positions, good)
    assert live.time == time
    live.change(replace(live.settings, solvers=(supple.PBNG(),)))
    live.prepare()
    live.update()
    assert np.isfinite(live.tracks[0].positions).all()


def test_scene_rests_only_without_moving_pins(tmp_path):
    live = simulation(tmp_path)
    relax(live)
    assert live.skip_if_at_rest()
    live.place(0, Placement(np.array([-0.2, 0.5, 0.5])))
    assert not live.skip_if_at_rest()


def test_slow_explosion_returns_to_the_last_valid_state(tmp_path):
    """XPBD lets this body grow by some percent per update, so that no single update fails."""
    text = SWING.replace("dt = 0.02", "dt = 0.03333")
    watery = supple.StableNeoHookean(young=50, poisson=0.499)
    live = simulation(tmp_path, text, solvers=(supple.XPBD(),), materials=(watery,), sweeps=5)
    seen = [0.0]

    def go_on():
        for _ in range(2000):
            live.update()
            seen.append(live.time)

    with pytest.raises(DivergedError, match=r"times the size of the scene. Returned") as error_info:
        go_on()
    assert f"at t = {live.time:.3g} s" in str(error_info.value)
    assert seen[live.updates] == live.time
    assert seen[-1] > live.time
    assert extent_ratio(live.model, live.tracks[0].positions, live.pins.prescribed(live.time)) < 10
    assert not live.tracks[0].velocities.any()
    assert [number for number, _ in live.tracks[0].history] == list(range(1, live.updates + 1))


def test_falling_and_stretched_bodies_have_not_exploded(tmp_path):
    live = simulation(tmp_path, LOOSE)
    model, rest, none = live.model, live.model.rest, np.empty((0, 3))
    assert extent_ratio(model, rest - 1e6, none) == pytest.approx(1)
    assert extent_ratio(model, rest * [50, 1, 1], none) == pytest.approx(50)
    assert extent_ratio(model, rest * [50, 1, 1], np.array([[0, 0, 0], [50, 0, 0]])) == pytest.approx(1)


def test_all_solvers_return_to_the_same_time(tmp_path):
    live = simulation(tmp_path, solvers=(supple.PBNG(), supple.PBNG()))
    live.update()
    good, time = live.tracks[0].positions, live.time
    live.change(replace(live.settings, solvers=(supple.PBNG(), Exploding())))
    live.prepare()
    with pytest.raises(DivergedError, match="exploding diverged"):
        live.update()
    for track in live.tracks:
        np.testing.assert_array_equal(track.positions, good)
    assert live.time == time


def test_refused_material_with_equal_numbers_is_undone(tmp_path):
    """Materials are tuples: different classes with equal Lamé parameters compare equal."""
    live = simulation(
        tmp_path, solvers=(supple.BlockXPBD(),), materials=(supple.Corotated(young=1e4, poisson=0.3),)
    )
    valid_settings = live.settings
    live.change(replace(valid_settings, materials=(supple.StableNeoHookean(young=1e4, poisson=0.3),)))
    with pytest.raises(ValueError, match="block_xpbd needs"):
        live.prepare()
    assert live.needs_preparation
    live.prepare()
    assert live.settings is valid_settings
    assert type(live.model.terms[0].material) is supple.Corotated
    live.update()


def test_initial_settings_are_used(tmp_path):
    live = simulation(tmp_path, materials=(supple.NeoHookean(young=2e4, poisson=0.2),))
    assert type(live.model.terms[0].material) is supple.NeoHookean


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("young", [1e300, 1e-300])
def test_stiffness_beyond_the_precision_is_refused_by_name(tmp_path, precision, young):
    live = simulation(tmp_path)
    with pytest.raises(ValueError, match=rf"[Yy]oung.* must lie .*, got {young:g}".replace("+", r"\+")):
        replace(live.settings, precision=precision, materials=(supple.Corotated(young=young, poisson=0.3),))


def test_infinite_forces_are_attributed_to_barriers_only_if_present(tmp_path):
    for material, cause in (
        (supple.Corotated, "too large for float32"),
        (supple.materials.LogNeoHookean, "barrier"),
    ):
        live = simulation(tmp_path, materials=(material(young=1e14, poisson=0.3),))
        live.tracks[0].positions[live.model.free] *= -1e20
        with pytest.raises(DivergedError, match=rf"forces became infinite, .*{cause}"):
            live.update()


ROLLING = (
    BLOCK.split("[[pin]]")[0]
    + """
[[pin]]
where = { side = "x-" }
axes = "x"

[[pin]]
where = { side = "y-" }
normal = [0, 1, 0]

[[pin]]
where = { side = "x+" }
motion = [{ translate = { offset = [0.2, 0, 0] } }]
"""
)
"""A block whose end is pulled, with two faces that stay in their planes."""


def test_grabbed_rollers_stay_in_their_planes(tmp_path):
    live = simulation(tmp_path, ROLLING, **EXACT)
    np.testing.assert_allclose(relax(live), equilibrium(live.file.scene), atol=1e-7)
    rest = live.model.rest
    corner = int(np.argmin(np.linalg.norm(rest - [0, 1, 0.5], axis=1)))
    assert corner in live.model.rollers
    live.grab(corner, radius=0.1, hand="left")
    live.drag(np.array([-0.3, 0.1, 0.05]), hand="left")
    start = live.tracks[0].positions[corner].copy()
    positions = relax(live)
    np.testing.assert_allclose(positions[corner], start + np.array([0, 0.1, 0.05]), atol=1e-12)
    np.testing.assert_array_equal(positions[rest[:, 0] == 0, 0], 0)
    pinned = int(np.argmax(rest[:, 0]))
    with pytest.raises(ValueError, match="already pinned"):
        live.grab(pinned, radius=1e-3, hand="right")


def test_scene_with_grabbed_rollers_can_be_saved(tmp_path):
    from supple.live.save import save_scene

    live = simulation(tmp_path, ROLLING, **EXACT)
    relax(live)
    corner = int(np.argmin(np.linalg.norm(live.model.rest - [0, 1, 0.5], axis=1)))
    live.grab(corner, radius=0.1, hand="left")
    live.drag(np.array([-0.3, 0.1, 0.05]), hand="left")
    live.place(0, Placement(np.array([-0.1, 0.5, 0.5])))
    positions = relax(live)
    saved = supple.load_scene(save_scene(live, tmp_path))
    np.testing.assert_allclose(equilibrium(saved.scene), positions, atol=1e-6)
    live.place(1, Placement(np.array([0.5, -0.1, 0.5])))  # its plane has an edge in common with the clamp
    relax(live)
    with pytest.raises(ValueError, match="Pins of 'block' contradict each other: now the vertex"):
        save_scene(live, tmp_path)
