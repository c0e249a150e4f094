"""Sums and maxima over the state equal those of NumPy, bitwise for any number of threads."""

from itertools import pairwise

import numpy as np
import pytest

from supple.kernels import kernel, run, threads_for
from supple.kernels.devices import same
from supple.kernels.emulated_gpu import run_lanewise
from supple.problem.reductions import PARTS, STATISTICS, add_up, cut, reduce_statistics


@kernel
def sum_up(team, values, parts, full_team):
    add_up(team, 0, values, parts, full_team)


@kernel
def measure_all(team, net, u, sizes, softness, cuts, parts, measures):
    reduce_statistics(team, 0, net, u, sizes, softness, cuts, parts, measures)


def on_every_team(kernel, records, *args):
    """Last argument of kernels as written with 1, 2 and 3 threads and lane by lane."""
    sums = []
    for threads in (1, 2, 3):
        run(kernel, threads, threads_for(2), *args)
        sums.append(args[-1].copy())
    run_lanewise(kernel, 2, np.zeros(1, np.int32), records, *args)
    return sums, args[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 3, PARTS + 7, 3 * PARTS])
def test_sums(rows, dtype):
    values = np.random.default_rng(rows).normal(size=(1, rows, 2, 32)).astype(dtype)
    sums, lanewise = on_every_team(sum_up, 1, values, np.zeros((1, 2, PARTS)), np.zeros((1, 2)))
    expected = values.sum(axis=(1, 3), dtype=float)
    np.testing.assert_allclose(sums[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lanewise, expected, rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(sums[0], other) for other in sums)


BODIES = {1: [1], 40: [3, 36, 1], 5000: [5000], 5001: [1, 2500, 2500]}
"""Vertices of bodies by their total number."""


def cuts_of(sizes):
    edges = np.cumsum([0, *sizes]).tolist()
    return cut(list(pairwise(edges)))


def memory_for(cuts):
    return np.zeros((1, STATISTICS, len(cuts.vertex) - 1)), np.zeros((1, len(cuts.part) - 1, STATISTICS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", BODIES)
def test_measures(n, dtype):
    """Of every body separately."""
    random, cuts = np.random.default_rng(n), cuts_of(BODIES[n])
    net, u, sizes = (random.normal(size=(n + 1, 4)).astype(dtype) for _ in range(3))
    sizes, softness = np.abs(sizes), random.random((1, n)).astype(dtype)
    for records in (net, u, sizes):
        records[:, 3], records[-1] = 1e9, 1e9  # padding, which must not count
    measures, lanewise = on_every_team(measure_all, n + 1, net, u, sizes, softness, cuts, *memory_for(cuts))
    for body, (first, last) in enumerate(pairwise(np.cumsum([0, *BODIES[n]]))):
        s, a = sizes[first:last, :2].astype(float).T
        squares = [(array.astype(float) ** 2).sum() for array in (net[first:last, :3], s, a)]
        expected = [*squares, np.abs(u[first:last, :3]).max(), (s * softness[0, first:last]).max()]
        np.testing.assert_allclose(measures[0][0, body], expected, rtol=1e-12)
        np.testing.assert_allclose(lanewise[0, body], expected, rtol=1e-12)
    assert all(np.array_equal(measures[0], other) for other in measures)


@pytest.mark.parametrize("sizes", [[1], [513], [100_000], [1] * 2000, [7, 100_000, 3]])
def test_cuts(sizes):
    """No part has vertices of two bodies, none is empty, and their number is close to the requested one."""
    cuts = cuts_of(sizes)
    assert (np.diff(cuts.vertex) > 0).all()
    assert cuts.vertex[-1] == sum(sizes)
    np.testing.assert_array_equal(cuts.vertex[cuts.part], np.cumsum([0, *sizes]))
    assert len(cuts.vertex) <= PARTS + len(sizes) + 1


def test_non_finite_forces_are_detected():
    net, cuts = np.zeros((9, 4)), cuts_of([2, 6])
    net[3, 1] = np.nan
    args = net, np.zeros((9, 4)), np.zeros((9, 4)), np.zeros((1, 8)), cuts
    measures, _ = on_every_team(measure_all, 9, *args, *memory_for(cuts))
    assert np.isnan(measures[0][0, :, 0]).tolist() == [False, True]


def test_arguments_are_equal_for_identical_arrays_and_equal_numbers():
    a, b = np.zeros(3), np.zeros(3)
    assert same((a, (1, 2.0), None), (a, (1, 2.0), None))
    for other in (
        (b, (1, 2.0), None),
        (a, (1, 3.0), None),
        (a, (1, 2), None),
        (a, (1, 2.0, 3), None),
        (a, None),
    ):
        assert not same((a, (1, 2.0), None), other)
