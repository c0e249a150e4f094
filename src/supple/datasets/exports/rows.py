"""Samples as rows: what every format has of each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.datasets.opened import Dataset

PARTS = ("train", "valid", "test")


def part_of(data: Dataset) -> dict[int, str]:
    """The part that every good sample belongs to, by its id."""
    return {int(sample): part for part in PARTS for sample in data.split(part)}


def figures(data: Dataset, sample: int) -> dict[str, Any]:
    """Inputs and report of a sample, as plain values."""
    inputs = {name: column[sample].tolist() for name, column in data.inputs.items()}
    report = {name: column[sample].item() for name, column in data.report.items() if name != "outcome"}
    return {"id": int(sample), "inputs": inputs, "report": report | {"outcome": str(data.outcomes[sample])}}


def quantities(data: Dataset, sample: int) -> dict[str, np.ndarray]:
    return {kind.name: data[kind.name][sample] for kind in data.store.kinds}
