"""User tables: CSV, NPZ and Parquet files with one column per varied quantity."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from supple.checks import listed
from supple.datasets.errors import DatasetError
from supple.datasets.places import AXES


def read_columns(path: Path, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Read table columns by label.

    Args:
        path: CSV, NPZ or Parquet file.
        sizes: Number of components of each quantity. A vector may be split into component columns `name.x` or
            `name.0`.

    Raises:
        DatasetError: The file is of another type or is not a readable table of numbers.
    """
    kind = path.suffix.lower()
    readers = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
    if kind not in readers:
        raise DatasetError(f"{path}: a table of values is a CSV, NPZ or Parquet file.")
    try:
        columns = readers[kind](path)
    except DatasetError:
        raise
    except (ValueError, EOFError, BadZipFile) as error:
        raise DatasetError(f"{path} is no table of numbers that can be read: {error}") from None
    return _joined(columns, sizes)


def _csv(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
        rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise DatasetError(f"{path} needs a line of names and at least one line of values.")
    names = [name.strip() for name in rows[0]]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DatasetError(f"{path} has several columns called {listed(twice)}; give each its own name.")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise DatasetError(f"{path}: line {number} has {len(row)} values for {len(names)} names.")
    return {name: _numbers([row[k] for row in rows[1:]], f"{path}: {name}") for k, name in enumerate(names)}


def _numbers(cells: list[str], where: str) -> np.ndarray:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise DatasetError(f"{where}: {error}.") from None


def _npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _parquet(path: Path) -> dict[str, Any]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DatasetError(
            f"{path}: Parquet needs PyArrow: pip install pyarrow, or save the table as CSV."
        ) from None
    table = parquet.read_table(path)
    return {name: np.array(table[name].to_pylist(), float) for name in table.column_names}


def _joined(columns: dict[str, Any], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    found = dict(columns)
    for label, size in sizes.items():
        if label in found or size == 1:
            continue
        for names in (AXES[:size], tuple(map(str, range(size)))):
            parts = [f"{label}.{name}" for name in names]
            if len(parts) == size and all(part in columns for part in parts):
                found[label] = np.column_stack([columns[part] for part in parts])
    return found
