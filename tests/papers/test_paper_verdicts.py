"""Verdicts on reproduced results follow from the measurements."""

import json
import re
from pathlib import Path

import pytest

import supple
from supple_papers.fabrics import FABRICS
from supple_papers.gpbd_impact import rebound
from supple_papers.measurements import Claim, Measurements, judge_again
from supple_papers.registry import experiment
from supple_papers.results_page import write_page

TIMES = {"Newton overhead": 10.0, "linear sweep": 1.3, "PBNG sweep": 1.0}
COLORS = {"vertices": 1, "node colors": 5, "constraint colors": 39, "pbng [ms]": 1.0, "xpbd [ms]": 1.0}
STRETCHES = {
    "equal time": {"MPBNG [ms per step]": 1.0, "sweeps of PBNG": 10},
    "converged: stretch": 1.0,
    "mpbng: stretch": 1.0,
    "mpbng, as printed: stretch": 1.1,
    "pbng: stretch": 1.5,
    "pbng with Anderson: stretch": 1.2,
}
MUSCLES = {
    "relative residual": 1e-6, "converged": True, "contacts": 90, "iterations": 9, "overlap [m]": 0.0,
    "from Newton": 1e-4,
}  # fmt: skip
SPINDLES = dict.fromkeys([f"contact = weak, {name}" for name in ("newton", "pbng", "hybrid")], MUSCLES)
FREE = {"without contact, newton": MUSCLES | {"overlap [m]": 0.02}}
BALL = "ball of 0.2 kg on satin"
BOUNCE = {"finite": True, "sinks [m]": 0.1, "rises again [m]": 0.1}
BLOCKS = "block of 15³ cells", "block of 31³ cells"

DRAPED = {"finite": True, "hangs [m]": 0.18, "into the sphere [m]": 0.0, "fastest at the end [m/s]": 0.01}
HANGING = {f"{name}: draped on a sphere": DRAPED for name in FABRICS} | {
    "rib1: draped on a sphere": DRAPED | {"hangs [m]": 0.21}
}
GRID = {
    "bodies": 6, "vertices": 9, "finite": True, "cell [m]": 0.05, "deepest overlap [m]": 0.0,
    "deepest below the floor [m]": 0.0, "inverted at the end": 0, "ms per frame": 1.0,
}  # fmt: skip

SHIPPED = Path(supple.__file__).parents[2] / "docs" / "papers"

CASES = [
    ("pbng-fig15", SPINDLES | FREE, "agrees"),
    ("pbng-fig15", SPINDLES | FREE | {"contact = weak, pbng": MUSCLES | {"converged": False}}, "partly"),
    ("pbng-fig15", SPINDLES | FREE | {"contact = weak, pbng": MUSCLES | {"overlap [m]": 0.02}}, "partly"),
    ("pbng-fig15", SPINDLES | {"without contact, newton": MUSCLES}, "differs"),
    ("pbng-fig19", STRETCHES, "agrees"),
    ("pbng-fig19", STRETCHES | {"mpbng, as printed: stretch": 2.0}, "partly"),
    ("pbng-fig19", STRETCHES | {"pbng: stretch": 0.5}, "partly"),
    ("pbng-table1", dict.fromkeys(BLOCKS, COLORS), "agrees"),
    ("pbng-table1", dict.fromkeys(BLOCKS, COLORS | {"xpbd [ms]": 1.5}), "partly"),
    ("pbng-table4", {"milliseconds": TIMES}, "agrees"),
    ("pbng-table4", {"milliseconds": TIMES | {"linear sweep": 0.5}}, "partly"),
    ("pbng-table4", {"milliseconds": TIMES | {"linear sweep": 0.5, "Newton overhead": 1.0}}, "differs"),
    ("gpbd-fig6", HANGING, "agrees"),
    ("gpbd-fig6", dict.fromkeys(HANGING, DRAPED), "partly"),
    ("gpbd-fig6", HANGING | {"rib1: draped on a sphere": DRAPED | {"fastest at the end [m/s]": 1}}, "partly"),
    ("pxpbd-fig12", {"objects in a box, on a grid": GRID}, "agrees"),
    ("pxpbd-fig12", {"objects in a box, on a grid": GRID | {"deepest overlap [m]": 0.01}}, "partly"),
    ("gpbd-fig9", {BALL: BOUNCE | {"ball rises again [m]": 0.1}}, "agrees"),
    ("gpbd-fig9", {BALL: BOUNCE | {"ball rises again [m]": 0.0}}, "partly"),
]


@pytest.mark.parametrize(("key", "parts", "word"), CASES)
def test_verdict_follows_from_measurements(tmp_path, key, parts, word):
    measurements = Measurements(tmp_path, key, measures=False)
    measurements.values["parts"] = dict(parts)
    assert experiment(key)(measurements).startswith(word)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_shipped_verdicts_follow_from_shipped_measurements(tmp_path, path):
    """The page matches the measurements of every row, and every claim that fails has a reason."""
    known = json.loads(path.read_text(encoding="utf-8"))
    key = path.stem.removesuffix("-cuda")
    device = "cuda" if path.stem.endswith("-cuda") else "cpu"
    measurements = Measurements(tmp_path, key, known["full"], device=device, measures=False)
    measurements.values |= {"parts": known["parts"], "pictures": known.get("pictures", [])}
    assert experiment(key)(measurements) == known["verdict"]
    assert measurements.values["claims"] == known["claims"]
    assert all(claim["holds"] or claim["why"].endswith(".") for claim in known["claims"])


@pytest.mark.parametrize(
    ("claims_hold", "word"),
    [((True, True), "agrees"), ((True, False), "partly"), ((False, False), "differs")],
)
def test_claims_determine_the_verdict(tmp_path, claims_hold, word):
    measurements = Measurements(tmp_path, "pbng-fig3")
    message = measurements.judge(
        "so it is.", *(Claim(f"number {k}", holds, "why not.") for k, holds in enumerate(claims_hold))
    )
    assert message.startswith(word)
    measurements.close(message, 0.0)
    page = write_page(tmp_path).read_text(encoding="utf-8")
    for k, holds in enumerate(claims_hold):
        assert f"- {'holds' if holds else 'does not hold'}: number {k}\n" in page
        assert (f"[PBNG Fig. 3](#pbng-fig-3), number {k}: why not." in page) is not holds


def test_gpu_verdicts_are_counted_with_reasons(tmp_path):
    for device, claims_hold in (("cpu", (True, True)), ("cuda", (True, False))):
        measurements = Measurements(tmp_path, "gpbd-table5", device=device)
        claims = [Claim(f"number {k}", holds, "why not.") for k, holds in enumerate(claims_hold)]
        measurements.close(measurements.judge("so it is.", *claims), 0.0)
    page = write_page(tmp_path).read_text(encoding="utf-8")
    assert "- [GPBD Table 5](#gpbd-table-5) on the GPU, number 1: why not.\n" in page
    assert "[GPBD Table 5](#gpbd-table-5), number" not in page
    counts = {line.split("]")[0].strip("|["): line for line in page.splitlines() if line.startswith("|[")}
    assert counts["GPBD"].endswith("|1|0|0|14|0|0|2 of 2|0|0|1|1 of 2|")
    assert counts["PBNG"].endswith("|0 of 0|0|0|0|0 of 0|")
    assert "\n|all|1|0|0|" in page


def test_all_failed_claims_are_in_the_shipped_list():
    """On CPU and GPU there is one line with a reason per failed claim."""
    page = (SHIPPED / "README.md").read_text(encoding="utf-8")
    head, _, sections = page.partition("\n## ")
    entries = re.findall(r"^- \[.*?\]\(#.*\)(?: on the GPU)?, .*: .*\.$", head, flags=re.M)
    assert len(entries) == sections.count("\n- does not hold: ") == len(re.findall("^- ", head, flags=re.M))


def test_verdicts_are_updated_to_present_criteria(tmp_path):
    measurements = Measurements(tmp_path, "pbng-fig3")
    measurements.part("pbng", lambda: {"200": 1e-9})
    measurements.close("differs: said when criteria were others.", 0.0)
    assert not judge_again(tmp_path, "pbng-fig3")
    measurements.part("xpbd", lambda: {"200": 0.4})
    assert judge_again(tmp_path, "pbng-fig3")
    known = json.loads((tmp_path / "pbng-fig3.json").read_text(encoding="utf-8"))
    assert known["verdict"].startswith("agrees")
    assert [claim["holds"] for claim in known["claims"]] == [True, True]
    assert judge_again(tmp_path, "pbng-fig12")  # of which nothing is known


def test_counts_of_the_item_list_are_correct():
    text = (SHIPPED / "audit.md").read_text(encoding="utf-8")
    paths = ("there", "differently", "in part", "missing")
    for section in text.split("\n## ")[1:]:
        paper, *lines = section.splitlines()
        now = [line.split("|")[4].strip() for line in lines if line[2:3].isdigit()]
        item_counts = "|".join(str(now.count(way)) for way in paths)
        assert f"|{paper}, of {len(now)}|{item_counts}|" in text


def test_list_of_items_names_existing_files():
    text = (SHIPPED / "audit.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([a-z_/]+\.py)`", text):
        assert (Path(supple.__file__).parent / name).is_file(), name
    for name in re.findall(r"(?:scenes|benchmarks)/[a-z_]+\.(?:toml|py)", text):
        assert (SHIPPED.parents[1] / name).is_file(), name
    for name in re.findall(r"\]\((\.\./[a-z_/]+\.md)\)", text):
        assert (SHIPPED / name).is_file(), name


def test_rebound_is_measured_from_the_lowest_position():
    assert rebound([1.0, 0.4, -0.1, 0.2, 0.1]) == pytest.approx(0.3)
    assert rebound([1.0, 0.5, 0.0]) == 0
