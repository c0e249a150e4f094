"""Primal XPBD: its residuals continue to fall after those of XPBD stagnate [PXPBD Fig. 1, 3]."""

import family
import numpy as np
import pytest
from problems import POISSON, YOUNG, face, rotations
from xpbd_references import curve

import supple
from supple import BPXPBD, FPXPBD, XPBD, Newton, Outcome
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.solve.batch_solve import solve


def test_single_update_of_fpxpbd_solves_one_element():
    """Without neighbors its local Newton finds the backward Euler step."""
    tet = supple.TetMesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), np.array([[0, 1, 2, 3]]))
    scene = family.clamped(tet, supple.NeoHookean(young=YOUNG, poisson=POISSON), dt=0.1)
    scene.pins.clear()
    x = tet.points @ rotations(1)[0].T @ np.diag([1.3, 0.8, 1.1])
    problem = family.placed(scene, x)
    problem.model.terms[-1].stiffness[:] = 0  # no weak constraints either
    problem = Problem(problem.model, "float64")
    family.begin_time_step(problem, scene.dt, x, 0.0)
    first = problem.balance().residual
    family.swept(problem, FPXPBD(newton_steps=200), 1)
    assert problem.balance().residual < 1e-10 * first


def test_fpxpbd_positions_follow_from_its_stresses(moving):
    """x = x̃ - W Σ V P g to rounding, after any number of sweeps [PXPBD eq. 24]."""
    scene, x, v = moving
    problem = family.placed(scene, x, v)
    run = FPXPBD().begin(problem)
    term = problem.model.terms[0]
    for _ in range(3):
        run.advance(2)
        P = family.by_element(run, 0, run.projections[0].memory[0]).reshape(-1, 3, 3)
        forces = -term.volume[:, None, None] * np.einsum("eij,evj->evi", P, term.gradients)
        moved = run.weights[:-1, None] * family.scattered(problem.model, 0, forces)
        expected = family.predicted(problem, run) + moved + family.weak_displacement(run)
        np.testing.assert_allclose(problem.positions, expected, atol=1e-13)


def test_bpxpbd_positions_are_the_sum_of_constraint_displacements(moving):
    """x = x̃ + Σ Δx_total, which the fixed-point update uses [PXPBD eq. 22]."""
    scene, x, v = moving
    problem = family.placed(scene, x, v)
    run = family.swept(problem, BPXPBD(), 5)
    totals = family.by_element(run, 0, run.projections[0].memory[1]).reshape(-1, 2, 4, 3).sum(axis=1)
    moved = family.scattered(problem.model, 0, totals[:, [0, 1, 2, 3]])
    expected = family.predicted(problem, run) + moved + family.weak_displacement(run)
    np.testing.assert_allclose(problem.positions, expected, atol=1e-13)


@pytest.mark.parametrize(
    "solver", [BPXPBD(), BPXPBD(zeta=0.5), FPXPBD()], ids=["bpxpbd", "zeta=0.5", "fpxpbd"]
)
def test_pxpbd_converges_beyond_xpbd(falling, solver):
    xpbd, residuals = curve(falling, XPBD()), curve(falling, solver)
    assert xpbd[200] > 0.5 * xpbd[20]
    assert residuals[40] < xpbd[40] / 10
    assert residuals[200] < xpbd[200] / 100


@pytest.mark.parametrize(
    ("solver", "outcome"),
    [(XPBD(), Outcome.MAX_ITERATIONS), (BPXPBD(), Outcome.CONVERGED), (FPXPBD(), Outcome.CONVERGED)],
    ids=["xpbd", "bpxpbd", "fpxpbd"],
)
def test_report_outcome_matches_the_residual(falling, solver, outcome):
    scene, x, v = falling
    report = solve(family.placed(scene, x, v), solver, StopCriteria(1e-4, 3000, None))
    assert report.outcome is outcome
    assert report.ok == (outcome is Outcome.CONVERGED)
    assert (report.relative_residual <= 1e-4) == report.ok


def test_zeta_one_is_xpbd_and_too_small_a_zeta_diverges(falling):
    np.testing.assert_allclose(curve(falling, BPXPBD(zeta=1.0), 20), curve(falling, XPBD(), 20), rtol=1e-6)
    _, x, v = falling
    stiff = family.clamped(supple.block(6, size=[0.4] * 3), supple.Corotated(young=1000, poisson=0.3))
    half = solve(family.placed(stiff, 0.5 * x, 0.5 * v), BPXPBD(zeta=0.0), StopCriteria(None, 200, None))
    assert half.outcome is Outcome.FAILED or half.reduction > 10
    assert (
        solve(family.placed(stiff, 0.5 * x, 0.5 * v), BPXPBD(), StopCriteria(None, 200, None)).reduction < 0.1
    )


@pytest.mark.parametrize("name", ["corotated", "neo_hookean", "log_neo_hookean", "stvk"])
def test_fpxpbd_converges_for_any_material(name):
    scene = family.clamped(
        supple.block((3, 2, 2)), supple.materials.MATERIALS[name](young=YOUNG, poisson=POISSON)
    )
    v = np.sin(4 * scene.bodies[0].points[:, [2, 0, 1]])
    report = solve(family.placed(scene, v=v), FPXPBD(), StopCriteria(1e-10, 500, None))
    assert report.outcome is Outcome.CONVERGED


@pytest.mark.parametrize(
    "solver", [FPXPBD(), FPXPBD(newton_steps=3), BPXPBD()], ids=["1 step", "3 steps", "bpxpbd"]
)
def test_pxpbd_finds_newtons_solution(moving, solver):
    scene, x, v = moving
    reference = family.placed(scene, x, v)
    assert solve(reference, Newton(), StopCriteria(1e-11, 30, None)).ok
    problem = family.placed(scene, x, v)
    assert solve(problem, solver, StopCriteria(1e-9, 5000, None)).ok
    moved = np.linalg.norm(reference.positions - x)
    assert np.linalg.norm(problem.positions - reference.positions) < 1e-7 * moved


def squeezed(frames=16):
    """A neo-Hookean bar compressed to 70 %, E = 1000, Δt = 0.01."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, frames=frames)
    material = supple.NeoHookean(young=1000, poisson=0.3)
    body = scene.add_solid(supple.block((8, 3, 3), (2.5, 1, 1)), material, density=10)
    for end, way in ((0.0, 0.375), (2.5, -0.375)):
        chosen = body.where(face(0, end))
        scene.pin(chosen, motion=supple.Translate((way, 0, 0), duration=0.01 * frames))
        scene.attach(
            chosen, chosen.points + np.array([way, 0, 0]), stiffness=1.0
        )  # acts on pinned vertices only
    return scene


def test_fpxpbd_beats_xpbd_with_a_tenth_of_the_iterations():
    """PXPBD 5.4: closer to Newton with 10 iterations than XPBD with 100, and with less loss of volume."""
    newton = list(supple.simulate(squeezed(), solver=Newton(), tolerance=1e-7))
    fpxpbd = list(supple.simulate(squeezed(), solver=FPXPBD(iterations=10)))
    xpbd = list(supple.simulate(squeezed(), solver=XPBD(iterations=100)))
    for k in range(3, len(newton)):
        truth = newton[k].positions
        assert np.linalg.norm(fpxpbd[k].positions - truth) < 1e-3 * np.linalg.norm(xpbd[k].positions - truth)
    model = newton[0].model
    before = family.volume(model, model.rest)
    lost = [before - family.volume(model, actual[-1].positions) for actual in (newton, fpxpbd, xpbd)]
    assert lost[1] == pytest.approx(lost[0], rel=1e-3)
    assert lost[2] > 1.02 * lost[1]
