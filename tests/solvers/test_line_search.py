"""Step lengths of the line search."""

import numpy as np
import pytest

from supple.solvers.newton_methods.line_search import ARMIJO, Start, backtrack, expand


class Valley:
    """A potential of one variable x."""

    def __init__(self, energy, residual=lambda x: abs(x)):
        self.x, self._energy, self._residual = 0.0, energy, residual

    def energy(self):
        return self._energy(self.x)

    def balance(self):
        return type("Balance", (), {"residual": self._residual(self.x)})

    def move(self, t):
        self.x = t


def search(energy, slope, rounding=1e-15, residual=1.0, **options):
    valley = Valley(energy, options.pop("residual_at", abs))
    return valley, backtrack(valley, valley.move, Start(energy(0.0), rounding, residual), slope, **options)


@pytest.mark.parametrize("optimum", [2.0, 0.7, 0.1, 1e-4])
def test_energy_decreases_sufficiently(optimum):
    valley, reached = search(lambda x: (x - optimum) ** 2, 2 * optimum)
    assert valley.x == reached.t
    assert reached.energy <= optimum**2 - ARMIJO * reached.t * 2 * optimum


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_infinite_energies_are_rejected(bad):
    """Steps beyond a barrier are shortened."""
    _, reached = search(lambda x: (x - 1) ** 2 if x < 0.2 else bad, 2.0)
    assert reached.t == 0.125


def test_uphill_is_refused():
    assert search(lambda x: x, 1.0)[1] is None


def test_residual_decides_within_rounding():
    """If energies differ by rounding, the first t with smaller forces is taken, or none."""
    flat = {"rounding": 1.0, "residual": 0.3}
    assert search(lambda x: 1e-3 * x, 1.0, **flat)[1].t == 0.25
    assert search(lambda x: 1e-3 * x, 1.0, residual_at=lambda x: 5.0, **flat)[1] is None


def test_full_step_is_accepted_by_another_criterion_within_rounding():
    """The criterion is used only for the first step and only within rounding of the energy."""
    requests = []

    def makes_progress(solution):
        requests.append(solution)
        return solution

    flat = {"rounding": 1.0, "residual": 0.3, "residual_at": lambda x: 5.0}
    assert search(lambda x: 1e-3 * x, 1.0, makes_progress=lambda: makes_progress(True), **flat)[1].t == 1.0
    assert search(lambda x: 1e-3 * x, 1.0, makes_progress=lambda: makes_progress(False), **flat)[1] is None
    search(lambda x: (x - 0.7) ** 2, 1.4, makes_progress=pytest.fail)
    assert requests == [True, False]


@pytest.mark.parametrize("optimum", [1.0, 10.0, 1e6])
def test_steps_are_doubled_while_the_energy_falls(optimum):
    valley, reached = search(lambda x: (x - optimum) ** 2, 2 * optimum)
    start = Start(optimum**2, 1e-12, 1.0)
    longer = expand(valley, valley.move, start, reached)
    assert valley.x == longer.t >= reached.t
    assert longer.energy <= reached.energy
    assert longer.t == {1.0: 1.0, 10.0: 8.0, 1e6: 64.0}[optimum]
