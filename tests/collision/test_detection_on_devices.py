"""Collision detection on a fake device equals that of the host."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from surface_cases import CASES, nearby_bodies, searches

import supple
from supple.collision.broad_phase import search as grid
from supple.collision.broad_phase.broad_phase import BroadPhase
from supple.collision.broad_phase.cached_broad_phase import Candidates
from supple.collision.broad_phase.positions import Points
from supple.collision.broad_phase.search import find_pairs
from supple.collision.narrow_phase.proximity_bounds import proximity_pairs
from supple.kernels import HOST, Host
from supple.problem import Problem

pytestmark = pytest.mark.usefixtures("fake_device")


def card():
    from supple.problem.cuda import Cuda

    return Cuda(records=2)


@pytest.mark.parametrize("name", CASES)
def test_device_pairs_equal_host_pairs(name, fake_device):  # noqa: F811
    for primitives in searches(name):
        for radius in (0.02, 0.2):
            pairs, expected = (find_pairs(*primitives, radius, runner) for runner in (card(), HOST))
            for a, b in zip(pairs, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    assert fake_device.launched.count("search_all") >= 8


@pytest.mark.parametrize("where", ["card", "one", "several"])
def test_capacity_grows_to_hold_all_pairs(where, monkeypatch):
    """No pair is dropped, however small the expected number."""
    primitives, runner = list(searches("crumpled"))[1], {"one": HOST, "several": Host(3)}.get(where) or card()
    expected = find_pairs(*primitives, 0.3)
    monkeypatch.setattr(grid, "INITIAL_CAPACITY", 0)
    pairs = find_pairs(*primitives, 0.3, runner)
    assert len(pairs.one) > 2 * len(primitives[1])
    for a, b in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_device_detection_of_moving_bodies_equals_the_host(fake_device):  # noqa: F811
    rng, runner, (surfaces, x) = np.random.default_rng(1), card(), nearby_bodies()
    known, candidates, pairs = BroadPhase(surfaces), Candidates(surfaces), 0
    for _ in range(6):
        actual, expected = (
            surfaces.contact_pairs(x, 0.05, 0.1, runner, known),
            surfaces.contact_pairs(x, 0.05, 0.1),
        )
        for name, values in vars(expected).items():
            np.testing.assert_allclose(vars(actual)[name], values, atol=1e-12)
        near, expected = (
            proximity_pairs(surfaces, x, 0.1, runner, candidates),
            proximity_pairs(surfaces, x, 0.1),
        )
        np.testing.assert_array_equal(near.keys, expected.keys)
        np.testing.assert_allclose(near.distance, expected.distance, atol=1e-14)
        pairs += len(near.keys)
        x = x + 5e-3 * rng.normal(size=(6, 3))[surfaces.body] + 5e-4 * rng.normal(size=x.shape)
    assert pairs > 100
    launched = fake_device.launched
    assert launched.count("search_all") >= 6 * 5
    assert "sift_all" not in launched


def test_pairs_detected_by_a_device_serve_the_host():
    """A frame solved on the device can be evaluated on the host."""
    surfaces, x = nearby_bodies()
    known, detected = Candidates(surfaces), []
    for runner in (card(), HOST, card(), Host(2)):
        detected.append(known.vertices(Points.at(x), 0.1, runner))
        for numbers in detected[-1]:
            runner.download(numbers)
    assert len(detected[0][0]) > 0
    for pairs in detected:
        np.testing.assert_array_equal(pairs, detected[0])


@pytest.mark.parametrize(("contact", "down"), [("weak", 0.05), ("barrier", 0.01)])
def test_device_problems_have_the_contacts_of_host_problems(contact, down, fake_device):  # noqa: F811
    scene = supple.Scene(quasistatic=False, contact=contact)
    elastic = supple.Corotated(young=1e5, poisson=0.3)
    scene.add_solid(supple.block(2), elastic, density=100)
    block = supple.block(1, size=(0.5, 0.5, 0.5)).rotated((1, 0, 0.3), 0.1).translated((0.2, 1.06, 0.2))
    scene.add_solid(block, elastic, density=100)
    model = supple.scene.build_model(scene, quasistatic=False)
    ((_, dynamic_term),) = model.dynamic_terms
    from supple.problem.cuda import Cuda

    lower = down * (np.arange(model.vertices) >= 27)[:, None] * (0, -1, 0)
    terms = []
    for device in (Cuda(model.vertices + 1), None):
        problem = Problem(model, "float64", 1, device)
        problem.positions = model.rest + lower
        terms.append(dynamic_term.update(problem, 0.0))
    assert len(terms[1].vertices) > 0
    for name in ("vertices", "keys"):
        np.testing.assert_array_equal(getattr(terms[0], name), getattr(terms[1], name))
    assert "search_all" in fake_device.launched
