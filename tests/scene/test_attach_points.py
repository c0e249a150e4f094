"""Attachments at points between vertices."""

import numpy as np
import pytest
from problems import face, material

import supple
from supple.scene.errors import SceneError

POINTS = np.array([[0.3, 1.0, 0.4], [0.71, 1.0, 0.23], [0.6, 1.0, 0.8], [0.2, 1.0, 0.7]])


def blocks(gap=0.0):
    """Two blocks with different meshes, one above the other."""
    scene = supple.Scene(gravity=(0, -1, 0))
    upper = scene.add_solid(supple.block(3, origin=(0, 1 + gap, 0)), material("corotated"), density=10)
    lower = scene.add_solid(supple.block(2), material("corotated"), density=10)
    scene.pin(upper.where(face(1, 2 + gap)))
    return scene, upper, lower


def ends(result):
    (term,) = (t for t in result.model.terms if t.ties)
    return term.ends(result.positions)


@pytest.mark.parametrize("solver", ["pbng", "newton", "xpbd"])
def test_attached_points_of_two_bodies_coincide(solver):
    scene, upper, lower = blocks(gap=0.05)
    scene.attach(lower, upper, stiffness=1e6, at=POINTS)
    weights = scene.attachments[0].weights
    assert weights.shape[1] >= 6
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    assert np.all((weights > 0).sum(axis=1) >= 2)
    assert np.all((weights < 0).sum(axis=1) >= 2)
    result = supple.equilibrium(
        scene, solver=solver, tolerance=1e-3, max_iterations=3000, position_tolerance=None
    )
    attached, anchors = ends(result).swapaxes(0, 1)
    np.testing.assert_allclose(attached, anchors, atol=1e-4)
    assert abs(attached[:, 1].mean() - 1.05) < 0.1


def test_offset_is_preserved_and_fixed_points_hold():
    scene, upper, lower = blocks(gap=0.05)
    scene.attach(lower, upper, stiffness=1e6, at=POINTS, keep_offset=True)
    attached, anchors = ends(supple.equilibrium(scene, solver="newton", tolerance=1e-6)).swapaxes(0, 1)
    np.testing.assert_allclose(anchors - attached, np.tile([0, 0.05, 0], (4, 1)), atol=1e-4)
    anchored = supple.Scene(gravity=(0, -1, 0))
    body = anchored.add_solid(supple.block(2), material("corotated"), density=10)
    anchored.attach(body, None, stiffness=1e7, at=POINTS)
    attached, position = ends(supple.equilibrium(anchored, solver="newton", tolerance=1e-6)).swapaxes(0, 1)
    np.testing.assert_allclose(position, POINTS, atol=1e-12)
    np.testing.assert_allclose(attached, POINTS, atol=1e-4)


def test_invalid_attachments_are_refused():
    scene, upper, lower = blocks()
    with pytest.raises(SceneError, match="binds a body to another body or to fixed points"):
        scene.attach(lower.where([0]), upper, stiffness=1, at=POINTS)
    with pytest.raises(SceneError, match="cannot be combined with at="):
        scene.attach(lower, upper, stiffness=1, at=POINTS, within=0.1)
    with pytest.raises(SceneError, match="must be points"):
        scene.attach(lower, upper, stiffness=1, at=[[1, 2]])


def test_attachment_points_in_scene_files(tmp_path):
    path = tmp_path / "tied.toml"
    path.write_text("""
[[solid]]
name = "upper"
mesh = { block = { cells = [2, 2, 2], origin = [0, 1, 0] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
density = 10
[[solid]]
name = "lower"
mesh = { block = { cells = [3, 3, 3] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
density = 10
[[pin]]
solid = "upper"
where = { side = "y+" }
[[attach]]
solid = "lower"
at = [[0.3, 1.0, 0.4], [0.71, 1.0, 0.23]]
to = { solid = "upper" }
stiffness = 1e4
""")
    (made,) = supple.load_scene(path).scene.attachments
    assert len(made.target) == 2
    np.testing.assert_allclose(made.weights.sum(axis=1), 0, atol=1e-12)
