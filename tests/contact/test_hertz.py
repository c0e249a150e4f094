"""Hertz's law in small runs of benchmarks/contact.py."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
contact = pytest.importorskip("contact")


def test_pressed_ball_has_the_force_of_hertz():
    """The force converges with the cell size; a coarse block is too stiff."""
    rows = [contact.indent(cells, 0.02) for cells in (8, 12)]
    assert all(row["outcome"] == "converged" for row in rows)
    assert rows[0]["ratio"] > rows[1]["ratio"] > 1
    assert contact.extrapolated(rows) == pytest.approx(1 + 0.6 * rows[0]["radius"] / 2, abs=0.05)
