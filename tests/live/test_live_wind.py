"""Wind on the live page: sliders, effect on cloth, and saved scenes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from live_scenes import SWING, simulation
from test_live_controls import Gui

import supple
from supple.live.controls import Controls
from supple.live.save import save_scene
from supple.live.settings import file_settings
from supple.live.wind import MAX_SLIDER_SPEED

CURTAIN = """
quasistatic = false
dt = 0.01

[[cloth]]
name = "curtain"
mesh = { sheet = { cells = [3, 3], size = [0.1, 0.1], plane = "xy" } }
membrane = { plane_stress_stvk = { young = 1e5, poisson = 0.3 } }
density = 0.1

[[pin]]
where = { side = "y+" }

[solver]
method = "pbng"
"""

BREEZE = "[[wind]]\nvelocity = [0, 0, 3]\ndrag = 1.5\n"


def blown_to(live, steps=5):
    """Displacement of the lower edge [m] along z."""
    live.prepare()
    for _ in range(steps):
        live.update()
    return live.tracks[0].positions[:4].mean(axis=0) - live.model.rest[:4].mean(axis=0)


def controls_of(live):
    gui = Gui()
    return gui, Controls(gui, live.settings, ["curtain"], lambda s: live.change(s) or 1, pytest.fail)


def test_cloth_without_wind_hangs_in_a_vacuum_until_the_slider_moves(tmp_path):
    still = blown_to(simulation(tmp_path, CURTAIN))
    assert abs(still[2]) < 1e-12
    live = simulation(tmp_path, CURTAIN)
    gui, _ = controls_of(live)
    gui["Towards [°]"].set(0.0)
    gui["Speed [m/s]"].set(4.0)
    np.testing.assert_allclose(live.settings.winds, [(0, 0, 4)], atol=1e-12)
    assert blown_to(live)[2] > 1e-3
    gui["Towards [°]"].set(180.0)
    live.reset()
    assert blown_to(live)[2] < -1e-3


def test_wind_slider_equals_a_scene_with_this_wind(tmp_path):
    live = simulation(tmp_path, CURTAIN + BREEZE)
    gui, _ = controls_of(live)
    assert gui["Speed [m/s]"].value == pytest.approx(3)
    gui["Speed [m/s]"].set(5.0)
    gui["Rising [°]"].set(30.0)
    velocity = (0, 2.5, 5 * math.cos(math.radians(30)))
    windy = simulation(tmp_path, CURTAIN + BREEZE.replace("[0, 0, 3]", str(list(velocity))))
    np.testing.assert_allclose(blown_to(live), blown_to(windy), atol=1e-9)


def test_wind_directions_have_camera_angles_and_survive_zero_speed(tmp_path):
    live = simulation(tmp_path, CURTAIN)
    gui, settings = controls_of(live)
    gui["Speed [m/s]"].set(2.0)
    np.testing.assert_allclose(live.settings.winds, [(2, 0, 0)], atol=1e-12)
    gui["Rising [°]"].set(90.0)
    np.testing.assert_allclose(live.settings.winds, [(0, 2, 0)], atol=1e-12)
    gui["Speed [m/s]"].set(0.0)
    settings.show(live.settings)
    assert (gui["Towards [°]"].value, gui["Rising [°]"].value) == (90.0, 90.0)
    settings.show(replace(live.settings, winds=((0.0, 0.0, 31.0),)))
    assert gui["Speed [m/s]"].value == gui["Speed [m/s]"].max == 31 > MAX_SLIDER_SPEED
    assert gui["Towards [°]"].value == pytest.approx(0)


def test_two_winds_are_edited_separately(tmp_path):
    live = simulation(tmp_path, CURTAIN + BREEZE + BREEZE)
    gui, _ = controls_of(live)
    gui["Which wind"].set("2")
    gui["Speed [m/s]"].set(1.0)
    np.testing.assert_allclose(live.settings.winds, [(0, 0, 3), (0, 0, 1)], atol=1e-12)


def test_solids_and_equilibria_have_no_wind_controls(tmp_path):
    live = simulation(tmp_path, SWING)
    assert live.settings.winds == ()
    gui, _ = controls_of(live)
    assert "Speed [m/s]" not in gui.controls
    curtain = simulation(tmp_path, CURTAIN, quasistatic=True)
    gui, _ = controls_of(curtain)
    assert gui["Speed [m/s]"].disabled


def test_saved_wind_is_loaded(tmp_path):
    pytest.importorskip("tomli_w", reason="saving needs tomli-w: pip install 'supple[view]'")
    for text in (CURTAIN, CURTAIN + BREEZE):
        live = simulation(tmp_path, text)
        live.change(replace(live.settings, winds=((1.0, 2.0, 3.0),)))
        again = supple.load_scene(save_scene(live, tmp_path))
        assert file_settings(again).quasistatic is False
        (wind,) = again.scene.winds
        assert tuple(wind.velocity) == (1.0, 2.0, 3.0)
        assert [body.name for body in wind.bodies] == ["curtain"]
    live = simulation(tmp_path, CURTAIN)
    assert not supple.load_scene(save_scene(live, tmp_path)).scene.winds
