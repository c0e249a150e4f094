"""Obstacles and rigid bodies of live scenes, with prescribed and manual motion."""

import numpy as np
import pytest
from live_scenes import relax, simulation

import supple

PRESSED = """
gravity = [0, 0, 0]
dt = 0.25

[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e4, poisson = 0.0 } }

[[pin]]
where = { side = "y-" }

[[obstacle]]
name = "plate"
shape = { plane = { normal = [0, -1, 0], point = [0, 1, 0] } }
motion = [{ translate = { offset = [0, -0.1, 0] } }]
"""


def test_obstacles_follow_their_motion_and_manual_offsets(tmp_path):
    live = simulation(tmp_path, PRESSED, precision="float64", tolerance=1e-7, solvers=(supple.PBNG(),))
    relax(live)
    while live.time < 1.0:
        live.update()
    assert relax(live)[:, 1].max() == pytest.approx(0.9, abs=1e-6)
    live.carry(0, np.array([0, -0.1, 0]))
    assert not live.skip_if_at_rest()
    assert relax(live)[:, 1].max() == pytest.approx(0.8, abs=1e-6)
    live.reset()
    assert not live.offset_obstacles.offsets.any()


DROPPED = """
quasistatic = false
dt = 0.02
frames = 20

[[solid]]
mesh = { block = { cells = [2, 1, 2], size = [1, 0.5, 1] } }
material = { neo_hookean = { young = 1e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "y-" }

[[obstacle]]
name = "ball"
shape = { sphere = { radius = 0.3, center = [0.5, 0.95, 0.5] } }
mass = 20
"""


def test_rigid_body_falls_and_rests_as_in_simulate(tmp_path):
    live = simulation(tmp_path, DROPPED, precision="float64", solvers=(supple.PBNG(),), sweeps=60)
    first = live.tracks[0]
    for _ in range(10):
        live.update()
    live.needs_preparation = True
    live.prepare()  # a rebuilt solver continues from there
    for _ in range(10):
        live.update()
    model = first.model_of(live.model)
    *_, last = supple.simulate(live.file.scene, solver=supple.PBNG(), tolerance=1e-6, precision="float64")
    frames = [kind.obstacles.poses(live.time)[:, 9:] for kind in (model, last.model)]
    assert frames[0][0, 1] < 0.9
    np.testing.assert_allclose(*frames, atol=2e-3)
    live.reset()
    live.prepare()
    assert first.model_of(live.model).obstacles.poses(0.0)[0, 10] == pytest.approx(0.95)
