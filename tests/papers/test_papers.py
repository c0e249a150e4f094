"""Registry of all figures and tables, resumable measurements, and the results page."""

import json
import tomllib
from pathlib import Path

import pytest

import supple
import supple_papers
from supple_papers.measurements import Claim, Measurements, brief, plain, run_row
from supple_papers.registry import experiment, find_rows, rows, shows, titles
from supple_papers.results_page import WORDS, row_status, write_page

PAPER_COUNTS = {"pbng": (20, 4), "pbcm": (11, 1), "bnh": (8, 3), "gpbd": (10, 5), "pxpbd": (12, 1)}
"""Numbers of figures and tables of each paper."""


@pytest.mark.parametrize("paper", PAPER_COUNTS)
def test_registry_has_every_figure_and_table(paper):
    plots, tables = PAPER_COUNTS[paper]
    expected = {f"{paper}-fig{k + 1}" for k in range(plots)} | {
        f"{paper}-table{k + 1}" for k in range(tables)
    }
    assert {key for key, row in rows().items() if row.paper == paper} == expected


def test_every_row_has_a_claim_and_a_valid_state():
    for row in rows().values():
        assert row.claim.endswith(".")
        assert row.state in ("shown", "illustration", "impossible")
        assert bool(row.shows) == (row.state == "shown")
        assert bool(row.needs) == (row.state == "impossible")


@pytest.mark.parametrize("key", [key for key, row in rows().items() if row.state == "shown"])
def test_every_shown_row_has_an_experiment(key):
    assert callable(experiment(key))


def test_rows_are_selected_by_key_and_by_paper():
    assert [row.key for row in find_rows(["pbng-table2", "pbng-fig7"])] == ["pbng-fig7", "pbng-table2"]
    assert {row.paper for row in find_rows(["bnh"])} == {"bnh"}
    with pytest.raises(ValueError, match="no figure or table 'pbng-fig99'; did you mean"):
        find_rows(["pbng-fig99"])


def test_interrupted_record_is_resumed(tmp_path):
    measured = []

    def part(name):
        measured.append(name)
        if name == "second" and measured.count("second") == 1:
            raise KeyboardInterrupt
        return {"value": 1 / 3, "lost": float("nan")}

    def go():
        measurements = Measurements(tmp_path, "pbng-fig3")
        return [measurements.part(name, lambda name=name: part(name)) for name in ("first", "second")]

    with pytest.raises(KeyboardInterrupt):
        go()
    assert go() == [{"value": 0.3333, "lost": None}] * 2
    assert measured == ["first", "second", "second"]


def test_other_sizes_and_unreadable_records_restart(tmp_path):
    Measurements(tmp_path, "pbng-fig3").part("a", lambda: 1)
    assert Measurements(tmp_path, "pbng-fig3").part("a", lambda: 2) == 1
    assert Measurements(tmp_path, "pbng-fig3", full=True).part("a", lambda: 2) == 2
    (tmp_path / "pbng-fig3.json").write_text("{")
    assert Measurements(tmp_path, "pbng-fig3").part("a", lambda: 3) == 3


def test_page_has_and_counts_every_row(tmp_path):
    measurements = Measurements(tmp_path, "pbng-fig3")
    measurements.part("pbng", lambda: {"200": 1e-9})
    measurements.close("agrees: as far as two numbers can.", 0.0)
    text = write_page(tmp_path).read_text(encoding="utf-8")
    for row in rows().values():
        assert f"### {row.paper.upper()} {row.label}\n" in text
        assert row.claim in text
    assert "**Verdict:** agrees: as far as two numbers can." in text
    assert "| |200|\n|---|---|\n| pbng | 1e-09 |" in text
    (counts,) = (line for line in text.splitlines() if line.startswith("|[PBNG]"))
    assert sum(map(int, counts.split("|")[2:8])) == 24
    assert counts.split("|")[-2] == "0 of 0"
    assert counts.split("|")[2] == "1"


def test_page_links_papers_and_differences(tmp_path):
    measurements = Measurements(tmp_path, "pbcm-fig7")
    measurements.part("words", lambda: "as they are")
    measurements.part("a", lambda: {"x": 1, "y": None})
    measurements.part("b", lambda: {"x": 2, "y": [1.0] * 9})
    measurements.part("c", lambda: 0.25)
    measurements.close(
        measurements.judge("so it is.", Claim("less than 0.4 mm off", False, "for a reason.")), 0.0
    )
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "- [PBCM Fig. 7](#pbcm-fig-7), less than 0.4 mm off: for a reason." in text
    assert "| |x|y|\n|---|---|---|\n| a | 1 | not finite |\n| b | 2 | 9 values |" in text
    assert "as they are\n" in text
    assert "| c | 0.25 |" in text
    heading = "## PBCM: Position-Based Simulation of Continuous Materials (Bender et al. 2014)"
    assert heading in text
    assert "(#pbcm-position-based-simulation-of-continuous-materials-bender-et-al-2014)" in text


def test_gpu_verdict_is_shown_next_to_the_cpu_verdict(tmp_path):
    for device, ms in (("cpu", 3.0), ("cuda", 0.5)):
        measurements = Measurements(tmp_path, "bnh-table2", device=device)
        measurements.part("ms", lambda ms=ms: ms)
        measurements.close(f"agrees: {ms:g} ms.", 0.0)
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "**Verdict:** agrees: 3 ms." in text
    assert "**Verdict on the GPU:** agrees: 0.5 ms." in text


def test_curves_and_pictures_are_stored_with_their_records(tmp_path):
    measurements = Measurements(tmp_path, "pbng-fig3")
    measurements.curves({"a": ([1, 2], [1.0, None]), "b": ([1, 2], [0.0, 2.0])}, "two curves", "x", "y")
    measurements.close("agrees: so far.", 0.0)
    assert (tmp_path / "pbng-fig3-1.png").stat().st_size > 1000
    assert "![two curves](pbng-fig3-1.png)" in write_page(tmp_path).read_text(encoding="utf-8")


def test_shipped_page_matches_the_shipped_records():
    folder = Path(supple.__file__).parents[2] / "docs" / "papers"
    if not folder.is_dir():
        pytest.skip("no sources here")
    message = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("*.json"):
        measurements = json.loads(path.read_text(encoding="utf-8"))
        key = path.stem.removesuffix("-cuda")
        assert key in rows()
        assert row_status(rows()[key], measurements) in WORDS
        assert measurements["verdict"] in message
        assert all((folder / name).is_file() for name, _ in measurements.get("pictures", []))


def test_numbers_are_rounded():
    assert brief({"a": 0.123456, "b": [1, 2], "c": list(range(9)), "d": None}) == (
        "a 0.123, b 1 2, c 9 values, d not finite"
    )
    assert plain({1: (True, "x", float("inf"))}) == {"1": [True, "x", None]}


def test_finished_experiment_is_not_repeated(tmp_path):
    """The cheapest experiment, end to end."""
    measurements = Measurements(tmp_path, "pbcm-fig2")
    verdict = run_row(measurements)
    assert verdict.startswith("agrees")
    again = Measurements(tmp_path, "pbcm-fig2")
    assert again.done
    assert run_row(again) == verdict


def test_papers_and_modules_correspond():
    folder = Path(supple_papers.__file__).parent
    written = tomllib.loads((folder / "papers.toml").read_text(encoding="utf-8"))
    assert list(written) == list(titles())
    assert all((folder / f"{paper}.py").is_file() for paper in titles())
    assert callable(shows("pbng-fig3"))
