"""Saved live scenes load with the same state."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from live_scenes import BLOCK, SWING, scene_file
from scipy.spatial.transform import Rotation

import supple
from supple.cli.job import Job
from supple.config.stop_criteria import StopCriteria
from supple.live.movable_pins import Placement
from supple.live.save import save_pictures, save_scene
from supple.live.session import Session
from supple.live.settings import file_settings
from supple.live.simulation import Simulation

pytest.importorskip("tomli_w", reason="saving needs tomli-w: pip install 'supple[view]'")


RAMP = "ramp = { times = [0, 1], fractions = [0, 1] }"


@pytest.fixture
def live(tmp_path):
    made = Simulation(scene_file(tmp_path))
    made.prepare()
    for _ in range(3):  # to 0.75 s: the turn is done by three quarters, the keyframes by less
        made.update()
    return made


def reloaded(live, folder):
    return Simulation(supple.load_scene(save_scene(live, folder)))


def test_saved_positions_are_the_start(live, tmp_path):
    again = reloaded(live, tmp_path)
    np.testing.assert_allclose(again.tracks[0].positions, live.tracks[0].positions, atol=1e-14)


def test_saved_pins_have_constant_targets(live, tmp_path):
    turn = Rotation.from_rotvec([0.1, 0.4, -0.2])
    live.place(0, Placement(np.array([-0.3, 0.4, 0.6]), turn, np.array([1.0, 1.3, 0.7])))
    again = reloaded(live, tmp_path)
    for time in (0.0, 0.5, np.inf):
        np.testing.assert_allclose(again.pins.prescribed(time), live.pins.prescribed(live.time), atol=1e-12)


def test_grabbed_vertices_become_pins(live, tmp_path):
    middle = int(np.argmin(np.linalg.norm(live.model.rest - [0.5, 1, 0.5], axis=1)))
    live.grab(middle, 0.3, "hand")
    live.drag([0, 0.2, 0], "hand")
    again = reloaded(live, tmp_path)
    np.testing.assert_array_equal(again.pins.pinned, live.pins.pinned)
    np.testing.assert_allclose(again.pins.prescribed(np.inf), live.pins.prescribed(live.time), atol=1e-12)


@pytest.mark.parametrize("quasistatic", [False, True])
def test_loads_are_saved_at_their_present_values(tmp_path, quasistatic):
    text = (
        SWING.replace("dt = 0.02", "dt = 0.04\nsubsteps = 2\ndamping = 0.1\nintegrator = 'bdf2'")
        .replace("density = 100", "density = 100\nvelocity = [0, 1, 0]")
        .replace(
            "[[pin]]",
            f"[[force]]\nforce = [0, 0, 90]\n{RAMP}\n[[body_force]]\nforce = [0, 0, 9]\n{RAMP}\n[[pin]]",
        )
    )
    live = Simulation(scene_file(tmp_path, text))
    live.prepare()
    live.update()
    live.change(replace(live.settings, quasistatic=quasistatic))
    scene = reloaded(live, tmp_path).file.scene
    assert [load.ramp(np.inf) for load in scene.loads] == pytest.approx([0.02, 0.02])
    assert scene.integrator == ("backward_euler" if quasistatic else "bdf2")
    assert (scene.dt, scene.substeps, scene.damping) == (0.02, 1, 0 if quasistatic else 0.1)
    assert not scene.bodies[0].moving


def test_settings_are_saved(live, tmp_path):
    live.change(
        replace(
            live.settings,
            solvers=(supple.PBNG(acceleration=supple.solvers.SOR(omega=1.3), tied_groups=False),),
            materials=(supple.StVK(young=2e4, poisson=0.2),),
            dt=0.01,
            tolerance=1e-6,
            quasistatic=False,
        )
    )
    live.prepare()
    settings = file_settings(supple.load_scene(save_scene(live, tmp_path)))
    assert settings.solvers == live.settings.solvers
    assert type(settings.materials[0]) is supple.StVK
    np.testing.assert_allclose(settings.materials[0], live.settings.materials[0])
    assert (settings.dt, settings.tolerance, settings.quasistatic) == (0.01, 1e-6, False)


def test_saved_files_are_never_overwritten(live, tmp_path):
    first, second = save_scene(live, tmp_path), save_scene(live, tmp_path)
    assert (first.name, second.name) == ("block_live_1.toml", "block_live_2.toml")
    assert first.with_suffix(".npz").exists()


def test_mesh_file_paths_are_adapted_to_the_folder(tmp_path):
    supple.meshes.save_mesh(supple.block((2, 2, 2)), tmp_path / "cube.vtu")
    text = BLOCK.replace("{ block = { cells = [4, 4, 4] } }", '{ file = "cube.vtu" }')
    live, elsewhere = Simulation(scene_file(tmp_path, text)), tmp_path / "saved"
    elsewhere.mkdir()
    np.testing.assert_allclose(reloaded(live, elsewhere).model.rest, live.model.rest)


def test_positions_of_another_mesh_are_refused(live, tmp_path):
    path = save_scene(live, tmp_path)
    np.savez(path.with_suffix(".npz"), positions=np.zeros((5, 3)))
    with pytest.raises(supple.SceneError, match=r"shape \(125, 3\)"):
        Simulation(supple.load_scene(path))
    path.with_suffix(".npz").unlink()
    with pytest.raises(supple.SceneError, match="cannot be read"):
        Simulation(supple.load_scene(path))


@pytest.mark.parametrize(("young", "poisson"), [(1000, 0.3), (1e5, 0.4995), (0.7, -0.2), (123456789, 0.0)])
def test_material_is_saved_with_typed_parameters(live, tmp_path, young, poisson):
    """The Lamé parameters of E = 1000, ν = 0.3 convert back to E = 1000.0000000000001."""
    live.change(replace(live.settings, materials=(supple.NeoHookean(young=young, poisson=poisson),)))
    saved = tomllib.loads(save_scene(live, tmp_path).read_text(encoding="utf-8"))
    assert saved["solid"][0]["material"] == {"neo_hookean": {"young": young, "poisson": poisson}}


def test_lame_parameters_are_saved_exactly(live, tmp_path):
    material = supple.NeoHookean.from_lame(1 / 3, np.pi)
    live.change(replace(live.settings, materials=(material,)))
    (setting,) = file_settings(supple.load_scene(save_scene(live, tmp_path))).materials
    np.testing.assert_allclose(setting, material, rtol=1e-14)


def test_saved_motion_continues_with_its_velocities(tmp_path):
    live = Simulation(scene_file(tmp_path, SWING), None)
    live.prepare()
    for _ in range(5):
        live.update()
    again = reloaded(live, tmp_path)
    np.testing.assert_allclose(again.tracks[0].velocities, live.tracks[0].velocities)
    assert np.abs(again.tracks[0].velocities).max() > 0.1
    again.prepare()
    for each in (again, live):
        each.update()
    np.testing.assert_allclose(again.tracks[0].positions, live.tracks[0].positions, atol=1e-6)
    again.reset()
    np.testing.assert_array_equal(again.tracks[0].velocities, again._start_velocities)


def test_velocities_of_another_mesh_are_refused(live, tmp_path):
    path = save_scene(live, tmp_path)
    np.savez(path.with_suffix(".npz"), positions=live.tracks[0].positions, velocities=np.zeros((5, 3)))
    with pytest.raises(supple.SceneError, match=r"velocities of shape \(125, 3\)"):
        Simulation(supple.load_scene(path))


def test_run_starts_with_saved_velocities(tmp_path):
    live = Simulation(scene_file(tmp_path, SWING))
    live.prepare()
    live.update()
    saved, solver = supple.load_scene(save_scene(live, tmp_path)), supple.PBNG()
    job = Job(saved, solver, StopCriteria(max_iterations=3), 1, supple.Backend(), False)
    (run,) = job.solve(None, None)
    start = {"initial": live.tracks[0].positions, "velocities": live.tracks[0].velocities}
    (frame,) = supple.simulate(saved.scene, solver=solver, frames=1, max_iterations=3, **start)
    np.testing.assert_array_equal(run.positions, frame.positions)


@pytest.mark.parametrize(
    ("text", "value", "is_unchanged"),
    [("$MM/b.mesh", "{folder}/meshes", True), ("$MM/b.mesh", "meshes", False), ("~/b.mesh", "", True)],
)
def test_paths_with_variables_and_home_folders_stay_valid(tmp_path, monkeypatch, text, value, is_unchanged):
    meshes = tmp_path / "meshes"
    meshes.mkdir()
    supple.meshes.save_mesh(supple.block(2), meshes / "b.mesh")
    monkeypatch.setenv("MM", value.format(folder=tmp_path))
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(meshes))
    file = scene_file(tmp_path, SWING.replace("{ block = { cells = [3, 3, 3] } }", f'{{ file = "{text}" }}'))
    (tmp_path / "saved").mkdir()
    path = save_scene(Simulation(file), tmp_path / "saved")
    (solid,) = tomllib.loads(path.read_text(encoding="utf-8"))["solid"]
    assert (solid["mesh"]["file"] == text) is is_unchanged
    assert supple.load_scene(path).scene.bodies[0].mesh.n_tets == file.scene.bodies[0].mesh.n_tets


def test_saved_pictures_have_the_cloth_thickness_of_the_file(tmp_path, monkeypatch):
    """The test checks the request, without drawing."""
    thicknesses = []
    monkeypatch.setattr("supple.view.picture", lambda *_, **options: thicknesses.append(options["thickness"]))
    session = Session(scene_file(tmp_path, BLOCK + "[view]\nthickness = 3\n"))
    save_pictures(session.snapshot, session.file, tmp_path, "displacement", "light", np.array([1.0, 1, 1]))
    assert thicknesses == [3]
