"""Coupled constraints [BNH section 5] against decoupled ones."""

import family
import numpy as np

import supple
from supple import XPBD, BlockXPBD


def beam(dt, cells=(15, 3, 3), gravity=-9.81):
    """BNH section 6.3: E = 1e7, ν = 0.45, density 1000."""
    return family.clamped(
        supple.block(cells, (6, 1, 1)), supple.NeoHookean(young=1e7, poisson=0.45), gravity, 1000.0, dt
    )


def test_coupled_constraints_keep_a_body_at_rest():
    """BNH section 5: neither constraint vanishes at rest, and only coupled do their forces cancel."""
    scene = beam(0.01 / 30, gravity=0.0)
    moved = []
    for solver in (BlockXPBD(), XPBD()):
        problem = family.placed(scene)
        family.swept(problem, solver, 1)
        moved.append(np.abs(problem.u).max())
    assert moved[0] < 1e-12
    assert moved[1] > 1e-5


def test_ten_coupled_substeps_reach_the_energy_of_a_hundred_decoupled_ones():
    """BNH Fig. 5: the start is the frame of highest energy of a beam in 30 substeps per 0.01 s."""
    energy = family.elastic_energy(supple.scene.build_model(beam(0.01)))
    start = max(
        supple.simulate(beam(0.01), solver=XPBD(iterations=1), frames=20, substeps=30),
        key=lambda frame: energy(frame.positions),
    )

    def energies(solver, substeps):
        state = {"initial": start.positions, "velocities": start.velocities}
        frames = supple.simulate(beam(0.01 / 30), solver=solver, frames=substeps, **state)
        return [energy(frame.positions) for frame in frames]

    coupled, decoupled = energies(BlockXPBD(iterations=1), 10), energies(XPBD(iterations=1), 100)
    assert coupled[-1] < decoupled[-1]
    assert energies(BlockXPBD(iterations=1, ordering="clusters"), 10)[-1] < decoupled[-1]


def test_scrambled_beam_unfolds_with_thirty_substeps():
    """BNH Fig. 8: vertices are permuted at random; half of the elements start inverted."""
    scene = beam(1 / 60)
    model = supple.scene.build_model(scene)
    random = np.random.default_rng(0)
    x = np.where(model.free[:, None], random.permutation(model.rest), model.rest)
    assert np.mean(family.jacobians(model, x) < 0) > 0.4
    energy = family.elastic_energy(model)
    *_, last = supple.simulate(scene, solver=BlockXPBD(iterations=1), frames=60, substeps=30, initial=x)
    assert last.report.inverted == 0
    assert energy(last.positions) < 1e-4 * energy(x)
