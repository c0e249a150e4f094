"""Batches of equilibria that sweeps alone would not bring to rest, on a device that is the CPU."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401

import supple
from supple import Outcome

pytestmark = pytest.mark.usefixtures("fake_device")


def slender():
    """A bar of 30:1:1 that its weight bends: long waves, which sweeps hardly move."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    bar = supple.bar((30, 1, 1), size=(3, 0.1, 0.1))
    body = scene.add_solid(bar, supple.StableNeoHookean(young=3e6, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene, body


def stiffer(body, factors):
    young = 3e6 * np.asarray(factors)
    return supple.Variation(materials={body: supple.StableNeoHookean(young=young, poisson=0.3)})


def uneven(body):
    return np.linspace(1, 3, len(body.mesh.tets))


VARIATIONS = {
    "loads": lambda body: [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0, 0.1)],
    "materials": lambda body: [stiffer(body, 1.0), stiffer(body, 5.0), stiffer(body, 0.5)],
    "fields": lambda body: [supple.Variation(), stiffer(body, uneven(body)), stiffer(body, 2.0)],
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("varied", VARIATIONS)
def test_batches_arrive_where_single_solves_do(varied, precision):
    scene, body = slender()
    chosen = VARIATIONS[varied](body)
    batch, single = (
        list(supple.equilibria(scene, chosen, device=device, precision=precision))
        for device in ("cuda", "cpu")
    )
    assert np.ptp([r.positions for r in single], axis=0).max() > 0.1
    assert any("then alone" in r.report.notes for r in batch)
    for together, alone in zip(batch, single, strict=True):
        assert together.report.outcome is alone.report.outcome is Outcome.CONVERGED
        assert together.report.imbalance <= 1e-4
        np.testing.assert_allclose(together.positions, alone.positions, atol=1e-3)
        if precision == "float64":
            assert together.report.energy == pytest.approx(alone.report.energy, rel=1e-4)
        if "then alone" in together.report.notes:
            assert together.report.certificate.worst.of_size <= 1e-4


def test_those_that_arrive_together_are_left_alone():
    """Only a bar whose load bends it goes on by itself."""
    scene, _ = slender()
    chosen = [supple.Variation(gravity=g) for g in ((0, -9.8, 0), (0, 0, 0))]
    bent, straight = supple.equilibria(scene, chosen, device="cuda")
    assert "then alone" in bent.report.notes
    assert "then alone" not in straight.report.notes
    assert straight.report.iterations < bent.report.iterations


@pytest.mark.parametrize("limit", [{"max_iterations": 40}, {"time_budget": 0.5}])
def test_limits_are_kept_together(limit):
    scene, _ = slender()
    chosen = [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0)]
    for result in supple.equilibria(scene, chosen, device="cuda", tolerance=1e-4, **limit):
        assert result.report.outcome in (Outcome.BUDGET_ITERATIONS, Outcome.BUDGET_TIME)
        assert "then alone" not in result.report.notes
