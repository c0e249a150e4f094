"""Steps of a motion on the live page are bitwise those of `supple run`."""

from dataclasses import replace

import numpy as np
import pytest
from live_scenes import SWING, simulation

import supple
from supple.live.page import status
from supple.live.snapshot import snapshot_of

CLOTH = """
quasistatic = false
dt = 0.02
frames = 25
damping = 0.02

[[cloth]]
name = "skirt"
mesh = { sheet = { cells = [8, 8], size = [0.8, 0.8], plane = "zx" } }
membrane = { plane_stress_stvk = { young = 5e5, poisson = 0.3 } }
thickness = 4e-4
density = 375

[[pin]]
name = "waist"
where = { vertices = [0] }

[[obstacle]]
shape = { sphere = { radius = 0.25, center = [0.4, -0.3, 0.4] } }
friction = 0.3

[[wind]]
velocity = [1, 0, 2]
"""
FEW_SWEEPS = '[solver]\nmethod = "pbng"\niterations = 40\n'
CREEPING = SWING.replace(
    "stable_neo_hookean = { young = 1e4, poisson = 0.4 }",
    "plastic_hencky = { young = 1e4, poisson = 0.3, yield_stress = 60 }",
)

SCENES = {
    "sweeps": CLOTH + FEW_SWEEPS,
    "tolerance": CLOTH,
    "stop": CLOTH + "[stop]\ntolerance = 1e-3\nmax_iterations = 30\n",
    "bdf2": CLOTH.split("[[obstacle]]")[0].replace("damping", 'integrator = "bdf2"\ndamping') + FEW_SWEEPS,
    "barrier": CLOTH + '[contact]\nmethod = "barrier"\n' + FEW_SWEEPS,
    "plastic": CREEPING + FEW_SWEEPS,
}


def frames_of(file, precision, count=25):
    return list(supple.simulate(file, frames=count, precision=precision))


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_update_is_a_frame_of_a_run(tmp_path, name, precision):
    """Default solver, limits and integrator of the page."""
    live = simulation(tmp_path, SCENES[name], precision=precision)
    for frame in frames_of(live.file, precision, 25 if name != "barrier" else 6):
        assert live.update()
        np.testing.assert_array_equal(live.tracks[0].positions, frame.positions)
        np.testing.assert_array_equal(live.tracks[0].velocities, frame.velocities)
    assert live.tracks[0].report.iterations == frame.report.iterations


def test_pausing_does_not_change_the_motion(tmp_path):
    """A paused page places the pins at their present targets."""
    live = simulation(tmp_path, SCENES["bdf2"])
    *_, last = frames_of(live.file, live.settings.precision, 8)
    for _ in range(8):
        live.follow_pins()
        live.update()
    np.testing.assert_array_equal(live.tracks[0].positions, last.positions)


def test_abandoned_step_is_undone(tmp_path):
    requests = []

    def on_the_way():
        requests.append(1)
        return len(requests) == 2

    live = simulation(tmp_path, SCENES["sweeps"])
    *_, last = frames_of(live.file, live.settings.precision, 16)
    for number in range(16):
        if number == 13:
            before = live.tracks[0].positions.copy(), live.time
            assert not live.update(is_abandoned=on_the_way)
            assert requests == [1, 1]
            np.testing.assert_array_equal(live.tracks[0].positions, before[0])
            assert (live.time, live.updates) == (before[1], 13)
        assert live.update()
    np.testing.assert_array_equal(live.tracks[0].positions, last.positions)


def test_plastic_strains_survive_grabbing(tmp_path):
    live = simulation(tmp_path, SCENES["plastic"], precision="float64")
    for _ in range(8):
        live.update()
    (flowed,) = live.tracks[0]._problem.history.get_variables()
    assert any(np.abs(values - values[0]).max() > 1e-4 for values in flowed.values())
    live.needs_preparation = True
    live.prepare()
    (again,) = live.tracks[0]._problem.history.get_variables()
    for name, values in flowed.items():
        np.testing.assert_array_equal(again[name], values)
    stiff = supple.NeoHookean(young=1e4, poisson=0.3)
    live.change(replace(live.settings, materials=(stiff,)))
    live.prepare()
    live.update()


def test_chosen_sweeps_are_done_and_their_lag_is_reported(tmp_path):
    live = simulation(tmp_path, SCENES["sweeps"], sweeps=1)
    for _ in range(6):
        live.update()
    assert live.tracks[0].iterations == 6
    snapshot = snapshot_of(live, 1, 0, "Playing.", True, 4.0)
    assert any("far from balance" in note for note in snapshot.shapes[0].notes)
    text = status(snapshot, None)
    assert "far from balance" in text
    assert "12 times slower than real time: a step takes 0.25 s" in text
    assert "slower than" not in status(replace(snapshot, updates_per_second=50.0), None)


def test_solver_without_the_integrator_is_refused_and_undone(tmp_path):
    live = simulation(tmp_path, SCENES["bdf2"])
    valid_settings = live.settings
    live.change(replace(valid_settings, solvers=(supple.PBD(),)))
    with pytest.raises(ValueError, match="bdf2"):
        live.prepare()
    assert live.settings is valid_settings
    live.prepare()
    live.update()
