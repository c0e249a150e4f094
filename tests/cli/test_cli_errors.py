"""Bad input ends with exit code 2 and an error message, without traceback and without changes to results."""

import json

import pytest
from cli_scenes import SAG, supple, supple_json, write_scene


def refused(*arguments: str) -> str:
    result = supple(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    return result.stderr


def test_bad_scene_file_error_names_all_wrong_fields(tmp_path):
    scene = write_scene(tmp_path, SAG.replace("poisson = 0.3", "poisson = 0.7").replace("title", "titel"))
    message = refused("run", scene)
    assert f"{scene}: solid[0].material.corotated.poisson" in message
    assert "less than 0.5" in message
    assert "did you mean 'title'?" in message


def test_mistakes_are_one_json_object(tmp_path):
    result = supple("run", write_scene(tmp_path, "frames = 0"), "--json")
    assert result.exit_code == 2
    output = json.loads(result.stdout)
    assert output["exit_code"] == 2
    assert "frames" in output["error"]


def test_missing_scene_file_error_suggests_an_existing_one(tmp_path):
    write_scene(tmp_path, SAG, "sagging.toml")
    assert "did you mean 'sagging.toml'?" in refused("run", "saging.toml")
    assert "there is no scene file nowhere/sagging.toml; known here:" in refused(
        "run", "nowhere/sagging.toml"
    )


@pytest.mark.parametrize("neighbors", [False, True])
def test_mistyped_name_suggests_a_packaged_scene(tmp_path, neighbors):
    if neighbors:
        write_scene(tmp_path, SAG, "sagging.toml")
    assert "did you mean 'twist_small'?" in refused("run", "twist_smal")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--solver", "pbgn"), "did you mean 'pbng'?"),
        (("--tolerance", "3"), "tolerance must lie between 0 and 1"),
        (("--max-iterations", "0"), "max_iterations must be a whole number of at least 1"),
        (("--time-limit", "2 parsecs"), "'2 s', '500 ms' or '1 min'"),
        (("--time-limit", "0"), "time_limit must be positive"),
        (("--frames", "0"), "--frames must be at least 1"),
        (("--threads", "0"), "threads must be a whole number from 1 to"),
        (("--threads", "99999"), "threads must be a whole number from 1 to"),
        (("--precision", "float16"), "precision must be 'float32' or 'float64'"),
        (("--device", "gpu"), "device must be 'cpu'"),
        (("--solver", "newton", "--precision", "float32"), "float64"),
        (("--resume", "--overwrite"), "give only one"),
        (("--output", "scene.toml"), "is a file"),
        (("--frams", "3"), "--frames"),
    ],
)
def test_bad_options(tmp_path, options, sentence):
    scene = write_scene(tmp_path, SAG)
    assert sentence in " ".join(refused("run", scene, *options).split())
    assert not list(tmp_path.glob("results/**/*.*"))


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize(
    "options", [("--precision", "float16"), ("--device", "gpu"), ("--threads", "99999"), ("--threads", "0")]
)
def test_refused_scenes_leave_no_folder(tmp_path, command, options):
    refused(command, write_scene(tmp_path, SAG), *options)
    assert not (tmp_path / "results").exists()


def test_results_are_not_overwritten_by_default(tmp_path):
    scene = write_scene(tmp_path, SAG)
    first = supple_json("run", scene, "--no-picture")
    frame = tmp_path / "results" / "scene" / "frame_0001.npz"
    before = frame.stat().st_mtime_ns
    message = refused("run", scene, "--tolerance", "1e-3", "--no-picture")
    assert "--resume" in message
    assert "--overwrite" in message
    assert frame.stat().st_mtime_ns == before

    foreign = frame.with_name("notes.txt")
    foreign.write_text("mine")
    second = supple_json("run", scene, "--tolerance", "1e-3", "--no-picture", "--overwrite")
    assert second["totals"]["iterations"] < first["totals"]["iterations"]
    assert foreign.read_text() == "mine"


def test_refused_overwrite_keeps_old_results(tmp_path):
    scene = write_scene(tmp_path, SAG)
    supple_json("run", scene, "--no-picture")
    refused("run", scene, "--overwrite", "--precision", "float16")
    assert (tmp_path / "results" / "scene" / "frame_0001.npz").exists()


def test_unwritable_folder_is_refused(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied", "results/scene")

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    assert "results/scene: Permission denied." in refused("run", write_scene(tmp_path, SAG))


def test_unknown_commands_and_names_have_suggestions():
    assert "run" in refused("rnu")
    assert "did you mean 'materials'?" in refused("list", "materals")
    assert "did you mean 'corotated'?" in refused("bench", "sweep", "--material", "corotaded")
    assert "did you mean 'pbng'?" in refused("bench", "sweep", "--solver", "pbnk")
