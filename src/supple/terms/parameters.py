"""Parameters of elements in kernels: copies of one table per term in every arrangement of its rows.

What is the same for all elements stays a number. What differs is an array (rows, size, lanes) beside the rest
data of its row, since to gather it by element number costs 4 to 13 % of a sweep (docs/design/parameters.md).
`refreshed` writes another table into those copies, so that nothing else needs to know that there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import (
    chosen_by_type,
    do,
    each_item,
    kernel,
    like,
    number,
    pack_like,
    stream,
    strides,
)
from supple.materials import Material, is_per_element, table_of


def placed(material: Material, elements: np.ndarray, dtype: np.dtype) -> Material:
    """What kernels get of a material, for rows whose lanes hold these elements (rows, lanes)."""

    def place(value: Any) -> Any:
        if not is_per_element(value):
            return value
        return _by_rows(table_of(value, len(value)).astype(dtype), elements)

    return type(material)._make(map(place, material))


def _by_rows(table: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """(..., rows, size, lanes) from a table (..., m, size); places without an element repeat the first one's,
    lest they divide by 0."""
    return np.ascontiguousarray(np.swapaxes(table[..., np.maximum(elements, 0), :], -1, -2))


def of_elements(material: Material, elements: np.ndarray) -> Material:
    """The material that some elements (k,) have, in that order."""
    return type(material)._make(value[elements] if is_per_element(value) else value for value in material)


def same_kind(old: Material, new: Material) -> bool:
    """Whether the same parameters are numbers and the same are arrays, so that the same kernels serve."""
    return type(old) is type(new) and [*map(is_per_element, old)] == [*map(is_per_element, new)]


class PlaceParameter(NamedTuple):
    """A parameter (rows, size, lanes) from a table (m, size), where lanes hold elements (rows, lanes): places
    without one repeat the first one's."""

    table: Any
    elements: Any
    out: Any


@do.of(PlaceParameter)
def _place_parameter(work, place):
    row = number(place)
    lane, step = strides(place)
    while lane < work.elements.shape[1]:
        e = max(work.elements[row, lane], 0)
        for c in range(work.table.shape[1]):
            work.out[row, c, lane] = work.table[e, c]
        lane += step


@kernel
def place_parameters(team, table, elements, out):
    """All rows of `PlaceParameter`."""
    each_item(team, 0, 0, len(elements), PlaceParameter(table, elements, out))


def refreshed(rows: Any, material: Material, elements: np.ndarray, run: Callable[..., None]) -> Any:
    """Rows with the parameters of another material of the same kind: what differs by element is written into
    the arrays that they have already, where kernels see these. run: runs a kernel."""

    def refresh(old: Any, value: Any) -> Any:
        if not is_per_element(value):
            return value
        run(place_parameters, 1, np.ascontiguousarray(table_of(value, len(value))), elements, old)
        return old

    return rows._replace(material=type(material)._make(map(refresh, rows.material, material)))


def several(materials: Sequence[Material], elements: np.ndarray, count: int, dtype: np.dtype) -> Material:
    """What kernels get where each copy of the state has its own material: (copies, rows, size, lanes), or one
    row for all where the parameter is uniform in every copy."""

    def place(values: tuple) -> np.ndarray:
        if not any(map(is_per_element, values)):
            tables = np.array(values, dtype).reshape(len(values), 1, -1, 1)
            return np.repeat(tables, elements.shape[-1], axis=-1)
        return _by_rows(np.stack([table_of(value, count) for value in values]).astype(dtype), elements)

    return type(materials[0])._make(map(place, zip(*materials, strict=True)))


def packed(material: Any, row: Any, example: Any) -> Any:
    """The material of a row as packs like the example: arrays are loaded at the row, numbers repeated."""
    return material


@chosen_by_type(packed)
def _packed(material, row, example):
    """A text of the fields, since each is a number, a tuple of numbers or an array of one or several."""
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
