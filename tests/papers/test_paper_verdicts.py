"""Verdicts follow from the figures that were measured."""

import json
from pathlib import Path

import pytest

import supple
from supple.papers.gpbd_impact import rebound
from supple.papers.record import Record
from supple.papers.registry import experiment

TIMES = {"Newton overhead": 10.0, "linear sweep": 1.3, "PBNG sweep": 1.0}
COLOURS = {"vertices": 1, "node colours": 5, "constraint colours": 39, "pbng [ms]": 1.0, "xpbd [ms]": 1.0}
STRETCHES = {
    "equal time": {"MPBNG [ms per step]": 1.0, "sweeps of PBNG": 10},
    "converged: stretch": 1.0,
    "mpbng: stretch": 1.0,
    "mpbng, as printed: stretch": 1.1,
    "pbng: stretch": 1.5,
    "pbng with Anderson: stretch": 1.2,
}
MUSCLES = {
    "imbalance": 1e-6, "converged": True, "contacts": 90, "iterations": 9, "overlap [m]": 0.0, "from Newton": 1e-4
}  # fmt: skip
SPINDLES = dict.fromkeys([f"contact = weak, {name}" for name in ("newton", "pbng", "descent")], MUSCLES)
FREE = {"without contact, newton": MUSCLES | {"overlap [m]": 0.02}}
BALL = "ball of 0.2 kg on satin"
BOUNCE = {"finite": True, "sinks [m]": 0.1, "rises again [m]": 0.1}
BLOCKS = "block of 15³ cells", "block of 31³ cells"

CASES = [
    ("pbng-fig15", SPINDLES | FREE, "agrees"),
    ("pbng-fig15", SPINDLES | FREE | {"contact = weak, pbng": MUSCLES | {"converged": False}}, "partly"),
    ("pbng-fig15", SPINDLES | FREE | {"contact = weak, pbng": MUSCLES | {"overlap [m]": 0.02}}, "differs"),
    ("pbng-fig15", SPINDLES | {"without contact, newton": MUSCLES}, "differs"),
    ("pbng-fig19", STRETCHES, "agrees"),
    ("pbng-fig19", STRETCHES | {"mpbng, as printed: stretch": 2.0}, "partly"),
    ("pbng-fig19", STRETCHES | {"pbng: stretch": 0.5}, "partly"),
    ("pbng-fig19", STRETCHES | {"mpbng: stretch": 2.0}, "differs"),
    ("pbng-table1", dict.fromkeys(BLOCKS, COLOURS), "agrees"),
    ("pbng-table1", dict.fromkeys(BLOCKS, COLOURS | {"xpbd [ms]": 1.5}), "partly"),
    ("pbng-table1", dict.fromkeys(BLOCKS, COLOURS | {"constraint colours": 60}), "differs"),
    ("pbng-table4", {"milliseconds": TIMES}, "agrees"),
    ("pbng-table4", {"milliseconds": TIMES | {"linear sweep": 0.5}}, "partly"),
    ("pbng-table4", {"milliseconds": TIMES | {"Newton overhead": 1.0}}, "differs"),
    ("gpbd-fig9", {BALL: BOUNCE | {"ball rises again [m]": 0.1}}, "agrees"),
    ("gpbd-fig9", {BALL: BOUNCE | {"ball rises again [m]": 0.0}}, "differs"),
    ("gpbd-fig9", {BALL: BOUNCE}, "partly"),
]


@pytest.mark.parametrize(("key", "parts", "word"), CASES)
def test_a_verdict_follows_from_figures(tmp_path, key, parts, word):
    record = Record(tmp_path, key)
    record.values["parts"] = dict(parts)
    assert experiment(key)(record).startswith(word)


@pytest.mark.parametrize("key", sorted({key for key, _, _ in CASES}))
def test_shipped_verdicts_are_those_of_shipped_figures(tmp_path, key):
    shipped = Path(supple.__file__).parents[2] / "docs" / "papers" / f"{key}.json"
    if not shipped.is_file():
        pytest.skip("no sources here")
    values = json.loads(shipped.read_text(encoding="utf-8"))
    record = Record(tmp_path, key)
    record.values["parts"] = values["parts"]
    assert experiment(key)(record) == values["verdict"]


def test_a_ball_is_thrown_back_from_where_it_was_lowest():
    assert rebound([1.0, 0.4, -0.1, 0.2, 0.1]) == pytest.approx(0.3)
    assert rebound([1.0, 0.5, 0.0]) == 0
