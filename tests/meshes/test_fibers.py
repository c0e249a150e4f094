"""Fiber directions between two ends of a body."""

import numpy as np
import pytest

import supple
from supple.meshes import fibers_between
from supple.scene import load_scene
from supple.scene.selections import side


def test_fibers_of_a_bar_are_straight():
    mesh = supple.block((4, 2, 2), size=(2, 1, 1))
    np.testing.assert_allclose(
        fibers_between(mesh, side("x-"), side("x+")), np.tile([1, 0, 0], (mesh.n_tets, 1)), atol=1e-9
    )


def test_fibers_of_a_bent_bar_are_curved():
    """A quarter of a ring: fibers go around its axis, and errors decrease in finer meshes."""
    errors = []
    for cells in ((8, 2, 2), (16, 4, 4)):
        straight = supple.block(cells, size=(1, 0.5, 0.5))
        angle, radius = 0.5 * np.pi * straight.points[:, 0], 1 + straight.points[:, 1]
        points = np.column_stack([radius * np.sin(angle), radius * np.cos(angle), straight.points[:, 2]])
        mesh = supple.TetMesh(points, straight.tets)
        fibers = fibers_between(mesh, straight.points[:, 0] == 0, np.flatnonzero(straight.points[:, 0] == 1))
        centers = mesh.points[mesh.tets].mean(axis=1)
        around = np.column_stack([centers[:, 1], -centers[:, 0], 0 * centers[:, 0]])
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        np.testing.assert_allclose(np.linalg.norm(fibers, axis=1), 1)
        errors.append(1 - np.mean(np.sum(fibers * around, axis=1)))
    assert errors[0] < 0.02
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("start", "end", "sentence"),
    [
        (side("x-"), side("y-"), "must not share vertices; they share"),
        (side("x-"), [], "insertion of fibers selects no vertex of the mesh; it needs at least one"),
        (lambda X: X[:, 0] > 9, side("x+"), "origin of fibers selects no vertex of the mesh"),
        (side("x-"), [10**6], "insertion of fibers must be vertices of the mesh, 0 to 26, got .1000000."),
        (side("x-"), lambda X: [0.5], "must be vertices .* got a function that gives array"),
        (np.ones(3, bool), side("x+"), "origin of fibers: a mask must have one value for each of"),
    ],
)
def test_mistakes_are_reported(start, end, sentence):
    with pytest.raises(supple.meshes.MeshError, match=sentence):
        fibers_between(supple.block(2), start, end)


def test_component_without_an_end_has_no_direction():
    separated = supple.meshes.merge([supple.block(1), supple.block(1, origin=(0.2, 3, 0), size=(0.5, 1, 1))])
    with pytest.raises(supple.meshes.MeshError, match="tetrahedra have no fiber direction"):
        fibers_between(separated, side("x-"), side("x+"))


SCENE = """
[[solid]]
mesh = { block = { cells = [3, 1, 1], size = [2, 1, 1] } }
[solid.material.muscle]
young = 1e4
poisson = 0.3
strength = 1e4
fiber = { between = ["x-", "x+"] }
activation = 0.5
[[pin]]
where = { side = "x-" }
"""


def test_fibers_in_a_scene_file_and_a_function(tmp_path):
    path = tmp_path / "muscle.toml"
    path.write_text(SCENE, encoding="utf-8")
    body = load_scene(path).scene.bodies[0]
    np.testing.assert_allclose(body.material.fiber, np.tile([1, 0, 0], (body.mesh.n_tets, 1)), atol=1e-9)
    path.write_text(SCENE.replace('"x+"]', '"u"]'), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match="between"):
        load_scene(path)
    given = {"young": 1e4, "poisson": 0.3, "strength": 1e4}
    made = supple.materials.Muscle.on(
        body.mesh, **given, fiber=lambda X: X + np.array([1, 0, 0]), activation=lambda X: 0.1 * X[:, 0]
    )
    assert made.fiber.shape == (body.mesh.n_tets, 3)
    assert 0 < made.activation.max() < 0.2
