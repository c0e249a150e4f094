"""How far steps go."""

import numpy as np
import pytest

from supple.solvers.newton_methods.line_search import ARMIJO, Start, backtrack, expand


class Valley:
    """A potential of one number x."""

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
def test_the_energy_falls_as_promised(optimum):
    valley, reached = search(lambda x: (x - optimum) ** 2, 2 * optimum)
    assert valley.x == reached.t
    assert reached.energy <= optimum**2 - ARMIJO * reached.t * 2 * optimum


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_infinite_energies_are_no_decrease(bad):
    """Beyond a barrier nothing counts."""
    _, reached = search(lambda x: (x - 1) ** 2 if x < 0.2 else bad, 2.0)
    assert reached.t == 0.125


def test_uphill_is_refused():
    assert search(lambda x: x, 1.0)[1] is None


def test_in_rounding_the_residual_decides():
    """Where energies say nothing, the first t with smaller forces is taken; none if there is none."""
    flat = {"rounding": 1.0, "residual": 0.3}
    assert search(lambda x: 1e-3 * x, 1.0, **flat)[1].t == 0.25
    assert search(lambda x: 1e-3 * x, 1.0, residual_at=lambda x: 5.0, **flat)[1] is None


def test_in_rounding_other_means_may_tell_that_the_first_step_was_good():
    """Only there, and only of the first: further in, and where energies tell, they are not asked."""
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
def test_steps_are_doubled_as_long_as_that_pays(optimum):
    valley, reached = search(lambda x: (x - optimum) ** 2, 2 * optimum)
    start = Start(optimum**2, 1e-12, 1.0)
    longer = expand(valley, valley.move, start, reached)
    assert valley.x == longer.t >= reached.t
    assert longer.energy <= reached.energy
    assert longer.t == {1.0: 1.0, 10.0: 8.0, 1e6: 64.0}[optimum]
