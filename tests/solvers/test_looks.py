"""Vectorized checks of batch members equal single ones."""

import math

import numpy as np
import pytest

from supple.problem import Balances
from supple.solvers.newton_methods.rate_estimate import FIT_POINTS, BatchRateEstimates, RateEstimate


def random_sums(members, bodies, seed=0):
    rng = np.random.default_rng(seed)
    quantities = rng.uniform(0, 1, (members, bodies, 5)) ** 8
    quantities[1::7, 0, 0] = np.inf
    quantities[2::7, :, 1] = 0
    quantities[3::7, -1, 0] = np.nan
    quantities[4::7, :, 4] = 0
    return quantities


@pytest.mark.parametrize("bodies", [1, 3])
@pytest.mark.parametrize("acting", ["each", "all", "none"])
def test_balances_of_a_batch_equal_single_ones(bodies, acting):
    quantities = random_sums(40, bodies)
    rng = np.random.default_rng(1)
    acts = {"each": rng.random((40, bodies)) < 0.5, "all": np.ones((1, bodies), bool)}
    acts["none"] = ~acts["all"]
    balances = Balances(quantities, acts[acting], 0.1, 1e-3, np.arange(40, dtype=np.int32))
    assert list(balances) == list(range(40))
    for copy, one in balances.items():
        assert balances.finite[copy] == one.finite
        assert balances.relative_residual[copy] == pytest.approx(one.relative_residual, rel=1e-15)
        assert balances.residual[copy] == pytest.approx(one.residual, rel=1e-15, nan_ok=True)
    assert (balances.relative_residual == 0).any()
    assert math.inf in balances.relative_residual


def test_balances_copy_their_sums():
    quantities = random_sums(3, 1)
    balances = Balances(quantities, np.ones((1, 1), bool), 0.1, 1e-3, np.arange(3, dtype=np.int32))
    before = quantities[0, 0, 0]
    quantities[:] = 0
    assert balances.residual[0] == math.sqrt(before)


def test_rate_estimates_of_a_batch_equal_single_ones():
    rng = np.random.default_rng(2)
    relative_residuals = np.exp(-np.cumsum(rng.uniform(-0.3, 1, (12, 9)), axis=0))
    relative_residuals[5, ::2] = np.inf
    relative_residuals[:, 3] = 0.5
    targets = 10.0 ** rng.uniform(-8, -1, 9)
    many, each = BatchRateEstimates(9), [RateEstimate(target) for target in targets]
    many.target[:] = targets
    assert not many.remaining.any()
    for check, row in enumerate(relative_residuals):
        many.record(10 * check, row)
        for one, relative_residual in zip(each, row, strict=True):
            one.record(10 * check, float(relative_residual))
        expected = [one.remaining if check + 1 >= FIT_POINTS else 0.0 for one in each]
        np.testing.assert_allclose(many.remaining, expected, rtol=1e-12)
    assert np.isinf(many.remaining[3])


def test_residual_rise_in_the_first_sweeps_keeps_sweeping():
    """Residuals observed with 32,768 vertices, which reach 1e-4 after 550 sweeps."""
    estimates = BatchRateEstimates(1)
    for check, relative_residual in enumerate((5.8e-2, 6.3e-2, 4.5e-2, 3.6e-2, 2.9e-2), 1):
        estimates.record(10 * check, np.array([relative_residual]))
        assert estimates.remaining[0] < 1000
