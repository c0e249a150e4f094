"""Initially intersecting bodies are separated before barrier contact begins."""

import numpy as np
import pytest

import supple
from supple.collision.ccd.intersections import find_crossings
from supple.collision.narrow_phase.contact_pairs import Surfaces


def overlapping(depth=0.05, **options):
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("barrier", **options))
    soft = supple.Corotated(young=1e5, poisson=0.3)
    low = scene.add_solid(supple.block(2), soft, name="low")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    above = supple.block(3, size=(0.8, 0.8, 0.8)).translated((0.12, 1 - depth, 0.07))
    high = scene.add_solid(above, soft, name="high")
    scene.pin(high.where(lambda X: X[:, 1] > 1.7 - depth))
    return scene


def intersects(scene, x):
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    body = np.repeat([0, 1], [len(body.points) for body in scene.bodies])
    return find_crossings(Surfaces(triangles, body, x, 0.0, np.zeros(2, bool)), x)


def test_intersecting_bodies_are_separated_on_request():
    with pytest.raises(supple.SceneError, match=r"'low' and 'high' intersect.*separate_initial = true"):
        supple.scene.build_model(overlapping())
    scene = overlapping(separate_initial=True)
    result = supple.equilibrium(scene, tolerance=1e-4)
    assert result.report.ok, result.report
    assert intersects(scene, np.concatenate([body.points for body in scene.bodies]))
    assert not intersects(scene, result.positions)
    for frame in supple.simulate(scene, frames=2, quasistatic=False, dt=0.01, tolerance=1e-3):
        assert not intersects(scene, frame.positions)


def test_initial_separation_needs_a_barrier():
    with pytest.raises(supple.SceneError, match='separate_initial is only for the contact method "barrier"'):
        supple.Contact("weak", separate_initial=True)


def stacked(**options):
    """A block on another one without a gap."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("barrier", **options))
    soft = supple.Corotated(young=1e5, poisson=0.3)
    low = scene.add_solid(supple.block(1), soft, name="low")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    high = scene.add_solid(supple.block(1).translated((0, 1, 0)), soft, name="high")
    scene.pin(high.where(lambda X: X[:, 1] >= 2))
    return scene


def test_touching_bodies_are_reported_or_separated():
    with pytest.raises(ValueError, match=r"'low' touches 'high'.*separate_initial = true"):
        supple.equilibrium(stacked(), tolerance=1e-4)
    result = supple.equilibrium(stacked(separate_initial=True), tolerance=1e-4)
    assert result.report.ok, result.report
    assert result.report.contact.bodies.min_gap > 0


def test_distant_fast_body_keeps_its_size():
    """Bodies that are far apart do not deform, with barrier contact enabled."""
    scene = supple.Scene(
        quasistatic=False, dt=0.02, frames=7, gravity=(0, 0, 0), contact=supple.Contact("barrier")
    )
    kind = supple.StableNeoHookean(young=1e6, poisson=0.3)
    scene.add_solid(supple.block(1), kind)
    scene.add_solid(supple.block(1).translated((3, 0, 0)), kind, velocity=(500, 0, 0))
    for frame in supple.simulate(scene, tolerance=1e-6):
        assert frame.report.ok, frame.report
        assert frame.positions[:, 0].max() == pytest.approx(4 + 10 * frame.index, abs=1e-3)
