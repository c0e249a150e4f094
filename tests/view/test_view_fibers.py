"""Fibers in pictures and files rotate and stretch with the body."""

import numpy as np
import pytest
from problems import affine, face
from view_models import BACKENDS

import supple
from supple.view import FIELDS, picture
from supple.view.renderers.drawing import make_drawing


def bar(fiber=(1, 0, 0), **regions):
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = supple.materials.Muscle(young=1e4, poisson=0.3, strength=1e4, fiber=fiber)
    body = scene.add_solid(supple.block((4, 2, 2), size=(2, 1, 1)), kind, **regions)
    scene.pin(body.where(face(0, 0)))
    return scene, body


def rotate_about_y(model):
    """A quarter turn about z, with a stretch of 1.5 along the former x."""
    A = np.array([[0, -1, 0], [1.5, 0, 0], [0, 0, 1.0]])
    return affine(A)(model.rest, 0.0)


def test_fibers_turn_and_stretch_with_the_body():
    scene, _ = bar()
    model = supple.scene.build_model(scene)
    evaluation = supple.evaluate(model, rotate_about_y(model))
    np.testing.assert_allclose(evaluation.fibers, np.tile([0, 1, 0], (len(model.cells), 1)), atol=1e-12)
    np.testing.assert_allclose(evaluation.fiber_stretch, 1.5)
    np.testing.assert_allclose(FIELDS["fiber_stretch"].values(model, rotate_about_y(model), None), 1.5)


@pytest.mark.parametrize("how", ["function", "for each"])
def test_fibers_may_differ_by_tetrahedron(how):
    mesh = supple.block((4, 2, 2), size=(2, 1, 1))
    random = np.random.default_rng(1).normal(size=(mesh.n_tets, 3))
    scene = supple.Scene()
    kind = supple.materials.Muscle.on(
        mesh, young=1e4, poisson=0.3, strength=1e4, fiber=(lambda C: random) if how == "function" else random
    )
    body = scene.add_solid(mesh, kind)
    scene.pin(body.where(face(0, 0)))
    model = supple.scene.build_model(scene)
    expected = random / np.linalg.norm(random, axis=1, keepdims=True)
    np.testing.assert_allclose(supple.evaluate(model, model.rest).fibers, expected, atol=1e-12)


def test_lines_are_on_the_surface_and_along_the_fibers():
    scene, _ = bar((1, 1, 0))
    model = supple.scene.build_model(scene)
    field = FIELDS["fiber_stretch"]
    lines = make_drawing(model, model.rest, field, (0.5, 1.5)).lines
    assert len(lines) > 20
    middle, along = lines.mean(axis=1), lines[:, 1] - lines[:, 0]
    outer = np.abs(middle / (2, 1, 1) - 0.5).max(axis=1)
    np.testing.assert_allclose(outer, 0.5, atol=1e-12)
    top = np.abs(middle[:, 2] - 1) < 1e-9
    assert top.any()
    np.testing.assert_allclose(along[top][:, 0], along[top][:, 1], atol=1e-12)
    assert not len(make_drawing(model, model.rest, FIELDS["displacement"], (0, 1)).lines)


def test_parts_without_fibers_have_no_lines():
    bone = supple.scene.Region("bone", lambda C: C[:, 0] < 1, supple.Corotated(young=1e6, poisson=0.3))
    scene, body = bar(regions=[bone])
    model = supple.scene.build_model(scene)
    evaluation = supple.evaluate(model, model.rest)
    bony = body.mesh.points[body.mesh.tets].mean(axis=1)[:, 0] < 1
    np.testing.assert_array_equal(np.isnan(evaluation.fiber_stretch), bony)
    lines = FIELDS["fiber_stretch"].lines(model, model.rest)
    assert lines.mean(axis=1)[:, 0].min() > 0.99


def test_cloth_has_no_fiber_lines():
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_cloth(
        supple.sheet(2), supple.materials.PlaneStressStVK(young=1e5, poisson=0.3), density=0.1, thickness=1e-3
    )
    model = supple.scene.build_model(scene)
    assert np.isnan(FIELDS["fiber_stretch"].values(model, model.rest, None)).all()
    assert not len(FIELDS["fiber_stretch"].lines(model, model.rest))


@pytest.mark.parametrize("renderer", BACKENDS)
def test_pictures_show_fibers(tmp_path, renderer):
    from PIL import Image

    scene, _ = bar()
    model = supple.scene.build_model(scene)
    images = []
    for field in ("fiber_stretch", "stretch"):
        picture(tmp_path / "p.png", model, model.rest, field=field, size=(400, 300), renderer=renderer)
        images.append(np.asarray(Image.open(tmp_path / "p.png").convert("L"), int))
    darker = (images[0] < images[1] - 30)[60:, :300]
    assert darker.sum() > 100
