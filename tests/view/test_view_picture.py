"""Pictures and plots are drawn, by both renderers."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

import supple
from supple.report import History
from supple.view import FIELDS, picture, probe, residual_plot, with_matplotlib, with_vtk
from supple.view.camera import fitted_camera
from supple.view.drawing import drawing
from supple.view.style import BACKGROUND

needs_vtk = pytest.mark.skipif(probe.vtk_problem() is not None, reason=probe.MISSING)
RENDERERS = [
    pytest.param(with_vtk, marks=needs_vtk, id="vtk"),
    pytest.param(with_matplotlib, id="matplotlib"),
]
BACKENDS = [pytest.param("vtk", marks=needs_vtk), "matplotlib"]
SIZE = (320, 240)


@pytest.fixture(scope="module")
def model():
    scene = supple.Scene()
    material = supple.Corotated(young=1e5, poisson=0.3)
    bar = scene.add_solid(supple.bar(cells=(8, 2, 2)), material)
    scene.add_solid(supple.ball(resolution=3).translated((2, 2.5, 0)), material)
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    scene.quasistatic = False
    return supple.build_model(scene)


@pytest.fixture(scope="module")
def bent(model):
    x = model.rest.copy()
    x[:, 1] -= 0.08 * np.clip(x[:, 0], 0, None) ** 2
    return x


def background(image: np.ndarray) -> np.ndarray:
    """(h, w) bool: True where nothing is drawn."""
    return (np.abs(image[..., :3].astype(int) - np.round(255 * np.array(to_rgb(BACKGROUND)))) <= 2).all(
        axis=-1
    )


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("stretch", [(1, 1, 1), (5, 0.3, 0.3), (0.2, 4, 0.2)])
def test_the_body_is_drawn_and_touches_no_border(renderer, model, bent, stretch):
    shown = drawing(model, bent * stretch, FIELDS["displacement"])
    image = renderer.render(shown, fitted_camera(shown.points, SIZE[0] / SIZE[1]), SIZE)
    assert image.shape == (SIZE[1], SIZE[0], 3)
    empty = background(image)
    border = np.concatenate([empty[0], empty[-1], empty[:, 0], empty[:, -1]])
    assert border.all()
    assert 0.005 < 1 - empty.mean() < 0.9
    assert image[~empty].std() > 10


@needs_vtk
def test_both_renderers_draw_the_same_silhouette(model, bent):
    shown = drawing(model, bent, FIELDS["displacement"])
    camera = fitted_camera(shown.points, SIZE[0] / SIZE[1])
    one, other = (background(r.render(shown, camera, SIZE)) for r in (with_vtk, with_matplotlib))
    assert (one != other).mean() < 0.03


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_picture_has_the_size_asked_for_and_is_not_blank(tmp_path, model, bent, backend, field):
    path = tmp_path / "picture.png"
    assert picture(path, model, bent, title="Bent", colour_by=field, backend=backend, size=(640, 480)) is None
    image = (255 * imread(path)).round()
    assert image.shape[:2] == (480, 640)
    assert 0.1 < 1 - background(image).mean() < 0.9
    assert image[..., :3].var() > 100


@pytest.mark.parametrize("renderer", RENDERERS)
def test_pins_are_visible(renderer, model, bent):
    shown = drawing(model, bent, FIELDS["displacement"])
    camera = fitted_camera(shown.points, SIZE[0] / SIZE[1])
    with_pins = renderer.render(shown, camera, SIZE)
    bare = replace(shown, pinned=np.empty(0, int))
    changed = (with_pins != renderer.render(bare, camera, SIZE)).any(axis=-1)
    assert changed.any()
    places, _ = camera.project(shown.points[shown.pinned])
    columns = (places[:, 0] + 1) / 2 * SIZE[0]
    assert columns.min() - 6 < np.flatnonzero(changed.any(axis=0)).mean() < columns.max() + 6


def test_the_colour_bar_of_a_body_at_rest_has_two_ends(tmp_path, model):
    picture(tmp_path / "rest.png", model, model.rest, backend="matplotlib", size=(320, 240))
    assert FIELDS["displacement"].limits(np.zeros(3)) == (0.0, 1.0)
    low, high = FIELDS["volume_ratio"].limits(np.ones(3))
    assert low < 1 < high


def test_volume_ratio_is_that_of_a_scaled_body(model):
    np.testing.assert_allclose(FIELDS["volume_ratio"].values(model, 2 * model.rest), 8.0)


def test_unknown_fields_and_backends_are_refused(tmp_path, model):
    with pytest.raises(ValueError, match="displacement, volume_ratio"):
        picture(tmp_path / "a.png", model, model.rest, colour_by="stress")
    with pytest.raises(ValueError, match="'vtk' or 'matplotlib'"):
        picture(tmp_path / "a.png", model, model.rest, backend="crayon")


def test_where_vtk_crashes_matplotlib_draws_and_says_what_is_missing(tmp_path, monkeypatch, model, bent):
    monkeypatch.setattr(probe, "_ATTEMPT", "import os; os.abort()")
    probe.vtk_problem.cache_clear()
    try:
        note = picture(tmp_path / "a.png", model, bent, size=(320, 240))
    finally:
        probe.vtk_problem.cache_clear()
    assert note is not None
    assert "libegl1" in note
    assert (tmp_path / "a.png").exists()


def test_probing_happens_once(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    probe.vtk_problem.cache_clear()
    assert probe.vtk_problem() == probe.MISSING
    monkeypatch.undo()
    assert probe.vtk_problem() == probe.MISSING
    probe.vtk_problem.cache_clear()


@pytest.mark.parametrize("count", [1, 3, 9])
def test_residual_plot(tmp_path, count):
    histories = {
        f"frame {i}": History([0, 1, 2], [0.0, 0.1, 0.2], [3.0, 2.0, 1.0], [1.0, 0.1, 0.01 / (i + 1)])
        for i in range(count)
    }
    residual_plot(tmp_path / "r.png", histories, title="Curves", tolerance=1e-3, size=(640, 400))
    image = (255 * imread(tmp_path / "r.png")).round()
    assert image.shape[:2] == (400, 640)
    assert 0.01 < 1 - background(image).mean() < 0.5
