"""Values of fields for coloring."""

import numpy as np
import pytest
from view_models import bar_and_ball, bent

import supple
from supple.materials import psi
from supple.problem import Problem
from supple.view import FIELDS
from supple.view.fields import Step


@pytest.fixture(scope="module")
def model():
    return supple.scene.build_model(bar_and_ball(attached=True))


def values(name, model, positions, step=None):
    return FIELDS[name].values(model, positions, step)


def test_volume_ratio_of_a_scaled_body(model):
    np.testing.assert_allclose(values("volume_ratio", model, 2 * model.rest), 8.0)


def test_displacement_is_the_distance_from_rest(model):
    np.testing.assert_allclose(values("displacement", model, model.rest + np.array([0.3, 0, 0.4])), 0.5)


def test_energy_density_is_that_of_the_material(model):
    F = np.array([[1.2, 0.1, 0], [0, 0.9, 0.2], [0.1, 0, 1.1]])
    expected = psi(supple.Corotated(young=1e5, poisson=0.3), tuple(F.ravel()))
    np.testing.assert_allclose(values("energy_density", model, model.rest @ F.T), expected, rtol=1e-6)


@pytest.mark.parametrize("dynamic", [False, True])
def test_residual_is_the_derivative_of_the_potential(model, dynamic):
    x = bent(model.rest)
    step = Step(0.01, model.rest + 0.01) if dynamic else None
    residual = values("residual", model, x, step)
    assert np.isnan(residual[model.pinned]).all()
    problem = Problem(model, "float64")
    if step is not None:
        problem.set_inertia(step.dt, step.anchor)
    for vertex in np.flatnonzero(model.free)[::40]:
        slope = np.zeros(3)
        for axis in range(3):
            for sign in (1, -1):
                moved = x.copy()
                moved[vertex, axis] += sign * 1e-5
                problem.positions = moved
                slope[axis] += sign * problem.energy() / 2e-5
        assert residual[vertex] == pytest.approx(np.linalg.norm(slope), rel=1e-3, abs=1e-2)


def test_residual_uses_only_the_given_step(model):
    x = bent(model.rest)
    before = values("residual", model, x)
    values("residual", model, x, Step(0.01, x + 1.0))
    np.testing.assert_array_equal(values("residual", model, x), before)


def test_vertices_of_one_color_share_no_element(model):
    color = values("ordering", model, model.rest)
    for term in model.terms:
        for stencil in term.vertices:
            free = np.unique(stencil)[color[np.unique(stencil)] >= 0]
            assert len(set(color[free])) == len(free)
    assert (color[model.pinned] == -1).all()


def test_bodies_are_numbered_and_named(model):
    numbers = values("body", model, model.rest)
    assert list(np.unique(numbers)) == [0, 1]
    assert FIELDS["body"].names(model) == {0: "bar", 1: "ball"}


@pytest.mark.parametrize("name", FIELDS)
def test_color_limits_are_never_equal(name):
    for constant in (0.0, 1.0, np.nan):
        low, high = FIELDS[name].limits(np.full(4, constant))
        assert low < high


@pytest.mark.parametrize("name", FIELDS)
def test_non_finite_values_have_colors(name):
    field = FIELDS[name]
    numbers = np.array([0.0, 1.0, 2.0]) if field.separate else np.array([0.0, 0.5, -3.0, np.nan, np.inf])
    colors = field.paint(numbers, field.limits(numbers))
    assert colors.shape == (len(numbers), 3)
    assert ((colors >= 0) & (colors <= 1)).all()
    assert len(np.unique(colors.round(6), axis=0)) > 1


def test_few_peaks_do_not_determine_the_color_limits():
    calm = np.linspace(0, 1, 1000)
    _, high = FIELDS["energy_density"].limits(np.append(calm, [1e6, 1e7]))
    assert high < 2


def test_stresses_equal_those_of_evaluate(model):
    """Uniform for a uniformly deformed body, and vertex means for any body."""
    F = np.array([[1.2, 0.1, 0], [0, 0.9, 0.2], [0.1, 0, 1.1]])
    evaluation = supple.evaluate(model, model.rest @ F.T)
    expected = {
        "von_mises": evaluation.von_mises[0],
        "pressure": evaluation.pressure[0],
        "principal_stress": evaluation.principal_stresses[0, 0],
        "stretch": np.linalg.svd(F)[1][0],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values(name, model, model.rest @ F.T), value, rtol=1e-9)
    x = bent(model.rest)
    evaluation = supple.evaluate(model, x)
    np.testing.assert_allclose(values("von_mises", model, x), evaluation.at_vertices(evaluation.von_mises))
