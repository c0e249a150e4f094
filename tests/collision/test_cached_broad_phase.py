"""Cached candidate pairs give the same results as a new broad phase."""

import pickle

import numpy as np
import pytest
from surface_cases import crowded_bodies, soup

import supple
from supple.collision.broad_phase.broad_phase import BroadPhase
from supple.collision.broad_phase.cached_broad_phase import Candidates
from supple.collision.broad_phase.positions import Points
from supple.collision.broad_phase.search import find_pairs
from supple.collision.geometry.normals import normals_of
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity_bounds import proximity_pairs
from supple.kernels import HOST


@pytest.mark.parametrize("speed", [0.003, 0.03, 0.3])
def test_cached_proximity_pairs_equal_a_new_search(speed):
    rng = np.random.default_rng(1)
    surfaces, x = crowded_bodies(rng)
    centers = np.array([x[surfaces.body == k].mean(axis=0) for k in range(6)])
    x = x - 0.45 * centers[surfaces.body]
    known, near = Candidates(surfaces), 0
    for _ in range(12):
        pairs, expected = (proximity_pairs(surfaces, x, 0.1, HOST, k) for k in (known, None))
        for a, b in zip(pairs, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        near += len(expected.distance)
        x = x + speed * rng.normal(size=(6, 3))[surfaces.body] + 0.1 * speed * rng.normal(size=x.shape)
    assert near > 100


@pytest.mark.parametrize("flat", [False, True])
def test_skipped_cells_contain_no_pairs(flat):
    """Cells are skipped by normals and bodies; the reference is a search without either filter."""
    rng = np.random.default_rng(3)
    surfaces, x = crowded_bodies(rng)
    surfaces.flat[:2] = flat
    centers = np.array([x[surfaces.body == k].mean(axis=0) for k in range(6)])
    x = x - 0.5 * centers[surfaces.body]
    points, body, own = Points.at(x), surfaces.body, 0.02
    normal = normals_of(x, surfaces.triangles, HOST)
    broad_phase = BroadPhase(surfaces, clear=False)
    one, two = find_pairs(x, surfaces.triangles, surfaces.triangles, 0.1)[1:]
    cosine = -(normal[one] * normal[two]).sum(axis=1)
    faces = (cosine > 0.5) | ((cosine < -0.5) & (surfaces.free[one] | surfaces.free[two]))
    pairs = broad_phase.triangles(points, 0.1, normal)
    assert faces.sum() > 50
    np.testing.assert_array_equal(pairs, (one[faces], two[faces]))
    for kind, seek, other in (
        ("vertices", surfaces.vertices, surfaces.triangles),
        ("edges", surfaces.edges, surfaces.edges),
    ):
        one, two = find_pairs(x, seek, other, 0.1)[1:]
        others = body[seek[one, 0]] != body[other[two, 0]]
        near = set(zip(*find_pairs(x, seek, other, own)[1:], strict=True))
        every = set(zip(one, two, strict=True))
        pairs = set(zip(*getattr(broad_phase, kind)(points, 0.1, HOST, own), strict=True))
        assert pairs <= every
        assert pairs >= near | set(zip(one[others], two[others], strict=True))
        assert others.sum() > 0


def test_large_primitives_are_paired_across_distant_cells():
    """Near pairs within a body are also found between cells beyond the search radius."""
    x, triangles = soup(60, seed=5)
    x[:30] = x.mean(axis=0) + 8 * (x[:30] - x.mean(axis=0))
    surfaces = Surfaces(triangles, np.zeros(len(x), int), x, 0.0, np.zeros(1, bool))
    broad_phase, points = BroadPhase(surfaces, clear=False), Points.at(x)
    surfaces.edge = 0.1
    for kind, seek, other in (
        ("vertices", surfaces.vertices, surfaces.triangles),
        ("edges", surfaces.edges, surfaces.edges),
    ):
        near = set(zip(*find_pairs(x, seek, other, 0.02)[1:], strict=True))
        pairs = list(zip(*getattr(broad_phase, kind)(points, 0.3, HOST, 0.02), strict=True))
        assert len(near) > 3
        assert near <= set(pairs)
        assert len(pairs) == len(set(pairs))


def test_search_is_repeated_only_for_approaching_bodies():
    surfaces, x = crowded_bodies(np.random.default_rng(0))
    known = pickle.loads(pickle.dumps(Candidates(surfaces)))
    known.vertices(Points.at(x), 0.1)
    cached = dict(known._cached)
    known.vertices(Points.at(x + np.array([5.0, 0, 0])), 0.1)
    assert known._cached == cached, "all go together"
    known.vertices(Points.at(np.where(surfaces.body[:, None] == 0, x + 0.5, x)), 0.1)
    assert known._cached["vertices", False] is not cached["vertices", False]
    assert known._cached["vertices", True] is cached["vertices", True], "within bodies nothing has moved"


def test_deforming_bodies_are_searched_separately(monkeypatch):
    """Cached pairs within other bodies stay valid, and the union equals a new search."""
    rng, requests = np.random.default_rng(2), []
    surfaces, x = crowded_bodies(rng)
    known = Candidates(surfaces)

    def watched(*given):
        requests.append(given[5].outdated.copy())
        return find_pairs(*given)

    monkeypatch.setattr("supple.collision.broad_phase.cached_broad_phase.find_pairs", watched)
    known.edges(Points.at(x), 0.1)
    for k in (3, 1, 3):
        x = np.where(surfaces.body[:, None] == k, x * rng.uniform(0.5, 0.8, 3), x)
        requests.clear()
        pairs = known.edges(Points.at(x), 0.1)
        within = [late for late in requests if not late.all()]
        assert [np.flatnonzero(late).tolist() for late in within] == [[k]]
        np.testing.assert_array_equal(pairs, Candidates(surfaces).edges(Points.at(x), 0.1))


@pytest.mark.parametrize("contact", ["weak", "barrier"])
def test_batch_members_have_separate_contacts(contact):
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.01, contact=contact)
    elastic = supple.Corotated(young=1e5, poisson=0.3)
    low = scene.add_solid(supple.block(2), elastic, density=100, name="low")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    block = supple.block(1, size=(0.5, 0.5, 0.5)).translated((0.2, 1.02, 0.2))
    high = scene.add_solid(block, elastic, density=100, velocity=(0, -3, 0), name="high")
    sim = supple.Stepper(scene, solver=supple.PBNG(), batch_size=2, tolerance=1e-6)
    for _ in range(3):
        frames = sim.step(forces=np.array([np.zeros((len(low.points) + 8, 3)), lifted(low, high)]))
    pushed = [np.abs(frames[k].evaluate().net_force[frames[k].model.free]).max() for k in range(2)]
    assert len(frames[0].model.terms[-1].vertices) > 0
    assert frames.reports[0].contact.bodies.count > 0
    assert frames.reports[1].contact.bodies.count == 0
    assert max(pushed) < 1e-3 * 100 * 0.125 * 9.81, "with contacts, forces balance"


def lifted(low, high):
    force = np.zeros((len(low.points) + len(high.points), 3))
    force[high.vertices, 1] = 2e3
    return force
