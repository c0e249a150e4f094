"""Rows of exchanged stencils: kernels write the rows of the terms."""

import numpy as np
import pytest

from supple.kernels import HOST
from supple.ordering import DynamicElements, batch_elements, row_arrays
from supple.ordering.batch_moves import Fill, fill_rows, stencil_tables
from supple.terms import Barriers, Incidence, NodalForces, PenaltyContacts, Springs
from supple.terms.contact.barrier_friction import FrictionData
from supple.terms.contact.penalty import NUMBERS

N = 50
POINTS = np.random.default_rng(0).normal(size=(N, 3))


def stencils(random, count, corners):
    return np.array([random.permutation(N)[:corners] for _ in range(count)], np.int32).reshape(-1, corners)


def springs(random, count):
    pairs = stencils(random, count, 2)
    return Springs(pairs, random.random(count), random.random((count, 1)), POINTS, 40)


def pull_batch(random, count):
    return NodalForces(stencils(random, count, 1), random.normal(size=(count, 3)), 40)


def frictional(random, count):
    """Frictional contacts, some with a repeated vertex."""
    vertices = stencils(random, count, 6)
    vertices[::3, 5] = vertices[::3, 0]
    numbers = random.normal(size=(count, NUMBERS))
    return PenaltyContacts(vertices, random.normal(size=(count, 6)), numbers, 40)


def barriers(random, count, rubs=None):
    crossing = random.random(count) < 0.5
    numbers = random.random(count), random.random(count), np.arange(count)
    return Barriers(stencils(random, count, 4), crossing, *numbers, POINTS, 40, rubs)


def frictional_barriers(random, count):
    began, slip = random.normal(size=(count, 4, 3)), random.normal(size=(count, 3))
    return barriers(random, count, FrictionData(began, slip, random.random(count), random.random(count)))


TERM_MAKERS = {f.__name__: f for f in (springs, pull_batch, frictional, barriers, frictional_barriers)}
EACH_TERM = pytest.mark.parametrize("kind", TERM_MAKERS)
PRECISIONS = pytest.mark.parametrize("precision", ["float32", "float64"])


@EACH_TERM
@PRECISIONS
def test_filled_incidences_equal_the_rows_of_terms(kind, precision):
    """Bitwise, also in lanes without an incidence."""
    random, rows, lanes = np.random.default_rng(1), 12, 8
    term = TERM_MAKERS[kind](random, 20)
    corners = term.vertices.shape[1]
    chosen = random.permutation(20 * corners)[:60]
    slots = random.permutation(rows * lanes)[: len(chosen)]
    (row, lane), own = np.divmod(slots, lanes), random.integers(0, N, (rows, lanes)).astype(np.int32)
    incidences = Incidence(chosen // corners, chosen % corners, row, lane, own, np.dtype(precision))
    expected = row_arrays(term.rows(incidences, np.zeros(1, np.int64)))
    slot = np.zeros((rows, lanes), np.int8)
    slot[row, lane] = incidences.slot
    start, batches = np.arange(0, rows + 1, 1), np.arange(rows, dtype=np.int32)
    arrays = tuple(np.full_like(array, 7) for array in expected)
    tables = stencil_tables(term, np.dtype(precision))
    work = Fill(arrays, tables, start, own[:, None], incidences.elements, slot, batches)
    HOST.run(fill_rows, 1, work)
    for array, values in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, values)


@EACH_TERM
def test_exchanged_elements_equal_new_batches(kind):
    """Independent of the previous elements."""
    random, how = np.random.default_rng(2), (np.dtype("float32"), N, 16)
    changing = DynamicElements(TERM_MAKERS[kind](random, 5), *how)
    for count in (37, 40, 11, 0, 20):
        term = TERM_MAKERS[kind](random, count)
        changing.set_term(term, HOST)
        expected, actual = batch_elements(term, *how), changing.elements
        np.testing.assert_array_equal(actual.own, expected.own)
        np.testing.assert_array_equal(actual.element, expected.element)
        for array, values in zip(row_arrays(actual.rows), row_arrays(expected.rows), strict=True):
            np.testing.assert_array_equal(array, values)
