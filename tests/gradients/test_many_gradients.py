"""Gradients of many equilibria through one problem are those of each by itself."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from problems import face

import supple


def varied():
    """A bar between two pins under three conditions, the last of which needs a problem of its own."""
    scene = supple.Scene(gravity=(0, -3, 1))
    stiff = supple.NeoHookean(young=900.0, poisson=0.3)
    body = scene.add_solid(supple.bar((3, 1, 1), size=(1, 0.5, 0.4)), stiff, density=20)
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


def figures(body):
    def of(found):
        own = found.of(body)
        return np.concatenate([found.gravity, found.pins["hand"].ravel(), [own.young, own.density]])

    return of


def weights(x):
    return np.sin(np.arange(x.size).reshape(x.shape)) + x


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_is_its_own(device, request):
    if device == "cuda":
        request.getfixturevalue("fake_device")
    body, scene, variations = varied()
    results = list(supple.equilibria(scene, variations, tolerance=1e-6))
    together = list(supple.gradients(results, weights, figures(body), device=device))
    for result, found in zip(results, together, strict=True):
        alone = figures(body)(supple.gradient(result, weights))
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-9 * np.abs(alone).max())
    assert np.ptp(together, axis=0).min() > 0


def test_they_come_as_results_do_and_each_may_have_its_own_loss():
    _, scene, variations = varied()
    asked = []

    def results():
        for result in supple.equilibria(scene, variations, tolerance=1e-6):
            asked.append(result)
            yield result

    ones = np.ones_like(supple.build_model(scene).rest)
    found = supple.gradients(results(), [ones, 2 * ones], lambda g: g.forces.sum())
    first = next(found)
    assert len(asked) == 1
    assert first == pytest.approx(supple.gradient(asked[0], ones).forces.sum())
    assert next(found) == pytest.approx(supple.gradient(asked[1], 2 * ones).forces.sum())
    with pytest.raises(ValueError, match="losses for the first 2 results only"):
        next(found)


@pytest.mark.parametrize(("loss", "take", "message"), [(3, len, "one for each"), (len, 3, "take is a")])
def test_what_cannot_be_is_refused_at_the_call(loss, take, message):
    with pytest.raises(TypeError, match=message):
        supple.gradients([], loss, take)


@pytest.mark.parametrize(
    ("results", "message"),
    [(3, "results are a list"), ([1, 2], r"results\[0\] must be a result of supple, got 1")],
)
def test_what_are_no_results_is_told(results, message):
    with pytest.raises(TypeError, match=message):
        list(supple.gradients(results, lambda x: x, lambda found: found))
