"""Position-based dynamics with energies as constraints: its step, inversion, and limits."""

import family
import numpy as np
import pytest
from closed_forms import uniaxial
from numba import njit
from problems import POISSON, YOUNG, face, flattened, stretches
from test_gpbd import TET
from test_xpbd_family import springs

import supple
from supple import PBD, PBNG
from supple.kernels import load, store
from supple.materials import MATERIALS
from supple.materials.clamping import clamped_energy
from supple.problem import Problem

PAPER_MATERIALS = ("stvk", "log_neo_hookean")
"""The materials of PBCM."""
EACH_PAPER_MATERIAL = pytest.mark.parametrize("name", PAPER_MATERIALS)


def single(name, dt=0.01):
    """One deformed, moving tetrahedron."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=dt)
    body = scene.add_solid(TET, MATERIALS[name](young=YOUNG, poisson=POISSON), density=10)
    scene.attach(body.where([0]), [[0.1, 0.2, 0.3]], stiffness=1e-12)
    x = TET.points @ stretches((1.2, 1.0, 0.8), 1)[0].T
    v = np.random.default_rng(0).normal(size=(4, 3))
    return scene, x, v


@EACH_PAPER_MATERIAL
def test_single_update_with_constant_multiplier_is_explicit_fem(name):
    """PBCM appendix A: x̃ + w λ ∂E/∂x with λ = -Δt² is one step of the symplectic Euler method with the
    forces at x̃; PBD's own step has the same direction and λ = -E/Σ w |∂E/∂x|² [PBCM eq. 3]."""
    scene, x, v = single(name)
    problem = family.placed(scene, x, v)
    model, dt = problem.model, scene.dt
    run = PBD().begin(problem)
    start, w = problem.positions, 1 / model.mass[:, None]
    term = model.terms[0]
    P = family.stresses(term.material, family.deformation(model, start))[0]
    gradient = term.volume[0] * term.gradients[0] @ P.T

    # Forces and energy as every other solver sees them, without inertia and loads.
    still = Problem(model, "float64")
    still.positions = start
    still.balance()
    force = still.states.net[:-1, :3] - model.force
    explicit = x + dt * (v + dt * w * (model.force + force))
    np.testing.assert_allclose(start + w * -(dt**2) * gradient, explicit, atol=1e-13)

    run.advance(1)
    energy = still.energy() + np.sum(model.force * still.u[:-1, :3])
    lam = -energy / np.sum(w * gradient**2)
    expected = start + w * lam * gradient
    weak = problem.positions[0] - expected[0]  # the spring moves its vertex after the element
    np.testing.assert_allclose(problem.positions[1:], expected[1:], atol=1e-12)
    assert weak @ ([0.1, 0.2, 0.3] - expected[0]) > 0


@njit
def clamped_rows(material, F, out):
    for row in range(len(F)):
        energy, P = clamped_energy(
            material,
            (
                load(F, row, 0), load(F, row, 1), load(F, row, 2), load(F, row, 3), load(F, row, 4),
                load(F, row, 5), load(F, row, 6), load(F, row, 7), load(F, row, 8),
            ),
        )  # fmt: skip
        store(out, row, 0, energy)
        for k in range(9):
            store(out, row, 1 + k, P[k])


def clamped(name, F):
    """(ψ, P) of (8 k, 3, 3) deformation gradients."""
    rows = np.ascontiguousarray(F.reshape(-1, 8, 9).transpose(0, 2, 1))
    out = np.empty((len(rows), 10, 8))
    clamped_rows(MATERIALS[name](young=YOUNG, poisson=POISSON), rows, out)
    out = out.transpose(0, 2, 1).reshape(-1, 10)
    return out[:, 0], out[:, 1:].reshape(-1, 3, 3)


@EACH_PAPER_MATERIAL
def test_response_above_the_clamp_is_that_of_the_material(name):
    """Also in a pack with inverted elements, and for any volume: 0.58 × 0.6 × 0.7 and 0.58 × 1.5 × 2."""
    material = MATERIALS[name](young=YOUNG, poisson=POISSON)
    least = 1.01 * material.clamp
    finite = np.concatenate([stretches(s, 8) for s in ((least, 0.6, 0.7), (least, 1.5, 2.0), (1, 1, 1))])
    mixed = np.concatenate([finite, stretches((1, 1, -1), 8)]).reshape(4, 8, 3, 3).transpose(1, 0, 2, 3)
    _, P = clamped(name, mixed.reshape(-1, 3, 3))
    stress = P.reshape(8, 4, 3, 3)[:, :3].transpose(1, 0, 2, 3).reshape(-1, 3, 3)
    np.testing.assert_allclose(stress, family.stresses(material, finite), atol=1e-9 * YOUNG)


@EACH_PAPER_MATERIAL
@pytest.mark.parametrize("values", [(0.05, 0.05, 0.05), (0.02, 0.01, -0.05), (-0.01, 0.01, 0.0)], ids=str)
def test_stress_is_the_derivative_for_clamped_stretches(name, values):
    """ψ continues linearly through flat and inverted elements."""
    F = stretches(values, 8)
    _, P = clamped(name, F)
    for k in range(9):
        dF = np.zeros(9)
        dF[k] = 1e-6
        more, less = clamped(name, F + dF.reshape(3, 3))[0], clamped(name, F - dF.reshape(3, 3))[0]
        np.testing.assert_allclose((more - less) / 2e-6, P.reshape(-1, 9)[:, k], atol=1e-4 * YOUNG)


@EACH_PAPER_MATERIAL
def test_stress_is_bounded_and_continuous_through_the_clamp(name):
    """PBCM Fig. 2 (b, d): below the clamp the resistance is constant."""
    R = stretches((1, 1, 1), 8)
    clamp = MATERIALS[name].clamp
    at, below, inverted = (clamped(name, R @ np.diag([1, 1, s]))[1] for s in (clamp, clamp - 1e-9, -0.5))
    np.testing.assert_allclose(below, at, atol=1e-5 * YOUNG)
    assert np.all(np.abs(inverted).max(axis=(1, 2)) < 60 * YOUNG)


def test_neo_hookean_resists_strong_compression_more_than_stvk():
    """PBCM Fig. 2, 11: neo-Hookean resistance grows without limit; that of StVK has a maximum, where it is
    clamped."""
    R = stretches((1, 1, 1), 8)
    force = {
        name: [
            np.linalg.norm(clamped(name, R @ np.diag([1, 1, s]))[1], axis=(1, 2)).min() for s in (0.5, 0.2)
        ]
        for name in PAPER_MATERIALS
    }
    assert force["stvk"][1] == pytest.approx(force["stvk"][0], rel=0.01)
    assert force["log_neo_hookean"][1] > 3 * force["log_neo_hookean"][0] > 3 * force["stvk"][0]


def mirrored(model):
    return model.rest * [1, -1, 1]


def loose(name):
    """An unsupported cube."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.005)
    body = scene.add_solid(supple.block(3), MATERIALS[name](young=1e5, poisson=POISSON), density=1000)
    scene.attach(body.where([0]), stiffness=1e-12)
    return scene


@EACH_PAPER_MATERIAL
@pytest.mark.parametrize("start", [flattened, mirrored])
def test_flattened_and_mirrored_bodies_recover(name, start):
    """PBCM Fig. 6: five iterations, Δt = 5 ms, some damping; also from infinite forces."""
    scene = loose(name)
    model = supple.scene.build_model(scene)
    model.terms[-1].stiffness[:] = 0
    x = start(model)
    assert np.all(family.jacobians(model, x) < 1e-9)
    *_, last = supple.simulate(scene, solver=PBD(damping=0.02, iterations=5), frames=300, initial=x)
    np.testing.assert_allclose(family.jacobians(model, last.positions), 1, atol=0.02)


@EACH_PAPER_MATERIAL
@pytest.mark.parametrize("start", [flattened, mirrored])
def test_recovery_without_inertia(name, start):
    """Elements also unfold in pseudo-time with inertia; a flow may lock mirrored neo-Hookean bodies unless
    corrections are halved."""
    scene = loose(name)
    model = supple.scene.build_model(scene)
    solver = PBD(pseudo_time="dynamics", pseudo_damping=0.02)
    result = supple.equilibrium(
        scene, solver=solver, initial=start(model), tolerance=None, max_iterations=1500
    )
    np.testing.assert_allclose(family.jacobians(model, result.positions), 1, atol=0.02)


def stretched(name, poisson, stiffness=1.0, cells=(12, 2, 2)):
    """A bar of 6 × 1 × 1 m 0.75 s after stretching to 120 %."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.005, frames=250)
    kind = MATERIALS[name](young=1e4, poisson=poisson)
    body = scene.add_solid(supple.block(cells, (6, 1, 1)), kind, density=100)
    pinned_face = body.where(face(0, 0))
    scene.pin(pinned_face)
    scene.attach(pinned_face, stiffness=1.0)
    scene.pin(body.where(face(0, 6)), motion=supple.Translate((1.2, 0, 0), duration=0.5))
    *_, last = supple.simulate(scene, solver=PBD(iterations=20, damping=0.1, stiffness=stiffness))
    return last


def width(frame):
    """Mean width of the middle of the bar [m]."""
    return np.mean(np.ptp(frame.positions[face(0, 3)(frame.model.rest)][:, 1:], axis=0))


@EACH_PAPER_MATERIAL
def test_lateral_contraction_follows_poissons_ratio(name):
    """PBCM section 6: Poisson's ratio keeps its meaning, though Young's modulus does not."""
    widths = {nu: width(stretched(name, nu)) for nu in (0.0, 0.15, 0.3)}
    for nu, actual in widths.items():
        mu, lam = 1 / (2 * (1 + nu)), nu / ((1 + nu) * (1 - 2 * nu))
        assert actual == pytest.approx(uniaxial(name, 1.2, mu, lam)[0], abs=0.015)
    assert widths[0.0] > widths[0.15] + 0.02 > widths[0.3] + 0.04


@pytest.mark.parametrize(
    ("poisson", "stiffness", "settles"),
    [(0.32, 1.0, True), (0.4, 1.0, False), (0.4, 0.3, True), (0.45, 0.4, False), (0.45, 0.1, True)],
)
def test_coarse_solids_settle_below_a_stiffness_ratio_of_four(poisson, stiffness, settles):
    """A correction overshoots in the stiff mode once stiffness (1 + ν)/(1 - 2ν), the ratio of volume to
    shape, exceeds 4."""
    assert settles == (stiffness * (1 + poisson) / (1 - 2 * poisson) < 4)
    speed = np.abs(stretched("stvk", poisson, stiffness).velocities).max()
    assert speed < 1e-3 if settles else speed > 1


@pytest.mark.parametrize("poisson", [0.3, 0.45])
def test_finer_solids_oscillate_at_any_stiffness(poisson):
    """-E ∇E/|∇E|² is the gradient of no energy: a coarse bar of ν = 0.45 settles and one with half the cell
    size does not, at a ratio of only 1.45; one of ν = 0.3 does."""
    speed = np.abs(stretched("stvk", poisson, 0.1, cells=(24, 4, 4)).velocities).max()
    assert speed < 0.02 if poisson < 0.4 else speed > 0.1


def sag(solver, iterations, young=1e4):
    """Sag of the end of a bar [m]."""
    mesh, kind = supple.block((8, 2, 2), (2, 0.5, 0.5)), supple.StVK(young=young, poisson=0.3)
    scene = family.clamped(mesh, kind, quasistatic=True)
    result = supple.equilibrium(scene, solver=solver, tolerance=None, max_iterations=iterations)
    return -np.mean((result.positions - result.model.rest)[face(0, 2)(result.model.rest), 1])


def test_sag_decreases_with_sweeps():
    """PBNG Fig. 18: quasistatic PBD ends in a rigid bar, in inverse proportion to the sweeps per step."""
    truth = sag(PBNG(), 3000)
    sags = [sag(PBD(sweeps_per_step=k), 400 * k) for k in (5, 20, 80, 160)]
    assert truth > 0.02
    assert np.all(np.diff(sags) < 0)
    assert sags[-1] < 0.1 * truth
    assert sags[3] == pytest.approx(sags[2] / 2, rel=0.2)


def test_stiffness_depends_on_sweeps_and_not_on_youngs_modulus():
    """PBCM section 6: E cancels for one uniform body; the number of sweeps is its stiffness."""
    assert sag(PBD(sweeps_per_step=20), 2000, young=1e3) == pytest.approx(
        sag(PBD(sweeps_per_step=20), 2000, young=1e6), rel=1e-3
    )
    assert sag(PBD(sweeps_per_step=5), 500) > 1.5 * sag(PBD(sweeps_per_step=20), 2000)


def test_damping_scales_every_velocity():
    scene, x, v = single("stvk")
    frames = [
        next(iter(supple.simulate(scene, solver=PBD(damping=damping, iterations=2), initial=x, velocities=v)))
        for damping in (0.0, 0.25)
    ]
    np.testing.assert_array_equal(frames[1].positions, frames[0].positions)
    np.testing.assert_allclose(frames[1].velocities, 0.75 * frames[0].velocities, rtol=1e-14)


def test_spring_between_pinned_ends_is_ignored_in_float32():
    """Its energy over its zero mobility must not become infinite times zero."""
    model, _ = springs()
    term = model.terms[0]
    term.vertices[0], term.weights[0], term.target[0] = model.pinned[0], [1.0, 0.0], [100.0, 100.0, 100.0]
    term.stiffness[0, :3] = 1e12
    problem = Problem(model, "float32")
    family.begin_time_step(problem, 0.01, model.rest, 0.0)
    family.swept(problem, PBD(), 3)
    assert np.isfinite(problem.u).all()
    np.testing.assert_array_equal(problem.u[model.pinned], 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PBD(stiffness=0.0), "stiffness must lie between 0 and 1, got 0.0"),
        (lambda: PBD(stiffness=1.1), "stiffness must lie between 0 and 1, got 1.1"),
        (lambda: PBD(damping=1.0), "damping must lie between 0 and 1, got 1.0"),
        (lambda: PBD(damping=-0.1), "damping must lie between 0 and 1, got -0.1"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
