"""Displayed numbers of the live page: plots, colors and status text."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from live_scenes import scene_file

import supple
from supple.io.formats.interface import to_linear
from supple.live.gltf_surface import Scale, encode_surface
from supple.live.page import legend, status
from supple.live.residual_plot import _columns
from supple.live.settings import (
    accelerations,
    file_settings,
    make_solver,
    options_text,
    parse_number,
)
from supple.live.simulation import Simulation
from supple.live.snapshot import Notice, snapshot_of
from supple.live.viewport import BACKGROUND_COLORS, rgb
from supple.solvers import SOLVERS
from supple.view.fields import FIELDS
from supple.view.renderers.surface import surface_of


@pytest.fixture
def snapshot(tmp_path):
    return snapshot_of(Simulation(scene_file(tmp_path)), 0, 0, "Playing <fast>.", True, 12.0)


def test_curves_share_the_updates_of_all_solvers():
    first, second = np.array([[1, 1e-1], [2, 1e-2], [3, 0.0]]), np.array([[2, 1.0], [3, np.inf]])
    updates, one, other = _columns([first, second])
    np.testing.assert_array_equal(updates, [2, 3])
    np.testing.assert_allclose(one, [-2, -16])
    np.testing.assert_allclose(other, [0, 0])


def test_encoded_surfaces_have_their_colors(snapshot):
    trimesh = pytest.importorskip("trimesh")
    surface = surface_of(snapshot.model)
    corners = surface.corners(snapshot.shapes[0].positions)
    colors = np.random.default_rng(0).uniform(size=(len(corners), 3))
    data = encode_surface(surface, corners, colors)
    read = trimesh.load(io.BytesIO(data), file_type="glb", process=False).to_geometry()
    np.testing.assert_allclose(read.vertices, corners, atol=1e-6)
    np.testing.assert_array_equal(read.faces, surface.triangles)
    np.testing.assert_allclose(stored_colors(data) / 255, to_linear(colors), atol=0.003)
    assert read.volume == pytest.approx(1.0, abs=1e-5)


def test_categories_are_not_blended(snapshot):
    trimesh = pytest.importorskip("trimesh")
    surface = surface_of(snapshot.model)
    corners = surface.corners(snapshot.shapes[0].positions)
    colors = np.eye(3)[np.arange(len(corners)) % 3]
    data = encode_surface(surface, corners, colors, separate=True)
    read = trimesh.load(io.BytesIO(data), file_type="glb", process=False).to_geometry()
    face_colors = stored_colors(data)[read.faces]
    assert (face_colors == face_colors[:, :1]).all()
    assert len(read.faces) == 6 * len(surface.triangles)
    assert read.volume == pytest.approx(1.0, abs=1e-5)


def stored_colors(data):
    """Colors (c, 3) of the binary part of a GLB file: a header of 12 bytes, then two chunks with headers of
    8."""
    length = int.from_bytes(data[12:16], "little")
    tree, binary = json.loads(data[20 : 20 + length]), data[20 + length + 8 :]
    accessor = tree["accessors"][tree["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"]]
    start = tree["bufferViews"][accessor["bufferView"]]["byteOffset"]
    return np.frombuffer(binary, np.uint8, 4 * accessor["count"], start).reshape(-1, 4)[:, :3]


def test_linear_light_has_the_values_of_the_standard():
    """IEC 61966-2-1: black, the end of the straight part, mid grey, white."""
    np.testing.assert_allclose(
        to_linear(np.array([0, 0.04045, 0.5, 1])), [0, 0.0031308, 0.2140411, 1], atol=1e-6
    )


def test_color_bar_only_grows_and_hides_rounding():
    scale = Scale(FIELDS["displacement"], smallest=0.01)
    scale.colors(np.zeros(4))
    assert scale.limits is None
    scale.colors(np.array([0, 1e-17]))
    assert scale.limits == (0, 0.01)
    scale.colors(np.array([0, 0.5]))
    scale.colors(np.array([0, 0.2]))
    assert scale.limits == (0, 0.5)
    assert "0.5" in legend(scale)


def test_status_escapes_markup(snapshot):
    html = status(snapshot, Notice("error", "<script>alert(1)</script>"))
    assert "<script>" not in html
    assert "<fast>" not in html
    assert "not started" in html


@pytest.mark.parametrize("method", SOLVERS)
def test_every_solver_and_acceleration_can_be_selected(method):
    for acceleration in accelerations(method):
        solver = make_solver(method, acceleration)
        assert solver.name == method
        assert make_solver(method, acceleration, options_text(solver)) == solver


def test_options_are_parsed():
    assert options_text(make_solver("pbng", "anderson", "omega=1.2 window=5")) == "window=5"
    solver = make_solver("pbng", "sor", "omega=1.2, tied_groups=false")
    assert solver == supple.PBNG(acceleration=supple.solvers.SOR(omega=1.2), tied_groups=False)
    with pytest.raises(ValueError, match="has no option"):
        make_solver("pbng", "none", "omego=1.2")


@pytest.mark.parametrize("text", ["", "soft", "nan", "inf", "1e5 Pa"])
def test_invalid_numbers_are_refused(text):
    with pytest.raises(ValueError, match="E must be a number"):
        parse_number(text, "E")


@pytest.mark.parametrize(
    "wrong",
    [{"dt": 0.0}, {"dt": np.inf}, {"sweeps": 0}, {"precision": "half"}, {"tolerance": 1.0}, {"solvers": ()}],
)
def test_meaningless_settings_are_refused(tmp_path, wrong):
    settings = file_settings(scene_file(tmp_path))
    with pytest.raises(ValueError, match=r"must|one or two solvers, got 0"):
        replace(settings, **wrong)


def brightness(color):
    """Relative luminance, from 0 to 1 (WCAG 2)."""
    return float(to_linear(np.array(rgb(color)) / 255) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", FIELDS)
def test_bodies_contrast_with_the_background(name):
    """A body without strain was once white on white."""
    shades = sorted(map(brightness, FIELDS[name].colors))
    light, dark = brightness(BACKGROUND_COLORS["light"]), brightness(BACKGROUND_COLORS["dark"])
    assert (shades[-1] + 0.05) / (light + 0.05) > 1.4 or name in ("ordering", "body")
    assert (shades[0] + 0.05) / (dark + 0.05) > 1.4
