"""Data sets of equilibria: specs, designs, stores, workers and readers."""

from supple.datasets.dataset import dataset
from supple.datasets.errors import DatasetError, SpecError
from supple.datasets.opened import Dataset, open_dataset

__all__ = ["Dataset", "DatasetError", "SpecError", "dataset", "open_dataset"]
