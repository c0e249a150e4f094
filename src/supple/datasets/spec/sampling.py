"""Designs: the parameter values of every sample, drawn or read from a table before the first solve.

Tables are CSV, NPZ and Parquet files with one column per varied quantity.
"""

from __future__ import annotations

import csv
import io
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.spec.dataset_spec import Function, Spec
from supple.datasets.spec.key_path import AXES
from supple.datasets.spec.spec_tables import VaryTable
from supple.scene.files.file_paths import resolve_path
from supple.support.arguments import comma_list, format_value
from supple.support.input_files import InputFileError, check_regular, open_arrays, read_text
from supple.support.memory import available_memory, format_bytes

CSV_LIMIT = 256 * 2**20
"""Largest size of CSV tables [bytes]; Python needs about ten times the memory for their cells."""

PARQUET_VALUE_BYTES = 64
"""Memory for each value of a Parquet table while it is read [bytes]."""


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
    readers = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
    if kind not in readers:
        raise DatasetError(f"{path}: a table of values must be a CSV, NPZ or Parquet file.")
    try:
        columns = readers[kind](path, _column_names(sizes))
    except DatasetError:
        raise
    except InputFileError as error:
        raise DatasetError(f"{path} {error}.") from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read as a table of numbers: {error}") from None
    return _join_components(columns, sizes)


def _read_csv(path: Path, names: Collection[str]) -> dict[str, Any]:
    text = read_text(path, CSV_LIMIT).removeprefix("\ufeff")  # byte order mark of spreadsheets
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise DatasetError(f"{path} needs a line of names and at least one line of values.")
    header = [name.strip() for name in rows[0]]
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise DatasetError(
            f"{path} has several columns named {comma_list(twice)}; give each a different name."
        )
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise DatasetError(f"{path}: line {number} has {len(row)} values for {len(header)} names.")
    return {
        name: _parse_numbers([row[k] for row in rows[1:]], f"{path}: {name}") for k, name in enumerate(header)
    }


def _parse_numbers(cells: list[str], where: str) -> np.ndarray:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise DatasetError(f"{where}: {error}.") from None


def _read_npz(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read the arrays `names`; all others are empty."""
    with open_arrays(path) as arrays:
        return {name: arrays[name] if name in names else np.empty(0) for name in arrays}


def _read_parquet(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read the columns `names`; all others are empty."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DatasetError(
            f"{path}: Parquet needs PyArrow: pip install pyarrow, or save the table as CSV."
        ) from None
    check_regular(path)
    with parquet.ParquetFile(path) as file:
        own = [name for name in file.schema_arrow.names if name in names]
        _check_parquet_size(file.metadata, own)
        table = file.read(columns=own)
        others = {name: np.empty(0) for name in file.schema_arrow.names}
    return others | {name: np.array(table[name].to_pylist(), float) for name in own}


def _check_parquet_size(metadata: Any, names: Collection[str]) -> None:
    """Check the memory for columns: a few bytes of a file may hold any number of equal values."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    chunks = [group.column(k) for group in groups for k in range(group.num_columns)]
    values = sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.split(".")[0] in names)
    claimed, free = PARQUET_VALUE_BYTES * max(values, metadata.num_rows), available_memory()
    if free is not None and claimed > free:
        raise InputFileError(
            f"has {values:,} values, which need {format_bytes(claimed)} of memory, but this process "
            f"may use {format_bytes(free)}"
        )


def _column_names(sizes: Mapping[str, int]) -> set[str]:
    """Names of all columns that may belong to quantities, also of components, such as `g.x` or `g.0`."""
    components = [f"{label}.{name}" for label, size in sizes.items() for name in _component_names(size)]
    return {*sizes, *components}


def _component_names(size: int) -> list[str]:
    return [*AXES[:size], *map(str, range(size))]


def _join_components(columns: dict[str, Any], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    joined = dict(columns)
    for label, size in sizes.items():
        if label in joined or size == 1:
            continue
        for names in (AXES[:size], tuple(map(str, range(size)))):
            parts = [f"{label}.{name}" for name in names]
            if len(parts) == size and all(part in columns for part in parts):
                joined[label] = np.column_stack([columns[part] for part in parts])
    return joined


Columns = dict[str, np.ndarray]
"""(count, size) float64 values of each quantity, by label."""


def draw(spec: Spec, counts: Sequence[int] = ()) -> Columns:
    """Draw the design of a spec.

    Random and Sobol sequences continue when a data set grows; each extension of a Latin hypercube is a Latin
    hypercube of its own.

    Args:
        spec: The spec.
        counts: Sample counts before each extension.

    Raises:
        DatasetError: A value is not finite, or a table or function does not provide the expected columns.
    """
    table = spec.table
    if table.design == "grid":
        columns = _grid_columns(table.vary)
    elif table.design == "table":
        assert table.table is not None
        path = resolve_path(spec.folder, table.table)
        columns = _validate_columns(read_columns(path, spec.sizes), spec.sizes, f"{path}", None)
    elif table.design == "function":
        assert table.count is not None
        function = spec.function or _import_function(table.function or "", spec)
        raw_columns = _call_function(function, table.count, table.seed)
        columns = _validate_columns(raw_columns, spec.sizes, "the design's function", table.count)
    else:
        assert table.count is not None
        size = sum(spec.sizes.values())
        unit = (
            _latin_hypercubes(table.count, counts, size, table.seed)
            if table.design == "latin_hypercube"
            else _unit_cube_points(table.design, table.count, size, table.seed)
        )
        columns = _scale_to_ranges(table.vary, spec.sizes, unit)
    _check_finite(columns)
    return columns


def _unit_cube_points(design: str, count: int, size: int, seed: int) -> np.ndarray:
    """(count, size) points in the unit cube."""
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    if design == "random":
        return rng.random((count, size))
    power = int(np.ceil(np.log2(max(count, 1))))  # leading points of a full power of two are even
    return np.asarray(qmc.Sobol(size, rng=rng).random_base2(power))[:count]


def _latin_hypercubes(count: int, counts: Sequence[int], size: int, seed: int) -> np.ndarray:
    """(count, size) points of one Latin hypercube per extension of the data set."""
    from scipy.stats import qmc

    ends = [0, *(before for before in counts if before < count), count]
    seeds: list[Any] = [seed, *([seed, k] for k in range(1, len(ends) - 1))]
    parts = [
        qmc.LatinHypercube(size, rng=np.random.default_rng(own)).random(last - first)
        for own, first, last in zip(seeds, ends, ends[1:], strict=False)
    ]
    return np.concatenate(parts)


def _scale_to_ranges(varied: list[VaryTable], sizes: Mapping[str, int], unit: np.ndarray) -> Columns:
    """Map unit cube points to ranges or listed values of quantities."""
    columns, first = {}, 0
    for vary in varied:
        size = sizes[vary.label]
        t = unit[:, first : first + size]
        first += size
        if vary.values is not None:
            values = np.array(vary.values, float).reshape(len(vary.values), size)
            columns[vary.label] = values[np.minimum((t[:, 0] * len(values)).astype(int), len(values) - 1)]
        else:
            columns[vary.label] = _interpolate_range(vary, t)
    return columns


def _interpolate_range(vary: VaryTable, t: np.ndarray) -> np.ndarray:
    assert vary.range is not None
    low, high = (np.atleast_1d(np.array(end, float)) for end in vary.range)
    if vary.scale == "log":
        values = np.exp(np.log(low) + t * (np.log(high) - np.log(low)))
    else:
        values = low + t * (high - low)
    return np.clip(values, low, high)


def _grid_columns(varied: list[VaryTable]) -> Columns:
    """Full factorial design; the last quantity changes fastest."""
    axes = [_grid_values(vary) for vary in varied]
    rows = list(product(*(range(len(axis)) for axis in axes)))
    numbers = np.array(rows, int).reshape(len(rows), len(axes))
    return {vary.label: axis[numbers[:, k]] for k, (vary, axis) in enumerate(zip(varied, axes, strict=True))}


def _grid_values(vary: VaryTable) -> np.ndarray:
    if vary.values is not None:
        return np.array(vary.values, float).reshape(len(vary.values), -1)
    assert vary.steps is not None
    t = np.linspace(0, 1, vary.steps) if vary.steps > 1 else np.array([0.5])
    return _interpolate_range(vary, t[:, None])


def _import_function(text: str, spec: Spec) -> Function:
    """Import the design function "module:name"; the module may lie in the folder of the spec."""
    module, _, name = text.partition(":")
    folder = str(spec.folder.resolve())
    sys.path.insert(0, folder)
    try:
        function = getattr(import_module(module), name or "design")
    except Exception as error:  # importing a user's module may raise anything
        raise DatasetError(
            f"{spec.path}: function: {text!r} cannot be imported ({type(error).__name__}: {error}); "
            "write 'module:name' of a module that is installed or next to the spec."
        ) from error
    finally:
        sys.path.remove(folder)
    if not callable(function):
        raise DatasetError(
            f"{spec.path}: function: {text!r} must be a function, got {format_value(function)}."
        )
    return function


def _call_function(function: Function, count: int, seed: int) -> Any:
    """Call a design function of the user; errors name the line that raised them."""
    try:
        return function(count, np.random.default_rng(seed))
    except Exception as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        name = getattr(function, "__name__", format_value(function))
        raise DatasetError(
            f"the design's function {name}({count}, generator) failed in line {last.lineno} of "
            f"{Path(last.filename).name}, {last.line!r}: {type(error).__name__}: {error}"
        ) from error


def _validate_columns(raw_columns: Any, sizes: Mapping[str, int], whose: str, count: int | None) -> Columns:
    """Validate columns provided by the user."""
    if not isinstance(raw_columns, Mapping):
        raise DatasetError(
            f"{whose} must return a dictionary with an array for each of {comma_list(sizes)}; got "
            f"{format_value(raw_columns)}."
        )
    missing = [label for label in sizes if label not in raw_columns]
    if missing:
        raise DatasetError(
            f"{whose} has no column for {comma_list(missing)}; it has {comma_list(map(str, raw_columns))}."
        )
    columns = {}
    for label, size in sizes.items():
        try:
            values = np.asarray(raw_columns[label], float)
        except (TypeError, ValueError) as error:
            raise DatasetError(f"{label!r} of {whose} must be numbers: {error}.") from None
        columns[label] = values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
        if columns[label].shape[1] != size:
            raise DatasetError(f"{label!r} takes {size} numbers; {whose} has {columns[label].shape[1]}.")
    lengths = {label: len(values) for label, values in columns.items()}
    if len(set(lengths.values())) != 1 or (count is not None and count not in lengths.values()):
        expected = "as many" if count is None else f"{count:,}"
        raise DatasetError(f"{whose} must have {expected} values for every quantity; it has {lengths}.")
    return columns


def _check_finite(columns: Columns) -> None:
    for label, values in columns.items():
        if len(values) == 0:
            raise DatasetError(f"the design has no samples: there are no values for {label!r}.")
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(wrong):
            raise DatasetError(
                f"sample {wrong[0]} of the design has {values[wrong[0]].tolist()} for {label!r}; values "
                f"must be finite."
            )
