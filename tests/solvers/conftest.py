"""Steps in the middle of a motion, for comparisons of methods."""

import family
import pytest
from problems import POISSON, YOUNG

import supple
from supple import PBNG


@pytest.fixture(scope="session")
def moving():
    """A tied pair of blocks in the middle of a motion, with the results of one step of each method."""
    scene = family.tied(supple.Corotated(young=YOUNG, poisson=POISSON), stiffness=1e4)
    *_, frame = supple.simulate(scene, solver=PBNG(), frames=5, tolerance=1e-6)
    return scene, frame.positions, frame.velocities


@pytest.fixture(scope="session")
def falling():
    """A representative step: E = 1000, ν = 0.3, density 10, Δt = 0.01, cells as in a block of 2 m and 15³."""
    mesh = supple.block(6, size=[0.8] * 3)
    scene = family.clamped(mesh, supple.Corotated(young=1000, poisson=0.3))
    *_, frame = supple.simulate(scene, solver=PBNG(), frames=8, tolerance=1e-6)
    return scene, frame.positions, frame.velocities
