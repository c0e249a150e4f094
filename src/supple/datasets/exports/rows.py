"""Row representation of samples, shared by all formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.datasets.read.dataset import Dataset

SPLITS = ("train", "valid", "test")


def part_of(data: Dataset) -> dict[int, str]:
    """Split of every good sample, by sample id."""
    return {int(sample): part for part in SPLITS for sample in data.split(part)}


def sample_metadata(data: Dataset, sample: int) -> dict[str, Any]:
    """Inputs and report of a sample as plain Python values."""
    inputs = {name: column[sample].tolist() for name, column in data.inputs.items()}
    report = {name: column[sample].item() for name, column in data.report.items() if name != "outcome"}
    return {"id": int(sample), "inputs": inputs, "report": report | {"outcome": str(data.outcomes[sample])}}


def quantity_values(data: Dataset, sample: int) -> dict[str, np.ndarray]:
    return {quantity.name: data[quantity.name][sample] for quantity in data.store.quantities}
