"""Barrier contact limits prescribed motions of pins and obstacles, which still follow their paths and
arrive."""

import numpy as np
import pytest
from surface_cases import intersects

import supple
from supple.contact.state import prescribed_motion

AXIS = np.array([0.0, 0.25])
"""Rotation axis of the mat: y and z [m]."""

RUBBER = supple.NeoHookean(young=1e5, poisson=0.3)


def mat(angle=2.0, duration=0.1, cells=8, against=True):
    """Light cloth whose ends turn by the same angle, in opposite directions or together."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, contact="barrier")
    sheet, kind = (
        supple.sheet(cells, size=(1, 0.5), plane="xz"),
        supple.materials.PlaneStressStVK(young=1e5, poisson=0.3),
    )
    cloth = scene.add_cloth(
        sheet,
        kind,
        supple.HingeBending(rigidity=1e-4),
        density=0.2 if against else 1e-6,
        thickness=1e-3,
        name="mat",
    )
    for x, sign in ((0.0, -1 if against else 1), (1.0, 1)):
        turn = supple.Rotate((1, 0, 0), (x, *AXIS), sign * angle, duration=duration)
        scene.pin(cloth.where(np.flatnonzero(np.abs(cloth.points[:, 0] - x) < 1e-9)), turn)
    return scene


@pytest.fixture
def slow(monkeypatch):
    """Allow no additional iterations for prescribed motions, as for pins that push bodies ahead of them."""
    monkeypatch.setattr(prescribed_motion, "MIN_PIN_FRACTION", np.inf)


@pytest.fixture
def seen(monkeypatch):
    """Recorded positions of pins after every check."""
    pin_targets, pursue = [], prescribed_motion.PinMotion.advance

    def watched(own, *limits):
        moved = pursue(own, *limits)
        pin_targets.append(own.states.positions[0, own.model.pinned])
        return moved

    monkeypatch.setattr(prescribed_motion.PinMotion, "advance", watched)
    return pin_targets


@pytest.mark.usefixtures("slow")
def test_late_pins_stay_on_their_arcs(seen):
    scene = mat()
    *_, last = frames = list(supple.simulate(scene, solver=supple.PBNG(iterations=5), frames=60))
    model, behind = last.model, [frame.report.contact.bodies.pin_lag for frame in frames]
    assert max(behind) > 0.1, "they are late"
    assert any("s late: more iterations" in note for note in frames[3].report.notes)
    radii = np.linalg.norm(np.array(seen)[:, :, 1:] - AXIS, axis=2)
    np.testing.assert_allclose(radii, np.broadcast_to(radii[0], radii.shape), atol=1e-12)
    assert behind[-1] == 0, "and arrive when their motion has ended"
    np.testing.assert_array_equal(
        last.positions[model.pinned], model.rest[model.pinned] + last.state.displacements[model.pinned]
    )
    np.testing.assert_allclose(last.positions[model.pinned], model.prescribed(1.0), atol=1e-12)
    assert not any(intersects(scene, frame.positions) for frame in frames[::6])


@pytest.mark.usefixtures("slow")
def test_motion_with_late_pins_resumes_bitwise():
    scene, solver = mat(), supple.PBNG(iterations=5)
    frames = list(supple.simulate(scene, solver=solver, frames=12))
    assert frames[4].report.contact.bodies.pin_lag > 0
    state = frames[4].state
    assert state.history["pins"] < frames[4].time
    for again in supple.simulate(scene, solver=solver, frames=12, initial=state, first_frame=6):
        np.testing.assert_array_equal(again.positions, frames[again.index - 1].positions)
    steppers = supple.Stepper(scene, 0.01, solver=solver), supple.Stepper(scene, 0.01, solver=solver)
    for _ in range(8):
        steppers[1].state = steppers[1].state
        one, other = (stepper.step() for stepper in steppers)
        np.testing.assert_array_equal(one.positions, other.positions)
    assert one.report.contact.bodies.pin_lag > 0


@pytest.mark.parametrize("angle", [0.1, 2.0, 30.0])
def test_turning_pins_arrive_in_every_frame(angle):
    """Pins move by up to 60 edge lengths in a frame of two iterations."""
    scene = mat(angle, duration=0.05, cells=4, against=False)
    for frame in supple.simulate(scene, solver=supple.PBNG(iterations=2), frames=2):
        assert frame.report.contact.bodies.pin_lag == 0
        assert "pins" not in frame.state.history
        targets = frame.model.prescribed(frame.time)
        np.testing.assert_allclose(frame.positions[frame.model.pinned], targets, atol=1e-12)
        assert frame.report.iterations >= 2
        assert not intersects(scene, frame.positions)


@pytest.mark.parametrize("speed", [1.0, 30.0, 300.0])
def test_pulled_body_arrives_in_every_frame(speed):
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, contact="barrier")
    body = scene.add_solid(supple.block(cells=2), RUBBER, density=1)
    scene.add_solid(supple.block(cells=1).translated((0, 5, 0)), RUBBER, density=1)
    face = body.where(lambda X: X[:, 0] >= 1)
    scene.pin(face, supple.Translate((speed, 0, 0), duration=1.0))
    for frame in supple.simulate(scene, solver=supple.PBNG(iterations=5), frames=3):
        vertices = face.vertices
        assert frame.report.contact.bodies.pin_lag == 0
        np.testing.assert_allclose(frame.positions[vertices, 0], 1 + speed * frame.time, rtol=1e-12)
        assert np.isfinite(frame.positions).all()


def test_closed_path_of_pins_is_followed(seen):
    """A full turn in one frame leads back to the start."""
    scene = mat(2 * np.pi, duration=0.01, cells=4, against=False)
    (frame,) = supple.simulate(scene, solver=supple.PBNG(iterations=2), frames=1)
    assert frame.report.contact.bodies.pin_lag == 0
    start = np.array(seen)[0]
    away = np.linalg.norm(np.array(seen) - start, axis=2).max()
    assert away == pytest.approx(0.5, rel=0.05), "across the axis, twice 0.25 m"
    np.testing.assert_allclose(frame.positions[frame.model.pinned], start, atol=1e-12)


def test_mutually_blocking_pins_are_late_and_reported():
    """Pinned plates with crossing targets do not use additional iterations."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, contact="barrier")
    low = scene.add_solid(supple.block(cells=2), RUBBER, density=1000)
    high = scene.add_solid(supple.block(cells=2).translated((0.1, 1.1, 0.05)), RUBBER, density=1000)
    scene.pin(low.where(lambda X: X[:, 1] >= 1))
    scene.pin(high.where(lambda X: X[:, 1] < 1.2), supple.Translate((0, -0.5, 0), duration=0.05))
    *_, last = frames = list(supple.simulate(scene, solver=supple.PBNG(iterations=20), frames=8))
    assert last.report.contact.bodies.pin_lag > 0.3
    assert any("s late: a contact blocks them" in note for note in last.report.notes)
    assert last.report.iterations == 20
    assert not any(intersects(scene, frame.positions) for frame in frames)


def test_state_with_late_pins_needs_a_barrier():
    scene = mat(cells=4)
    (frame,) = supple.simulate(scene, solver=supple.PBNG(iterations=2), frames=1)
    late = supple.State(frame.state.displacements, frame.state.velocities, {"pins": np.zeros((1, 1))})
    assert list(supple.simulate(scene, frames=2, initial=late, first_frame=2, max_iterations=2))
    wrong = supple.State(frame.state.displacements, frame.state.velocities, {"pins": np.zeros(3)})
    with pytest.raises(ValueError, match="'pins' of the state must be finite and of shape"):
        next(supple.simulate(scene, frames=2, initial=wrong, first_frame=2, max_iterations=2))
    scene.contact = "weak"
    with pytest.raises(ValueError, match="history variable 'pins'"):
        next(supple.simulate(scene, frames=2, initial=late, first_frame=2, max_iterations=2))


def layers(way, gap=0.01):
    """Stacked sheets that a plate pushes, with free space behind them."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, contact="barrier")
    kind = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)
    for k in range(3):
        sheet = supple.sheet(4, size=(1, 1), plane="xz", origin=(0.03 * k, 0.3 + gap * k, 0.02 * k))
        scene.add_cloth(sheet, kind, supple.HingeBending(rigidity=1e-4), density=0.2, thickness=1e-3)
    plate = supple.Box(size=(4, 0.2, 4), center=(0.5, 0.401 + 2 * gap, 0.5))
    scene.add_obstacle(plate, supple.Translate((0, -way, 0), duration=0.1))
    return scene


@pytest.mark.parametrize("way", [0.1, 0.3])
@pytest.mark.parametrize("iterations", [5, 20])
def test_obstacles_wait_for_bodies_in_contact(way, iterations):
    """At the end of a step no body is inside, although neighbors block it at first."""
    scene = layers(way)
    frames = list(supple.simulate(scene, solver=supple.PBNG(iterations=iterations), frames=12))
    assert max(frame.report.contact.obstacles.max_penetration for frame in frames) < 1e-9
    assert max(frame.report.iterations for frame in frames) > iterations
    assert frames[-1].report.iterations == iterations
    assert not any(intersects(scene, frame.positions) for frame in frames)
    assert frames[-1].positions[:, 1].max() <= 0.301 + 0.02 - way + 1e-9
    again = supple.simulate(
        scene, solver=supple.PBNG(iterations=iterations), frames=4, initial=frames[1].state, first_frame=3
    )
    for frame in again:
        np.testing.assert_array_equal(frame.positions, frames[frame.index - 1].positions)


def test_equilibrium_has_obstacles_at_their_targets():
    """One solve covers any distance."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="barrier")
    for y in (0.0, 0.53):
        scene.add_solid(supple.block(cells=2, size=(1, 0.5, 1)).translated((0, y, 0)), RUBBER)
    scene.pin(scene.bodies[0].where(lambda X: X[:, 1] <= 0))
    axis = scene.bodies[1].where(lambda X: np.abs(X[:, [0, 2]] - 0.5).max(axis=1) < 1e-9)
    scene.pin(axis, axes="xz")  # without these the upper block may be squeezed out to a side, which is lower
    plate = supple.Box(size=(4, 0.2, 4), center=(0.5, 1.14, 0.5))
    scene.add_obstacle(plate, supple.Translate((0, -0.2, 0)), friction=0.0)
    result = supple.equilibrium(scene, tolerance=1e-5)
    assert result.report.ok, result.report
    assert result.report.contact.obstacles.max_penetration < 1e-9
    assert result.positions[:, 1].max() == pytest.approx(0.84, abs=1e-4)
    assert not intersects(scene, result.positions)
