"""Surfaces in scene files: tetrahedralized, or displayed in place of a body's surface."""

import meshio
import numpy as np
import pytest
from scene_texts import SOLID

from supple.meshes import block
from supple.scene import SceneFileError, load_scene

SURFACE = """
[[solid]]
mesh = { file = "$SHAPES/cube.stl", edge_length = 0.8, scale = 2, translate = [0, 0, 5] }
render = { file = "$SHAPES/cube.stl" }
material = { corotated = { young = 1e3, poisson = 0.3 } }
"""


def write_cube(folder):
    cube = block(1)
    meshio.Mesh(cube.points, [("triangle", cube.surface)]).write(folder / "cube.stl")


def test_surface_files_are_tetrahedralized_and_displayed(write, tmp_path, monkeypatch):
    pytest.importorskip("pytetwild")
    monkeypatch.setenv("SHAPES", str(tmp_path))
    write_cube(tmp_path)
    (body,) = load_scene(write("quasistatic = false\n" + SURFACE)).scene.bodies
    np.testing.assert_allclose(body.mesh.bounds, [(0, 0, 5), (2, 2, 7)], atol=0.1)
    assert body.mesh.volume == pytest.approx(8, rel=0.05)
    assert body.mesh.n_tets > 40
    assert body.skin.surface.n_triangles == 12
    np.testing.assert_allclose(body.skin.surface.points.min(axis=0), (0, 0, 5))
    np.testing.assert_allclose(body.skin.deform(body.points).max(axis=0), (2, 2, 7), atol=1e-12)


def test_render_surface_may_have_a_separate_scale_and_position(write, tmp_path):
    write_cube(tmp_path)
    text = SOLID + 'render = { file = "cube.stl", scale = [1, 2, 3], translate = [1, 0, 0] }\n'
    (body,) = load_scene(write("quasistatic = false\n" + text)).scene.bodies
    np.testing.assert_allclose(body.skin.surface.points.max(axis=0), (2, 2, 3))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            SURFACE,
            "solid[0].mesh: the environment variable SHAPES is not set; for '$SHAPES/cube.stl', set it to",
        ),
        (SURFACE, "solid[0].render: the environment variable SHAPES is not set"),
        (
            SOLID.replace("} }", "}, edge_length = 0.1 }", 1),
            "solid[0].mesh: edge_length is only for surface files",
        ),
        (SOLID + 'render = { file = "ball.mesh" }', "solid[0].render: "),
        (SOLID + 'render = { file = "nowhere.obj" }', "solid[0].render: There is no surface file"),
    ],
)
def test_mistakes_in_surfaces_are_reported(write, text, sentence):
    with pytest.raises(SceneFileError) as caught:
        load_scene(write(text))
    assert sentence in str(caught.value)
