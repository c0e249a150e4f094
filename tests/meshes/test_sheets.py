"""Surfaces for cloth: generators, checks, and rest shapes."""

import numpy as np
import pytest

import supple
from supple.meshes.cloth_checks import find_problems, rest_corners
from supple.meshes.edges import Edges
from supple.meshes.generators.sheets import PATTERNS, SHEETS
from supple.meshes.proximity_queries import closest_in_body

GENERATOR_ARGUMENTS = {
    "sheet": {"cells": (5, 4), "size": (1, 2)},
    "disc": {"radius": 0.3, "resolution": 4},
    "tube": {"radius": 0.2, "length": 0.7, "cells": (8, 5)},
    "sphere": {"radius": 2.0, "resolution": 3},
    "pillow": {"cells": 6, "size": (1, 2)},
}


@pytest.mark.parametrize("kind", SHEETS)
def test_generated_surfaces_are_valid(kind):
    mesh = getattr(supple.meshes, kind)(**GENERATOR_ARGUMENTS[kind])
    assert list(find_problems(mesh)) == []
    assert mesh.n_components == 1
    vertices, triangles = SHEETS[kind](**GENERATOR_ARGUMENTS[kind])
    assert mesh.n_triangles == triangles
    assert mesh.n_vertices == vertices or kind == "pillow"


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("plane", ["xy", "xz", "zy"])
def test_sheets_lie_in_their_plane_with_coordinates_as_uv(pattern, plane):
    mesh = supple.sheet((4, 3), (2, 1), pattern, plane, origin=(1, 2, 3))
    first, second = ("xyz".index(axis) for axis in plane)
    assert mesh.area == pytest.approx(2)
    np.testing.assert_allclose(mesh.points.min(axis=0), (1, 2, 3))
    corners = mesh.points[mesh.triangles] - (1, 2, 3)
    np.testing.assert_allclose(mesh.uv, corners[..., [first, second]], atol=1e-12)
    normal = np.cross(np.eye(3)[first], np.eye(3)[second])
    np.testing.assert_allclose(mesh.area_vectors.sum(axis=0), 2 * normal, atol=1e-12)
    np.testing.assert_allclose(mesh.field("u"), np.tile(np.eye(3)[first], (mesh.n_triangles, 1)), atol=1e-12)


def test_equilateral_sheets_have_equilateral_interiors():
    mesh = supple.sheet(20, (1, 20 * np.sqrt(0.75) / 20), "equilateral")
    assert np.quantile(mesh.quality, 0.2) > 0.999


@pytest.mark.parametrize("pattern", PATTERNS)
def test_tubes_and_spheres_have_their_size_and_orientation(pattern):
    tube = supple.meshes.tube(0.5, 2.0, (64, 20), pattern)
    assert tube.area == pytest.approx(2 * np.pi, rel=2e-3)
    middle = tube.points[tube.triangles].mean(axis=1) * [0, 1, 1]
    assert (np.einsum("ij,ij->i", middle, tube.area_vectors) > 0).all()
    edges = Edges(tube.triangles)
    assert (edges.counts == 1).sum() == 2 * 64
    ball = supple.meshes.sphere(0.5, 12)
    assert ball.enclosed_volume == pytest.approx(np.pi / 6, rel=0.01)
    ball.refuse_open()


def test_tubes_unroll_isometrically():
    tube = supple.meshes.tube(0.5, 1.0, (48, 12))
    corners = rest_corners(tube, "uv")
    side = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    now = tube.points[tube.triangles]
    np.testing.assert_allclose(np.linalg.norm(now - np.roll(now, 1, axis=1), axis=2), side, rtol=2e-3)


POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]], float)
SHEET = [[0, 1, 2], [0, 2, 3]]
WRONG = {
    "non-manifold": (POINTS, [*SHEET, [0, 2, 4]], "not manifold: 3 triangles meet"),
    "flipped": (POINTS[:4], [[0, 1, 2], [0, 3, 2]], "opposite orientation: triangles 0 and 1"),
    "degenerate": ([*POINTS[:4], [2, 0, 0]], [*SHEET, [1, 0, 4]], "1 of 3 triangles are degenerate: 2"),
    "twice": (POINTS[:4], [*SHEET, [1, 1, 2]], "use a vertex twice: 2"),
    "isolated": (POINTS, SHEET, "1 of 5 vertices belong to no triangle: 4"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_cloth_is_refused(name):
    points, triangles, sentence = WRONG[name]
    scene = supple.Scene()
    with pytest.raises(supple.SceneError, match=sentence):
        scene.add_cloth(supple.TriMesh(points, triangles), supple.StVK(young=1e5, poisson=0.3))
    assert not scene.bodies


def all_wrong(uv=None):
    """A surface with every mistake: a degenerate triangle, a triangle with a repeated vertex, an unused
    vertex, an edge of three triangles, and neighbors with opposite orientations."""
    points = [*POINTS, [2, 0, 0], [9, 9, 9]]
    triangles = [[0, 1, 2], [0, 3, 2], [0, 2, 4], [3, 3, 4], [1, 0, 5], [3, 2, 4]]
    return supple.TriMesh(points, triangles, uv)


@pytest.mark.parametrize("uv", ["missing", "flipped"])
def test_all_mistakes_are_reported_at_once(uv):
    flipped = np.tile([[0.0, 0], [1, 0], [0, 1]], (6, 1, 1))
    flipped[0] = flipped[0, ::-1]
    mesh = all_wrong(None if uv == "missing" else flipped)
    with pytest.raises(supple.SceneError) as error:
        supple.Scene().add_cloth(
            mesh,
            supple.materials.LinearElastic(young=1e5, poisson=0.3),
            bending=3,
            density=-1,
            thickness=np.nan,
            rest="uv",
        )
    message = str(error.value)
    for part in (
        "1 of 6 triangles use a vertex twice: 3.",
        "1 of 6 triangles are degenerate: 4.",
        "1 of 7 vertices belong to no triangle: 6.",
        "3 triangles meet at the edge of vertices 2 and 0",
        "neighbors of opposite orientation",
        "LinearElastic is not rotation-invariant",
        "Density [kg/m²] of cloth must be greater than 0, got -1.",
        "Thickness [m] of cloth must be finite",
        {"missing": "no uv coordinates", "flipped": "turned over in the flat rest shape"}[uv],
        "Bending must be for example",
    ):
        assert message.lower().count(part.lower()) == 1, part
    assert "\n" not in message


def test_patterns_must_not_fold_over():
    mesh = supple.sheet(2)
    flat = mesh.points[:, :2].copy()
    flat[4] = (1.4, 0.5)
    with pytest.raises(supple.SceneError, match="turned over in the flat rest shape"):
        supple.Scene().add_cloth(mesh, supple.StVK(young=1e5, poisson=0.3), rest=flat)
    mirrored = mesh.points[:, :2] * [-1, 1]
    supple.Scene().add_cloth(mesh, supple.StVK(young=1e5, poisson=0.3), rest=mirrored)


@pytest.mark.parametrize("wrong", [np.zeros((3, 2)), "pattern", supple.block(1), [[np.nan, 0]] * 9])
def test_invalid_rest_shapes_are_refused(wrong):
    with pytest.raises(supple.SceneError, match="rest shape must be"):
        supple.Scene().add_cloth(supple.sheet(2), supple.StVK(young=1e5, poisson=0.3), rest=wrong)


def test_closest_points_of_surfaces():
    mesh = supple.sheet(4)
    points = np.random.default_rng(0).uniform(-0.2, 1.2, (30, 3))
    vertices, weights = closest_in_body(points, mesh)
    closest = np.einsum("ka,kai->ki", weights, mesh.points[vertices])
    np.testing.assert_allclose(closest, np.clip(points, 0, 1) * [1, 1, 0], atol=1e-12)


def test_surface_data_are_rotated_and_read_back(tmp_path):
    mesh = supple.sheet(3).with_data({"fiber": np.tile([1.0, 0, 0], (18, 1))}, {"heat": np.arange(16.0)})
    turned = mesh.rotated((0, 0, 1), np.pi / 2)
    np.testing.assert_allclose(turned.cell_data["fiber"], np.tile([0, 1.0, 0], (18, 1)), atol=1e-12)
    np.testing.assert_allclose(mesh.field("heat"), np.arange(16.0)[mesh.triangles].mean(axis=1))
    supple.meshes.save_mesh(mesh, tmp_path / "sheet.vtu")
    back = supple.meshes.load_surface(tmp_path / "sheet.vtu")
    np.testing.assert_array_equal(back.triangles, mesh.triangles)
    np.testing.assert_array_equal(back.cell_data["fiber"], mesh.cell_data["fiber"])
    np.testing.assert_array_equal(back.point_data["heat"], mesh.point_data["heat"])
    supple.meshes.save_mesh(supple.block(1), tmp_path / "block.vtu")
    with pytest.raises(supple.meshes.MeshError, match="no triangles"):
        supple.meshes.load_surface(tmp_path / "block.vtu")


def twisted_band(half_turns, joined=True, around=12, across=2):
    """A band with some half turns; joined: its ends share vertices."""
    turn, along = np.linspace(0, 2 * np.pi, around + 1), np.linspace(-0.1, 0.1, across + 1)
    a, s = (part.ravel() for part in np.meshgrid(turn, along, indexing="ij"))
    radius = 0.5 + s * np.cos(half_turns * a / 2)
    points = np.stack([radius * np.cos(a), s * np.sin(half_turns * a / 2), radius * np.sin(a)], axis=1)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(around), np.arange(across), indexing="ij"))
    corner = i * (across + 1) + j
    beyond = corner + across + 1
    triangles = np.concatenate(
        [np.stack([corner, beyond, beyond + 1], 1), np.stack([corner, beyond + 1, corner + 1], 1)]
    )
    if joined:
        ends = np.arange(around * (across + 1), (around + 1) * (across + 1))
        first = np.arange(across + 1)[:: -1 if half_turns % 2 else 1]
        new = np.arange(len(points))
        new[ends] = first
        triangles, points = new[triangles], points[: ends[0]]
    return supple.TriMesh(points, triangles)


@pytest.mark.parametrize("half_turns", [0, 1, 2, 3])
def test_one_sided_bands_are_distinguished(half_turns):
    mesh = twisted_band(half_turns)
    message = list(find_problems(mesh))
    assert Edges(mesh.triangles).one_sided == bool(half_turns % 2)
    assert ("only one side" in " ".join(message)) == bool(half_turns % 2)
    assert len(message) == half_turns % 2
    assert list(find_problems(twisted_band(half_turns, joined=False))) == []


def test_moebius_strip_is_cut_and_sewn():
    mesh = twisted_band(1, joined=False)
    scene = supple.Scene()
    band = scene.add_cloth(
        mesh, supple.materials.PlaneStressStVK(young=1e6, poisson=0.3), supple.HingeBending(1e-4)
    )
    first, last = band.where([0, 1, 2]), band.where([36, 37, 38])
    scene.attach(first, last, stiffness=1e5, within=1e-6)
    scene.pin(band.where([18, 19, 20]))
    result = supple.equilibrium(scene)
    assert result.report.ok
    np.testing.assert_allclose(result.positions[:3], result.positions[[38, 37, 36]], atol=1e-4)
