"""Colors and batches of vertices: independence and completeness."""

from collections import Counter

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, material, tied_blocks

import supple
from supple.kernels import lanes_of
from supple.ordering import batch_elements, batch_tied_groups, batch_vertices, color_vertices, incidence
from supple.ordering.batches import best_width
from supple.scene import build_model

MODELS = {
    "cantilever": build_model(cantilever(material("corotated"), cells=4)),
    "tied": build_model(tied_blocks(material("corotated"), material("neo_hookean"))),
    "ball": build_model(cantilever(material("corotated"), cells=1)),
}
_scene = supple.Scene(gravity=(0, 0, 0))
_scene.add_solid(supple.ball(1.0, 3), material("corotated"))
MODELS["ball"] = build_model(_scene)

_tied = tied_blocks(material("corotated"), material("corotated"))
_other = _tied.add_solid(supple.block(2, origin=(5, 5, 5)), material("stvk"))  # of which no link knows
_tied.pin(_other.where(lambda X: X[:, 0] <= 5))
MODELS["tied beside another"] = build_model(_tied)

EACH_MODEL = pytest.mark.parametrize("name", MODELS)


@EACH_MODEL
def test_vertices_of_a_color_share_no_stencil(name):
    model = MODELS[name]
    color = color_vertices([t.vertices for t in model.terms], np.flatnonzero(model.free), model.vertices)
    for term in model.terms:
        for stencil in term.vertices:
            colors = color[np.unique(stencil)]
            colors = colors[colors >= 0]
            assert len(set(colors.tolist())) == len(colors)


@EACH_MODEL
def test_exactly_the_free_vertices_are_colored(name):
    model = MODELS[name]
    color = color_vertices([t.vertices for t in model.terms], np.flatnonzero(model.free), model.vertices)
    np.testing.assert_array_equal(color >= 0, model.free)
    assert set(color[model.free].tolist()) == set(range(color.max() + 1))


def test_each_vertex_takes_the_smallest_free_color():
    """Greedy in the order given [PBNG section 10]: on a path of edges visited from one end, two colors."""
    path = np.column_stack([np.arange(9), np.arange(1, 10)])
    color = color_vertices([path], np.arange(10), 10)
    np.testing.assert_array_equal(color, np.arange(10) % 2)
    color = color_vertices([path], np.array([0, 3, 1, 2, *range(4, 10)]), 10)
    np.testing.assert_array_equal(color[:4], [0, 1, 2, 0])


def test_block_of_the_paper_has_five_colors():
    """PBNG Table 1: 32,768 vertices, 148,955 tets, 5 colors."""
    mesh = supple.block((31, 31, 31))
    assert (len(mesh.points), len(mesh.tets)) == (32_768, 148_955)
    color = color_vertices([mesh.tets], np.arange(len(mesh.points)), len(mesh.points))
    assert color.max() + 1 == 5


def test_incidence_lists_every_slot_once():
    stencils = np.array([[0, 1, 2], [2, 3, -1], [1, 2, 0]])
    start, element, slot = incidence(stencils, 5)
    for v in range(5):
        mine = list(zip(element[start[v] : start[v + 1]], slot[start[v] : start[v + 1]], strict=True))
        assert mine == [(e, s) for e in range(3) for s in range(3) if stencils[e, s] == v]


@EACH_MODEL
@pytest.mark.parametrize("precision", PRECISIONS)
def test_batches_contain_each_free_vertex_once(name, precision):
    model, dtype = MODELS[name], np.dtype(precision)
    batches = batch_vertices(model.terms, model.free, dtype)
    assert batches.own.shape[1:] == (1, lanes_of(dtype))
    vertices = batches.own[batches.own < model.vertices]
    np.testing.assert_array_equal(np.sort(vertices), np.flatnonzero(model.free))
    assert set(batches.own[batches.own >= model.vertices].tolist()) <= {model.vertices}


@EACH_MODEL
def test_batches_do_not_mix_colors(name):
    model = MODELS[name]
    batches = batch_vertices(model.terms, model.free, np.dtype("float64"))
    color = color_vertices([t.vertices for t in model.terms], np.flatnonzero(model.free), model.vertices)
    assert batches.colors == color.max() + 1
    for c in range(batches.colors):
        own = batches.own[batches.color_start[c] : batches.color_start[c + 1]]
        assert set(color[own[own < model.vertices]].tolist()) == {c}


def tet_incidence(own_of_row, rows, padding):
    """(visiting vertex, the three others, volume) of every incidence with a volume."""
    incidence = []
    for row, lane in zip(*np.nonzero(rows.rest[:, 9] > 0), strict=True):
        others = tuple(sorted(rows.others[row, :, lane].tolist()))
        incidence.append((int(own_of_row[row, lane]), others))
    return Counter(incidence)


AT_ONCE = [None, 1, 3.5, 10**6]
"""Numbers of batches in flight: with more of them, more lanes share a vertex."""


@EACH_MODEL
@pytest.mark.parametrize("concurrent_batches", AT_ONCE)
def test_lanes_share_vertices_by_batch_width(name, concurrent_batches):
    model = MODELS[name]
    batches = batch_vertices(model.terms, model.free, np.dtype("float32"), 32, concurrent_batches)
    own, width = batches.own[:, 0], batches.width
    first = np.arange(32) < width[:, None]
    vertices = own[first]
    np.testing.assert_array_equal(np.sort(vertices[vertices < model.vertices]), np.flatnonzero(model.free))
    np.testing.assert_array_equal(own, np.take_along_axis(own, np.arange(32) % width[:, None], axis=1))


def test_widths_follow_from_the_concurrency():
    """Batches should be full in sequence; if all run at once, each vertex takes a lane per visit."""
    for incidences in ([8], [32], [32, 3]):
        assert best_width(1000, incidences, 32, 1) == 32
        assert best_width(1000, incidences, 32, 10**6) == 32 // max(incidences)
    widths = [best_width(4000, [32], 32, concurrent_batches) for concurrent_batches in (1, 100, 1000, 10**5)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) > 2


@EACH_MODEL
@pytest.mark.parametrize("concurrent_batches", AT_ONCE)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_incidence_appears_once(name, precision, concurrent_batches):
    """Each free vertex of each tet visits it exactly once, and other lanes are idle."""
    model = MODELS[name]
    lanes = None if concurrent_batches is None else 32
    batches = batch_vertices(model.terms, model.free, np.dtype(precision), lanes, concurrent_batches)
    for term, rows in zip(model.terms, batches.terms, strict=True):
        if not hasattr(rows, "rest"):
            continue
        own_of_row = np.repeat(batches.own[:, 0], np.diff(rows.start), axis=0)
        expected = Counter(
            (int(v), tuple(sorted(int(w) for w in tet if w != v)))
            for tet in term.vertices
            for v in tet
            if model.free[v]
        )
        assert tet_incidence(own_of_row, rows, model.vertices) == expected


@EACH_MODEL
def test_empty_lanes_refer_to_their_own_vertex(name):
    """There F = I, and no lane reads a vertex that another thread writes."""
    model = MODELS[name]
    batches = batch_vertices(model.terms, model.free, np.dtype("float64"))
    rows = batches.terms[0]
    own_of_row = np.repeat(batches.own[:, 0], np.diff(rows.start), axis=0)
    empty = rows.rest[:, 9] == 0
    for slot in range(3):
        np.testing.assert_array_equal(rows.others[:, slot][empty], own_of_row[empty])


@EACH_MODEL
def test_elements_appear_once_in_order(name):
    model = MODELS[name]
    term = model.terms[0]
    elements = batch_elements(term, np.dtype("float32"), model.vertices)
    own = elements.own[:, 0].ravel()
    np.testing.assert_array_equal(own[: len(term.vertices)], term.vertices[:, 0])
    assert set(own[len(term.vertices) :].tolist()) <= {model.vertices}
    others = elements.rows.others.transpose(0, 2, 1).reshape(-1, 3)[: len(term.vertices)]
    np.testing.assert_array_equal(np.sort(others, axis=1), np.sort(term.vertices[:, 1:], axis=1))


def test_links_are_the_tied_vertices_without_shared_stencils_in_a_color():
    model = MODELS["tied"]
    links = batch_tied_groups(model.terms, model.free, np.dtype("float64"))
    groups = {
        c: links.members[links.color_start[c] : links.color_start[c + 1]].transpose(0, 2, 1).reshape(-1, 2)
        for c in range(links.colors)
    }
    pairs = {tuple(sorted(g)) for group in groups.values() for g in group.tolist() if g[0] < model.vertices}
    assert pairs == {tuple(sorted(stencil)) for stencil in model.terms[-1].vertices.tolist()}
    for group in groups.values():
        for term in model.terms:
            for stencil in term.vertices.tolist():
                touching = [g for g in group.tolist() if set(g) & set(stencil)]
                assert len(touching) <= 1


def test_model_without_ties_has_no_links():
    model = MODELS["cantilever"]
    assert batch_tied_groups(model.terms, model.free, np.dtype("float64")) is None
