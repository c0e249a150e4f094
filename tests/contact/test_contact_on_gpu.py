"""Contact on a CUDA device equals that on the CPU, and is repeatable."""

import numpy as np
import pytest
from cuda_device import needs_cuda_device
from surface_cases import CASES, nearby_bodies, searches

import supple
from supple.collision.broad_phase.broad_phase import BroadPhase
from supple.collision.broad_phase.cached_broad_phase import Candidates
from supple.collision.broad_phase.search import find_pairs
from supple.collision.narrow_phase.proximity_bounds import proximity_pairs
from supple.kernels import HOST

pytestmark = needs_cuda_device


def device_runner():
    from supple.problem.cuda import Cuda

    return Cuda(records=2)


@pytest.mark.parametrize("name", CASES)
def test_gpu_pairs_equal_host_pairs(name):
    for primitives in searches(name):
        for radius in (0.02, 0.2):
            pairs, expected = (find_pairs(*primitives, radius, runner) for runner in (device_runner(), HOST))
            for a, b in zip(pairs, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_gpu_contact_pairs_of_moving_bodies_equal_the_host():
    rng, runner, (surfaces, x) = np.random.default_rng(1), device_runner(), nearby_bodies()
    known, candidates = BroadPhase(surfaces), Candidates(surfaces)
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
        x = x + 5e-3 * rng.normal(size=(6, 3))[surfaces.body] + 5e-4 * rng.normal(size=x.shape)


def falling(contact):
    """Two blocks and a ball that fall on each other and on the floor."""
    scene = supple.Scene(quasistatic=False, dt=0.01, contact=contact)
    scene.add_obstacle(supple.Plane(), friction=0.3)
    rubber = supple.StableNeoHookean(young=2e4, poisson=0.3)
    scene.add_solid(supple.block(4, size=(0.4, 0.4, 0.4), origin=(0, 0.01, 0)), rubber, density=100)
    block = supple.block(3, size=(0.3, 0.3, 0.3)).rotated((1, 0, 0.3), 0.2).translated((0.1, 0.5, 0.05))
    scene.add_solid(block, rubber, density=100)
    scene.add_solid(supple.ball(0.15, resolution=3).translated((0.25, 1.05, 0.2)), rubber, density=100)
    return scene


@pytest.mark.parametrize("contact", ["weak", "barrier"])
def test_falling_bodies_on_a_gpu(contact):
    runs = []
    for device in ("cuda", "cuda", "cpu"):
        motion = supple.simulate(
            falling(contact), solver=supple.PBNG(iterations=30), frames=25, device=device, precision="float64"
        )
        runs.append([(frame.positions, frame.report.contact.bodies.count) for frame in motion])
    for (x, contacts), (y, also), (z, _) in zip(*runs, strict=True):
        np.testing.assert_array_equal(x, y)
        assert contacts == also
        np.testing.assert_allclose(x, z, atol=1e-5)
    assert max(contacts for _, contacts in runs[0]) > 10
