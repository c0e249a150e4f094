"""Generated meshes: sizes, shapes and volumes."""

from math import pi

import numpy as np
import pytest
from mesh_shapes import SHAPES, enclosed_volume

from supple.meshes import MeshError, ball, block, torus


def test_block_of_the_paper():
    mesh = block(cells=(31, 31, 31))
    assert (mesh.n_vertices, mesh.n_tets) == (32_768, 148_955)


def test_block_fills_its_box_exactly():
    mesh = block((3, 4, 5), size=(1, 2, 0.3), origin=(-1, 0, 3))
    assert mesh.bounds == pytest.approx(np.array([[-1, 0, 3], [0, 2, 3.3]]), abs=0)
    assert mesh.volume == pytest.approx(0.6)
    assert mesh.n_tets == 5 * 3 * 4 * 5
    assert mesh.n_vertices == 4 * 5 * 6


def test_block_vertices_are_ordered_by_x_then_y_then_z():
    points = block((2, 3, 4)).points
    assert np.lexsort(points.T[::-1]).tolist() == list(range(len(points)))


def test_single_number_is_used_for_all_axes():
    assert block(2, size=3).points.tolist() == block((2, 2, 2), size=(3, 3, 3)).points.tolist()


def test_bar_is_longest_in_x():
    mesh = block((40, 10, 10), size=(4, 1, 1))
    assert mesh.size.tolist() == [4, 1, 1]
    assert mesh.n_tets == 5 * 40 * 10 * 10


def test_ball_counts():
    mesh = ball(resolution=4)
    assert mesh.n_tets == 20 * 4**3
    assert len(mesh.surface) == 20 * 4**2


def test_ball_surface_lies_on_the_sphere():
    mesh = ball(0.7, resolution=5)
    radius = np.linalg.norm(mesh.points, axis=1)
    assert radius[mesh.surface_vertices] == pytest.approx(0.7)
    assert radius.max() <= 0.7 * (1 + 1e-12)
    assert len(np.unique(mesh.points.round(9), axis=0)) == mesh.n_vertices


def test_torus_surface_lies_on_the_torus():
    mesh = torus(2, 0.5, resolution=3)
    x, y, z = mesh.points[mesh.surface_vertices].T
    assert np.hypot(np.hypot(x, y) - 2, z) == pytest.approx(0.5)


def test_torus_has_a_hole():
    """Euler's V - E + F is 0 for the surface of a torus and 2 for that of a ball."""
    for mesh, euler in ((torus(), 0), (ball(), 2)):
        edges = 3 * len(mesh.surface) // 2
        assert len(mesh.surface_vertices) - edges + len(mesh.surface) == euler


@pytest.mark.parametrize(
    ("make", "exact"),
    [
        (lambda n: ball(1.3, n), 4 / 3 * pi * 1.3**3),
        (lambda n: torus(1.5, 0.6, n), 2 * pi**2 * 1.5 * 0.6**2),
    ],
    ids=["ball", "torus"],
)
def test_volume_converges_quadratically(make, exact):
    coarse, fine = (1 - make(n).volume / exact for n in (6, 12))
    assert 0 < fine < 0.01
    assert coarse / fine == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("name", SHAPES)
def test_tets_do_not_overlap(name):
    """A folded mesh with repaired orientation would have more volume than its surface encloses."""
    mesh = SHAPES[name]()
    assert mesh.volumes.min() > 0
    assert mesh.volume == pytest.approx(enclosed_volume(mesh), rel=1e-12)
    assert mesh.n_components == 1


@pytest.mark.parametrize("make", [block, ball, torus, lambda: ball(1, 16), lambda: torus(1, 0.35, 8)])
def test_tets_are_well_shaped(make):
    assert make().quality.min() > 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: block(0), "cells must be .* at least 1, got 0"),
        (lambda: block((3, 3)), "cells must be one whole number or three"),
        (lambda: block((3, 3, 2.5)), "cells must be one whole number or three"),
        (lambda: block(2, size=(1, 0, 1)), "size must be positive"),
        (lambda: block(2, size=(1, 1)), "size must be one finite number or three"),
        (lambda: block(2, origin=(0, 0, np.nan)), "origin must be one finite number or three"),
        (lambda: block(size=(-4, 1, 1)), "size must be positive"),
        (lambda: ball(0), "radius must be positive"),
        (lambda: ball(1, 0), "resolution must be a whole number of at least 1, got 0"),
        (lambda: ball(1, 2.5), "resolution must be a whole number"),
        (lambda: torus(-1), "major must be positive"),
        (lambda: torus(1, np.nan), "minor must be positive"),
        (lambda: torus(1, 1), "minor must be smaller than major"),
    ],
)
def test_impossible_shapes_are_refused(make, message):
    with pytest.raises(MeshError, match=message):
        make()
