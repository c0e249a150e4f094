"""Material classes with equal names have separate compiled kernels."""

import numpy as np
import pytest
from problems import twisted

import supple
from supple.materials import Isotropic


def neo_hookean(factor, called):
    """Neo-Hookean material with a scaled shear modulus."""

    def psi(self, I1, J):
        mu = factor * self.mu
        return 0.5 * mu * (I1 - 3) + 0.5 * (self.lam + mu) * (J - 1) ** 2 - mu * (J - 1)

    return type(called, (Isotropic,), {"__slots__": (), "__module__": __name__, "psi": psi})


def after_three_sweeps(kind):
    scene = twisted(kind(young=1e3, poisson=0.3), cells=2)
    return supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-12, max_iterations=3).positions


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("called", ["NeoHookean", "Edited"])
def test_classes_with_equal_names_compute_their_own_psi(called):
    first = supple.NeoHookean if called == "NeoHookean" else neo_hookean(1.0, called)
    before = after_three_sweeps(first)
    stiffer, otherwise_called = (neo_hookean(4.0, name) for name in (called, f"{called}ButStiffer"))
    actual, expected = after_three_sweeps(stiffer), after_three_sweeps(otherwise_called)
    np.testing.assert_array_equal(actual, expected)
    assert abs(actual - before).max() > 1e-3
    np.testing.assert_array_equal(after_three_sweeps(first), before)


def test_second_class_of_a_name_gets_a_number():
    materials = [neo_hookean(1.0, "Twice") for _ in range(3)]
    assert [kind.__name__ for kind in materials] == ["Twice", "Twice_2", "Twice_3"]
    assert supple.NeoHookean.__name__ == "NeoHookean"
