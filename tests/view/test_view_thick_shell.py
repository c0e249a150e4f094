"""Cloth drawn with its thickness: two sides, a rim, and unchanged other bodies."""

import numpy as np
import pytest

import supple
from supple.view.fields import field_named
from supple.view.renderers.drawing import make_drawing
from supple.view.renderers.surface import surface_of

MEMBRANE = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)


def model_of(*meshes, thickness=0.02, block=False):
    scene = supple.Scene(gravity=(0, 0, 0))
    for mesh in meshes:
        scene.add_cloth(mesh, MEMBRANE, thickness=thickness)
    if block:
        scene.add_solid(supple.block(1, origin=(3, 0, 0)), supple.Corotated(young=1e5, poisson=0.3))
    return supple.scene.build_model(scene, quasistatic=False)


def volume_of(corners, triangles):
    a, b, c = np.moveaxis(corners[triangles], 1, 0)
    return np.einsum("ti,ti->", a, np.cross(b, c)) / 6


@pytest.mark.parametrize("pattern", ["alternating", "equilateral"])
def test_sheet_becomes_a_closed_slab(pattern):
    """Its volume is area times thickness, and normals point outwards."""
    mesh = supple.sheet(4, (1.0, 0.5), pattern=pattern)
    model = model_of(mesh)
    surface = surface_of(model, 1.0)
    corners = surface.corners(model.rest)
    assert volume_of(corners, surface.triangles) == pytest.approx(0.02 * 0.5, rel=1e-9)
    np.testing.assert_allclose(np.abs(corners[:, 2]), 0.01)
    outwards = (corners - [0.5, 0.25, 0]) / [0.5, 0.25, 0.01]
    assert np.einsum("ci,ci->c", surface.normals(corners), outwards).min() > 0.99


def test_thickness_is_that_of_each_body_times_the_factor():
    tube = supple.meshes.tube(0.2, 0.5, 24)
    model = model_of(tube, block=True)
    surface = surface_of(model, 5.0)
    corners = surface.corners(model.rest)
    around = np.hypot(*corners[:, 1:].T)[corners[:, 0] < 1]
    assert around.min() == pytest.approx(0.15, abs=2e-3)
    assert around.max() == pytest.approx(0.25, abs=2e-3)
    solid = corners[corners[:, 0] > 1]
    np.testing.assert_allclose(np.unique(np.round(solid, 9)), [0, 1, 3, 4])


def test_closed_surfaces_have_no_rim():
    ball = supple.meshes.sphere(0.3, 3)
    model = model_of(ball)
    assert len(surface_of(model, 1.0).triangles) == 2 * ball.n_triangles
    sheet = supple.sheet((3, 2))
    assert len(surface_of(model_of(sheet), 1.0).triangles) == 2 * sheet.n_triangles + 2 * 10


def test_folds_do_not_tear_a_slab():
    """Corners are doubled along sharp rest edges, but stay coincident."""
    flat = supple.sheet((2, 1))
    roof = supple.TriMesh(
        flat.points + np.outer(0.5 - np.abs(flat.points[:, 0] - 0.5), (0, 0, 2)), flat.triangles
    )
    model = model_of(roof)
    surface = surface_of(model, 1.0)
    corners = surface.corners(model.rest)
    ridge = corners[np.isclose(model.rest[surface.source, 0], 0.5)]
    assert len(np.unique(np.round(ridge, 9), axis=0)) == 4


def test_slab_can_be_colored_by_every_field():
    model = model_of(supple.sheet(3), block=True)
    for name in ("displacement", "volume_ratio", "bending_angle", "body"):
        drawing = make_drawing(model, model.rest, field_named(name), (0.0, 1.0), thickness=2.0)
        assert len(drawing.paint.colors) == len(drawing.paint.points)
        assert np.isfinite(drawing.paint.points).all()


def test_pictures_show_the_thickness():
    scene = supple.Scene()
    scene.add_cloth(supple.sheet(4, plane="xz"), MEMBRANE, thickness=0.1)
    flat, thick = (supple.render(scene, camera=(0, 0), size=(320, 240), thickness=t) for t in (0, 1))
    assert np.ptp(thick.astype(int) - flat.astype(int)) > 50
    for wrong in (-1, np.nan, "thick", 1e9):
        with pytest.raises((ValueError, TypeError), match="thickness"):
            supple.render(scene, thickness=wrong)
