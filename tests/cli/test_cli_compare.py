"""supple compare: files, printed output and exit codes."""

import io
import json

import numpy as np
import pytest
from cli_scenes import supple, supple_json, write_scene
from matplotlib.image import imread
from rich.console import Console

import supple as library
from supple.cli.progress_bars import TrialProgress
from supple.solvers import SOLVERS

FALL = """
title = "Falling block"
quasistatic = false
dt = 0.02

[[solid]]
mesh = { block = { cells = [4, 4, 4] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "x-" }
"""
SAG = FALL.replace("quasistatic = false", "quasistatic = true")
STVK = FALL.replace("corotated", "stvk")
QUICK = ("--max-iterations", "2", "--no-picture")


def test_everything_is_written_and_printed(tmp_path):
    result = supple("compare", write_scene(tmp_path, FALL), "--solver", "pbng,newton,xpbd")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "results" / "scene_compare"
    assert {file.name for file in folder.iterdir()} == {
        "checksums.sha256",
        "comparison.json",
        "residual_iterations.png",
        "residual_seconds.png",
        "energy_iterations.png",
        "energy_seconds.png",
        "scene.toml",
        "picture_pbng.png",
        "picture_newton.png",
        "picture_xpbd.png",
    }
    for file in folder.glob("*.png"):
        image = imread(file)[..., :3]
        drawn = (image != image[0, 0]).any(axis=-1)
        assert 0.01 < drawn.mean() < 0.9, file.name
    header, *rows = result.stdout.splitlines()
    for column in ("solver", "outcome", "iterations", "seconds", "residual", "reduction", "energy"):
        assert column in header
    assert [row.split()[0] for row in rows[:3]] == ["pbng", "newton", "xpbd"]
    assert "results/scene_compare" in rows[-1]
    assert "xpbd: iteration 40  relative residual" in result.stderr


def test_json_equals_the_written_file(tmp_path):
    printed = supple_json("compare", write_scene(tmp_path, FALL), "--no-picture", "--output", "out")
    written = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert (printed.pop("output"), printed.pop("exit_code")) == ("out", 0)
    assert printed == written
    assert written["scene"]["vertices"] == 125
    assert set(written["stop"].values()) == {None}
    assert written["stop"].keys() == {"tolerance", "max_iterations", "time_limit", "position_tolerance"}
    assert written["warmup"] == {"frames": 0, "ok": True}
    assert written["plots"].keys() == {
        f"{quantity}_{against}"
        for quantity in ("residual", "energy")
        for against in ("iterations", "seconds")
    }
    assert written["versions"].keys() == {"supple", "numpy", "numba", "python"}
    assert written["machine"]["cores"] >= 1
    assert [trial["label"] for trial in written["trials"]] == list(SOLVERS)
    for trial in written["trials"]:
        assert trial["error"] is None
        curves = trial["history"]
        with_multipliers = [curves.pop("primal_residual"), curves.pop("dual_residual")]
        assert curves.keys() == {"iterations", "seconds", "residual", "relative_residual", "energy"}
        assert {len(curve) for curve in curves.values()} == {trial["iterations"] + 1}
        has_entries = trial["label"] in ("xpbd", "block_xpbd", "bpxpbd")
        assert {len(curve) for curve in with_multipliers} == {trial["iterations"] + 1 if has_entries else 0}
        assert trial["ms_per_iteration"] == pytest.approx(1e3 * trial["seconds"] / trial["iterations"])
        assert isinstance(trial["notes"], list)
        assert trial["picture"] is None
    first = {trial["history"]["residual"][0] for trial in written["trials"]}
    assert max(first) == pytest.approx(min(first), rel=1e-14)


def test_budget_and_iterations_are_respected(tmp_path):
    scene = write_scene(tmp_path, FALL)
    timed = supple_json("compare", scene, "--solver", "pbng,fpxpbd", "--time-limit", "20ms", "--no-picture")
    assert timed["stop"]["time_limit"] == pytest.approx(0.02)
    for trial in timed["trials"]:
        assert trial["history"]["seconds"][-11:][0] < 0.02 <= trial["seconds"]  # read every 10 iterations
    iteration_counts = supple_json(
        "compare", scene, "--solver", "pbng,fpxpbd", "--max-iterations", "5", "--no-picture", "--overwrite"
    )
    assert [trial["iterations"] for trial in iteration_counts["trials"]] == [5, 5]


def test_unreached_tolerance_gives_exit_code_1(tmp_path):
    scene = write_scene(tmp_path, FALL)
    options = ("--solver", "xpbd", "--tolerance", "1e-9", "--max-iterations", "30", "--no-picture")
    missed = supple_json("compare", scene, *options, exit_code=1)
    assert missed["trials"][0]["outcome"] == "max_iterations"
    options = ("--solver", "xpbd,newton", *options[2:], "--overwrite")
    reached = supple_json("compare", scene, *options)
    assert [trial["ok"] for trial in reached["trials"]] == [False, True]


def test_solvers_with_options(tmp_path):
    solvers = (
        "pbng,pbng:acceleration=sor:omega=1.5,bpxpbd:zeta=0.9:ordering=clusters,xpbd:attachments_first=true"
    )
    compared = supple_json("compare", write_scene(tmp_path, FALL), "--solver", solvers, *QUICK)
    labels = ["pbng", "pbng sor omega=1.5", "bpxpbd clusters zeta=0.9", "xpbd attachments_first=True"]
    assert [trial["label"] for trial in compared["trials"]] == labels
    assert compared["trials"][1]["options"]["acceleration"] == {"kind": "sor", "omega": 1.5}
    assert compared["trials"][2]["options"]["zeta"] == 0.9
    assert compared["trials"][3]["options"]["attachments_first"] is True


def test_unsupported_solver_is_reported_with_the_reason(tmp_path):
    scene = write_scene(tmp_path, STVK)
    named = supple("compare", scene, "--solver", "block_xpbd,pbng", *QUICK)
    assert named.exit_code == 1
    assert "block_xpbd  not run" in named.stdout
    assert "block_xpbd was not run: block_xpbd needs a material whose energy is a pair" in named.stdout
    everything = supple_json("compare", scene, *QUICK, "--overwrite")
    assert [t["label"] for t in everything["trials"] if t["error"]] == ["block_xpbd"]
    assert "got StVK" in everything["trials"][list(SOLVERS).index("block_xpbd")]["error"]


def test_no_plot_without_any_trial(tmp_path):
    compared = supple_json(
        "compare", write_scene(tmp_path, STVK), "--solver", "block_xpbd", *QUICK, exit_code=1
    )
    assert compared["plots"] == {}


def test_newton_in_a_float32_comparison(tmp_path):
    options = ("--solver", "pbng,newton", "--precision", "float32", *QUICK)
    result = supple("compare", write_scene(tmp_path, FALL), *options)
    assert "newton ran in float64" in result.stdout


def test_warmup_compares_a_later_step(tmp_path):
    scene = write_scene(tmp_path, FALL)
    first = supple_json("compare", scene, "--solver", "pbng", *QUICK)
    later = supple_json("compare", scene, "--solver", "pbng", *QUICK, "--warmup", "5", "--overwrite")
    assert later["warmup"] == {"frames": 5, "ok": True}
    residuals = [positions["trials"][0]["history"]["residual"][0] for positions in (first, later)]
    assert abs(residuals[1] / residuals[0] - 1) > 0.01
    assert "--warmup is for dynamic scenes" in refused("compare", write_scene(tmp_path, SAG), "--warmup", "1")


def test_initial_positions_of_the_file_are_used(tmp_path):
    scrambled = write_scene(tmp_path, SAG + "[initial]\nscramble = { seed = 1 }\n")
    straight = write_scene(tmp_path, SAG, "straight.toml")
    output = [supple_json("compare", s, "--solver", "pbng", *QUICK) for s in (scrambled, straight)]
    first = [manifest["trials"][0]["history"]["residual"][0] for manifest in output]
    assert first[0] > 2 * first[1]


def test_limits_of_the_file_are_defaults(tmp_path):
    scene = write_scene(tmp_path, FALL + "[stop]\ntolerance = 1e-3\nmax_iterations = 9\n")
    options = ("compare", scene, "--solver", "newton", "--no-picture")
    output = supple_json(*options)
    (called,) = library.compare(library.load_scene(scene), "newton").trials
    assert output["stop"] == {
        "tolerance": 1e-3,
        "max_iterations": 9,
        "time_limit": None,
        "position_tolerance": None,
    }
    assert output["trials"][0]["outcome"] == "converged"
    assert output["trials"][0]["iterations"] == called.report.iterations
    finer = supple_json(*options, "--tolerance", "1e-9", "--overwrite")
    assert finer["stop"]["tolerance"] == 1e-9
    assert finer["trials"][0]["relative_residual"] < 1e-9


@pytest.mark.parametrize("warmup", ["0", "1"])
def test_initial_velocities_of_the_file_are_used(tmp_path, warmup):
    rest = library.scene.build_model(library.load_scene(write_scene(tmp_path, FALL)).scene).rest
    first = []
    for name, speed in (("still", 0.0), ("moving", 1.0)):
        np.savez(tmp_path / f"{name}.npz", positions=rest, velocities=np.full_like(rest, speed))
        scene = write_scene(tmp_path, FALL + f"[initial]\nfile = '{name}.npz'\n", f"{name}.toml")
        output = supple_json("compare", scene, "--solver", "pbng", *QUICK, "--warmup", warmup)
        first.append(output["trials"][0]["history"]["residual"][0])
        if warmup == "0":
            called = library.compare(library.load_scene(scene), "pbng", max_iterations=2)
            assert called["pbng"].report.history.residual[0] == pytest.approx(first[-1])
    assert abs(first[1] / first[0] - 1) > 0.01


def refused(*arguments: str) -> str:
    result = supple(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--solver", "pbgn"), "there is no solver 'pbgn'; did you mean 'pbng'?"),
        (("--solver", "pbng,"), "separated by commas"),
        (("--solver", "pbng:omga=1"), "pbng has no option 'omga'; did you mean 'omega'?"),
        (("--solver", "pbng:omega"), "pbng:omega needs a value"),
        (
            ("--solver", "pbng:acceleration=sor:omega=fast"),
            "omega=fast: omega should be a valid number, got 'fast'",
        ),
        (
            ("--solver", "pbng:acceleration=sor:window=5"),
            'window does nothing with acceleration = "sor"; it is for acceleration = "anderson"',
        ),
        (("--solver", "pbng:acceleration=sor:omega=3"), "omega must lie between 0 and 2"),
        (
            ("--solver", "pbng:acceleration=cheby"),
            "'none', 'sor', 'chebyshev', 'anderson', 'paper_sor' or 'paper_chebyshev'",
        ),
        (("--time-limit", "2 parsecs"), "'2 s', '500 ms' or '1 min'"),
        (("--max-iterations", "0"), "max_iterations must be a whole number of at least 1"),
        (("--tolerance", "3"), "tolerance must lie between 0 and 1"),
        (("--threads", "0"), "threads must be a whole number from 1 to"),
        (("--threads", "99999"), "threads must be a whole number from 1 to"),
        (("--warmup", "-1"), "--warmup must not be negative"),
        (("--precision", "float16"), "precision must be 'float32' or 'float64'"),
        (("--output", "scene.toml"), "is a file"),
    ],
)
def test_bad_options(tmp_path, options, sentence):
    assert sentence in refused("compare", write_scene(tmp_path, FALL), *options)
    assert not list(tmp_path.glob("results/**/*.*"))


def test_results_are_not_overwritten_by_default(tmp_path):
    scene = write_scene(tmp_path, FALL)
    supple_json("compare", scene, "--solver", "pbng,xpbd", "--max-iterations", "2")
    folder = tmp_path / "results" / "scene_compare"
    (folder / "notes.txt").write_text("mine")
    assert "--overwrite" in refused("compare", scene, "--solver", "pbng")
    supple_json("compare", scene, "--solver", "pbng", "--max-iterations", "2", "--overwrite")
    assert {file.name for file in folder.glob("picture_*")} == {"picture_pbng.png"}
    assert (folder / "notes.txt").read_text() == "mine"


def test_interrupt_keeps_old_results(tmp_path, monkeypatch):
    scene = write_scene(tmp_path, FALL)
    before = supple_json("compare", scene, "--solver", "pbng", *QUICK)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrialProgress, "show_iteration", interrupt)
    result = supple("compare", scene, "--solver", "pbng", *QUICK, "--overwrite")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    after = json.loads((tmp_path / "results" / "scene_compare" / "comparison.json").read_text())
    assert after["date"] == before["date"]


def test_distant_results_are_drawn_at_their_own_scale():
    from supple.runs.comparison import _near

    best = np.eye(3)
    assert _near({"a": best, "b": best + 0.1, "c": 1e6 * best}, best) == ["a", "b"]


@pytest.mark.parametrize("width", [80, 140])
def test_narrow_terminal_gets_two_tables_with_all_columns(width):
    from supple.cli.result_tables import print_table
    from supple.runs.comparison import COLUMNS

    row = {"iterations": 1000, "seconds": 0.395, "ms_per_iteration": 1.32, "relative_residual": 2.6e-3}
    row |= {"reduction": 8.7e-10, "energy": -7.14721, "inverted": 12, "colors": 38, "error": None}
    console = Console(width=width, file=io.StringIO())
    print_table(console, [{"label": "fpxpbd pseudo_dt=0.1", "outcome": "max_iterations", **row}])
    text = console.file.getvalue()
    assert "…" not in text
    assert text.count("solver") == (2 if width == 80 else 1)
    for name in (*COLUMNS, "max iterations", "2.6e-03", "8.7e-10", "-7.14721"):
        assert name in text
