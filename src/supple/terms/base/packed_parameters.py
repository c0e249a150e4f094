"""Material parameters of elements in kernels: packed copies of one table per term, one per arrangement.

A uniform parameter stays a number. A parameter per element is an array (rows, size, lanes) next to the rest
data of its row; gathering it by element number would cost 4 to 13 % of a sweep (docs/design/parameters.md).
`refresh_material` writes new values into all copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import (
    do,
    item_number,
    kernel,
    lane_stride,
    like,
    overload_by_type,
    pack_like,
    parallel_for,
    stream,
)
from supple.materials import Material, is_per_element, table_of


def pack_material(material: Material, elements: np.ndarray, dtype: np.dtype) -> Material:
    """Pack a material for rows whose lanes hold the given elements (rows, lanes)."""

    def pack(value: Any) -> Any:
        if not is_per_element(value):
            return value
        return _by_rows(table_of(value, len(value)).astype(dtype), elements)

    return type(material)._make(map(pack, material))


def _by_rows(table: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Pack a table (..., m, size) to (..., rows, size, lanes).

    Empty lanes repeat the first element's values, which avoids division by 0.
    """
    return np.ascontiguousarray(np.swapaxes(table[..., np.maximum(elements, 0), :], -1, -2))


def of_elements(material: Material, elements: np.ndarray) -> Material:
    """Return the material of a subset of elements (k,), in that order."""
    return type(material)._make(value[elements] if is_per_element(value) else value for value in material)


def have_same_kernels(old: Material, new: Material) -> bool:
    """True if two materials have the same class and the same parameters per element, so the same kernels."""
    return type(old) is type(new) and [*map(is_per_element, old)] == [*map(is_per_element, new)]


class ParameterPacking(NamedTuple):
    """Pack a parameter table (m, size) to (rows, size, lanes); empty lanes repeat the first element.

    Attributes:
        table: (m, size) values per element.
        elements: (rows, lanes) element of each lane, or -1.
        out: (rows, size, lanes) packed values.
    """

    table: Any
    elements: Any
    out: Any


@do.of(ParameterPacking)
def _pack_parameter(work, item):
    row = item_number(item)
    lane, step = lane_stride(item)
    while lane < work.elements.shape[1]:
        e = max(work.elements[row, lane], 0)
        for c in range(work.table.shape[1]):
            work.out[row, c, lane] = work.table[e, c]
        lane += step


@kernel
def pack_parameters(team, table, elements, out):
    """Execute `ParameterPacking` for all rows."""
    parallel_for(team, 0, 0, len(elements), ParameterPacking(table, elements, out))


def refresh_material(rows: Any, material: Material, elements: np.ndarray, run: Callable[..., None]) -> Any:
    """Replace the material in packed data by another of the same kind.

    Parameters per element are written into the existing arrays in device memory.

    Args:
        rows: Packed data.
        material: New material.
        elements: (rows, lanes) element of each lane.
        run: Function that runs a kernel.
    """

    def refresh(old: Any, value: Any) -> Any:
        if not is_per_element(value):
            return value
        run(pack_parameters, 1, np.ascontiguousarray(table_of(value, len(value))), elements, old)
        return old

    return rows._replace(material=type(material)._make(map(refresh, rows.material, material)))


def pack_materials(
    materials: Sequence[Material], elements: np.ndarray, count: int, dtype: np.dtype
) -> Material:
    """Pack the materials of a batch of states.

    Args:
        materials: Material of each batch member.
        elements: (rows, lanes) element of each lane.
        count: Number of elements.
        dtype: Working precision.

    Returns:
        Material with parameters (batch, rows, size, lanes); one row for parameters uniform in every member.
    """

    def pack(values: tuple) -> np.ndarray:
        if not any(map(is_per_element, values)):
            tables = np.array(values, dtype).reshape(len(values), 1, -1, 1)
            return np.repeat(tables, elements.shape[-1], axis=-1)
        return _by_rows(np.stack([table_of(value, count) for value in values]).astype(dtype), elements)

    return type(materials[0])._make(map(pack, zip(*materials, strict=True)))


def load_material(material: Any, row: Any, example: Any) -> Any:
    """Load the material of a row as packs of the example's type: arrays at the row, numbers broadcast."""
    return material


@overload_by_type(load_material)
def _load_material(material, row, example):
    """Compose the loader from the type of each field: a number, a tuple of numbers, or an array."""
    return _loader(tuple(map(_field, range(len(material)), tuple(material), material.instance_class.stored)))


def _field(k: int, kind: Any, parameter: Any) -> str:
    if isinstance(kind, types.Array):
        parts = [f"stream(material[{k}], row, {i})" for i in range(parameter.size)]
    elif isinstance(kind, types.BaseTuple):
        parts = [f"pack_like(material[{k}][{i}], example)" for i in range(parameter.size)]
    else:
        return f"pack_like(material[{k}], example)"
    return parts[0] if parameter.size == 1 else f"({', '.join(parts)})"


@cache
def _loader(fields: tuple[str, ...]) -> Any:
    text = f"lambda material, row, example: like(material, ({', '.join(fields)},))"
    return eval(text, {"stream": stream, "pack_like": pack_like, "like": like})
