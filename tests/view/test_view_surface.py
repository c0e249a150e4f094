"""Drawn surfaces: sharp and smooth edges, pins and attachments."""

import numpy as np
import pytest
from view_models import bar_and_ball

import supple
from supple.view.renderers.drawing import attachment_lines
from supple.view.renderers.ground import ground_level, shadow_of
from supple.view.renderers.light import shade
from supple.view.renderers.surface import surface_of


def model_of(mesh: supple.TetMesh) -> supple.Scene:
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(mesh, supple.Corotated(young=1e4, poisson=0.3))
    return supple.scene.build_model(scene)


def test_block_has_flat_sides():
    model = model_of(supple.block(3))
    surface = surface_of(model)
    assert len(surface.source) == 6 * 16
    normals = surface.normals(surface.corners(model.rest))
    np.testing.assert_allclose(np.sort(np.abs(normals)), [[0, 0, 1]] * len(normals), atol=1e-12)
    points = surface.corners(model.rest) - 0.5
    assert (np.einsum("ij,ij->i", normals, points) > 0.49).all()


def test_ball_is_smooth():
    mesh = supple.ball(resolution=6)
    model = model_of(mesh)
    surface = surface_of(model)
    assert len(surface.source) == len(mesh.surface_vertices)
    corners = surface.corners(model.rest)
    assert (np.einsum("ij,ij->i", surface.normals(corners), corners) > 0.98).all()


def test_values_follow_their_vertices():
    model = model_of(supple.block(2))
    surface = surface_of(model)
    np.testing.assert_array_equal(surface.values(model.rest), surface.corners(model.rest))


def test_marked_pins_are_pinned_and_separate():
    scene = supple.Scene()
    body = scene.add_solid(supple.block(20), supple.Corotated(young=1e4, poisson=0.3))
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    model = supple.scene.build_model(scene)
    pins = surface_of(model).pins
    assert np.isin(pins, model.pinned).all()
    assert 20 < len(pins) < len(model.pinned)
    separations = np.linalg.norm(model.rest[pins][:, None] - model.rest[pins], axis=2) + 10 * np.eye(
        len(pins)
    )
    assert separations.min() > 0.045 * np.sqrt(3)


def test_attachment_lines_join_vertex_and_anchor():
    model = supple.scene.build_model(bar_and_ball(attached=True))
    attached, anchors = np.moveaxis(attachment_lines(model, model.rest), 1, 0)
    assert (attached[:, 1] < 1.6).all()
    assert anchors[:, 1] == pytest.approx(1.0)


def test_attachments_to_fixed_points_end_there():
    scene = supple.Scene()
    body = scene.add_solid(supple.block(2), supple.Corotated(young=1e4, poisson=0.3))
    scene.attach(body.where(lambda X: X[:, 1] >= 1), (0.5, 3.0, 0.5), stiffness=10)
    model = supple.scene.build_model(scene)
    links = attachment_lines(model, model.rest + 0.25)
    np.testing.assert_allclose(links[:, 1], [[0.5, 3.0, 0.5]] * len(links))
    assert links[:, 0, 1] == pytest.approx(1.25)


def test_shadow_is_below_the_body_and_fades_out():
    model = model_of(supple.ball(radius=0.5, resolution=4))
    surface = surface_of(model)
    corners = surface.corners(model.rest)
    level = ground_level(corners)
    shadow = shadow_of(corners, surface.triangles, level)
    assert level < corners[:, 1].min()
    middle = len(shadow.darkness) // 2
    assert shadow.darkness[middle, middle] > 0.5
    assert shadow.darkness[[0, -1]].max() == shadow.darkness[:, [0, -1]].max() == 0
    assert ((shadow.darkness >= 0) & (shadow.darkness <= 1)).all()
    higher = shadow_of(corners + np.array([0, 3, 0]), surface.triangles, level)
    assert higher.darkness.max() < shadow.darkness.max()


def test_light_comes_from_above():
    up, down = np.array([[0.0, 1, 0]]), np.array([[0.0, -1, 0]])
    grey = np.full((1, 3), 0.5)
    axes = np.eye(3)
    assert (shade(grey, up, axes) > shade(grey, down, axes) + 0.1).all()


def test_rollers_are_marked_differently_from_pins():
    scene = supple.Scene()
    body = scene.add_solid(supple.block(3), supple.Corotated(young=1e4, poisson=0.3))
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(body.where(lambda X: X[:, 1] <= 0), axes="y")
    model = supple.scene.build_model(scene)
    surface = surface_of(model)
    np.testing.assert_array_equal(model.rest[surface.pins, 0] > 0, surface.rolling)
    assert surface.rolling.sum() == 12
