"""Loads, stores, gathers and scatters of packs address the right records."""

import numpy as np
import pytest
from pack_kernels import copy_records, copy_rows, gather_into
from problems import PRECISIONS

from supple.kernels import RECORD, lanes_of

VERTICES = 100


@pytest.fixture(params=PRECISIONS)
def dtype(request):
    return np.dtype(request.param)


def records(dtype):
    return np.random.default_rng(0).normal(size=(VERTICES, RECORD)).astype(dtype)


def test_load_and_store_round_trip(dtype):
    x = np.random.default_rng(0).normal(size=(4, 3, lanes_of(dtype))).astype(dtype)
    out = np.zeros_like(x)
    copy_rows(x, out)
    np.testing.assert_array_equal(out, x)


def test_gather_reads_the_records_of_a_slot(dtype):
    x = records(dtype)
    ids = np.random.default_rng(1).integers(0, VERTICES, (5, 2, lanes_of(dtype))).astype(np.int32)
    out = np.empty((5, 3, lanes_of(dtype)), dtype)
    gather_into(x, ids, out)
    np.testing.assert_array_equal(out, x[ids[:, 1], :3].transpose(0, 2, 1))


def test_scatter_writes_only_the_named_records(dtype):
    x, lanes = records(dtype), lanes_of(dtype)
    chosen = np.random.default_rng(2).permutation(VERTICES)[: 4 * lanes]
    out = np.full_like(x, 9)
    copy_records(x, chosen.reshape(2, 2, lanes).astype(np.int32), out)
    np.testing.assert_array_equal(out[chosen, :3], x[chosen, :3])
    np.testing.assert_array_equal(np.delete(out, chosen, axis=0), 9)
