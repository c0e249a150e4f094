"""Derivatives of equilibria in JAX."""

import numpy as np
import pytest
from differences import Loss
from problems import face, material

import supple

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def bar():
    scene = supple.Scene(gravity=(0, -3, 1))
    body = scene.add_solid(supple.block((2, 1, 1), size=(1, 0.5, 0.4)), material("neo_hookean"), density=20)
    scene.pin(body.where(face(0, 0)), name="wall")
    return scene, body


def test_second_derivatives_are_refused():
    scene, _ = bar()

    def value(young):
        return (supple.jax.equilibrium(scene, young=young, tolerance=1e-6) ** 2).sum()

    assert np.isfinite(jax.jit(jax.vmap(jax.grad(value)))(jnp.array([1e3, 2e3]))).all()
    for twice in (jax.grad(jax.grad(value)), jax.hessian(value)):
        with pytest.raises(ValueError, match="first derivatives of equilibria in reverse mode only"):
            twice(1e3)


def test_grad_equals_gradient():
    scene, body = bar()
    loss = Loss(len(body.points))

    @jax.jit
    @jax.value_and_grad
    def value(given):
        x = supple.jax.equilibrium(scene, **given)
        return (loss.w * x + 0.5 * x * x).sum()

    given = {"gravity": jnp.array([0.0, -3.0, 1.0]), "young": jnp.array(1e3)}
    _, by = value(given)
    result = supple.gradient(supple.equilibrium(scene, tolerance=1e-6), loss.gradient)
    np.testing.assert_allclose(by["gravity"], result.gravity, rtol=1e-7)
    assert float(by["young"]) == pytest.approx(result.body(body).young, rel=1e-7)


def test_vmap():
    scene, _ = bar()

    def lowest(young):
        return supple.jax.equilibrium(scene, young=young)[:, 1].sum()

    youngs = jnp.array([800.0, 1000.0, 1200.0])
    slopes = jax.vmap(jax.grad(lowest))(youngs)
    h = 1.0
    differences = (jax.vmap(lowest)(youngs + h) - jax.vmap(lowest)(youngs - h)) / (2 * h)
    np.testing.assert_allclose(slopes, differences, rtol=1e-5)
    np.testing.assert_allclose(slopes, [jax.grad(lowest)(young) for young in youngs], rtol=1e-7)


def test_nested_vmap_with_shared_arguments():
    scene, body = bar()
    loss = Loss(len(body.points))

    def value(young, gravity):
        x = supple.jax.equilibrium(scene, young=young, gravity=gravity)
        return (loss.w * x).sum()

    slope = jax.grad(value, argnums=(0, 1))
    youngs, gravities = jnp.array([[900.0, 1000.0], [1100.0, 1200.0]]), jnp.array([[0, -3.0, 0], [1, -2, 0]])
    nested = jax.vmap(jax.vmap(slope, in_axes=(0, None)))(youngs, gravities)
    for i in range(2):
        for j in range(2):
            expected = slope(youngs[i, j], gravities[i])
            np.testing.assert_allclose(nested[0][i, j], expected[0], rtol=1e-6)
            np.testing.assert_allclose(nested[1][i, j], expected[1], rtol=1e-6)


def test_failed_solve_is_nan_with_a_reason():
    scene, _ = bar()
    why = []

    def lowest(young):
        return supple.jax.equilibrium(scene, young=young, errors=why)[:, 1].sum()

    value, slope = jax.value_and_grad(lowest)(-1.0)
    assert np.isnan(value)
    assert np.isnan(slope)
    assert any("young must be positive" in sentence for sentence in why)
    energies = jax.vmap(lowest)(jnp.array([1e3, -1.0]))
    assert np.isfinite(energies[0])
    assert np.isnan(energies[1])
