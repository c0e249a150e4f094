"""Names below bodies in pictures."""

import numpy as np
import pytest

import supple
from supple.scene import build_model
from supple.view.picture import shared_view
from supple.view.picture_layout import layout_for
from supple.view.renderers.axes_and_legend import BodyLabels, named_bodies, outlines_of_bodies
from supple.view.style import LIGHT

MEMBRANE = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)
SIZE = (640, 480)


def two_sheets():
    scene = supple.Scene(gravity=(0, 0, 0))
    for name, x in (("left", 0.0), ("right", 2.0)):
        scene.add_cloth(supple.sheet(2, origin=(x, 0, 0)), MEMBRANE, name=name)
    return scene


def texts_of(model, shapes, camera=(0, 4)):
    """Each name with its picture position, from 0 to 1 across and up, and that of its body."""
    from matplotlib.figure import Figure

    view = shared_view(model, shapes, size=SIZE, camera=camera, names=True)
    layout = layout_for(SIZE)
    names = BodyLabels(Figure(), layout, LIGHT, view.named)
    names.update(view.camera)
    free_area = np.array([1 - layout.side, 1 - layout.header])
    seen = [free_area * (view.camera.project(body.seen)[0] + 1) / 2 for body in view.named]
    return [
        (text.get_text(), np.array(text.get_position()), body)
        for text, body in zip(names._texts, seen, strict=True)
    ]


@pytest.mark.parametrize("camera", [(0, 4), (32, 20), (0, 62)])
def test_names_are_below_the_middle_of_their_bodies(camera):
    model = build_model(two_sheets())
    texts = texts_of(model, [model.rest], camera)
    assert [name for name, _, _ in texts] == ["left", "right"]
    for _, (x, y), body in texts:
        assert body[:, 0].min() < x < body[:, 0].max()
        assert 0 < y < body[:, 1].min() + 0.05
    assert texts[0][1][0] < texts[1][1][0]


def test_names_in_a_film_are_constant_and_below_all_shapes():
    model = build_model(two_sheets())
    shapes = [model.rest, model.rest - [0, 0.5, 0]]
    for _, (_, y), body in texts_of(model, shapes):
        assert y < body[:, 1].min() + 0.05
    named = named_bodies(model, [outlines_of_bodies(model, x) for x in shapes])
    assert [body.seen[:, 1].min() for body in named] == pytest.approx([-0.5, -0.5])


def test_names_are_drawn_on_request():
    scene = two_sheets()
    without, with_names = (supple.render(scene, size=SIZE, names=names) for names in (None, True))
    changed = np.abs(without.astype(int) - with_names.astype(int)).max(axis=2) > 60
    assert 20 < changed.sum() < 0.05 * changed.size
    with pytest.raises(ValueError, match="names must be True or False"):
        supple.render(scene, names="yes")
