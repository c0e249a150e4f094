"""supple render: pictures and films of saved runs, without simulating."""

import json

import imageio_ffmpeg
import numpy as np
import pytest
import pyvista
from cli_scenes import SAG, STRETCH, SWING, supple, supple_json, write_scene
from matplotlib.image import imread
from PIL import Image

import supple as library
from supple.cli.commands.render import parse_size
from supple.cli.progress_bars import FilmProgress
from supple.io import FORMATS, read_frame
from supple.io.checksums import CHECKSUMS
from supple.problem import Problem
from supple.runs.saved import load_run
from supple.view.fields import FIELDS
from supple.view.film import frame_rate

SMALL = ("--size", "320x240")


@pytest.fixture(scope="module")
def swing(tmp_path_factory):
    """Results of six frames of a swinging block."""
    folder = tmp_path_factory.mktemp("swing")
    scene = write_scene(folder, SWING)
    supple_json("run", scene, "--output", str(folder / "results"), "--no-picture")
    return folder / "results"


@pytest.fixture
def results(swing, tmp_path):
    """Copy of the results in another folder."""
    for file in swing.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return str(tmp_path)


def pictures_in(path) -> int:
    return imageio_ffmpeg.count_frames_and_secs(str(path))[0]


def refused(*arguments: str) -> str:
    result = supple("render", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    return result.stderr


def test_saved_run_is_drawn_again(results, tmp_path):
    printed = supple_json("render", results, *SMALL, "--gif", "--theme", "dark", "--field", "residual")
    assert printed["files"] == [str(tmp_path / name) for name in ("picture.png", "film.mp4", "film.gif")]
    assert imread(tmp_path / "picture.png").shape[:2] == (240, 320)
    assert printed["frames"] == [0, 1, 2, 3, 4, 5, 6]
    assert pictures_in(tmp_path / "film.mp4") == 7
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 7


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_render_changes_only_pictures(results, tmp_path):
    before = contents(tmp_path)
    supple_json("render", results, *SMALL, "--output", "elsewhere")
    assert contents(tmp_path) == before
    supple_json("render", results, *SMALL)
    after = contents(tmp_path)
    assert after.keys() - before.keys() == {"picture.png", "film.mp4"}
    assert before.pop(CHECKSUMS) != after[CHECKSUMS]
    assert {name: after[name] for name in before} == before


def test_frame_0_is_the_start(tmp_path):
    text = STRETCH + "[initial]\nflatten = { axis = 'y', at = 0.25 }\n"
    supple_json("run", write_scene(tmp_path, text), "--output", "out", "--no-film", "--no-picture")
    run = load_run(tmp_path / "out")
    start = run.shapes([0])[0]
    assert (start.caption, start.step, start.solved) == (
        "the start · frame 0 of 4, 0 s",
        None,
        False,
    )
    np.testing.assert_array_equal(start.positions, run.file.initial_positions(run.model))
    assert list(run.indices) == [0, 1, 2, 3, 4]
    times = pyvista.get_reader(tmp_path / "out" / "animation.pvd").time_values
    assert times == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_frame_selection_of_a_single_equilibrium(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--output", "out", "--no-picture")
    assert supple_json("render", "out", *SMALL)["frames"] == [1]
    assert not (tmp_path / "out" / "film.mp4").exists()
    assert supple_json("render", "out", *SMALL, "--frames", "0")["frames"] == [0]
    assert supple_json("render", "out", *SMALL, "--frames", ":")["frames"] == [0, 1]
    assert pictures_in(tmp_path / "out" / "film.mp4") == 2


@pytest.mark.parametrize(
    ("text", "frames"), [("2:4", [2, 3, 4]), (":2", [0, 1, 2]), ("5:", [5, 6]), ("0", [0]), (":", range(7))]
)
def test_frames_are_selected(results, text, frames):
    printed = supple_json("render", results, *SMALL, "--frames", text, "--no-film")
    assert printed["frames"] == list(frames)


@pytest.mark.parametrize("text", ["7", "4:2", "a:b", "1:9", "-1"])
def test_missing_frames_are_refused(results, text):
    assert "within 0 to 6" in refused(results, f"--frames={text}")


def test_single_frame_gives_picture_and_turntable_film(results, tmp_path, monkeypatch):
    supple_json("render", results, *SMALL, "--frames", "3")
    assert not (tmp_path / "film.mp4").exists()
    monkeypatch.setattr("supple.runs.pictures.TURNTABLE_PICTURES", 4)
    supple_json("render", results, *SMALL, "--frames", "3", "--turntable", "--fps", "10")
    assert pictures_in(tmp_path / "film.mp4") == 4


def test_fields_and_cameras_change_the_picture(results, tmp_path):
    seen = set()
    for options in ((), ("--field", "volume_ratio"), ("--camera", "side"), ("--camera", "10,45")):
        supple_json("render", results, *SMALL, "--no-film", *options)
        seen.add((tmp_path / "picture.png").read_bytes())
    assert len(seen) == 4


def test_view_of_the_scene_file_is_used(tmp_path):
    scene = write_scene(tmp_path, SAG + "[view]\nfield = 'body'\ncamera = [80, 10]\n")
    supple_json("run", scene, "--output", "a")
    supple_json("run", write_scene(tmp_path, SAG, "plain.toml"), "--output", "b", "--no-picture")
    supple_json("render", "b", "--field", "body", "--camera", "80,10")
    assert (tmp_path / "a" / "picture.png").read_bytes() == (tmp_path / "b" / "picture.png").read_bytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--field", "stress"), "field must be one of displacement, energy_density"),
        (("--theme", "pink"), "theme must be light or dark"),
        (("--size", "big"), "such as 1920x1080"),
        (("--size", "10x10"), "each from 160 to 8192"),
        (("--camera", "0,100"), "elevation between -90 and 90"),
        (("--fps", "0"), "--fps must lie between"),
    ],
)
def test_meaningless_options_are_refused(results, options, sentence):
    assert sentence in refused(results, *options)


def test_folders_without_results_are_refused(tmp_path):
    assert "there is no results folder nowhere" in refused("nowhere")
    (tmp_path / "empty").mkdir()
    assert "has no report.json" in refused("empty")
    supple_json("compare", write_scene(tmp_path, SAG), "--solver", "pbng", "--output", "c", "--no-picture")
    assert "supple report c" in refused("c")


def test_changed_scene_of_results_is_refused(results, tmp_path):
    copy = tmp_path / "scene.toml"
    copy.write_text(copy.read_text() + "\n# changed\n")
    assert "has changed since" in refused(results)
    copy.unlink()
    assert "has no scene.toml" in refused(results)


def test_unfinished_run_is_drawn_up_to_its_last_frame(results, tmp_path):
    (tmp_path / "frame_0003.npz").unlink()
    assert supple_json("render", results, *SMALL)["frames"] == [0, 1, 2]


def test_interrupted_film_keeps_the_old_one(results, tmp_path, monkeypatch):
    supple_json("render", results, *SMALL)
    old = (tmp_path / "film.mp4").read_bytes()

    def interrupt(self, done, pictures):
        if done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(FilmProgress, "show_pictures", interrupt)
    assert supple("render", results, *SMALL, "--theme", "dark").exit_code == 130
    assert (tmp_path / "film.mp4").read_bytes() == old
    assert not list(tmp_path.glob(".unfinished*"))


def test_mesh_file_path_is_relative_to_results(tmp_path):
    library.meshes.save_mesh(library.block(2), tmp_path / "cube.vtu")
    (tmp_path / "scenes").mkdir()
    text = SAG.replace("{ block = { cells = [3, 3, 3] } }", '{ file = "../cube.vtu" }')
    supple_json("run", write_scene(tmp_path / "scenes", text), "--output", "out/here", "--no-picture")
    supple_json("render", "out/here", *SMALL)
    library.meshes.save_mesh(library.block(2).scaled(2.0), tmp_path / "cube.vtu")
    assert "or a mesh that it reads" in refused("out/here")


@pytest.mark.parametrize("text", [SWING, STRETCH], ids=["dynamic", "quasistatic"])
def test_residual_of_a_frame_matches_its_report(tmp_path, text):
    supple_json("run", write_scene(tmp_path, text), "--output", "out", "--no-picture")
    run = load_run(tmp_path / "out")
    problem = Problem(run.model, "float64")
    for index in (1, 3):
        shape = run.shapes([index])[0]
        problem.set_inertia(
            *((shape.step.dt, shape.step.anchor) if shape.step else (np.inf, shape.positions))
        )
        problem.positions = shape.positions
        residual = problem.balance().residual
        assert residual == pytest.approx(run.manifest["frames"][index - 1]["residual"], rel=0.05, abs=1e-9)
        np.testing.assert_array_equal(shape.positions, read_frame(tmp_path / "out", index).positions)


def test_films_run_at_scene_speed():
    assert (frame_rate(0.05), frame_rate(1.0), frame_rate(0.001)) == (pytest.approx(20), 8.0, 50.0)


def test_picture_sizes_are_parsed():
    assert parse_size("1920x1080") == (1920, 1080)
    assert parse_size("640 X 480") == (640, 480)


def test_captions_show_non_finite_numbers(results, tmp_path):
    path = tmp_path / "report.json"
    report = json.loads(path.read_text())
    report["frames"][-1] |= {"relative_residual": None, "energy": None}
    path.write_text(json.dumps(report))
    path.with_name(CHECKSUMS).unlink()
    assert "relative residual inf" in load_run(tmp_path).caption(6)


def test_lists_named_in_help_have_every_field_and_format():
    """Help texts contain no field names, to avoid importing numerical libraries."""
    for command, section, names in (("render", "fields", FIELDS), ("export", "exports", FORMATS)):
        assert f"supple list {section}" in " ".join(
            supple(command, "--help").stdout.replace("│", " ").split()
        )
        assert [entry["name"] for entry in supple_json("list", section)[section]] == list(names)


def test_resumed_run_writes_a_missing_start(tmp_path):
    scene = write_scene(tmp_path, SWING)
    options = ("--output", "out", "--no-picture")
    supple_json("run", scene, *options, "--frames", "2")
    start = read_frame(tmp_path / "out", 0)
    for file in (tmp_path / "out").glob("frame_0000.*"):
        file.unlink()
    supple_json("run", scene, *options, "--resume", "--frames", "3")
    np.testing.assert_array_equal(read_frame(tmp_path / "out", 0).positions, start.positions)
    assert len(pyvista.get_reader(tmp_path / "out" / "animation.pvd").time_values) == 4
