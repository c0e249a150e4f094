"""Colors and clusters of elements: independence, completeness and number."""

import numpy as np
import pytest
from problems import PRECISIONS, material, tied_blocks
from real_meshes import real_mesh

import supple
from supple.kernels import lanes_of
from supple.ordering import (
    batch_colored_elements,
    cluster_elements,
    color_elements,
    color_vertices,
)
from supple.ordering.clustering import element_graph, smallest_degree_last
from supple.ordering.element_batches import color_groups, element_groups
from supple.scene import build_model
from supple.terms import TetElasticity

K = 5
"""Cluster size of BNH Table 2."""


def stencils(mesh: supple.TetMesh) -> tuple[np.ndarray, int]:
    return np.asarray(mesh.tets), len(mesh.points)


def shape(name: str) -> tuple[np.ndarray, int]:
    """(stencils, number of vertices) of a named mesh."""
    if name.endswith(".mesh"):
        return stencils(supple.load_mesh(real_mesh(name)))
    return stencils({"block": lambda: supple.block(10), "ball": lambda: supple.ball(1.0, 4)}[name]())


SHAPES = pytest.mark.parametrize("name", ["block", "ball", "octopus-low.mesh", "bunny.mesh"])


def shared_vertices(groups: np.ndarray, color: np.ndarray, tets: np.ndarray) -> int:
    """Number of vertices that appear in more than one group of a color."""
    group, slot = np.nonzero(groups >= 0)
    corners = tets[groups[group, slot]]
    vertices = np.unique(np.column_stack([np.repeat(group, corners.shape[1]), corners.ravel()]), axis=0)
    pairs = np.column_stack([color[vertices[:, 0]], vertices[:, 1]])
    return len(pairs) - len(np.unique(pairs, axis=0))


@SHAPES
def test_elements_of_a_color_share_no_vertex(name):
    tets, n = shape(name)
    color = color_elements(tets, n)
    assert shared_vertices(np.arange(len(tets))[:, None], color, tets) == 0
    assert set(color.tolist()) == set(range(color.max() + 1))


def test_number_of_colors_is_unlimited():
    """Two hundred pairs share one vertex."""
    star = np.column_stack([np.zeros(200, int), np.arange(1, 201)])
    color = color_elements(np.concatenate([star, [[1, 2], [3, 4]]]), 201)
    np.testing.assert_array_equal(color, [*range(200), 2, 0])


@SHAPES
@pytest.mark.parametrize("size", [1, 2, K])
def test_clusters_are_disjoint_cover_all_and_keep_their_size(name, size):
    tets, n = shape(name)
    clusters = cluster_elements(tets, n, size)
    members = clusters[clusters >= 0]
    np.testing.assert_array_equal(np.sort(members), np.arange(len(tets)))
    sizes = (clusters >= 0).sum(axis=1)
    assert sizes.min() >= 1
    assert sizes.max() <= size
    assert sizes.mean() > 0.95 * size or name == "octopus-low.mesh"


@SHAPES
def test_elements_of_a_cluster_are_connected(name):
    """Each is a neighbor of the first one [BNH Algorithm 4]."""
    tets, n = shape(name)
    for cluster in cluster_elements(tets, n, K)[:200]:
        first, *others = (set(tets[e].tolist()) for e in cluster if e >= 0)
        assert all(first & other for other in others)


@SHAPES
def test_clusters_of_a_color_share_no_vertex(name):
    tets, n = shape(name)
    groups = element_groups(tets, n, K)
    assert shared_vertices(groups, color_groups(groups, tets, n), tets) == 0


@pytest.mark.parametrize("name", ["block", "octopus-low.mesh", "bunny.mesh"])
def test_clusters_need_a_quarter_to_half_of_the_colors(name):
    """BNH Table 2: 17/40 for a beam, 21/52 for a bunny, 22/78 for an octopus, 24 to 43 % in all."""
    tets, n = shape(name)
    plain = color_elements(tets, n).max() + 1
    groups = element_groups(tets, n, K)
    clustered = color_groups(groups, tets, n).max() + 1
    assert 0.25 <= clustered / plain <= 0.45


def test_colors_of_the_block_of_32768_vertices():
    """PBNG Table 1: 5 colors of nodes, 39 of constraints; clusters need at most 45 % of these."""
    tets, n = stencils(supple.block(31))
    assert (n, len(tets)) == (32_768, 148_955)
    assert color_vertices([tets], np.arange(n), n).max() + 1 == 5
    plain = color_elements(tets, n).max() + 1
    assert 37 <= plain <= 40
    groups = element_groups(tets, n, K)
    assert color_groups(groups, tets, n).max() + 1 <= 0.45 * plain


@pytest.mark.parametrize("cells", [(3, 4, 5), (10, 10, 10)])
def test_cells_of_a_block_need_eight_colors(cells):
    """Each interior vertex is in eight cells [BNH section 4.1]."""
    tets, n = stencils(supple.block(cells))
    groups = element_groups(tets, n, 1, cells=True)
    color = color_groups(groups, tets, n)
    np.testing.assert_array_equal(np.sort(groups.ravel()), np.arange(len(tets)))
    assert shared_vertices(groups, color, tets) == 0
    assert color.max() + 1 == 8


def test_cells_need_a_block_mesh():
    tets, n = stencils(supple.ball(resolution=3))
    with pytest.raises(ValueError, match="use ordering='clusters'"):
        element_groups(tets, n, 1, cells=True)


@SHAPES
@pytest.mark.parametrize("size", [1, K])
def test_elements_in_vertex_order_are_colored_validly(name, size):
    """BNH section 6.2; the order costs some colors on block meshes, elsewhere hardly any."""
    tets, n = shape(name)
    groups = element_groups(tets, n, size, smallest_last=True)
    np.testing.assert_array_equal(np.sort(groups[groups >= 0]), np.arange(len(tets)))
    color = color_groups(groups, tets, n)
    assert shared_vertices(groups, color, tets) == 0
    plain = element_groups(tets, n, size)
    assert color.max() <= 1.4 * color_groups(plain, tets, n).max()


def test_each_element_takes_the_smallest_free_color():
    """Greedy in the order given [PBNG section 10]: along a chain of edges, two colors."""
    chain = np.column_stack([np.arange(9), np.arange(1, 10)])
    np.testing.assert_array_equal(color_elements(chain, 10), np.arange(9) % 2)
    order = np.array([0, 3, 1, 2])
    color = color_groups(order[:, None], chain[:4], 5)
    np.testing.assert_array_equal(color, [0, 0, 1, 2])


def test_neighbors_are_sorted_by_distance():
    """The distance is 1 - |shared|/|all| [BNH eq. 15]: first across a face, then an edge, then a corner."""
    tets, n = stencils(supple.block(3))
    start, neighbor, shared = element_graph(tets, n)
    for e in range(len(tets)):
        near, count = neighbor[start[e] : start[e + 1]], shared[start[e] : start[e + 1]]
        assert np.all(np.diff(count) <= 0)
        expected = [len(set(tets[e].tolist()) & set(tets[o].tolist())) for o in near]
        assert count.tolist() == expected
        touching = np.flatnonzero(np.isin(tets, tets[e]).any(axis=1))
        assert sorted([*near.tolist(), e]) == touching.tolist()


def test_first_cluster_starts_at_the_least_sum_of_distances():
    """BNH eq. 16: the sum over unclaimed neighbors; on a chain, one of its ends."""
    chain = np.column_stack([np.arange(9), np.arange(1, 10)])
    first = cluster_elements(chain, 10, 2)[0]
    assert first.tolist() in ([0, 1], [8, 7])


def test_remaining_elements_form_smaller_clusters():
    """A chain of seven edges: clusters of three reach one neighbor on each side, the rest shrinks."""
    chain = np.column_stack([np.arange(7), np.arange(1, 8)])
    sizes = (cluster_elements(chain, 8, 3) >= 0).sum(axis=1)
    assert sizes.sum() == 7
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[-1] < 3


def test_smallest_degree_last():
    """Every node has the least degree among itself and its predecessors [Matula and Beck 1983]."""
    start, neighbor, _ = element_graph(*stencils(supple.ball(1.0, 3)))
    order = smallest_degree_last(start, neighbor)
    assert sorted(order.tolist()) == list(range(len(start) - 1))
    remaining = np.ones(len(order), bool)
    degree = np.diff(start).copy()
    for node in order[::-1]:
        assert degree[node] == degree[remaining].min()
        remaining[node] = False
        degree[neighbor[start[node] : start[node + 1]]] -= 1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", [1, K])
def test_batches_contain_every_element_once_in_independent_lanes(size, precision):
    mesh = supple.ball(1.0, 3)
    term = TetElasticity.from_mesh(mesh.points, mesh.tets, material("corotated"))
    n, lanes = len(mesh.points), lanes_of(precision)
    batches = batch_colored_elements(term, n, np.dtype(precision), size)
    assert batches.lanes == lanes
    np.testing.assert_array_equal(np.sort(batches.element[batches.element >= 0]), np.arange(len(mesh.tets)))
    corners = np.concatenate([batches.own, batches.rows.others], axis=1)
    empty = batches.element < 0
    assert np.all(corners.transpose(0, 2, 1)[empty] == n)
    assert np.all(batches.rows.rest[:, 9][empty] == 0)
    placed = corners.transpose(0, 2, 1)[~empty]
    np.testing.assert_array_equal(
        np.sort(placed, axis=1), np.sort(np.asarray(mesh.tets)[batches.element[~empty]], axis=1)
    )
    for c in range(batches.colors):
        used: list[int] = []
        for b in range(batches.color_start[c], batches.color_start[c + 1]):
            rows = corners[batches.start[b] : batches.start[b + 1]]
            for lane in range(lanes):
                used += np.unique(rows[:, :, lane][rows[:, :, lane] < n]).tolist()
        assert len(used) == len(set(used))


@pytest.mark.parametrize("size", [1, K])
def test_weak_constraints_are_ordered(size):
    """Constraints with shared vertices, such as interpolated ones, get different colors or one cluster."""
    model = build_model(tied_blocks(material("corotated"), material("corotated")))
    term = model.terms[-1]
    batches = batch_colored_elements(term, model.vertices, np.dtype("float64"), size)
    np.testing.assert_array_equal(
        np.sort(batches.element[batches.element >= 0]), np.arange(len(term.vertices))
    )


def test_weights_are_ordered_by_corner():
    mesh = supple.block(2)
    term = TetElasticity.from_mesh(mesh.points, mesh.tets, material("corotated"))
    n = len(mesh.points)
    batches = batch_colored_elements(term, n, np.dtype("float64"))
    W = batches.gather_corners(np.append(np.arange(n) + 1.0, 0.0), np.dtype("float64"))
    assert np.all(W.transpose(0, 2, 1)[batches.element < 0] == 0)
    np.testing.assert_array_equal(W[:, 0], np.where(batches.own[:, 0] < n, batches.own[:, 0] + 1, 0))


def test_clusters_need_a_size():
    tets, n = stencils(supple.block(1))
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        cluster_elements(tets, n, 0)
