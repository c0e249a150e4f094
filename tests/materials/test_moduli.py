"""Elastic moduli as arguments: Young's modulus and Poisson's ratio, Lamé parameters, and other pairs."""

import copy
import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import POISSON, material

import supple
from supple.materials import MATERIALS, MEMBRANES, Isotropic, preset, stress_differential
from supple.materials.moduli import own_moduli
from supple.scene import SceneFileError, load_scene

BY_YOUNG_AND_POISSON = [name for name, kind in MATERIALS.items() if issubclass(kind, Isotropic)]

moduli = st.floats(1e-3, 1e12), st.floats(-0.99, 0.499)


@pytest.mark.parametrize("name", BY_YOUNG_AND_POISSON)
@given(young=moduli[0], poisson=moduli[1])
@settings(max_examples=30, deadline=None)
def test_young_and_poisson_round_trip_through_lame(name, young, poisson):
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


def test_parameters_may_vary_by_element():
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
def test_materials_can_be_copied_and_pickled(name):
    kind = material(name)
    for other in (pickle.loads(pickle.dumps(kind)), copy.deepcopy(kind), copy.copy(kind)):
        assert type(other) is type(kind)
        assert other == kind


LAWS = MATERIALS | MEMBRANES
E, NU = 3e5, 0.31
MU, LAM = E / (2 * (1 + NU)), E * NU / ((1 + NU) * (1 - 2 * NU))
KAPPA = LAM + 2 / 3 * MU
EQUIVALENT_MODULI = [
    {"young": E, "poisson": NU},
    {"E": E, "nu": NU},
    {"mu": MU, "lam": LAM},
    {"shear_modulus": MU, "lam": LAM},
    {"shear_modulus": MU, "bulk_modulus": KAPPA},
    {"mu": MU, "kappa": KAPPA},
]
"""Pairs of moduli of one solid."""

COMPOSITE_SHEAR_LAWS = {"mooney_rivlin": "c10 + c01", "ogden": "mu1 alpha1", "arruda_boyce": "locking"}
"""Laws whose shear modulus at rest depends on several parameters."""


def other_parameters(kind):
    """Example values of parameters other than elastic moduli."""
    own = own_moduli(kind)
    return {p.name: p.example for p in kind.parameters if p.default is None and p.name not in own}


def flat(made):
    return np.hstack(tuple(made))


@pytest.mark.parametrize("name", [name for name, kind in LAWS.items() if kind.isotropic])
def test_every_isotropic_law_takes_every_pair_of_moduli(name):
    kind = LAWS[name]
    if name in COMPOSITE_SHEAR_LAWS:
        assert kind.example(kappa=KAPPA).bulk_modulus == KAPPA
        with pytest.raises(TypeError, match=f"modulus at rest is .*{re.escape(COMPOSITE_SHEAR_LAWS[name])}"):
            kind.example(young=E, poisson=NU)
        return
    made = [kind(**pair, **other_parameters(kind)) for pair in EQUIVALENT_MODULI]
    for one in made[1:]:
        np.testing.assert_allclose(flat(one), flat(made[0]), rtol=1e-12)
        assert type(one) is kind
    rows = kind(young=np.array([E, 2 * E]), nu=NU, **other_parameters(kind))
    again = kind(mu=np.array([MU, 2 * MU]), lam=np.array([LAM, 2 * LAM]), **other_parameters(kind))
    for a, b in zip(rows, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name, kind in MATERIALS.items() if own_moduli(kind)])
def test_laws_of_a_pair_have_the_moduli_at_rest(name):
    """From second derivatives at rest, for laws without fibers and flow."""
    kind = MATERIALS[name]
    if not kind.isotropic:
        pytest.skip("fibers and flow have moduli of their own")
    made, rest = kind(E=E, nu=NU, **other_parameters(kind)), np.eye(3).ravel()
    shear, stretch = np.zeros(9), np.zeros(9)
    shear[1], stretch[0] = 1.0, 1.0
    assert stress_differential(made, tuple(rest), tuple(shear))[1] == pytest.approx(MU, rel=1e-9)
    assert stress_differential(made, tuple(rest), tuple(stretch))[0] == pytest.approx(LAM + 2 * MU, rel=1e-9)


@pytest.mark.parametrize("name", [name for name, kind in LAWS.items() if own_moduli(kind)])
@pytest.mark.parametrize(
    "pair", [{"young": 1e5, "mu": 1e4}, {"lam": 1e4, "kappa": 1e5}, {"lam": 1e4}, {"nu": 0.3, "kappa": 1e5}]
)
def test_refusal_of_other_pairs_names_accepted_ones(name, pair):
    kind = LAWS[name]
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__} needs young and poisson, mu and lam, or shear_mod"
    ):
        kind(**pair, **other_parameters(kind))


def test_one_modulus_by_two_names_is_refused():
    for twice in ({"young": 1e5, "E": 1e5, "nu": 0.3}, {"mu": 1e4, "shear_modulus": 1e4, "kappa": 1e5}):
        for kind in (supple.NeoHookean, supple.materials.Gent):
            with pytest.raises(TypeError, match="twice"):
                kind(**twice, **other_parameters(kind))


@pytest.mark.parametrize(
    "given",
    [{"mu": -1.0, "lam": 1.0}, {"mu": 1.0, "kappa": 0.0}, {"mu": 1.0, "lam": -1.0}, {"E": 1.0, "nu": 0.5}],
)
@pytest.mark.parametrize("name", ["corotated", "gent", "yeoh", "plane_stress_stvk", "plastic_hencky"])
def test_wrong_moduli_are_refused_by_every_law(name, given):
    with pytest.raises(ValueError, match="must"):
        LAWS[name](**given, **other_parameters(LAWS[name]))


FILE = """
gravity = [0, 0, 0]
[[{body}]]
mesh = {{ {mesh} }}
{key} = {{ {name} = {{ {values} }} }}
"""


@pytest.mark.parametrize("name", LAWS)
def test_scene_files_take_the_same_pairs(name, tmp_path):
    kind, path = LAWS[name], tmp_path / "scene.toml"
    own = own_moduli(kind)
    solid = ("solid", "block = { cells = [1, 1, 1] }", "material")
    body, mesh, key = ("cloth", "sheet = { cells = 2 }", "membrane") if kind.thin else solid

    def made(given):
        values = ", ".join(f"{each} = {json.dumps(value)}" for each, value in given.items())
        path.write_text(
            FILE.format(body=body, mesh=mesh, key=key, name=name, values=values), encoding="utf-8"
        )
        return load_scene(path).scene.bodies[0].material

    if own:
        for pair in EQUIVALENT_MODULI:
            given = pair | other_parameters(kind)
            assert made(given) == kind(**given)
    else:
        with pytest.raises(SceneFileError, match=r"must have|unknown key"):
            made(other_parameters(kind) | {"E": E, "nu": NU})


def test_presets_accept_aliases_of_parameters():
    assert preset("skin", E=1e5).material == supple.NeoHookean(young=1e5, poisson=0.49)
