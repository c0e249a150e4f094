"""Colors and batches during exchanges of stencils: valid, and independent of earlier stencils."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import cantilever, material, tied_blocks

from supple.kernels import HOST
from supple.kernels.emulated_gpu import run_lanewise
from supple.ordering import DynamicBatches, batch_vertices, color_vertices, row_arrays
from supple.ordering.dynamic_batches import recolor, static_colors
from supple.scene import build_model
from supple.terms import Springs

MODELS = {
    "cantilever": build_model(cantilever(material("corotated"), cells=3)),
    "tied": build_model(tied_blocks(material("corotated"), material("neo_hookean"))),
}
EACH_MODEL = pytest.mark.parametrize("name", MODELS)


def stencils(n, corners):
    """Tuples of different vertices, in any number."""
    tuples = st.lists(st.integers(0, n - 1), min_size=corners, max_size=corners, unique=True)
    return st.lists(tuples, max_size=30).map(lambda entries: np.array(entries, np.int32).reshape(-1, corners))


def springs(model, pairs, capacity=None):
    pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
    stiffness = 10.0 + np.arange(len(pairs))
    return Springs(pairs, stiffness, 0.1 + 0 * stiffness[:, None], model.rest, capacity)


class Lanes:
    """Runs kernels lane after lane, as a device."""

    def run(self, kernel, phases, *args):
        run_lanewise(kernel, phases, np.zeros(1, np.int32), 1, *args)

    def upload(self, array, rows=None):
        pass


def colors_with(before, new):
    """Colors (n,) of all vertices."""
    color = before.color.copy()
    vertices, colors = recolor(before, new)
    assert (color[vertices] != colors).all()
    color[vertices] = colors
    return color


def one_after_the_other(before, known, new):
    """Sequential reference: in hashed order, a vertex keeps its color or takes the smallest free one."""
    color, tables = before.color.copy(), (*known, *new)
    near = {v: set() for v in range(len(color))}
    for stencil in (set(s.tolist()) - {-1} for table in tables for s in table):
        for v in stencil:
            near[v] |= stencil - {v}
    vertices = {v for table in new for v in table.ravel().tolist() if color[v] >= 0}
    for v in sorted(vertices, key=lambda v: v * 2654435761 % 2**32):
        taken = {int(color[w]) for w in near[v]}
        if int(color[v]) in taken:
            color[v] = min(set(range(len(taken) + 1)) - taken)
    return color


def lasting(model):
    known = [term.vertices for term in model.terms]
    return static_colors(color_vertices(known, np.flatnonzero(model.free), model.vertices), known)


@EACH_MODEL
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_colors_stay_valid_during_exchanges(name, data):
    """Springs, contacts of four vertices and contacts with obstacles are exchanged in any sequence."""
    model = MODELS[name]
    before = lasting(model)
    for _ in range(3):
        new = [data.draw(stencils(model.vertices, corners)) for corners in (1, 2, 4)]
        color = colors_with(before, new)
        known = [term.vertices for term in model.terms]
        np.testing.assert_array_equal(color, one_after_the_other(before, known, new))
        np.testing.assert_array_equal(color >= 0, model.free)
        for stencil in [s for table in (*new, *(t.vertices for t in model.terms)) for s in table]:
            colors = color[np.unique(stencil)]
            colors = colors[colors >= 0]
            assert len(set(colors.tolist())) == len(colors)
        untouched = np.setdiff1d(np.arange(model.vertices), np.concatenate([s.ravel() for s in new]))
        np.testing.assert_array_equal(color[untouched], before.color[untouched])
        shuffled = [table[::-1] for table in new]
        np.testing.assert_array_equal(colors_with(before, shuffled), color)


def test_vertex_keeps_its_color_or_takes_the_smallest_free_one():
    """On a path 0 1 0 1 0 a new stencil ties the ends: one takes color 2, the other keeps its color."""
    path = np.column_stack([np.arange(4), np.arange(1, 5)])
    before = static_colors(color_vertices([path], np.arange(5), 5), [path])
    np.testing.assert_array_equal(colors_with(before, [np.array([[0, 1]])]), before.color)
    color = colors_with(before, [np.array([[0, 4]])])
    assert sorted(color[[0, 4]].tolist()) == [0, 2]
    np.testing.assert_array_equal(color[1:4], [1, 0, 1])


def test_pinned_vertices_need_no_color():
    path = np.column_stack([np.arange(4), np.arange(1, 5)])
    before = static_colors(color_vertices([path], np.arange(3), 5), [path])
    new = [np.array([[0, 4], [2, 4]])]
    np.testing.assert_array_equal(colors_with(before, new), [0, 1, 0, -1, -1])


def test_number_of_colors_is_unlimited():
    """150 vertices in one clique need 150 colors."""
    pairs = np.array([(a, b) for a in range(150) for b in range(a)], np.int32)
    before = static_colors(np.zeros(150, np.int32), [np.empty((0, 2), np.int32)])
    color = colors_with(before, [pairs])
    np.testing.assert_array_equal(np.sort(color), np.arange(150))
    np.testing.assert_array_equal(color, one_after_the_other(before, [], [pairs]))
    np.testing.assert_array_equal(colors_with(before, [pairs[:1]])[2:], np.zeros(148))


def incidence_of(own, width, rows, n):
    """Sorted contents of the lanes of every vertex, without rows that only have ids."""
    incidence = {v: [] for v in range(n + 1)}
    arrays = [a.astype(float) for a in row_arrays(rows)]
    for batch, wide in enumerate(width):
        for row in range(rows.start[batch], rows.start[batch + 1]):
            for lane in range(own.shape[2]):
                v = int(own[batch, 0, lane % wide])
                values = np.concatenate([a[row, :, lane] for a in arrays])
                if values[rows.others.shape[1] :].any():
                    incidence[v].append(tuple(values.tolist()))
    return {v: sorted(values) for v, values in incidence.items()}


@EACH_MODEL
@pytest.mark.parametrize("concurrent_batches", [None, 4.0], ids=["packs", "shared lanes"])
@pytest.mark.parametrize("runner", [HOST, Lanes()], ids=["threads", "lanes"])
def test_moved_vertices_keep_their_incidences(name, concurrent_batches, runner):
    """Incidences equal those of a static batching, and return to the initial ones without dynamic
    stencils."""
    model, lanes, dtype = MODELS[name], 32 if concurrent_batches else 8, np.dtype("float64")
    n, random = model.vertices, np.random.default_rng(0)
    terms = (*model.terms, springs(model, [], capacity=40))
    layout = DynamicBatches(terms, model.free, dtype, lanes, concurrent_batches)
    begun = [[a.copy() for a in row_arrays(rows)] for rows in layout.batches.terms[:-1]]
    for count in (12, 40, 1, 0):
        pairs = random.permutation(n)[: 2 * min(count, n // 2)].reshape(-1, 2)
        terms = (*model.terms, springs(model, pairs, capacity=40))
        layout.set_terms(terms).apply(runner)
        rebuilt = batch_vertices(terms, model.free, dtype, lanes, concurrent_batches)
        own, width = layout.batches.own, layout.batches.width
        ids = np.concatenate([own[b, 0, :w] for b, w in enumerate(width)])
        np.testing.assert_array_equal(np.sort(ids[ids < n]), np.flatnonzero(model.free))
        for rows, expected in zip(layout.batches.terms, rebuilt.terms, strict=True):
            incidence = incidence_of(own, width, rows, n)
            assert incidence == incidence_of(rebuilt.own, rebuilt.width, expected, n)
            assert not incidence[n]
            assert sum(map(len, incidence.values())) > 0 or not count
    for rows, before in zip(layout.batches.terms[:-1], begun, strict=True):
        for array, values in zip(row_arrays(rows), before, strict=True):
            np.testing.assert_array_equal(array, values)


def test_color_lists_contain_every_used_batch_once():
    model = MODELS["cantilever"]
    n, random = model.vertices, np.random.default_rng(1)
    layout = DynamicBatches(
        (*model.terms, springs(model, [], capacity=20)), model.free, np.dtype("float32"), 16
    )
    pairs = random.permutation(n)[:40].reshape(-1, 2)
    layout.set_terms((*model.terms, springs(model, pairs, capacity=20)))
    count, start, order = layout.colors
    batches = order[: start[count]]
    used = np.flatnonzero((layout.own < n).any(axis=(1, 2)))
    assert len(set(batches.tolist())) == len(batches)
    assert set(used.tolist()) <= set(batches.tolist())
    for c in range(count):
        ids = np.unique(layout.own[order[start[c] : start[c + 1]]])
        ids = ids[ids < n]
        for term in (*model.terms, springs(model, pairs)):
            assert np.isin(term.vertices, ids).sum(axis=1).max() <= 1


def test_exchange_beyond_capacity_changes_nothing():
    """The caller can then enlarge the capacity."""
    model = MODELS["cantilever"]
    layout = DynamicBatches(
        (*model.terms, springs(model, [], capacity=1)), model.free, np.dtype("float64"), 8
    )
    own, order = layout.own.copy(), layout.colors.order.copy()
    clique = np.array([(a, b) for a in range(60) for b in range(a)])
    assert layout.set_terms((*model.terms, springs(model, clique, capacity=1))) is None
    np.testing.assert_array_equal(layout.own, own)
    np.testing.assert_array_equal(layout.colors.order, order)
