"""Public names of data sets on disk: `supple.data.open("bar.zarr")`.

The code is in `datasets/`.
"""

from supple.datasets.errors import DatasetError
from supple.datasets.read.dataset import Dataset
from supple.datasets.read.dataset import open_dataset as open

__all__ = ["Dataset", "DatasetError", "open"]
