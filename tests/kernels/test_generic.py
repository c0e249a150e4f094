"""Functions that dispatch on the class of their first argument, in Python and in compiled code."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from supple.kernels import generic, like, where


class Square(NamedTuple):
    side: float


class Disk(NamedTuple):
    radius: float


class Tile(Square):
    """A subclass that inherits its implementation."""

    __slots__ = ()


class Line(NamedTuple):
    length: float


@generic
def area(shape, scale):
    """Area of a scaled shape."""


@area.of(Square)
def _square(shape, scale):
    return scale * scale * shape.side * shape.side


@area.of(Disk)
def _disk(shape, scale):
    return 3.0 * scale * scale * shape.radius * shape.radius


@njit
def compiled_area(shape, scale):
    return area(shape, scale)


@pytest.mark.parametrize(("shape", "expected"), [(Square(2.0), 36.0), (Disk(1.0), 27.0), (Tile(1.0), 9.0)])
def test_python_and_compiled_code_dispatch_equally(shape, expected):
    assert area(shape, 3.0) == expected
    assert compiled_area(shape, 3.0) == expected


def test_class_without_implementation_is_named():
    with pytest.raises(TypeError, match=r"area\(\) has no implementation for Line; add one with @area\.of"):
        area(Line(1.0), 1.0)
    with pytest.raises((TypeError, TypingError), match=r"area\(\) has no implementation for Line"):
        compiled_area(Line(1.0), 1.0)


def test_generic_functions_keep_their_documentation():
    assert area.__doc__ == "Area of a scaled shape."


@njit
def compiled_like(example, a):
    return like(example, (a,))


def test_like_makes_a_tuple_of_the_same_class():
    assert like(Disk(1.0), (2.0,)) == Disk(2.0)
    made = compiled_like(Disk(1.0), 2.0)
    assert isinstance(made, Disk)
    assert made == Disk(2.0)


@njit
def compiled_where(condition, a, b):
    return where(condition, a, b)


@pytest.mark.parametrize("choose", [where, compiled_where])
def test_select_on_scalars(choose):
    assert choose(True, 1.0, 2.0) == 1.0
    assert choose(np.nan > 0.0, 1.0, 2.0) == 2.0
