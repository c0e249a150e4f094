"""Leader vertices of tied groups: invariance of constraints, and step bounds."""

import numpy as np
import pytest
from problems import NON_MATCHING_TIES, hung, tied_blocks
from problems import material as of
from scipy.sparse import csr_array, eye_array

from supple.ordering import TieEquations, batch_tied_groups, eliminate_ties, tie_equations
from supple.scene import build_model

EACH_SCENE = pytest.mark.parametrize("name", NON_MATCHING_TIES)


def groups_of(links, n):
    """(members, weights) of every group of links."""
    for batch in range(len(links.members)):
        for lane in range(links.width[batch]):
            members, weights = links.members[batch, :, lane], links.weight[batch, :, lane]
            if members[0] < n:
                yield members[members < n], weights[members < n]


@pytest.mark.parametrize("name", ["hung", "tendon", "layers"])
def test_group_steps_change_no_constraint(name):
    model = build_model(NON_MATCHING_TIES[name]())
    links = batch_tied_groups(model.terms, model.free, np.dtype("float64"))
    C = tie_equations(model.terms, model.free).coefficients
    leaders = 0
    for members, weights in groups_of(links, model.vertices):
        step = np.zeros(model.vertices)
        step[members] = weights
        assert step[members[0]] == 1
        assert np.abs(C @ step).max() < 1e-12
        leaders += 1
    tied = np.unique(C.indices)
    assert leaders == len(tied) - np.linalg.matrix_rank(C.toarray())  # each takes one vertex's freedom


@EACH_SCENE
def test_group_steps_span_the_null_space_of_constraints(name):
    """x_a = Σ w_b x_b spans it for any shared vertices."""
    model = build_model(NON_MATCHING_TIES[name]())
    ties = tie_equations(model.terms, model.free)
    weights, follows = eliminate_ties(ties)
    assert not follows[weights.indices].any()
    C = ties.coefficients.toarray()[:, model.free]
    W = (eye_array(model.vertices) + weights).toarray()[np.ix_(model.free, model.free & ~follows)]
    np.testing.assert_allclose(C @ W, 0, atol=1e-12)
    assert W.shape[1] == C.shape[1] - np.linalg.matrix_rank(C)


def test_random_constraints_with_shared_vertices():
    random = np.random.default_rng(0)
    for _ in range(20):
        C = np.zeros((8, 14))
        for row in C:
            row[random.choice(14, 4, replace=False)] = [1, *-random.dirichlet(np.ones(3))]
        C[-1] = C[0] - C[1]
        weights, follows = eliminate_ties(TieEquations(csr_array(C), random.uniform(1, 2, 8)))
        W = (eye_array(14) + weights).toarray()[:, ~follows]
        np.testing.assert_allclose(C @ W, 0, atol=1e-9)
        assert follows.sum() == np.linalg.matrix_rank(C)


def test_groups_of_pinned_and_matching_ties():
    model = build_model(tied_blocks(of("corotated"), of("corotated")))
    weights, _ = eliminate_ties(tie_equations(model.terms, model.free))
    assert set(weights.data.tolist()) == {1.0}
    free = model.free.copy()
    free[model.terms[-1].vertices[:, 1]] = False
    weights, follows = eliminate_ties(tie_equations(model.terms, free))
    assert weights.nnz == 0
    assert follows.sum() == len(model.terms[-1].vertices)


def test_groups_of_a_color_share_no_stencil():
    model = build_model(hung())
    links = batch_tied_groups(model.terms, model.free, np.dtype("float64"))
    for color in range(links.colors):
        part = slice(links.color_start[color], links.color_start[color + 1])
        table = links.members[part].transpose(0, 2, 1).reshape(-1, links.members.shape[1])
        table = table[table[:, 0] < model.vertices]
        owner = np.full(model.vertices + 1, -1)
        for group, members in enumerate(table):
            owner[members] = group
        owner[-1] = -1
        for term in model.terms:
            vertices = owner[term.vertices]
            for stencil in vertices[(vertices >= 0).any(axis=1)]:
                assert len(set(stencil[stencil >= 0].tolist())) == 1
