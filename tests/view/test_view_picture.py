"""Pictures by both renderers."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from view_models import BACKENDS, RENDERERS, bar_and_ball, bent, empty, needs_vtk

import supple
from supple.view import FIELDS, Shape, picture
from supple.view.camera import Camera, fit_camera
from supple.view.picture_layout import layout_for
from supple.view.renderers import with_matplotlib, with_vtk
from supple.view.renderers.axes_and_legend import Annotations
from supple.view.renderers.drawing import Drawing, make_drawing
from supple.view.renderers.surface import surface_of
from supple.view.style import LIGHT, THEMES

SIZE = (320, 240)
LAYOUT = layout_for(SIZE)
DISPLACEMENT = FIELDS["displacement"]


@pytest.fixture(scope="module")
def model():
    return supple.scene.build_model(bar_and_ball())


@pytest.fixture(scope="module")
def drawing(model):
    return draw(model, bent(model.rest))


def draw(model, positions, **options) -> Drawing:
    limits = DISPLACEMENT.limits(DISPLACEMENT.values(model, positions, None))
    return make_drawing(model, positions, DISPLACEMENT, limits, **options)


def camera_for(drawing: Drawing) -> Camera:
    return fit_camera(drawing.points, LAYOUT.aspect)


def render(renderer, drawing: Drawing, camera: Camera, theme=LIGHT) -> np.ndarray:
    made = renderer(SIZE, theme)
    try:
        return made.render(drawing, camera)
    finally:
        made.close()


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("stretch", [(1, 1, 1), (5, 0.3, 0.3), (0.2, 4, 0.2)])
def test_body_is_inside_the_free_area(renderer, model, stretch):
    drawing = draw(model, bent(model.rest) * stretch)
    image = render(renderer, drawing, camera_for(drawing))
    assert image.shape == (SIZE[1], SIZE[0], 3)
    nothing = empty(image, LIGHT.background)
    rows, columns = np.nonzero(~nothing)
    assert rows.min() > LAYOUT.header * SIZE[1]
    assert rows.max() < SIZE[1] - 1
    assert columns.min() > 0
    assert columns.max() < (1 - LAYOUT.side) * SIZE[0]
    assert 0.005 < 1 - nothing.mean() < 0.9
    assert image[~nothing].std() > 10


@needs_vtk
def test_both_renderers_draw_the_same_silhouette(drawing):
    camera = camera_for(drawing)
    one, other = (
        empty(render(made, drawing, camera), LIGHT.background)
        for made in (with_vtk.Renderer, with_matplotlib.Renderer)
    )
    assert (one != other).mean() < 0.03


@needs_vtk
def test_reused_renderer_draws_the_new_shape(model, drawing):
    camera = camera_for(drawing)
    used = with_vtk.Renderer(SIZE, LIGHT)
    try:
        used.render(draw(model, model.rest), camera)
        np.testing.assert_array_equal(
            used.render(drawing, camera), render(with_vtk.Renderer, drawing, camera)
        )
    finally:
        used.close()


@pytest.mark.parametrize("renderer", BACKENDS)
@pytest.mark.parametrize("field", FIELDS)
def test_picture_has_the_requested_size_and_is_not_blank(tmp_path, model, renderer, field):
    theme = "dark" if field in ("residual", "body") else "light"
    path = tmp_path / "picture.png"
    options = {"field": field, "theme": theme, "renderer": renderer, "size": (640, 480)}
    assert picture(path, model, bent(model.rest), title="Bent", **options) is None
    image = (255 * imread(path)).round()
    assert image.shape[:2] == (480, 640)
    assert empty(image, THEMES[theme].background)[:30, -30:].all()
    assert 0.1 < 1 - empty(image, THEMES[theme].background).mean() < 0.9


TITLE = "Twisted and stretched block of a rather long title"
CAPTION = "pbng (anderson) · 1,110 iterations · relative residual 7.6e-05 · frame 3 of 12, 0.3 s"
SIZES = [(160, 160), (160, 320), (320, 160), (320, 240), (240, 320), (480, 360), (360, 640), (1400, 300)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FIELDS)
def test_annotations_are_inside_the_picture_and_outside_the_body(size, name):
    layout, camera = layout_for(size), fit_camera(np.zeros((1, 3)), 1.0)
    names = {number: f"a body with a long name, {number}" for number in range(40)}
    furniture = Annotations(size, LIGHT, TITLE, FIELDS[name], (1e-3, 39.5), names)
    blank = np.zeros((size[1], size[0], 3), np.uint8)
    ink = furniture.annotate_image(blank, CAPTION, camera).any(axis=2)
    if not layout.header:
        assert not ink.any()
        return
    assert not np.concatenate([ink[:3].ravel(), ink[-3:].ravel(), ink[:, 0], ink[:, -1]]).any()
    body = ink[round(layout.header * size[1]) + 1 : -round(0.15 * size[1] + 60), : int(0.7 * size[0])]
    assert not body.any() or not layout.side
    surroundings = ink[round(layout.header * size[1]) + 1 :, round((1 - layout.side) * size[0]) :]
    assert surroundings.any() == (layout.side > 0)


def test_captions_drop_full_parts_consistently():
    camera = fit_camera(np.zeros((1, 3)), 1.0)
    furniture = Annotations((480, 360), LIGHT, "", DISPLACEMENT, (0.0, 1.0), {})
    blank, seen = np.zeros((360, 480, 3), np.uint8), []
    for iterations in ("1,110", "9", "1,110"):
        furniture.annotate_image(blank, CAPTION.replace("1,110", iterations), camera)
        seen.append(furniture._caption.get_text().split(" · "))
    assert [len(parts) for parts in seen] == [3, 3, 3]
    assert seen[0] == CAPTION.split(" · ")[:3]


def test_categories_are_not_blended(model):
    field = FIELDS["ordering"]
    values = field.values(model, model.rest, None)
    drawing = make_drawing(model, model.rest, field, field.limits(values))
    corners = drawing.paint.colors[drawing.paint.triangles]
    assert (corners == corners[:, :1]).all()
    assert {tuple(c) for c in corners[:, 0]} <= {to_rgb(color) for color in field.colors}
    assert area(drawing.paint.points, drawing.paint.triangles) == pytest.approx(
        area(drawing.points, drawing.surface.triangles)
    )
    body = FIELDS["body"]
    plain = make_drawing(model, model.rest, body, body.limits(body.values(model, model.rest, None)))
    assert not plain.paint.divided


def area(points, triangles) -> float:
    return supple.TriMesh(points, triangles).area


def test_skin_takes_separate_values_of_the_nearest_vertices():
    coarse, fine = supple.block(2), supple.block(5)
    scene = supple.Scene(gravity=(0, 0, 0))
    skin = supple.TriMesh(fine.points, fine.surface)
    scene.add_solid(coarse, supple.Corotated(young=1e4, poisson=0.3), render=skin)
    surface = surface_of(supple.scene.build_model(scene))
    numbers = np.arange(coarse.n_vertices)
    picked = surface.values(numbers, separate=True)
    corners, vertices = surface.corners(coarse.points), coarse.points[picked]
    separations = np.linalg.norm(corners[:, None] - coarse.points, axis=2).min(axis=1)
    assert picked.dtype == numbers.dtype
    assert (np.linalg.norm(corners - vertices, axis=1) <= separations + 0.25).all()


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("part", ["pins", "links"])
def test_pins_and_attachments_are_visible(renderer, part):
    model = supple.scene.build_model(bar_and_ball(attached=True))
    drawing = draw(model, bent(model.rest))
    camera = camera_for(drawing)
    bare = replace(drawing, **{part: np.empty((0, *getattr(drawing, part).shape[1:]))})
    changed = (render(renderer, drawing, camera) != render(renderer, bare, camera)).any(axis=-1)
    image_points, _ = camera.project(getattr(drawing, part).reshape(-1, 3))
    columns = (image_points[:, 0] + 1) / 2 * (1 - LAYOUT.side) * SIZE[0]
    assert columns.min() - 6 < np.flatnonzero(changed.any(axis=0)).mean() < columns.max() + 6


@pytest.mark.parametrize("renderer", RENDERERS)
def test_shadow_darkens_the_ground_below_the_body(renderer, model, drawing):
    camera = camera_for(drawing)
    grounded = draw(model, bent(model.rest), ground=float(drawing.points[:, 1].min()) - 0.1)
    with_shadow, without = render(renderer, grounded, camera), render(renderer, drawing, camera)
    ground = empty(without, LIGHT.background)
    assert (with_shadow[ground].astype(int) <= without[ground].astype(int) + 1).all()
    assert (with_shadow[ground].astype(int) < without[ground].astype(int) - 15).any()


@pytest.mark.parametrize("renderer", BACKENDS)
def test_body_with_non_finite_positions_is_drawn(tmp_path, model, renderer):
    positions = bent(model.rest)
    positions[5] = np.nan
    picture(tmp_path / "a.png", model, positions, renderer=renderer, size=SIZE)
    assert 1 - empty(255 * imread(tmp_path / "a.png"), LIGHT.background).mean() > 0.1


@pytest.mark.parametrize("renderer", BACKENDS)
def test_body_is_drawn_from_below(tmp_path, model, renderer):
    picture(tmp_path / "a.png", model, bent(model.rest), camera=(0, -60), renderer=renderer, size=SIZE)
    image = 255 * imread(tmp_path / "a.png")[:, : round((1 - LAYOUT.side) * SIZE[0])]
    colored = np.ptp(image[..., :3], axis=-1) > 20
    assert colored.mean() > 0.05


def test_unknown_names_are_refused(tmp_path, model):
    for options, sentence in (
        ({"field": "stress"}, "displacement, energy_density, volume_ratio"),
        ({"renderer": "crayon"}, "'vtk' or 'matplotlib'"),
        ({"theme": "pink"}, "light or dark"),
    ):
        with pytest.raises(ValueError, match=sentence):
            picture(tmp_path / "a.png", model, model.rest, **options)


def test_matplotlib_replaces_a_crashing_vtk_and_names_the_missing_package(tmp_path, monkeypatch, model):
    monkeypatch.setattr(with_vtk, "VTK_PROBE", "import os; os.abort()")
    with_vtk.vtk_problem.cache_clear()
    try:
        note = picture(tmp_path / "a.png", model, Shape(bent(model.rest)), size=SIZE)
    finally:
        with_vtk.vtk_problem.cache_clear()
    assert note is not None
    assert "libegl1" in note
    assert (tmp_path / "a.png").exists()


def test_vtk_is_probed_once(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with_vtk.vtk_problem.cache_clear()
    assert with_vtk.vtk_problem() == with_vtk.VTK_MISSING
    monkeypatch.undo()
    assert with_vtk.vtk_problem() == with_vtk.VTK_MISSING
    with_vtk.vtk_problem.cache_clear()


@pytest.mark.parametrize("renderer", RENDERERS)
def test_rollers_and_pins_are_drawn_differently(renderer):
    """The same vertices, fully pinned and along one direction."""
    images = []
    for axes in ("xyz", "y"):
        scene = supple.Scene(gravity=(0, 0, 0))
        body = scene.add_solid(supple.block(2), supple.Corotated(young=1e4, poisson=0.3))
        scene.pin(body.where(lambda X: X[:, 2] >= 1), axes=axes)
        drawing = draw(supple.scene.build_model(scene), body.points)
        assert (len(drawing.pins), len(drawing.rollers)) == ((9, 0) if axes == "xyz" else (0, 9))
        images.append(render(renderer, drawing, camera_for(drawing)).astype(int))
    assert (
        5 < np.count_nonzero(np.abs(images[0] - images[1]).max(axis=2) > 30) < 0.05 * images[0][..., 0].size
    )
