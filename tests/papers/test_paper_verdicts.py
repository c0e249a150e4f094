"""Verdicts follow from the figures that were measured."""

import json
from pathlib import Path

import pytest

import supple
from supple.papers.account import Account
from supple.papers.gpbd_impact import rebound
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
FREE, WEAK = "without contact: overlap [m]", "contact = weak: overlap [m]"
BALL = "ball of 0.2 kg on satin"
BOUNCE = {"finite": True, "sinks [m]": 0.1, "rises again [m]": 0.1}
BLOCKS = "block of 15³ cells", "block of 31³ cells"

CASES = [
    ("pbng-fig15", {FREE: 0.02, WEAK: 0.0}, "agrees"),
    ("pbng-fig15", {FREE: 0.02, WEAK: 0.02}, "differs"),
    ("pbng-fig15", {FREE: 0.0, WEAK: 0.0}, "partly"),
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
    account = Account(tmp_path, key)
    account.values["parts"] = dict(parts)
    assert experiment(key)(account).startswith(word)


@pytest.mark.parametrize("key", sorted({key for key, _, _ in CASES}))
def test_shipped_verdicts_are_those_of_shipped_figures(tmp_path, key):
    shipped = Path(supple.__file__).parents[2] / "docs" / "papers" / f"{key}.json"
    if not shipped.is_file():
        pytest.skip("no sources here")
    values = json.loads(shipped.read_text(encoding="utf-8"))
    account = Account(tmp_path, key)
    account.values["parts"] = values["parts"]
    assert experiment(key)(account) == values["verdict"]


def test_a_ball_is_thrown_back_from_where_it_was_lowest():
    assert rebound([1.0, 0.4, -0.1, 0.2, 0.1]) == pytest.approx(0.3)
    assert rebound([1.0, 0.5, 0.0]) == 0
