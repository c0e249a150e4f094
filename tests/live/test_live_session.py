"""The session thread: commands, notices and recovery from errors."""

import time
from dataclasses import replace

import numpy as np
import pytest
from live_scenes import LOOSE, Exploding, Waiting, scene_file

import supple
from supple.live import Session
from supple.live.save import save_scene

TYPING_DELAY = 60
"""Timeout [s] of an action; kernels may have to be compiled."""


@pytest.fixture
def begin(tmp_path):
    """Start a session that ends after the test."""
    sessions = []

    def start(*text):
        session = Session(scene_file(tmp_path, *text))
        session.notices = []
        session.listen(session.notices.append)
        session.start()
        sessions.append(session)
        return session

    yield start
    Waiting.go_on.set()
    for session in sessions:
        session.close()


def until(session, condition):
    """First snapshot that satisfies a condition."""
    snapshot, end = session.snapshot, time.monotonic() + TYPING_DELAY
    while not condition(snapshot):
        assert time.monotonic() < end, f"{snapshot.status} {session.notices}"
        snapshot = session.wait(snapshot.version, 1.0)
    return snapshot


def test_session_plays_to_equilibrium_and_pauses_on_request(begin):
    session = begin()
    session.play()
    resting = until(session, lambda s: s.status == "In balance.")
    assert resting.playing
    assert resting.shapes[0].relative_residual <= session.snapshot.settings.tolerance
    session.pause()
    assert not until(session, lambda s: s.status == "Paused.").playing


def test_step_is_one_update(begin):
    session = begin()
    session.step()
    session.step()
    until(session, lambda s: s.updates == 2)
    time.sleep(0.2)
    assert session.snapshot.updates == 2
    assert not session.snapshot.playing


def test_reset_returns_to_the_start(begin):
    session = begin()
    start = session.snapshot.shapes[0].positions
    session.step()
    until(session, lambda s: s.updates == 1)
    session.reset()
    after = until(session, lambda s: s.updates == 0 and s.status == "Paused.")
    np.testing.assert_allclose(after.shapes[0].positions, start, atol=1e-7)
    assert after.time == 0


def test_diverging_solver_is_reported_and_the_session_survives(begin):
    session = begin()
    valid_settings = session.snapshot.settings
    session.change(replace(valid_settings, solvers=(Exploding(),)))
    session.play()
    until(session, lambda s: s.status == "Paused after an error.")
    assert [notice.kind for notice in session.notices] == ["error"]
    assert "Returned to the last finite state" in session.notices[0].text
    session.change(valid_settings)
    session.play()
    until(session, lambda s: s.updates > 1)


def test_refused_settings_are_reported_and_undone(begin):
    session = begin(LOOSE)
    valid_settings = session.snapshot.settings
    session.change(replace(valid_settings, quasistatic=True))
    until(session, lambda s: bool(session.notices))
    assert "Nothing holds" in session.notices[0].text
    assert until(session, lambda s: s.settings is valid_settings).shapes
    session.step()
    until(session, lambda s: s.updates == 1)


def test_unexpected_error_is_reported(begin, caplog):
    session = begin()
    session.ask(lambda simulation: simulation.no_such_thing)
    until(session, lambda s: bool(session.notices))
    assert session.notices[0].text.startswith("AttributeError")
    assert "no_such_thing" in caplog.text
    session.step()
    until(session, lambda s: s.updates == 1)


def test_compilation_is_announced_and_long_updates_can_be_interrupted(begin):
    Waiting.go_on.clear()
    Waiting.advances.clear()
    session = begin()
    session.change(replace(session.snapshot.settings, solvers=(Waiting(),), sweeps=50))
    session.play()
    until(session, lambda s: s.status.startswith("Compiling sweeps (once on this machine"))
    began = time.monotonic()
    session.pause()
    assert time.monotonic() - began < 0.1, "commands must not wait for the computation"
    Waiting.go_on.set()
    until(session, lambda s: s.status == "Paused.")
    assert len(Waiting.advances) < 50


def test_grabbed_vertex_moves_during_playing(begin):
    session = begin()
    session.play()
    until(session, lambda s: s.status == "In balance.")
    vertex = int(np.argmin(np.linalg.norm(session.snapshot.model.rest - [0.5, 1, 0.5], axis=1)))
    before = session.snapshot.shapes[0].positions[vertex]
    session.grab(vertex)
    session.drag(np.array([0, 0.2, 0]))
    moved = until(session, lambda s: s.shapes[0].positions[vertex][1] > before[1] + 0.19)
    assert vertex in moved.grabbed
    session.release()
    until(session, lambda s: not len(s.grabbed))


def test_session_follows_changes_of_solver_and_precision(begin):
    session = begin()
    settings = replace(session.snapshot.settings, solvers=(supple.PBNG(), supple.XPBD()), precision="float64")
    session.change(settings)
    session.play()
    snapshot = until(session, lambda s: s.updates > 2)
    assert [shape.label for shape in snapshot.shapes] == ["pbng", "xpbd"]


def test_python_scenes_are_accepted_and_pins_have_names(tmp_path):
    scene = supple.Scene(quasistatic=False)
    one = scene.add_solid(supple.block(1), supple.Corotated(young=1e4, poisson=0.3), name="one")
    scene.pin(one.where(lambda X: X[:, 0] <= 0), name="wall")
    session = Session(scene)
    session.notices = []
    session.listen(session.notices.append)
    session.start()
    session.step()
    moved = until(session, lambda s: s.updates == 1)
    *_, frame = supple.simulate(scene, frames=1, precision=moved.settings.precision)
    np.testing.assert_array_equal(moved.shapes[0].positions, frame.positions)
    assert [handle.name for handle in moved.handles] == ["wall"]
    session.ask(lambda simulation: save_scene(simulation, tmp_path))
    until(session, lambda s: bool(session.notices))
    assert "only scenes loaded from a file can be saved" in session.notices[0].text
    session.close()
    two = scene.add_solid(
        supple.block(1, origin=(3, 0, 0)), supple.Corotated(young=1e4, poisson=0.3), name="two"
    )
    scene.pin(two.where(lambda X: X[:, 0] <= 3))
    assert [handle.name for handle in Session(scene).snapshot.handles] == ["wall of one", "pin1 of two"]


@pytest.mark.parametrize("scene", ["block.toml", None, 3])
def test_invalid_scenes_are_refused(scene):
    with pytest.raises(TypeError, match="needs a scene"):
        Session(scene)
