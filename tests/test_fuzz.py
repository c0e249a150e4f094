"""A short fuzz test of bad input, see fuzz.py; `benchmarks/storm.py` runs a long one."""

import numpy as np
import pytest
from fuzz import is_reported, judge
from fuzz_calls import run_wrong_calls, valid_calls
from fuzz_scenes import run_mutated_scenes, small_scenes, solve_scene, to_toml
from fuzz_valid_calls import NEVER_CALLED, TESTED_ELSEWHERE

import supple
from supple.solvers import SOLVERS
from supple.solvers.acceleration import ACCELERATIONS

SCENES = ("bar_gravity", "twist", "cantilevers")
"""Scenes that share their kernels with other tests."""


def test_unchanged_scenes_are_valid(tmp_path):
    path = tmp_path / "scene.toml"
    for name, table in small_scenes().items():
        path.write_text(to_toml(table), encoding="utf-8")
        assert supple.load_scene(path).scene.bodies, name


def test_mutated_scenes_give_a_result_or_an_error_message(tmp_path):
    tally = run_mutated_scenes(120, tmp_path, seed=1, names=SCENES, precisions=("float64",))
    assert tally.findings == []
    assert tally.counts["sentence"] > 30
    assert tally.counts["answer"] > 5


def test_wrong_calls_give_a_result_or_an_error_message(tmp_path):
    tally = run_wrong_calls(200, tmp_path, seed=1)
    assert tally.findings == []
    assert tally.counts["sentence"] > 100


def test_every_public_name_is_fuzzed(tmp_path):
    """New public names need an entry in the lists of calls."""
    tried = {name.split(".")[0].split()[0] for name in valid_calls(tmp_path)}
    tried |= {kind.__name__ for kind in (*SOLVERS.values(), *ACCELERATIONS.values())}
    assert set(supple.__all__) - tried - NEVER_CALLED - TESTED_ELSEWHERE.keys() == set()


@pytest.mark.parametrize(
    "act",
    [
        lambda: 1 + "x",
        lambda: {}["x"],
        lambda: np.float64(1e200) * np.float64(1e200),
        lambda: int("x"),
    ],
    ids=["operand", "key", "overflow", "foreign sentence"],
)
def test_findings_are_detected(act):
    assert judge(act)[0] == "finding"


def test_own_error_messages_are_recognized():
    with pytest.raises(ValueError, match="young must be positive") as raised:
        supple.Corotated(young=-1, poisson=0.3)
    assert is_reported(raised.value)


def test_unchanged_scenes_are_solved(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(to_toml(small_scenes(SCENES)["bar_gravity"]), encoding="utf-8")
    assert judge(lambda: solve_scene(path)) == ("answer", "")
