"""Declared parameters of all materials."""

import copy
import pickle

import numpy as np
import pytest

from supple.materials import MATERIALS, Material, Parameter

COUPLED = ("ogden", "transverse_stvk", "orthotropic_stvk")
"""Materials with coupled parameters, none of which can reach its own bounds alone."""

DECLARED = [(name, p) for name, kind in MATERIALS.items() for p in kind.parameters]


def named(case):
    return "-".join(getattr(part, "name", part) for part in case)


def numbers(made):
    """All parameters of a material in one array."""
    return np.hstack(tuple(made)).tolist()


@pytest.mark.parametrize("name", MATERIALS)
def test_examples_return_their_parameters(name):
    kind = MATERIALS[name]
    made = kind.example()
    assert numbers(kind(**made.given())) == pytest.approx(numbers(made), rel=1e-12)
    assert [p.name for p in kind.parameters] == list(made.given())
    assert kind.of_stored(**made._asdict()) == made
    assert numbers(eval(repr(made), {kind.__name__: kind})) == pytest.approx(numbers(made), rel=1e-12)
    assert len(made) == len(kind.stored) == len(kind._fields)


@pytest.mark.parametrize("case", DECLARED, ids=named)
def test_open_bounds_are_excluded_and_closed_ones_included(case):
    name, p = case
    kind = MATERIALS[name]
    for bound in (p.above, p.below):
        if bound is not None:
            with pytest.raises(ValueError, match=rf"^{p.name} must "):
                kind.example(**{p.name: bound})
            if name not in COUPLED:
                kind.example(**{p.name: bound + (1e-6 if bound == p.above else -1e-6)})
    for bound in (p.at_least, p.at_most):
        if bound is not None:
            if name not in COUPLED:
                kind.example(**{p.name: bound})
            with pytest.raises(ValueError, match=rf"^{p.name} must "):
                kind.example(**{p.name: bound + (-1e-6 if bound == p.at_least else 1e-6)})


@pytest.mark.parametrize("case", DECLARED, ids=named)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, "1", None, [], [[1.0]], True, 1e200])
def test_invalid_numbers_are_refused_by_name(case, wrong):
    name, p = case
    with pytest.raises((ValueError, TypeError), match=p.name):
        MATERIALS[name].example(**{p.name: wrong})


@pytest.mark.parametrize("name", MATERIALS)
def test_unknown_and_missing_parameters_are_refused_by_name(name):
    kind = MATERIALS[name]
    first = kind.parameters[0].name
    given = kind.example().given()
    with pytest.raises(TypeError, match=first):
        kind(**{n: v for n, v in given.items() if n != first})
    with pytest.raises(TypeError, match=f"{first}x"):
        kind(**given, **{f"{first}x": 1})


@pytest.mark.parametrize("name", MATERIALS)
def test_equality_and_hash_depend_on_class_and_values(name):
    kind = MATERIALS[name]
    one, other = kind.example(), kind.example()
    assert one == other
    assert hash(one) == hash(other)
    assert all(one != k.example() for k in MATERIALS.values() if k is not kind)
    p = kind.parameters[0]
    assert one != kind.example(**{p.name: 2 * p.example})
    uneven = kind.example(**{p.name: np.full(4, p.example)})
    for copied in (pickle.loads(pickle.dumps(uneven)), copy.deepcopy(uneven)):
        assert copied == uneven
        assert hash(copied) == hash(uneven)
    with pytest.raises(ValueError, match="read-only"):
        uneven[0][0] = 1


class Everything(Material):
    """A material with one parameter of each kind."""

    __slots__ = ()
    parameters = (
        Parameter("number", "a number", at_least=0, at_most=1, default=0.5),
        Parameter("way", "a direction", kind="direction", example=(0, 0, 2.0)),
        Parameter("stretch", "a tensor", kind="tensor", default=np.eye(3)),
        Parameter("growth", "a symmetric tensor", kind="symmetric", default=np.eye(3)),
    )


def test_each_kind_is_stored_for_kernels():
    T = np.arange(9.0).reshape(3, 3)
    S = T + T.T
    made = Everything(way=(0, 3, 4), stretch=T, growth=S)
    assert tuple(made) == (
        0.5,
        (0.0, 0.6, 0.8),
        tuple(range(9)),
        (S[0, 0], S[1, 1], S[2, 2], S[0, 1], S[0, 2], S[1, 2]),
    )
    np.testing.assert_array_equal(made.given()["stretch"], T)
    np.testing.assert_array_equal(made.given()["growth"], S)
    vectors = Everything(way=np.ones((5, 3)), growth=np.tile(S, (5, 1, 1)))
    assert vectors.way.shape == (5, 3)
    assert vectors.growth.shape == (5, 6)
    assert vectors.number == 0.5
    np.testing.assert_allclose(np.linalg.norm(vectors.way, axis=1), 1)
    np.testing.assert_array_equal(vectors.given()["growth"][3], S)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"way": (0, 0, 0)}, "way is a direction and must not be zero"),
        ({"way": [(1, 0, 0), (0, 0, 0), (0, 0, 0)]}, "not be zero, got .* for tetrahedron 1 and 1 more"),
        ({"way": (1, 2)}, r"way must have shape \(3,\) for the whole body or \(m, 3\)"),
        ({"way": (1, np.nan, 2)}, "way must be finite"),
        ({"stretch": np.ones(9)}, r"stretch must have shape \(3, 3\) .* it has shape \(9,\)"),
        ({"growth": np.arange(9.0).reshape(3, 3)}, "growth must be symmetric"),
        ({"number": 1.5}, "number must lie between 0 and 1, got 1.5"),
        ({"number": np.ones(3), "way": np.ones((4, 3))}, "number has shape .3,. and way has shape .4, 3."),
    ],
)
def test_wrong_values_of_each_kind_are_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Everything.example(**given)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "a b"}, "a plain word"),
        ({"kind": "vector"}, "kind of a must be one of scalar"),
        ({"kind": "tensor", "above": 0}, "only scalar parameters can have bounds"),
        ({"above": 0, "example": -1}, "a must be positive"),
    ],
)
def test_wrong_declaration_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Parameter(**({"name": "a", "meaning": "something"} | wrong))


@pytest.mark.parametrize("name", MATERIALS)
def test_declarations_can_be_compared_and_hashed(name):
    """The live page has one control for equal declarations of several materials."""
    parameters = MATERIALS[name].parameters
    assert len({*parameters}) == len(parameters)
    assert all(parameters.count(p) == 1 for p in parameters)
