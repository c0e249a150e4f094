"""What materials are made with, moduli of Young and Poisson or Lamé's, and how they are kept."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import POISSON, material

from supple.materials import MATERIALS, Isotropic

BY_YOUNG_AND_POISSON = [name for name, kind in MATERIALS.items() if issubclass(kind, Isotropic)]

moduli = st.floats(1e-3, 1e12), st.floats(-0.99, 0.499)


@pytest.mark.parametrize("name", BY_YOUNG_AND_POISSON)
@given(young=moduli[0], poisson=moduli[1])
@settings(max_examples=30, deadline=None)
def test_young_and_poisson_survive_the_way_through_lame(name, young, poisson):
    kind = MATERIALS[name](young=young, poisson=poisson)
    assert kind.young == pytest.approx(young, rel=1e-9)
    assert kind.poisson == pytest.approx(poisson, abs=1e-9)
    again = MATERIALS[name].from_lame(kind.mu, kind.lam)
    assert again == kind


def test_lame_parameters_of_a_known_material():
    """Steel: E = 210 GPa, ν = 0.3 has μ = 80.77 GPa and λ = 121.15 GPa."""
    steel = material("corotated", 210e9, 0.3)
    assert steel.mu == pytest.approx(80.769e9, rel=1e-4)
    assert steel.lam == pytest.approx(121.154e9, rel=1e-4)


@pytest.mark.parametrize("young", [0, -1, np.nan, np.inf, [1e3, -1e3]])
def test_wrong_youngs_moduli_are_refused(young):
    with pytest.raises(ValueError, match="young must be positive and finite"):
        material("corotated", young=young)


@pytest.mark.parametrize("poisson", [0.5, -1, 0.7, np.nan, [0.3, 0.5]])
def test_wrong_poissons_ratios_are_refused(poisson):
    with pytest.raises(ValueError, match=r"poisson must lie between -1 and 0\.5"):
        material("corotated", poisson=poisson)


@pytest.mark.parametrize(("mu", "lam"), [(0, 1), (-1, 1), (1, -0.7), (np.nan, 1), (1, np.inf)])
def test_wrong_lame_parameters_are_refused(mu, lam):
    with pytest.raises(ValueError, match=r"mu must be positive|lam must be finite|Lamé parameters must"):
        MATERIALS["corotated"].from_lame(mu, lam)


def test_parameters_may_vary_from_element_to_element():
    young = np.array([1e3, 2e3, 3e3])
    kind = material("neo_hookean", young=young)
    assert kind.mu.shape == kind.lam.shape == (3,)
    np.testing.assert_allclose(kind.young, young)
    np.testing.assert_allclose(kind.poisson, POISSON)
    for i, E in enumerate(young):
        varied = material("neo_hookean", young=E)
        assert (kind.mu[i], kind.lam[i]) == pytest.approx((varied.mu, varied.lam))


def test_parameters_are_keyword_only_and_printed():
    with pytest.raises(TypeError):
        MATERIALS["corotated"](1e3, 0.3)
    assert repr(material("corotated", 1e3, 0.25)) == "Corotated(young=1000.0, poisson=0.25)"


@pytest.mark.parametrize("name", MATERIALS)
def test_materials_can_be_copied_and_sent_to_other_processes(name):
    kind = material(name)
    for other in (pickle.loads(pickle.dumps(kind)), copy.deepcopy(kind), copy.copy(kind)):
        assert type(other) is type(kind)
        assert other == kind
