"""Values of controls are kept, also while the session is busy."""

import asyncio
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from live_scenes import BLOCK, scene_file

import supple
from supple.live import Session
from supple.live.controls import Controls, PinFolder

TYPING_DELAY = 60


class Control:
    """A control that only stores its value."""

    def __init__(self, value, **rest):
        self.value, self._callbacks = value, []
        self.__dict__.update(rest)

    def on_update(self, callback):
        self._callbacks.append(callback)

    def set(self, value):
        """Set the value as a user does: viser stores it, and calls back."""
        self.value = value
        for callback in self._callbacks:
            asyncio.run(callback(SimpleNamespace(client="somebody", target=self)))


class Gui:
    """Stub of viser's GUI; of controls with equal labels, the first is found."""

    def __init__(self):
        self.controls = {}

    def __getitem__(self, label):
        return self.controls[label]

    def _add(self, label, value, **rest):
        control = Control(value, **rest)
        self.controls.setdefault(label, control)
        return control

    def add_text(self, label, value, **rest):
        return self._add(label, value)

    add_checkbox = add_vector3 = add_text

    def add_slider(self, label, low, high, step, value, **rest):
        return self._add(label, value, min=low, max=high)

    def add_dropdown(self, label, options, **rest):
        return self._add(label, options[0], options=options)

    def add_folder(self, label, **rest):
        return nullcontext()


@pytest.fixture
def session(tmp_path):
    """A session that executes no command until its start."""
    made = Session(scene_file(tmp_path, BLOCK + '[solver]\nmethod = "pbng"\n'))
    yield made
    made.close()


@pytest.fixture
def gui():
    return Gui()


@pytest.fixture
def refusals():
    return []


@pytest.fixture
def controls(gui, session, refusals):
    return Controls(gui, session.snapshot.settings, ["block"], session.change, refusals.append)


def until(condition):
    end = time.monotonic() + TYPING_DELAY
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_pending_choices_stay_in_the_controls(session, gui, controls):
    gui["ν"].set(0.4)
    controls.follow(session.snapshot)
    assert gui["ν"].value == 0.4
    gui["Material"].set("neo_hookean")
    controls.follow(session.snapshot)
    session.start()
    until(lambda: session.snapshot.executed == 2)
    controls.follow(session.snapshot)
    (material,) = session.snapshot.settings.materials
    assert type(material) is supple.NeoHookean
    assert material.poisson == pytest.approx(0.4)
    assert gui["ν"].value == 0.4


def test_refused_choices_are_reset(session, gui, controls):
    gui["Solver"].set("block_xpbd")
    gui["Material"].set("stvk")
    session.start()
    until(lambda: session.snapshot.executed == 2 and session.snapshot.status == "Paused.")
    controls.follow(session.snapshot)
    assert (gui["Solver"].value, gui["Material"].value) == ("pbng", "corotated")


def test_typed_text_of_numbers_and_options_is_kept(session, gui, controls, refusals):
    gui["E [Pa]"].set("2e4")
    gui["Options"].set("omega=1.50 , tied_groups=false")
    gui["Time step [s]"].set("2.5e-2")
    gui["Acceleration"].set("sor")
    until(lambda: session._last_command)
    session.start()
    until(lambda: session.snapshot.executed == session._last_command)
    controls.follow(session.snapshot)
    fields = gui["E [Pa]"].value, gui["Options"].value, gui["Time step [s]"].value
    assert fields == ("2e4", "omega=1.50 , tied_groups=false", "2.5e-2")
    settings = session.snapshot.settings
    assert settings.solvers[0] == supple.PBNG(acceleration=supple.solvers.SOR(omega=1.5), tied_groups=False)
    assert (settings.dt, settings.materials[0].young) == (0.025, pytest.approx(2e4))
    assert not refusals


def test_long_number_is_not_rounded_by_another_change(session, gui, controls):
    gui["E [Pa]"].set("12345.6789")
    until(lambda: session._last_command)
    gui["ν"].set(0.25)
    session.start()
    until(lambda: session.snapshot.executed == 2)
    assert session.snapshot.settings.materials[0] == supple.Corotated(young=12345.6789, poisson=0.25)


def test_bad_number_is_replaced_for_other_displayed_values(session, gui, controls, refusals):
    gui["Time step [s]"].set("soon")
    until(lambda: refusals)
    controls.show(session.snapshot.settings)
    assert gui["Time step [s]"].value == "0.25"


def test_typed_rotation_of_pins_is_kept(session, gui):
    """Euler angles are not unique: 100° about y equals 180°, 80°, 180° about x, y, z."""
    folder = PinFolder(gui, session)
    gui["Stretch y"].set(2.0)
    gui["Turn [°]"].set((0.0, 100.0, 0.0))

    def displayed_fields():
        folder.follow(session.snapshot)
        return gui["Stretch y"].value, gui["Turn [°]"].value

    time.sleep(0.6)
    assert displayed_fields() == (2.0, (0.0, 100.0, 0.0)), "not yet obeyed"
    session.start()
    until(lambda: session.snapshot.executed == 2)
    assert displayed_fields() == (2.0, (0.0, 100.0, 0.0)), "obeyed"
    assert session.snapshot.handles[0].stretch[1] == 2
    session.reset()
    until(lambda: session.snapshot.executed == 3)
    assert displayed_fields() == (1.0, (0.0, 0.0, 0.0)), "changed elsewhere"
