"""supple run: files, printed output and exit codes."""

import json

import numpy as np
import pytest
from cli_scenes import SAG, STRETCH, SWING, supple, supple_json, write_scene

import supple as library
from supple.cli.progress_bars import FilmProgress
from supple.io import read_frame


def test_run_writes_frame_report_and_picture_and_prints_a_summary(tmp_path):
    result = supple("run", write_scene(tmp_path, SAG))
    assert result.exit_code == 0, result.output
    folder = tmp_path / "results" / "scene"
    assert {file.name for file in folder.iterdir()} == {
        "frame_0000.vtu",
        "frame_0000.npz",
        "frame_0001.vtu",
        "frame_0001.npz",
        "animation.pvd",
        "report.json",
        "scene.toml",
        "picture.png",
        "checksums.sha256",
    }
    for word in ("Sagging block", "64", "135", "hybrid", "Converged", "relative residual", "results/scene"):
        assert word in result.stdout


def test_single_frame_equals_the_equilibrium_in_python(tmp_path):
    scene = write_scene(tmp_path, SAG)
    supple_json("run", scene, "--no-picture")
    frame = read_frame(tmp_path / "results" / "scene", 1)
    expected = library.equilibrium(library.load_scene(scene).scene, solver=library.PBNG(), tolerance=1e-6)
    np.testing.assert_array_equal(frame.positions, expected.positions)


def test_single_quasistatic_frame_is_at_the_end_of_motions(tmp_path):
    scene = write_scene(tmp_path, STRETCH)
    supple_json("run", scene, "--no-picture", "--frames", "1")
    assert read_frame(tmp_path / "results" / "scene", 1).positions[:, 0].max() == pytest.approx(1.5)


def test_json_equals_the_report_file(tmp_path):
    printed = supple_json("run", write_scene(tmp_path, SWING), "--record-history", "--output", "out")
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (printed.pop("output"), printed.pop("exit_code")) == ("out", 0)
    assert printed == written
    assert written["scene"]["vertices"] == 64
    assert written["solver"]["options"]["path"] == "rotation"
    assert written["solver"]["tolerance"] == 1e-8
    assert written["versions"].keys() == {"supple", "numpy", "numba", "python"}
    assert written["machine"]["cores"] >= 1
    assert [frame["index"] for frame in written["frames"]] == [1, 2, 3, 4, 5, 6]
    for frame in written["frames"]:
        assert len(frame["history"]["relative_residual"]) == frame["iterations"] + 1
        assert frame["ok"]
        assert frame["sentence"]
    assert written["totals"]["iterations"] == sum(frame["iterations"] for frame in written["frames"])
    for name in ("residual_iterations", "residual_seconds", "energy_iterations", "energy_seconds"):
        assert (tmp_path / "out" / f"{name}.png").stat().st_size > 1000
    assert (tmp_path / "out" / "film.mp4").stat().st_size > 1000
    assert written["film"]["files"] == ["film.mp4"]
    assert (written["looks"]["iterations"][0], written["looks"]["seconds"][0]) == (0, 0.0)
    assert written["looks"]["relative_residual"][-1] == written["frames"][-1]["relative_residual"]


def test_options_override_the_file(tmp_path):
    scene = write_scene(tmp_path, STRETCH)
    report = supple_json(
        "run", scene, "--no-picture", "--solver", "newton", "--tolerance", "1e-5", "--max-iterations", "30",
        "--time-limit", "1 min", "--frames", "2", "--threads", "1",
    )  # fmt: skip
    assert report["solver"]["method"] == "newton"
    assert (report["solver"]["tolerance"], report["solver"]["max_iterations"]) == (1e-5, 30)
    assert report["solver"]["time_limit"] == 60
    assert [frame["solver"] for frame in report["frames"]] == ["newton"] * 2


def test_solver_option_may_contain_options(tmp_path):
    scene = write_scene(tmp_path, SAG)
    report = supple_json("run", scene, "--no-picture", "--solver", "pbng:acceleration=sor:omega=1.5")
    assert report["solver"]["options"]["acceleration"] == {"kind": "sor", "omega": 1.5}


def test_run_without_convergence_exits_with_1_and_writes_results(tmp_path):
    report = supple_json("run", write_scene(tmp_path, SAG), "--max-iterations", "1", exit_code=1)
    assert not report["totals"]["ok"]
    assert report["frames"][0]["outcome"] == "max_iterations"
    folder = tmp_path / "results" / "scene"
    assert read_frame(folder, 1).positions.shape == (64, 3)
    assert (folder / "picture.png").exists()


def test_iterations_without_tolerance_end_as_done(tmp_path):
    text = SAG.replace("tolerance = 1e-6", "max_iterations = 200\ntolerance = false")
    report = supple_json("run", write_scene(tmp_path, text), "--no-picture")
    assert report["frames"][0]["outcome"] == "fixed_iterations"
    assert report["solver"]["tolerance"] is None


def test_default_tolerance_without_stop_table(tmp_path):
    text = SAG.replace("[stop]\ntolerance = 1e-6\n", "")
    assert supple_json("run", write_scene(tmp_path, text), "--no-picture")["solver"]["tolerance"] == 1e-4


def test_initial_positions_of_the_file_are_used(tmp_path):
    text = SAG + "[initial]\nscramble = { seed = 1 }\n"
    scene = write_scene(tmp_path, text)
    scrambled = supple_json(
        "run", scene, "--no-picture", "--record-history", "--max-iterations", "1", exit_code=1
    )
    straight = supple_json(
        "run", write_scene(tmp_path, SAG, "b.toml"), "--no-picture", "--record-history",
        "--max-iterations", "1", exit_code=1,
    )  # fmt: skip
    first = [report["frames"][0]["history"]["residual"][0] for report in (scrambled, straight)]
    assert first[0] > 2 * first[1]


def test_quiet_prints_nothing(tmp_path):
    result = supple("run", write_scene(tmp_path, SWING), "--quiet", "--no-picture")
    assert (result.exit_code, result.output) == (0, "")


def test_films_are_optional(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-film", "--output", "a")
    assert (tmp_path / "a" / "picture.png").exists()
    assert not (tmp_path / "a" / "film.mp4").exists()
    assert supple_json("run", scene, "--gif", "--output", "b")["film"]["files"] == ["film.mp4", "film.gif"]
    assert (tmp_path / "b" / "film.gif").exists()


def test_unknown_field_is_refused_before_solving(tmp_path):
    scene = write_scene(tmp_path, SWING)
    result = supple("run", scene, "--field", "stress")
    assert result.exit_code == 2
    assert "field must be one of displacement" in result.stderr
    assert not (tmp_path / "results").exists()
    result = supple("run", write_scene(tmp_path, SWING + "[view]\nfield = 'stress'\n", "b.toml"))
    assert result.exit_code == 2


def test_interrupt_while_drawing_keeps_all_frames(tmp_path, monkeypatch):
    def interrupt(self, done, pictures):
        raise KeyboardInterrupt

    monkeypatch.setattr(FilmProgress, "show_pictures", interrupt)
    result = supple("run", write_scene(tmp_path, SWING))
    assert result.exit_code == 130
    assert "supple render results/scene" in result.stderr
    folder = tmp_path / "results" / "scene"
    assert read_frame(folder, 6).index == 6
    assert not list(folder.glob(".unfinished*"))


def test_run_may_overwrite_the_folder_of_its_scene_file(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--output", "out", "--no-picture")
    copy = tmp_path / "out" / "scene.toml"
    text = copy.read_text()
    supple_json("run", str(copy), "--output", "out", "--overwrite", "--no-picture")
    assert copy.read_text() == text


def test_summary_has_the_largest_error_estimate():
    """The summary shows the largest relative position error of all bodies, if there is an estimate."""
    from supple.cli.result_tables import _distance

    error_estimate = {"bodies": [{"position_error": 1e-5}, {"position_error": 2e-5}], "stable": False}
    assert _distance({"error_estimate": error_estimate}) == {"distance": "2.0e-05 of the size, not stable"}
    assert _distance({"error_estimate": None}) == {}


def test_saved_run_evaluates_ramped_loads(tmp_path):
    text = """
frames = 2
dt = 0.5
quasistatic = true
gravity = [0, 0, 0]
[[solid]]
mesh = { block = { cells = [2, 1, 1], size = [1, 0.5, 0.5] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
[[pin]]
where = { side = "x-" }
[[force]]
where = { side = "x+" }
force = [0, 10, 0]
ramp = { times = [0, 1], fractions = [0, 1] }
"""
    scene = write_scene(tmp_path, text)
    supple_json("run", scene, "--output", "out", "--no-picture")
    run = library.load_run(tmp_path / "out")
    pulls = [np.linalg.norm(run.evaluate(index).external_force.sum(axis=0)) for index in (1, 2)]
    np.testing.assert_allclose(pulls, [5, 10], rtol=1e-6)
