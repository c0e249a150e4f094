"""Results folders."""

import json
import math

import pytest

from supple.io import ResultsError, ResultsFolder, machine, versions
from supple.io.results import REPORT_SCHEMA, to_json

REPORT = {
    "schema": REPORT_SCHEMA,
    "versions": {"supple": "0.0.9"},
    "scene": {},
    "solver": {},
    "frames": [{"index": 1}, {"index": 2}, {"index": 3}],
}


def test_reports_round_trip(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.write_report(REPORT)
    assert folder.read_report() == REPORT
    assert folder.has_results


def test_non_finite_numbers_become_null():
    assert json.loads(to_json({"a": [math.inf, math.nan, 1.5], "b": (True, None)})) == {
        "a": [None, None, 1.5],
        "b": [True, None],
    }


def test_complete_frames_end_at_the_first_gap(tmp_path):
    for name in ("frame_0001.vtu", "frame_0001.npz", "frame_0002.vtu", "frame_0003.vtu", "frame_0003.npz"):
        (tmp_path / name).touch()
    assert ResultsFolder(tmp_path).complete(REPORT) == [{"index": 1}]


@pytest.mark.parametrize("text", ["{", "[]", '{"scene": 1}'])
def test_invalid_reports_are_refused(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(ResultsError, match="not a report"):
        ResultsFolder(tmp_path).read_report()


@pytest.mark.parametrize("schema", [None, 1])
def test_reports_of_earlier_versions_are_refused(tmp_path, schema):
    """Schema 1 had contact between bodies and with obstacles under two other keys."""
    folder = ResultsFolder(tmp_path)
    folder.write_report(REPORT | {"schema": schema})
    with pytest.raises(ResultsError, match=r"was written by supple 0\.0\.9 .* with --overwrite"):
        folder.read_report()


def test_frames_without_a_report_are_refused(tmp_path):
    (tmp_path / "frame_0001.npz").touch()
    with pytest.raises(ResultsError, match="has frames but no report"):
        ResultsFolder(tmp_path).read_report()


def test_clearing_keeps_foreign_files(tmp_path):
    mine = {"thesis.tex", "frame.png", "residual_of_my_thesis.png", "energy_landscape.png"}
    for name in ("frame_0001.npz", "animation.pvd", "report.json", "energy_seconds.png", *mine):
        (tmp_path / name).touch()
    ResultsFolder(tmp_path).clear()
    assert {file.name for file in tmp_path.iterdir()} == mine
    assert not ResultsFolder(tmp_path).has_results


def test_machine_is_described():
    assert machine()["cores"] >= 1
    assert machine()["cpu"]
    assert versions()["numba"].count(".") == 2
