"""Pictures are drawn, by both renderers."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from view_models import BACKENDS, RENDERERS, bar_and_ball, bent, empty, needs_vtk

import supple
from supple.view import FIELDS, Shape, picture, probe, with_matplotlib, with_vtk
from supple.view.camera import Camera, fitted_camera
from supple.view.drawing import Drawing, drawing
from supple.view.furniture import HEADER, LEGEND, aspect_for_body
from supple.view.style import LIGHT, THEMES

SIZE = (320, 240)
DISPLACEMENT = FIELDS["displacement"]


@pytest.fixture(scope="module")
def model():
    return supple.build_model(bar_and_ball())


@pytest.fixture(scope="module")
def shown(model):
    return draw(model, bent(model.rest))


def draw(model, positions, **options) -> Drawing:
    limits = DISPLACEMENT.limits(DISPLACEMENT.values(model, positions, None))
    return drawing(model, positions, DISPLACEMENT, limits, **options)


def camera_for(shown: Drawing) -> Camera:
    return fitted_camera(shown.points, aspect_for_body(SIZE))


def render(renderer, shown: Drawing, camera: Camera, theme=LIGHT) -> np.ndarray:
    made = renderer(SIZE, theme)
    try:
        return made.render(shown, camera)
    finally:
        made.close()


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("stretch", [(1, 1, 1), (5, 0.3, 0.3), (0.2, 4, 0.2)])
def test_the_body_is_drawn_where_there_is_room_for_it(renderer, model, stretch):
    shown = draw(model, bent(model.rest) * stretch)
    image = render(renderer, shown, camera_for(shown))
    assert image.shape == (SIZE[1], SIZE[0], 3)
    nothing = empty(image, LIGHT.background)
    rows, columns = np.nonzero(~nothing)
    assert rows.min() > HEADER * SIZE[1]
    assert rows.max() < SIZE[1] - 1
    assert columns.min() > 0
    assert columns.max() < (1 - LEGEND) * SIZE[0]
    assert 0.005 < 1 - nothing.mean() < 0.9
    assert image[~nothing].std() > 10


@needs_vtk
def test_both_renderers_draw_the_same_silhouette(shown):
    camera = camera_for(shown)
    one, other = (
        empty(render(made, shown, camera), LIGHT.background)
        for made in (with_vtk.Renderer, with_matplotlib.Renderer)
    )
    assert (one != other).mean() < 0.03


@needs_vtk
def test_a_renderer_that_is_used_again_draws_the_new_shape(model, shown):
    camera = camera_for(shown)
    used = with_vtk.Renderer(SIZE, LIGHT)
    try:
        used.render(draw(model, model.rest), camera)
        np.testing.assert_array_equal(used.render(shown, camera), render(with_vtk.Renderer, shown, camera))
    finally:
        used.close()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_picture_has_the_size_asked_for_and_is_not_blank(tmp_path, model, backend, field):
    theme = "dark" if field in ("residual", "body") else "light"
    path = tmp_path / "picture.png"
    options = {"field": field, "theme": theme, "backend": backend, "size": (640, 480)}
    assert picture(path, model, bent(model.rest), title="Bent", **options) is None
    image = (255 * imread(path)).round()
    assert image.shape[:2] == (480, 640)
    assert empty(image, THEMES[theme].background)[:30, -30:].all()
    assert 0.1 < 1 - empty(image, THEMES[theme].background).mean() < 0.9


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("part", ["pins", "links"])
def test_pins_and_attachments_are_visible(renderer, part):
    model = supple.build_model(bar_and_ball(attached=True))
    shown = draw(model, bent(model.rest))
    camera = camera_for(shown)
    bare = replace(shown, **{part: np.empty((0, *getattr(shown, part).shape[1:]))})
    changed = (render(renderer, shown, camera) != render(renderer, bare, camera)).any(axis=-1)
    places, _ = camera.project(getattr(shown, part).reshape(-1, 3))
    columns = (places[:, 0] + 1) / 2 * (1 - LEGEND) * SIZE[0]
    assert columns.min() - 6 < np.flatnonzero(changed.any(axis=0)).mean() < columns.max() + 6


@pytest.mark.parametrize("renderer", RENDERERS)
def test_the_shadow_darkens_the_ground_below_the_body(renderer, model, shown):
    camera = camera_for(shown)
    grounded = draw(model, bent(model.rest), ground=float(shown.points[:, 1].min()) - 0.1)
    with_shadow, without = render(renderer, grounded, camera), render(renderer, shown, camera)
    ground = empty(without, LIGHT.background)
    assert (with_shadow[ground].astype(int) <= without[ground].astype(int) + 1).all()
    assert (with_shadow[ground].astype(int) < without[ground].astype(int) - 15).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_body_that_is_not_finite_everywhere_is_drawn_nevertheless(tmp_path, model, backend):
    positions = bent(model.rest)
    positions[5] = np.nan
    picture(tmp_path / "a.png", model, positions, backend=backend, size=SIZE)
    assert 1 - empty(255 * imread(tmp_path / "a.png"), LIGHT.background).mean() > 0.1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_body_is_seen_from_below_as_well(tmp_path, model, backend):
    picture(tmp_path / "a.png", model, bent(model.rest), camera=(0, -60), backend=backend, size=SIZE)
    image = 255 * imread(tmp_path / "a.png")[:, : round((1 - LEGEND) * SIZE[0])]
    coloured = np.ptp(image[..., :3], axis=-1) > 20
    assert coloured.mean() > 0.05


def test_unknown_names_are_refused(tmp_path, model):
    for options, sentence in (
        ({"field": "stress"}, "displacement, energy_density, volume_ratio"),
        ({"backend": "crayon"}, "'vtk' or 'matplotlib'"),
        ({"theme": "pink"}, "light or dark"),
    ):
        with pytest.raises(ValueError, match=sentence):
            picture(tmp_path / "a.png", model, model.rest, **options)


def test_where_vtk_crashes_matplotlib_draws_and_says_what_is_missing(tmp_path, monkeypatch, model):
    monkeypatch.setattr(probe, "_ATTEMPT", "import os; os.abort()")
    probe.vtk_problem.cache_clear()
    try:
        note = picture(tmp_path / "a.png", model, Shape(bent(model.rest)), size=SIZE)
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
