"""Detailed surfaces embedded in coarse bodies: exactness and smoothness."""

import logging
from time import perf_counter

import numpy as np
import pytest
from real_meshes import real_mesh
from scipy.spatial.transform import Rotation

import supple
from supple.meshes import TriMesh
from supple.meshes.skinning import Boundary, VisibleSurface

COARSE = supple.ball(1.0, 3)
LARGE, SMALL = 1.07, 0.8
"""Radii of surfaces wholly outside and wholly inside the coarse ball."""

TURN = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix()
SHIFT = np.array([3.0, -1.0, 2.0])


def shell(mesh):
    boundary = Boundary(mesh)
    return TriMesh(boundary.deform(mesh.points), boundary.triangles)


def surfaces():
    fine = shell(supple.ball(1.0, 8))
    bumpy = fine.points * (1 + 0.1 * np.sin(9 * fine.points).sum(axis=1, keepdims=True) / 3)
    return {
        "inside": fine.scaled(SMALL),
        "outside": fine.scaled(LARGE),
        "through": TriMesh(bumpy, fine.triangles),
        "far": shell(supple.block(4, size=3, origin=-1.5)),
    }


@pytest.fixture(params=surfaces(), ids=str)
def embedding(request):
    return supple.embed(surfaces()[request.param], COARSE)


def bent(points):
    """A smooth map with large rotations and strains."""
    x, y, z = points.T
    turn = 0.8 * x
    return np.column_stack(
        [x + 0.1 * y * z, np.cos(turn) * y - np.sin(turn) * z, np.sin(turn) * y + np.cos(turn) * z]
    )


def test_rest_positions_are_reproduced(embedding):
    np.testing.assert_allclose(embedding.deform(COARSE.points), embedding.surface.points, atol=1e-14)


def test_rigid_motions_are_exact_everywhere(embedding):
    moved = embedding.deform(COARSE.points @ TURN.T + SHIFT)
    np.testing.assert_allclose(moved, embedding.surface.points @ TURN.T + SHIFT, atol=1e-13)


def test_affine_maps_are_exact_inside(embedding):
    A = TURN @ np.array([[1.4, 0.3, 0], [0, 0.7, 0.1], [0.2, 0, 1.1]])
    moved, inside = embedding.deform(COARSE.points @ A.T + SHIFT), ~embedding.outside
    expected = embedding.surface.points @ A.T + SHIFT
    np.testing.assert_allclose(moved[inside], expected[inside], atol=1e-13)


def test_points_are_classified_as_inside_or_outside():
    made = surfaces()
    assert not supple.embed(made["inside"], COARSE).outside.any()
    outside = supple.embed(made["outside"], COARSE)
    assert outside.outside.all()
    distance = np.linalg.norm(made["outside"].points, axis=1) - np.linalg.norm(COARSE.points, axis=1).max()
    assert (outside.distance > distance - 1e-12).all()
    through = supple.embed(made["through"], COARSE).outside
    assert 0.1 < through.mean() < 0.9


def test_offsets_stay_normal_and_keep_their_length():
    """Points above a flat plate stretched in its plane keep their height [PBCM section 5]."""
    plate = supple.block((6, 1, 6), size=(1, 0.1, 1))
    above = TriMesh([[0.3, 0.15, 0.4], [0.6, 0.13, 0.4], [0.4, 0.12, 0.7]], [[0, 1, 2]])
    stretched = plate.points * [2, 1, 0.5]
    np.testing.assert_allclose(supple.embed(above, plate).deform(stretched), above.points * [2, 1, 0.5])
    thinner = plate.points * [1, 0.5, 1]
    lowered = above.points - [0, 0.05, 0]
    np.testing.assert_allclose(supple.embed(above, plate).deform(thinner), lowered)


@pytest.mark.parametrize("radius", [0.7, 0.98, 1.05])
def test_embedding_is_continuous(radius):
    """Along circles, halving the steps halves the largest step of the image."""

    def largest_step(count):
        turn = np.linspace(0, 2 * np.pi, count)
        circle = radius * np.column_stack([np.cos(turn), np.sin(turn), 0.1 + 0 * turn])
        path = TriMesh(circle, [[0, 1, 2]])
        moved = supple.embed(path, COARSE).deform(bent(COARSE.points))
        return np.linalg.norm(np.diff(moved, axis=0), axis=1).max()

    assert largest_step(16_000) < 0.6 * largest_step(8_000) < 0.36 * largest_step(4_000)


def test_finer_meshes_follow_smooth_maps_to_second_order():
    inside = surfaces()["inside"]

    def error(resolution):
        mesh = supple.ball(1.0, resolution)
        moved = supple.embed(inside, mesh).deform(bent(mesh.points))
        return np.abs(moved - bent(inside.points)).max()

    assert error(8) < error(4) / 3


def test_values_are_interpolated_linearly():
    embedding = supple.embed(surfaces()["inside"], COARSE)
    slope = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(embedding.interpolate(COARSE.points @ slope), embedding.surface.points @ slope)


def test_collapsed_bodies_give_finite_points(embedding):
    assert np.isfinite(embedding.deform(0 * COARSE.points)).all()
    assert np.isfinite(embedding.deform(COARSE.points * [1, 0, 1])).all()


def test_points_far_outside_are_warned_about(caplog):
    with caplog.at_level(logging.WARNING, "supple"):
        supple.embed(surfaces()["outside"], COARSE)
        assert not caplog.records
        supple.embed(surfaces()["outside"].scaled(1000), COARSE)
    assert "are far outside their body, up to" in caplog.text
    assert "same position and scale" in caplog.text


def test_wrong_positions_are_refused(embedding):
    with pytest.raises(ValueError, match=rf"shape \({COARSE.n_vertices}, 3\); got shape \(4, 3\)"):
        embedding.deform(np.zeros((4, 3)))


@pytest.fixture
def scene():
    scene = supple.Scene()
    material = supple.Corotated(young=1e4, poisson=0.3)
    scene.add_solid(supple.block(3).translated((5, 0, 0)), material)
    scene.add_solid(COARSE, material, render=surfaces()["outside"])
    return scene


def test_surface_of_a_scene_contains_its_skins(scene):
    positions = np.concatenate([bent(body.points) for body in scene.bodies])
    points, triangles, body = supple.visible_surface(scene, positions)
    block, ball = scene.bodies
    assert (np.bincount(body) == [len(block.mesh.surface), ball.skin.surface.n_triangles]).all()
    np.testing.assert_array_equal(points[triangles[body == 0]], positions[block.vertices][block.mesh.surface])
    np.testing.assert_array_equal(
        points[triangles[body == 1]], ball.skin.deform(positions[ball.vertices])[ball.skin.triangles]
    )
    assert len(np.unique(triangles)) == len(points)


def test_models_have_the_surface_of_their_scene(scene):
    model = supple.scene.build_model(scene, quasistatic=False)
    for one, other in zip(
        supple.visible_surface(scene, model.rest), supple.visible_surface(model, model.rest), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_values_reach_the_visible_surface(scene):
    visible = VisibleSurface(scene.bodies)
    rest = np.concatenate([body.points for body in scene.bodies])
    values = visible.interpolate(rest[:, 0])
    inside = ~np.concatenate(
        [np.zeros(len(values) - len(scene.bodies[1].skin.outside), bool), scene.bodies[1].skin.outside]
    )
    np.testing.assert_allclose(values[inside], visible.points(rest)[inside, 0])


def test_only_surfaces_are_render_surfaces():
    with pytest.raises(supple.SceneError, match="render must be a TriMesh"):
        supple.Scene().add_solid(COARSE, supple.Corotated(young=1, poisson=0), render="ball.obj")


def test_armadillo_follows_a_coarse_mesh_quickly():
    import meshio

    content = meshio.obj.read(str(real_mesh("armadillo.obj")))
    armadillo = TriMesh(content.points, content.cells_dict["triangle"])
    low, size = armadillo.points.min(axis=0), armadillo.size
    cage = supple.block(
        (14, 18, 14), size=size * 0.9, origin=low + 0.05 * size
    )  # 17,640 tets; toes are outside
    began = perf_counter()
    embedding = supple.embed(armadillo, cage)
    set_up = perf_counter() - began
    assert 0 < embedding.outside.mean() < 0.3
    deformed = bent(cage.points)
    began = perf_counter()
    moved = embedding.deform(deformed)
    assert perf_counter() - began < 0.5
    assert set_up < 10
    error = np.linalg.norm(moved - bent(armadillo.points), axis=1) / armadillo.diagonal
    assert error[~embedding.outside].max() < 2e-3
    assert error.max() < 2e-2
