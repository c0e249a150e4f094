"""XPBD and its relatives against the papers' algorithm boxes and exact solutions, and refusals."""

import family
import numpy as np
import pytest
from problems import POISSON, YOUNG, rotations
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import spsolve
from xpbd_references import Reference, corotated_pair, neo_hookean_pair

import supple
from supple import BPXPBD, FPXPBD, XPBD, BlockXPBD, Newton
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.solve.batch_solve import solve


@pytest.mark.parametrize(
    ("solver", "kind", "pair", "zeta"),
    [
        (XPBD(), supple.NeoHookean, neo_hookean_pair, 1.0),
        (XPBD(), supple.Corotated, corotated_pair, 1.0),
        (BPXPBD(zeta=0.7), supple.Corotated, corotated_pair, 0.7),
        (BlockXPBD(), supple.NeoHookean, neo_hookean_pair, None),
    ],
    ids=["xpbd neo-Hookean", "xpbd corotated", "bpxpbd corotated", "block_xpbd neo-Hookean"],
)
@pytest.mark.parametrize("ordering", ["colors", "clusters"])
def test_sweeps_equal_the_algorithms_of_the_papers(solver, kind, pair, zeta, ordering):
    """Two sweeps from a deformed state against the algorithm boxes in NumPy, element by element."""
    solver = type(solver)(**{**vars(solver), "ordering": ordering})
    scene = family.clamped(supple.block(2), kind(young=YOUNG, poisson=POISSON))
    x = scene.bodies[0].points
    x = x + 0.1 * np.sin(3 * x[:, [1, 2, 0]])
    problem = family.placed(scene, x)
    run = solver.begin(problem)
    reference = Reference(problem, run, pair, zeta)
    for _ in range(2):
        run.advance(1)
        reference.sweep_coupled() if zeta is None else reference.sweep_decoupled()
        np.testing.assert_allclose(problem.positions, reference.x, atol=1e-10)
    lam = family.by_element(run, 0, run.projections[0].memory[0])
    np.testing.assert_allclose(lam, reference.lam, rtol=1e-8, atol=1e-9)


def secondary_residual(run, x):
    """|h|, h = C + λ/(k V) of both constraints of every element [PXPBD eq. 12]."""
    term = run.problem.model.terms[0]
    lam = family.by_element(run, 0, run.projections[0].memory[0])
    h = []
    for F, V, l in zip(family.deformation(run.problem.model, x), term.volume, lam, strict=True):
        pair = corotated_pair(F, term.material.mu, term.material.lam)
        h += [C + l[c] / (k * V) for c, (C, _, k) in enumerate(pair)]
    return np.linalg.norm(h)


def test_xpbd_reduces_only_the_secondary_residual(falling):
    """PXPBD Fig. 3 (a)."""
    scene, x, v = falling
    problem = family.placed(scene, x, v)
    run = XPBD().begin(problem)
    run.advance(1)
    early = problem.balance().residual, secondary_residual(run, problem.positions)
    run.advance(59)
    late = problem.balance().residual, secondary_residual(run, problem.positions)
    assert late[1] < 1e-6 * early[1]
    assert late[0] > 0.1 * early[0]


def springs(vertices=12, seed=0):
    """A net of springs without rest length, supported by a few: every constraint is linear in the
    positions."""
    random = np.random.default_rng(seed)
    rest = random.uniform(0, 1, (vertices, 3))
    pairs = np.array([(i, j) for i in range(vertices) for j in range(i) if random.random() < 0.4])
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.02)
    mesh = supple.block(1)
    scene.add_solid(mesh, supple.Corotated(young=1, poisson=0.3))
    model = supple.scene.build_model(scene)
    pinned = np.arange(3)
    ends = np.concatenate([pairs, np.column_stack([pinned, pinned])])
    weights = np.concatenate([np.tile([1.0, -1.0], (len(pairs), 1)), np.tile([1.0, 0.0], (3, 1))])
    target = np.concatenate([np.zeros((len(pairs), 3)), rest[pinned]])
    Q = rotations(len(ends), seed)
    K = Q @ (random.uniform(50, 500, (len(ends), 3, 1)) * Q.transpose(0, 2, 1))
    six = np.stack([K[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], axis=1)
    term = supple.terms.WeakConstraints(ends, weights, target, six, rest)
    mass = random.uniform(0.5, 2, vertices)
    return (
        type(model)(
            rest=rest,
            mass=mass,
            force=mass[:, None] * np.array([0, -9.8, 0]),
            pinned=np.array([vertices - 1]),
            prescribed=lambda t: rest[[vertices - 1]],
            terms=(term,),
            tets=np.empty((0, 4), np.int32),
        ),
        K,
    )


def spring_step(model, dt, v):
    problem = Problem(model, "float64")
    family.begin_time_step(problem, dt, model.rest, v)
    return problem


def linear_solution(model, K, dt, v):
    """Backward Euler for linear springs: (M/Δt² + Σ w wᵀ K) x = M/Δt² (x + Δt v) + f + Σ w K target."""
    term, n = model.terms[0], model.vertices
    A = diags(np.repeat(model.mass / dt**2, 3)).tolil()
    b = (model.mass[:, None] / dt**2 * (model.rest + dt * v) + model.force).ravel()
    for stencil, w, target, stiffness in zip(term.vertices, term.weights, term.target, K, strict=True):
        for i, wi in zip(stencil, w, strict=True):
            b[3 * i : 3 * i + 3] += wi * stiffness @ target
            for j, wj in zip(stencil, w, strict=True):
                A[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] += wi * wj * stiffness
    p = 3 * (n - 1)  # the last vertex is pinned
    A = csr_matrix(A)
    x_pinned = model.rest[-1]
    free = spsolve(A[:p, :p].tocsc(), b[:p] - A[:p, p:] @ x_pinned)
    return np.vstack([free.reshape(-1, 3), x_pinned])


@pytest.mark.parametrize(
    "solver", [XPBD(), XPBD(ordering="clusters"), FPXPBD()], ids=["xpbd", "clusters", "fpxpbd"]
)
def test_linear_constraints_converge_to_the_exact_solution(solver):
    """With constant gradients XPBD has no error."""
    model, K = springs()
    v = np.random.default_rng(5).normal(size=model.rest.shape)
    v[-1] = 0
    problem = spring_step(model, 0.02, v)
    family.swept(problem, solver, 400)
    np.testing.assert_allclose(problem.positions, linear_solution(model, K, 0.02, v), atol=1e-12)


def small_deflection(solver, kind, gravity):
    """Relative distance from Newton's solution after one step of a stiff bar under little weight."""
    scene = family.clamped(supple.block((4, 2, 2), (1, 0.5, 0.5)), kind(young=1e4, poisson=0.3), gravity)
    reference = family.placed(scene)
    assert solve(reference, Newton(), StopCriteria(1e-11, 20, None)).ok
    problem = family.placed(scene)
    family.swept(problem, solver, 300)
    rest = problem.model.rest
    return np.linalg.norm(problem.positions - reference.positions) / np.linalg.norm(
        reference.positions - rest
    )


def test_xpbd_pairs_are_inexact_for_small_displacements():
    """The gradients of |F - R| and |F| rotate with the direction of the strain, not with its size: XPBD has
    an error of a percent with corotated pairs, and a far larger one with neo-Hookean ones, which do not
    vanish at rest."""
    assert 1e-3 < small_deflection(XPBD(), supple.Corotated, -1.0) < 0.1
    assert small_deflection(XPBD(), supple.NeoHookean, -1.0) > 1
    assert small_deflection(FPXPBD(), supple.Corotated, -1.0) < 1e-8
    assert small_deflection(BPXPBD(), supple.Corotated, -1.0) < 1e-8


def test_clusters_change_a_solve_only_by_their_order(falling, moving):
    scene, x, v = falling
    reductions = [
        solve(family.placed(scene, x, v), FPXPBD(ordering=order), StopCriteria(None, 30, None)).reduction
        for order in ("colors", "clusters")
    ]
    assert max(reductions) < 30 * min(reductions)
    assert max(reductions) < 1e-3
    converged = []
    for size in (1, 3, 5):
        problem = family.placed(*moving)
        assert solve(
            problem, FPXPBD(ordering="clusters", cluster_size=size), StopCriteria(1e-10, 3000, None)
        ).ok
        converged.append(problem.positions)
    np.testing.assert_allclose(converged[1], converged[0], atol=1e-8)
    np.testing.assert_allclose(converged[2], converged[0], atol=1e-8)


@pytest.mark.parametrize("name", ["stvk", "log_neo_hookean", "stable_neo_hookean", "linear_elastic"])
@pytest.mark.parametrize("solver", [BlockXPBD(), XPBD(constraints="pair"), BPXPBD(constraints="pair")])
def test_materials_without_a_pair_are_refused(solver, name):
    scene = family.clamped(supple.block(1), supple.materials.MATERIALS[name](young=YOUNG, poisson=POISSON))
    with pytest.raises(ValueError, match=r"pair of constraints.*Corotated, NeoHookean.*fpxpbd") as caught:
        solver.begin(family.placed(scene))
    assert type(solver).name in str(caught.value)
    assert type(scene.bodies[0].material).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: XPBD(constraints="triple"), "constraints must be 'auto', 'pair' or 'root', got 'triple'"),
        (lambda: XPBD(ordering="random"), "ordering must be 'colors', 'clusters' or 'cells', got 'random'"),
        (lambda: BlockXPBD(cluster_size=0), "cluster_size must be a whole number of at least 1, got 0"),
        (lambda: XPBD(sweeps_per_step=0), "sweeps_per_step must be a whole number of at least 1, got 0"),
        (lambda: XPBD(pseudo_dt=0.0), "pseudo_dt must be positive"),
        (lambda: XPBD(pseudo_dt=float("nan")), "pseudo_dt must be positive"),
        (lambda: XPBD(iterations=0), "iterations must be a whole number of at least 1, got 0"),
        (lambda: BPXPBD(zeta=1.5), "zeta must lie between 0 and 1, got 1.5"),
        (lambda: BPXPBD(zeta=-0.1), "zeta must lie between 0 and 1, got -0.1"),
        (lambda: FPXPBD(newton_steps=0), "newton_steps must be a whole number of at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
