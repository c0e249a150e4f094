"""Welded pieces: seams, uv and data."""

import numpy as np
import pytest

import supple
from supple.meshes import MeshError, weld


def halves(gap=0.0):
    """Two sheets side by side along x, with uv in meters."""
    one = supple.sheet((2, 3), (0.5, 1.0)).with_data({"piece": np.zeros(12)}, {"row": np.arange(12.0)})
    other = supple.sheet((2, 3), (0.5, 1.0), origin=(0.5 + gap, 0, 0))
    return one, other.with_data({"piece": np.ones(12)})


@pytest.mark.parametrize("gap", [0.0, 0.004])
def test_two_halves_make_a_sheet(gap):
    welded = weld(halves(gap), 0.005)
    assert (welded.n_vertices, welded.n_triangles, welded.n_components) == (4 * 5, 24, 1)
    seam = welded.points[np.abs(welded.points[:, 0] - 0.5) < 0.01, 0]
    np.testing.assert_allclose(seam, 0.5 + gap / 2)
    assert welded.uv is not None
    np.testing.assert_array_equal(welded.cell_data["piece"], np.repeat([0, 1], 12))
    assert welded.point_data["row"][:12].tolist() == list(range(12))
    supple.Scene().add_cloth(welded, supple.StVK(young=1e5, poisson=0.3), rest="uv")


def test_distant_pieces_stay_separate():
    assert weld(halves(0.1), 0.005).n_components == 2
    assert weld(halves()[0], 0).n_vertices == 12


def test_pieces_without_uv_give_no_uv():
    one, other = halves()
    bare = supple.TriMesh(other.points, other.triangles)
    assert weld([one, bare], 1e-6).uv is None


def test_rolled_sheet_is_closed_to_a_tube():
    flat = supple.sheet((12, 4))
    turn = 2 * np.pi * flat.points[:, 0]
    rolled = supple.TriMesh(
        np.stack([np.cos(turn), np.sin(turn), flat.points[:, 1]], 1), flat.triangles, flat.uv
    )
    tube = weld(rolled, 1e-9)
    assert tube.n_vertices == 12 * 5
    assert supple.inspect(_scene(tube))["components"] == 1


def _scene(mesh):
    scene = supple.Scene()
    cloth = scene.add_cloth(mesh, supple.StVK(young=1e5, poisson=0.3), rest="uv")
    scene.pin(cloth.where([0, 1, 2]))
    return scene


def test_collapsing_weld_is_refused():
    with pytest.raises(MeshError, match=r"within 0\.3 m collapses edges of 24 of 24"):
        weld(halves(), 0.3)
    with pytest.raises(TypeError, match="one TriMesh or a list of them"):
        weld([supple.block(1)], 0.1)
    with pytest.raises(ValueError, match="tolerance must"):
        weld(halves(), -1)


def test_welding_in_scene_files(tmp_path):
    both = weld(halves(0.004), 0)
    lines = [f"v {x} {y} {z}" for x, y, z in both.points.tolist()]
    lines += ["f " + " ".join(str(i + 1) for i in t) for t in both.triangles.tolist()]
    (tmp_path / "shirt.obj").write_text("\n".join(lines) + "\n")
    text = """
    [[cloth]]
    mesh = { file = "shirt.obj", weld = 0.005 }
    membrane = { stvk = { young = 1e5, poisson = 0.3 } }
    [[pin]]
    where = { side = "x-" }
    """
    (tmp_path / "scene.toml").write_text(text)
    (body,) = supple.load_scene(tmp_path / "scene.toml").scene.bodies
    assert (body.mesh.n_vertices, body.mesh.n_components) == (20, 1)
