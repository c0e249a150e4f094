"""Checks and repair of tetrahedral meshes."""

import numpy as np
import pytest

from supple.meshes import MeshError, TetMesh, TriMesh, block

CORNER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
TET = [[0, 1, 2, 3]]
INVERTED = [[0, 2, 1, 3]]
FLAT = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float)


def with_bad_points(value):
    points = np.tile(CORNER, (3, 1))
    points[[2, 5], 1] = value
    return points


BAD = {
    "ragged points": ([[0, 0, 0], [1, 0]], TET, "points must be a rectangular array"),
    "text": ([["a", "b", "c"]], TET, "points must be an array of numbers"),
    "complex points": (CORNER * 1j, TET, "complex"),
    "2D points": (CORNER[:, :2], TET, r"shape \(n, 3\).*\(4, 2\)"),
    "triangles": (CORNER, [[0, 1, 2]], r"shape \(m, 4\).*\(1, 3\)"),
    "one flat list of tets": (CORNER, [0, 1, 2, 3], r"shape \(m, 4\)"),
    "no points": (np.zeros((0, 3)), TET, "no points"),
    "no tets": (CORNER, np.zeros((0, 4), int), "no tets"),
    "an empty list": (CORNER, [], "no tets"),
    "NaN": (with_bad_points(np.nan), TET, "2 of 12 points are NaN or infinite: 2, 5"),
    "infinity": (with_bad_points(-np.inf), TET, "2 of 12 points are NaN or infinite: 2, 5"),
    "fractions": (CORNER, [[0, 1, 2, 2.5]], r"whole numbers.*tet 0 is \[0.0, 1.0, 2.0, 2.5\]"),
    "NaN in tets": (CORNER, [[0, 1, 2, np.nan]], "whole numbers"),
    "booleans": (CORNER, [[True, False, True, True]], "bool"),
    "too high": (CORNER, [[0, 1, 2, 3], [0, 1, 2, 9]], "Tet 1 uses vertex 9, but vertices go from 0 to 3"),
    "too high for 32 bits": (CORNER, [[0, 1, 2, 2**32 + 3]], "uses vertex 4294967299"),
    "infinite index": (CORNER, [[0, 1, 2, np.inf]], "uses vertex inf"),
    "negative": (CORNER, [[0, 1, 2, -1]], "Tet 0 uses vertex -1"),
    "from 1": (CORNER, [[1, 2, 3, 4]], "start at 1: subtract 1"),
    "vertex twice": (CORNER, [[0, 1, 2, 3], [3, 1, 0, 3]], r"1 of 2 tets .* twice: tet 1 is \[3, 1, 0, 3\]"),
    "tet twice": (CORNER, [[0, 1, 2, 3], [1, 2, 0, 3]], "tet 1 has the vertices of tet 0"),
    "unused": (np.concatenate([CORNER, CORNER]), TET, "4 of 8 vertices .*: 4, 5, 6, 7.*repair=True"),
    "flat": (FLAT, TET, "1 of 1 tets are flat: 0"),
    "flat and small": (FLAT * 1e-9 + 1e-9, TET, "flat"),
    "flat up to rounding": (FLAT + np.outer([0, 0.1, 0.2, 0.3], [0, 0, 1]), TET, "flat"),
    "coinciding": (CORNER * 0, TET, r"All points of the mesh lie at \(0, 0, 0\)"),
    "tiny": (CORNER * 1e-120, TET, r"is 1e-120 × .* m; sizes must be between 1e-12 and 1e\+12 m"),
    "huge": (
        CORNER * 1e300,
        TET,
        r"points reach 1e\+300 m from the origin; sizes must be between 1e-12 and 1e\+12 m",
    ),
    "far away": (CORNER * 1e-9 + 1e9, TET, r"lie at \(1e\+09, 1e\+09, 1e\+09\).* far from the origin"),
    "rounded": (CORNER * 1e-9 + 1e6, TET, r"up to 1e\+06 m from .* coordinates are 1\.2e-10 m apart"),
    "inverted": (CORNER, INVERTED, r"1 of 1 tets are inverted.*tet 0 \(-0.167 m³\).*repair=True"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_mesh_is_refused_with_a_reason(name):
    points, tets, message = BAD[name]
    with pytest.raises(MeshError, match=message):
        TetMesh(points, tets)


def test_mesh_error_is_a_value_error():
    assert issubclass(MeshError, ValueError)


def test_long_lists_are_shortened():
    with pytest.raises(MeshError, match="100 of 104 vertices belong to no tet: 4, 5, 6, 7, 8 and 95 more"):
        TetMesh(np.concatenate([CORNER, np.zeros((100, 3))]), TET)


def test_inverted_tets_are_named_worst_first():
    points = np.concatenate([CORNER, 2 * CORNER + 5, CORNER / 2 - 5])
    with pytest.raises(MeshError, match=r"2 of 3 tets are inverted.*tet 1 \(-1.33 m³\), tet 0 \(-0.167 m³\)"):
        TetMesh(points, [[0, 2, 1, 3], [4, 6, 5, 7], [8, 9, 10, 11]])


@pytest.mark.parametrize("scale", [1e-11, 1e-9, 1, 1e9, 1e11])
def test_slivers_are_allowed_at_any_scale(scale):
    sliver = CORNER * [1, 1, 1e-11] * scale
    assert TetMesh(sliver, TET).volume == pytest.approx(1e-11 * scale**3 / 6)


@pytest.mark.parametrize(("size", "origin"), [(1e-9, 1.0), (1e-3, 1e6), (1.0, 1e9), (1e5, 1e11)])
def test_small_meshes_may_be_far_from_the_origin(size, origin):
    assert TetMesh(CORNER * size + origin, TET).volume == pytest.approx(size**3 / 6, rel=1e-2)


@pytest.mark.parametrize("kind", [TetMesh, TriMesh])
@pytest.mark.parametrize("factor", [0, np.nan, np.inf, [1, 0, 1], [1, 2]])
def test_collapsing_factors_are_refused(kind, factor):
    mesh = TetMesh(CORNER, TET) if kind is TetMesh else TriMesh(CORNER, [[0, 1, 2]])
    with pytest.raises(MeshError, match="scale must be"):
        mesh.scaled(factor)


def test_integral_floats_and_lists_are_accepted():
    assert TetMesh(CORNER.tolist(), np.array(TET, float)).tets.tolist() == TET


def test_repair_turns_inverted_tets():
    good = block(2)
    tets = good.tets.copy()
    tets[::3] = tets[::3][:, [1, 0, 2, 3]]
    with pytest.raises(MeshError, match="14 of 40 tets are inverted"):
        TetMesh(good.points, tets)
    repaired = TetMesh(good.points, tets, repair=True)
    assert repaired.volumes == pytest.approx(good.volumes)
    assert np.sort(repaired.tets).tolist() == np.sort(good.tets).tolist()


def test_repair_removes_unused_vertices():
    points = np.insert(CORNER, [0, 2, 2, 4], 9.0, axis=0)
    tets = np.array([[1, 2, 5, 6]])
    mesh = TetMesh(points, tets, repair=True)
    assert mesh.points.tolist() == CORNER.tolist()
    assert mesh.tets.tolist() == TET
    assert points[np.unique(tets)].tolist() == mesh.points.tolist()


def test_repair_refuses_flat_tets():
    with pytest.raises(MeshError, match="flat"):
        TetMesh(FLAT, TET, repair=True)
