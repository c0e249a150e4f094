"""Viscosity as an incremental potential: Kelvin-Voigt, Maxwell and Rayleigh, against closed forms."""

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, face, material

import supple
from supple.io.frames import SavedFrame, read_frame, write_frame
from supple.io.saved_bodies import concatenate_bodies
from supple.problem import Problem
from supple.scene import SceneError, load_scene

TET = supple.TetMesh([(0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)], [(0, 1, 2, 3)], repair=True)
"""A tetrahedron whose highest vertex moves vertically, so that yy is the only strain."""


def oscillator(viscosity, speed=1e-3, young=1e3, density=24.0):
    """One tetrahedron with one degree of freedom: k = V (λ + 2μ), m = ρ V/4."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False)
    kind = supple.StVK(young=young, poisson=0.25)
    velocity = (0, speed, 0)
    body = scene.add_solid(TET, kind, density=density, velocity=velocity, viscosity=viscosity)
    top = body.where(lambda X: X[:, 1] > 0.5)
    scene.pin(body.where(lambda X: X[:, 1] < 0.5))
    scene.pin(top, axes="xz")
    return scene, int(top.vertices[0]), (kind.lam + 2 * kind.mu) / 6, density / 24


def recursion(m, k, c, speed, dt, steps):
    """Backward Euler for m u'' + c u' + k u = 0."""
    u, v, displacements = 0.0, speed, []
    for _ in range(steps):
        new = (m / dt**2 * (u + dt * v) + c / dt * u) / (m / dt**2 + c / dt + k)
        u, v = new, (new - u) / dt
        displacements.append(u)
    return np.array(displacements)


DASHPOTS = {
    "rayleigh": (supple.Rayleigh(0.01), lambda k: 0.01 * k),
    "rayleigh of the mass": (supple.Rayleigh(mass_factor=3.0), lambda k: 3.0),
    "both of rayleigh's": (supple.Rayleigh(stiffness_factor=0.01, mass_factor=3.0), lambda k: 0.01 * k + 3.0),
    "kelvin_voigt": (
        supple.KelvinVoigt(shear_viscosity=3.0, bulk_viscosity=8.0),
        lambda k: (8.0 + 4 / 3 * 3.0) / 6,
    ),
}


@pytest.mark.parametrize("name", DASHPOTS)
def test_oscillation_decays_as_backward_euler(name):
    viscosity, coefficient = DASHPOTS[name]
    scene, top, k, m = oscillator(viscosity)
    dt, steps = 0.004, 60
    frames = supple.simulate(scene, solver="newton", dt=dt, frames=steps, tolerance=1e-9)
    displacements = [frame.positions[top, 1] - 1 for frame in frames]
    expected = recursion(m, k, coefficient(k), 1e-3, dt, steps)
    np.testing.assert_allclose(displacements, expected, atol=2e-3 * np.abs(expected).max())
    undamped = recursion(m, k, 0.0, 1e-3, dt, steps)
    assert np.abs(expected - undamped).max() > 0.05 * np.abs(undamped).max()


def test_decay_rate_is_half_of_beta_times_omega_squared():
    """Backward Euler itself adds Δt/2 ω² to first order."""
    beta, dt, steps = 0.014, 0.0035, 300
    scene, top, k, m = oscillator(supple.Rayleigh(beta))
    omega = np.sqrt(k / m)
    frames = supple.simulate(scene, solver="newton", dt=dt, frames=steps, tolerance=1e-9)
    u = np.array([frame.positions[top, 1] - 1 for frame in frames])
    peaks = [i for i in range(1, steps - 1) if abs(u[i]) >= abs(u[i - 1]) and abs(u[i]) > abs(u[i + 1])]
    first, last = peaks[0], peaks[-1]
    rate = np.log(abs(u[first] / u[last])) / ((last - first) * dt)
    assert rate == pytest.approx((beta + dt) / 2 * omega**2, rel=0.04)


def pinned_bar(viscosity, stretch=0.1):
    """A unit cube with ν = 0, stretched instantly and pinned."""
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.1, frames=8)
    body = scene.add_solid(supple.block(1), supple.StVK(young=1e3, poisson=0.0), viscosity=viscosity)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    scene.pin(body.where(face(0, 1)), supple.Translate((stretch, 0, 0), duration=0.0), axes="x", name="pull")
    return scene


@pytest.mark.parametrize("precision", PRECISIONS)
def test_stress_relaxes_exponentially(precision):
    """Each Maxwell branch holds g E ε e^(-t/τ), with g for a strain applied in one step."""
    branches = [supple.Maxwell(young=2e3, poisson=0.0, time=0.3), supple.Maxwell(5e2, 0.0, 2.0)]
    frames = supple.simulate(
        pinned_bar(branches), solver="pbng", tolerance=1e-6, max_iterations=2000, precision=precision
    )
    evaluation = np.array([frame.evaluate().reactions["pull"].force[0] for frame in frames])
    E, dt, F = 0.5 * (1.1**2 - 1), 0.1, 1.1
    n = np.arange(1, 9)
    stress = 1e3 + sum(
        b.young * (1 - np.exp(-dt / b.time)) * b.time / dt * np.exp(-n * dt / b.time) for b in branches
    )
    np.testing.assert_allclose(evaluation, F * E * stress, rtol=1e-6 if precision == "float64" else 1e-4)


def test_files_and_pictures_have_the_full_stress():
    frames = list(supple.simulate(pinned_bar(supple.Maxwell(2e3, 0.0, 0.3)), solver="newton", tolerance=1e-8))
    for frame in (frames[0], frames[-1]):
        evaluation = frame.evaluate()
        force = evaluation.reactions["pull"].force[0]
        np.testing.assert_allclose(evaluation.piola[:, 0, 0], force, rtol=1e-6)
        np.testing.assert_allclose(evaluation.von_mises, evaluation.cauchy[:, 0, 0], rtol=1e-6)
        np.testing.assert_allclose(evaluation.principal_stresses[:, 0], evaluation.cauchy[:, 0, 0], rtol=1e-6)


SOLVERS = ["pbng", "bpxpbd", "fpxpbd"]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_converges_to_newtons_motion(name):
    scene = cantilever(material("corotated"), cells=2)
    scene.bodies[0] = supple.Scene().add_solid(
        supple.block(2),
        material("corotated"),
        density=2.0,
        viscosity=supple.KelvinVoigt(shear_viscosity=60.0),
    )
    scene.pins.clear()
    scene.pin(scene.bodies[0].where(face(0, 0)))
    scene.quasistatic = False
    options = {"dt": 0.05, "frames": 2, "tolerance": 1e-7, "max_iterations": 20000}
    *_, newton = supple.simulate(scene, solver="newton", **options)
    *_, other = supple.simulate(scene, solver=name, **options)
    moved = np.abs(newton.positions - scene.bodies[0].points).max()
    np.testing.assert_allclose(other.positions, newton.positions, atol=2e-3 * moved)
    scene.bodies[0] = supple.Scene().add_solid(supple.block(2), material("corotated"), density=2.0)
    scene.pins.clear()
    scene.pin(scene.bodies[0].where(face(0, 0)))
    *_, free = supple.simulate(scene, solver="newton", **options)
    assert np.abs(free.positions - newton.positions).max() > 0.1 * moved


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["pbng", "fpxpbd"])
def test_motion_resumed_from_file_is_bitwise_identical(name, precision, tmp_path):
    """The file has the relaxed strains of Maxwell branches."""
    damped = [
        supple.KelvinVoigt(shear_viscosity=3.0),
        supple.Maxwell(2e3, 0.2, 0.1),
        supple.Rayleigh(0.01, mass_factor=1.0),
    ]
    scene = supple.Scene(gravity=(0, -10, 0), quasistatic=False, dt=0.05, frames=5)
    body = scene.add_solid(supple.block(2), material("stvk"), density=2.0, viscosity=damped)
    scene.pin(body.where(face(0, 0)))
    options = {"max_iterations": 8, "precision": precision}
    uninterrupted = list(supple.simulate(scene, solver=name, **options))
    assert len(uninterrupted[1].state.history)
    last = uninterrupted[1]
    saved = SavedFrame(last.positions, last.velocities, last.index, last.time, last.state)
    write_frame(tmp_path, saved, concatenate_bodies(scene.bodies))
    start = read_frame(tmp_path, 2).state
    parts = list(supple.simulate(scene, solver=name, initial=start, first_frame=3, **options))
    for actual, expected in zip(parts, uninterrupted[2:], strict=True):
        np.testing.assert_array_equal(actual.positions, expected.positions)
        np.testing.assert_array_equal(actual.velocities, expected.velocities)
        for key, values in expected.state.history.items():
            np.testing.assert_array_equal(actual.state.history[key], values)


def test_equilibrium_has_no_viscosity():
    scenes = pinned_bar(()), pinned_bar(supple.KelvinVoigt(9.0))
    result = [supple.equilibrium(scene, solver="newton", tolerance=1e-8).positions for scene in scenes]
    np.testing.assert_allclose(*result, atol=1e-9)


def test_viscosity_is_rotation_invariant():
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False)
    body = scene.add_solid(
        supple.block(1), supple.StVK(young=1e5, poisson=0.3), viscosity=supple.KelvinVoigt(1e4, 1e4)
    )
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    work = Problem(supple.scene.build_model(scene), "float64")
    work.history.evolve(0.1)
    work.positions = body.points @ turn.T
    assert abs(work.energy()) < 1e-8


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: supple.KelvinVoigt(shear_viscosity=-1.0), "shear_viscosity"),
        (lambda: supple.KelvinVoigt(shear_viscosity=0.0), "not 0"),
        (lambda: supple.Maxwell(1e3, 0.5, 1.0), "between -1 and 0.5"),
        (lambda: supple.Maxwell(1e3, 0.3, 0.0), "relaxation time"),
        (lambda: supple.Rayleigh(np.nan), "stiffness_factor"),
        (lambda: supple.Rayleigh(mass_factor=-1.0), "mass_factor"),
        (supple.Rayleigh, "stiffness_factor .* or a mass_factor"),
        (lambda: supple.Scene().add_solid(TET, material("stvk"), viscosity=0.1), "KelvinVoigt"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(SceneError, match=sentence):
        make()


def test_pbd_refuses_viscosity():
    scene, *_ = oscillator(supple.Rayleigh(0.1))
    with pytest.raises(ValueError, match="pbd does not support viscosity"):
        list(supple.simulate(scene, solver="pbd", frames=1, max_iterations=2))


def test_scene_files_with_viscosity(tmp_path):
    path = tmp_path / "bar.toml"
    path.write_text(
        """
        quasistatic = false
        [[solid]]
        mesh = { block = { cells = [1, 1, 1] } }
        material = { stvk = { young = 1e3, poisson = 0.3 } }
        [[solid.viscosity]]
        rayleigh = { stiffness_factor = 0.02 }
        [[solid.viscosity]]
        maxwell = { young = 1e3, poisson = 0.3, time = 0.5 }
        [[pin]]
        where = { side = "x-" }
        """
    )
    (body,) = load_scene(path).scene.bodies
    assert body.viscosity == (supple.Rayleigh(0.02), supple.Maxwell(1e3, 0.3, 0.5))
    path.write_text(path.read_text().replace("time = 0.5", "time = 0"))
    with pytest.raises(ValueError, match="time"):
        load_scene(path)


@pytest.mark.parametrize("solver", ["newton", "hybrid", "pbng", "xpbd", "bpxpbd", "gpbd", "pbd"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_mass_damping_slows_free_flight(solver, precision):
    """v becomes v/(1 + α Δt) in every step, for bodies with damping only."""
    if solver == "newton" and precision == "float32":
        pytest.skip("Newton is in float64")
    alpha, dt = 2.0, 0.05
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False)
    mesh = supple.block(1)
    slowed = scene.add_solid(
        mesh,
        material("stvk"),
        velocity=(1, 2, 0),
        angular_velocity=(0, 0, 0),
        viscosity=supple.Rayleigh(mass_factor=alpha),
    )
    damped_body = supple.block(1, origin=(3, 0, 0))
    free = scene.add_solid(damped_body, material("stvk"), velocity=(1, 2, 0))
    limits = {"max_iterations": 5} if solver == "pbd" else {"tolerance": 1e-4, "max_iterations": 50}
    frames = list(supple.simulate(scene, solver=solver, dt=dt, frames=4, precision=precision, **limits))
    for k, frame in enumerate(frames, 1):
        v = frame.velocities
        np.testing.assert_allclose(
            v[slowed.vertices], np.tile([1, 2, 0], (8, 1)) / (1 + alpha * dt) ** k, atol=2e-4
        )
        np.testing.assert_allclose(v[free.vertices], np.tile([1, 2, 0], (8, 1)), atol=2e-4)


def test_frame_balance_includes_drag():
    scene, *_ = oscillator(supple.Rayleigh(mass_factor=5.0))
    *_, frame = supple.simulate(scene, solver="newton", dt=0.01, frames=3, tolerance=1e-9)
    evaluation = frame.evaluate()
    free = frame.model.free
    assert np.abs(evaluation.net_force[free]).max() < 1e-6 * np.abs(evaluation.internal_force).max()
    still = supple.equilibrium(scene, solver="newton", tolerance=1e-9)
    np.testing.assert_allclose(still.positions, still.model.rest, atol=1e-12)
