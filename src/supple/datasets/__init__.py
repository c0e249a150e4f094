"""Data sets of equilibria: specs, designs, stores, workers and readers."""

from supple.datasets.errors import DatasetError, SpecError
from supple.datasets.exports import export_dataset
from supple.datasets.read.dataset import Dataset, open_dataset
from supple.datasets.run.run_dataset import dataset

__all__ = ["Dataset", "DatasetError", "SpecError", "dataset", "export_dataset", "open_dataset"]
