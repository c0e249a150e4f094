"""Gradients of many equilibria through one problem equal single gradients."""

from dataclasses import replace

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from problems import face

import supple
from supple.gradients.adjoint_system import System


def varied():
    """A bar between two pins under three conditions; the last one needs a separate problem."""
    scene = supple.Scene(gravity=(0, -3, 1))
    stiff = supple.NeoHookean(young=900.0, poisson=0.3)
    body = scene.add_solid(supple.block((3, 1, 1), size=(1, 0.5, 0.4)), stiff, density=20)
    scene.pin(body.where(face(0, 0)), name="wall")
    hand = body.where(face(0, 1))
    scene.pin(hand, name="hand")
    uneven = np.linspace(800.0, 1600.0, body.mesh.n_cells)
    return body, scene, [
        supple.Variation(gravity=(0, -5, 0), pins={hand: supple.Translate((0.1, 0.02, 0))}),
        supple.Variation(materials={body: supple.NeoHookean(young=1500.0, poisson=0.4)}),
        supple.Variation(materials={body: supple.NeoHookean(young=uneven, poisson=0.3)}),
        supple.Variation(gravity=(1, -3, 0)),
    ]  # fmt: skip


def quantities(body):
    def member_of_row(gradient):
        own = gradient.body(body)
        return np.concatenate([gradient.gravity, gradient.pins["hand"].ravel(), [own.young, own.density]])

    return member_of_row


def weights(x):
    return np.sin(np.arange(x.size).reshape(x.shape)) + x


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gradients_equal_single_ones(device, request):
    if device == "cuda":
        request.getfixturevalue("fake_device")
    body, scene, variations = varied()
    results = list(supple.equilibria(scene, variations, tolerance=1e-6))
    gradients = list(supple.gradients.gradients(results, weights, quantities(body), device=device))
    for result, gradient in zip(results, gradients, strict=True):
        expected = quantities(body)(supple.gradient(result, weights))
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    assert np.ptp(gradients, axis=0).min() > 0


def test_gradients_are_lazy_with_separate_losses():
    _, scene, variations = varied()
    requests = []

    def results():
        for result in supple.equilibria(scene, variations, tolerance=1e-6):
            requests.append(result)
            yield result

    ones = np.ones_like(supple.scene.build_model(scene).rest)
    gradients = supple.gradients.gradients(
        results(), [ones, 2 * ones], lambda g: g.forces.sum(), batch_size=1
    )
    first = next(gradients)
    assert len(requests) == 1
    assert first == pytest.approx(supple.gradient(requests[0], ones).forces.sum())
    assert next(gradients) == pytest.approx(supple.gradient(requests[1], 2 * ones).forces.sum())
    with pytest.raises(ValueError, match="values for the first 2 results only"):
        next(gradients)


def test_gradients_before_an_error_are_returned():
    _, scene, variations = varied()
    results = list(supple.equilibria(scene, variations, tolerance=1e-6))
    ones = np.ones_like(results[0].positions)
    few = supple.gradients.gradients(results, [ones, 2 * ones], lambda g: g.forces.sum())
    assert next(few) > 0
    assert next(few) > 0
    with pytest.raises(ValueError, match="values for the first 2 results only"):
        next(few)
    wrong = supple.gradients.gradients(results, [ones, ones[:3]], lambda g: g.forces.sum())
    next(wrong)
    with pytest.raises(ValueError, match="∂L/∂x"):
        next(wrong)


@pytest.mark.parametrize("at_once", [1, 2, None])
def test_several_bodies_and_rollers_in_groups(at_once, monkeypatch):
    """Each group is solved as one, whatever its size."""
    scene = supple.Scene(gravity=(0, -3, 1))
    stiff = supple.NeoHookean(young=900.0, poisson=0.3)
    first = scene.add_solid(supple.block((3, 1, 1), size=(1, 0.5, 0.4)), stiff, density=20, name="first")
    soft = supple.Corotated(young=300.0, poisson=0.2)
    mesh = supple.block((2, 1, 1), size=(1, 0.5, 0.4), origin=(0, 2, 0))
    second = scene.add_solid(mesh, soft, density=5, name="second")
    for body in (first, second):
        scene.pin(body.where(face(0, 0)), axes="x", name=f"plane {body.name}")
        scene.pin(body.where([0]), name=f"corner {body.name}")
        scene.pin(body.where([3]), axes="yz", name=f"rail {body.name}")
    variations = [supple.Variation(gravity=(0, -g, 1)) for g in (1.0, 2.0, 3.0)]
    results = list(supple.equilibria(scene, variations, tolerance=1e-6))
    sizes = []
    made = System.__init__
    monkeypatch.setattr(
        System,
        "__init__",
        lambda self, p, batch_size=1: (sizes.append(batch_size), made(self, p, batch_size))[1],
    )

    def read_value(gradient):
        report = gradient.report
        assert report.relative_residual < 1e-11
        assert report.residual < 1e-9
        assert report.stable
        assert report.seconds > report.adjoint_seconds > 0
        by = [gradient.body(body).young for body in (first, second)]
        return np.concatenate(
            [gradient.gravity, gradient.pins["plane first"].ravel(), gradient.rest.ravel(), by]
        )

    gradients = list(supple.gradients.gradients(results, weights, read_value, batch_size=at_once))
    assert max(sizes) == (at_once or 3)
    for result, gradient in zip(results, gradients, strict=True):
        expected = read_value(supple.gradient(result, weights))
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_unstable_results_are_marked():
    """A straight column under too large a load among others, and a state far from equilibrium."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block((12, 1, 1), size=(1, 0.05, 0.05))
    body = scene.add_solid(mesh, supple.StVK(young=1e5, poisson=0.0))
    scene.pin(body.where(face(0, 0)))
    hand = body.where(face(0, 1))
    scene.pin(hand)

    def state(load, off=0.0):
        """Result of a solver that keeps the straight line of its start, balanced to rounding."""
        x = mesh.points * (1 - load, 1, 1)
        x = x + off * np.random.default_rng(0).normal(size=x.shape) * (mesh.points[:, :1] % 1 > 0)
        one = supple.Variation(pins={hand: supple.Translate((-load, 0, 0))}, initial=x)
        (result,) = supple.equilibria(scene, [one], solver="pbng", tolerance=None, max_iterations=1)
        return replace(result, positions=x)

    results = [state(0.001), state(0.1), state(0.0005), state(0.0002, 1e-3)]
    stable = list(supple.gradients.gradients(results, weights, lambda result: result.report.stable))
    assert stable == [True, False, True, True]
    slopes = list(supple.gradients.gradients(results, weights, lambda result: result.body(body).young))
    for result, slope in zip(results, slopes, strict=True):
        expected = supple.gradient(result, weights).body(body).young
        assert slope == pytest.approx(expected, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "read_value", "message"), [(3, len, "one for each"), (len, 3, "transform must be a")]
)
def test_wrong_losses_are_refused_at_the_call(loss, read_value, message):
    with pytest.raises(TypeError, match=message):
        supple.gradients.gradients([], loss, read_value)


@pytest.mark.parametrize(
    ("results", "message"),
    [(3, "results must be a list"), ([1, 2], r"results\[0\] must be a result of supple, got 1")],
)
def test_invalid_results_are_refused(results, message):
    with pytest.raises(TypeError, match=message):
        list(supple.gradients.gradients(results, lambda x: x, lambda result: result))


def test_errors_of_the_result_iterator_are_raised():
    def results():
        yield shaped()
        raise supple.gradients.NoGradientError("there are no more")

    gradients = supple.gradients.gradients(results(), weights, lambda gradients: gradients.gravity)
    assert len(next(gradients)) == 3
    with pytest.raises(supple.gradients.NoGradientError, match="there are no more"):
        next(gradients)


def shaped(stretch=1.0, stiffness=1e3):
    """A block with variable length on a spring."""
    mesh = supple.block(2)
    points = np.asarray(mesh.points) * (1, 1, stretch)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(
        supple.TetMesh(points, np.asarray(mesh.tets)), supple.NeoHookean(young=1e5, poisson=0.3)
    )
    scene.pin(body.where(face(0, 0)))
    scene.add_springs(body.where(face(0, 1)), points[points[:, 0] == 1] + (0, 1, 0), stiffness=stiffness)
    return supple.equilibrium(scene)


@pytest.mark.parametrize("other", [{"stretch": 1.00005}, {"stiffness": 1.0005e3}], ids=str)
def test_shapes_and_springs_are_distinguished(other):
    """Slightly different results are not confused, although one nearly balances in place of the other."""
    one, two = shaped(), shaped(**other)
    results = [one, one, two, two, two, two]
    gradients = list(
        supple.gradients.gradients(
            results, weights, lambda gradients: np.array(gradients.gravity), batch_size=2
        )
    )
    expected = {id(result): np.array(supple.gradient(result, weights).gravity) for result in (one, two)}
    for result, gravity in zip(results, gradients, strict=True):
        np.testing.assert_allclose(gravity, expected[id(result)], rtol=1e-9)
    np.testing.assert_array_less(1e-7, np.abs(expected[id(two)] / expected[id(one)] - 1).max())
