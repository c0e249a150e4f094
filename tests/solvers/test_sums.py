"""Sums and maxima over the state: what NumPy finds, the same bits for any number of threads."""

import numpy as np
import pytest

from supple.kernels import kernel, run, threads_for
from supple.kernels.device import same
from supple.kernels.lanewise import run_lanewise
from supple.problem.sums import PARTS, add_up, measure


@kernel
def sum_up(team, values, parts, whole):
    add_up(team, 0, values, parts, whole)


@kernel
def measure_all(team, net, u, sizes, softness, parts, figures):
    measure(team, 0, net, u, sizes, softness, parts, figures)


def on_every_team(kernel, records, *args):
    """What kernels write into their last argument, for 1, 2 and 3 threads and lane by lane."""
    found = []
    for threads in (1, 2, 3):
        run(kernel, threads, threads_for(2), *args)
        found.append(args[-1].copy())
    run_lanewise(kernel, 2, np.zeros(1, np.int32), records, *args)
    return found, args[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 3, PARTS + 7, 3 * PARTS])
def test_sums(rows, dtype):
    values = np.random.default_rng(rows).normal(size=(1, rows, 2, 32)).astype(dtype)
    found, lanewise = on_every_team(sum_up, 1, values, np.zeros((1, 2, PARTS)), np.zeros((1, 2)))
    expected = values.sum(axis=(1, 3), dtype=float)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lanewise, expected, rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "batches"), [(1, 1), (40, 3), (5000, 700)])
def test_figures(n, batches, dtype):
    random = np.random.default_rng(n)
    net, u = (random.normal(size=(n + 1, 4)).astype(dtype) for _ in range(2))
    net[:, 3] = u[:, 3] = 0
    net[-1] = u[-1] = 1e9  # padding, which must not count
    sizes, softness = random.random((1, batches, 2, 32)), random.random((1, batches, 32))
    sizes, softness = sizes.astype(dtype), softness.astype(dtype)
    memory = np.zeros((1, 5, PARTS)), np.zeros((1, 5))
    found, lanewise = on_every_team(measure_all, n + 1, net, u, sizes, softness, *memory)
    squares = [(array.astype(float) ** 2).sum() for array in (net[:-1], sizes[0, :, 0], sizes[0, :, 1])]
    expected = [*squares, np.abs(u[:-1]).max(), (sizes[0, :, 0].astype(float) * softness[0]).max()]
    np.testing.assert_allclose(found[0][0], expected, rtol=1e-12)
    np.testing.assert_allclose(lanewise[0], expected, rtol=1e-12)
    assert all(np.array_equal(found[0], other) for other in found)


def test_what_is_not_finite_is_seen():
    net = np.zeros((9, 4))
    net[3, 1] = np.nan
    args = net, np.zeros((9, 4)), np.zeros((1, 1, 2, 32)), np.zeros((1, 1, 32))
    found, _ = on_every_team(measure_all, 9, *args, np.zeros((1, 5, PARTS)), np.zeros((1, 5)))
    assert np.isnan(found[0][0, 0])


def test_arguments_are_the_same_where_they_are_one_object_or_equal_numbers():
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
