"""Exchanged springs: results equal those of new problems with the same springs."""

from dataclasses import replace

import numpy as np
import pytest
from lanewise import lanewise_problem
from problems import (
    PBNGS,
    PRECISIONS,
    cantilever,
    face,
    material,
    model_of,
    net,
    perturbed,
    sheet,
    tied_blocks,
)

import supple
from supple.model.model import Conditions
from supple.problem import Problem
from supple.scene import build_model
from supple.solve.batch_solve import StopCriteria, solve
from supple.solvers import SOLVERS
from supple.terms import Springs


def graded():
    """A block on rollers with parameters by element."""
    scene = supple.Scene(gravity=(0, -10, 0))
    mesh = supple.block(2)
    young = np.linspace(500, 1500, len(mesh.tets))
    body = scene.add_solid(mesh, material("neo_hookean", young=young), density=2.0)
    scene.pin(body.where(face(0, 0)), axes="x")
    scene.pin(body.where(face(1, 0)), axes="y")
    scene.pin(body.where(face(2, 0)), axes="z")
    return scene


MODELS = {
    "graded": build_model(graded()),
    "cantilever": build_model(cantilever(material("corotated"), cells=3)),
    "tied": build_model(tied_blocks(material("neo_hookean"), material("corotated"), stiffness=1e5)),
}


def rolling():
    """A cantilever with a face that moves only in an oblique plane."""
    scene = cantilever(material("corotated"), cells=3)
    scene.pin(scene.bodies[0].where(face(1, 0)), normal=(1, 2, -3))
    return build_model(scene)


MODELS["rolling"] = rolling()
ELEMENTWISE = ["xpbd", "block_xpbd", "bpxpbd", "gpbd", "pbd"]
METHODS = {
    **{f"pbng-{name}": solver for name, solver in PBNGS.items()},
    **{name: SOLVERS[name]() for name in [*ELEMENTWISE, "newton"]},
    "hybrid": supple.Hybrid(max_predicted_sweeps=0),
}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)
DT = 0.02


def springs(model, count, seed=0, capacity=None, stiffness=30.0):
    """Springs between mostly distant vertices, some of which share a vertex."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, model.vertices, (count, 2)).astype(np.int32)
    pairs[:, 1] = np.where(pairs[:, 1] == pairs[:, 0], (pairs[:, 0] + 1) % model.vertices, pairs[:, 1])
    strength, length = stiffness * random.uniform(0.5, 1, count), random.uniform(0, 0.5, (count, 1))
    return Springs(pairs, strength, length, model.rest, capacity)


def having(model, term):
    return replace(model, terms=(*model.terms, term))


def changing(model, precision="float64", kind=Problem, capacity=30):
    """A problem with capacity for springs."""
    return kind(having(model, springs(model, 0, capacity=capacity)), precision)


def begin_step(problem, start):
    """Begin a backward Euler step from start (n, 3) [m] without velocity."""
    problem.set_inertia(DT, start)
    problem.positions = start
    problem.begin_step(0.0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", [Problem, lanewise_problem])
def test_energies_and_forces_are_those_of_the_present_springs(name, precision, kind):
    model = MODELS[name]
    problem = perturbed(changing(model, precision, kind), 0.05)
    problem.loads.set_time_step(DT)
    for seed, count in enumerate((7, 30, 3, 0, 20)):
        problem.refresh(len(model.terms), springs(model, count, seed))
        expected = kind(having(model, springs(model, count, seed)), precision)
        expected.loads.set_time_step(DT)
        expected.u[:] = problem.u
        eps = 50 * float(np.finfo(precision).eps)
        assert problem.energy() == pytest.approx(expected.energy(), rel=eps)
        assert problem.balance().relative_residual == pytest.approx(
            expected.balance().relative_residual, rel=eps
        )
        scale = np.abs(expected.states.net).max()
        np.testing.assert_allclose(problem.states.net[:-1], expected.states.net[:-1], atol=eps * scale)
        np.testing.assert_array_equal(problem.states.net[-1], 0)
    assert problem.layout.growths == 0


@EVERY_METHOD
@pytest.mark.parametrize("quasistatic", [False, True], ids=["dynamic", "quasistatic"])
def test_without_springs_the_problem_equals_one_without_the_term(method, quasistatic):
    """Up to rounding of kernels compiled with one term more; also after some springs were removed."""
    model = MODELS["cantilever"]
    positions = []
    for problem in (Problem(model, "float64"), changing(model)):
        if problem.layout.dynamic_batches is not None:
            problem.refresh(1, springs(model, 12))
            problem.refresh(1, springs(model, 0))
        if quasistatic:
            problem.begin_step(0.0)
        else:
            begin_step(problem, model.rest * 1.01)
        METHODS[method].begin(problem).advance(3)
        positions.append(problem.u.copy())
    np.testing.assert_allclose(*positions, atol=1e-12 * np.abs(positions[0]).max())
    assert positions[0].any()


@EVERY_METHOD
@pytest.mark.parametrize("name", ["cantilever", "rolling"])
def test_results_are_independent_of_earlier_springs(method, name):
    """Steps are bitwise those of a new problem, also after the capacity has grown."""
    model = MODELS[name]
    problem = changing(model, capacity=8)
    assert problem.layout.growths == 0
    start = model.rest
    for seed, count in enumerate((6, 25, 11)):
        problem.refresh(1, springs(model, count, seed))
        reference = Problem(having(model, springs(model, count, seed, capacity=count)), "float64")
        for each in (problem, reference):
            begin_step(each, start)
            METHODS[method].begin(each).advance(4)
        np.testing.assert_array_equal(problem.u, reference.u)
        start = problem.positions
    assert problem.layout.growths > 0


@pytest.mark.parametrize("name", ["pbng-none", "pbng-anderson", "pbng-chebyshev", "newton", "hybrid"])
@pytest.mark.parametrize("model", MODELS)
def test_springs_may_change_between_sweeps(name, model):
    """The result is the equilibrium of the last springs."""
    model, solver = MODELS[model], METHODS[name]
    problem = changing(model)
    problem.begin_step(0.0)
    run = solver.begin(problem)
    last = springs(model, 15, seed=5, stiffness=10.0)
    for seed in range(3):
        problem.refresh(len(model.terms), springs(model, 10, seed, stiffness=10.0))
        run.advance(3)
    problem.refresh(len(model.terms), last)
    run.advance(3)
    assert solve(problem, solver, StopCriteria(1e-9, 4000)).ok
    expected = supple.equilibrium(having(model, last), solver="newton", tolerance=1e-10)
    assert expected.report.ok
    moved = np.abs(expected.positions - model.rest).max()
    np.testing.assert_allclose(problem.positions, expected.positions, atol=1e-5 * moved)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("model", ["cantilever", "rolling"])
def test_element_wise_methods_restart_a_step_with_new_springs(name, model):
    """Removed springs have no effect on the step, bitwise."""
    model, solver = MODELS[model], SOLVERS[name]()
    problem = changing(model)
    begin_step(problem, model.rest)
    run = solver.begin(problem)
    problem.refresh(1, springs(model, 10, stiffness=300.0))
    run.advance(5)
    problem.refresh(1, springs(model, 12, seed=1))
    run.advance(20)
    reference = Problem(having(model, springs(model, 12, seed=1, capacity=12)), "float64")
    begin_step(reference, model.rest)
    solver.begin(reference).advance(20)
    np.testing.assert_array_equal(problem.u, reference.u)
    assert np.abs(problem.u).max() > 0.01


def test_model_may_consist_of_exchangeable_springs_only():
    """Of springs alone, all of which may come and go."""
    points, _ = sheet()
    net_only = net()
    (term,) = net_only.terms
    empty = Springs(term.vertices[:0], term.stiffness[:0], term.rest[:0], points, capacity=4)
    problem = Problem(model_of(points, empty, pinned=net_only.pinned, stretch=1.1), "float64")
    problem.refresh(0, term)
    problem.positions = net_only.rest * [1.1, 1.1, 1]
    problem.begin_step(0.0)
    assert solve(problem, supple.PBNG(), StopCriteria(1e-8)).ok
    expected = supple.equilibrium(net_only, tolerance=1e-8, initial=net_only.rest * [1.1, 1.1, 1])
    np.testing.assert_allclose(problem.positions, expected.positions, atol=1e-6)


def test_changed_parameters_reach_moved_vertices():
    """Parameters by element are written at the slots of the elements, before and after moves."""
    model = MODELS["graded"]
    problem = changing(model, capacity=12)
    problem.refresh(1, springs(model, 12))
    assert len(problem.layout.dynamic_batches.displaced)
    softer = material("neo_hookean", young=np.linspace(900, 300, len(model.tets)))
    assert problem.set_conditions([Conditions(model.rest[model.pinned], model.force, (softer,))])
    perturbed(problem, 0.02)
    for count in (12, 5, 30):
        problem.refresh(1, springs(model, count))
        solid = replace(model.terms[0], material=softer)
        expected = Problem(replace(model, terms=(solid, springs(model, count))), "float64")
        expected.u[:] = problem.u
        expected.states.pin(model.rest[model.pinned])
        problem.states.pin(model.rest[model.pinned])
        assert problem.energy() == pytest.approx(expected.energy(), rel=1e-12)
        problem.balance(), expected.balance()
        scale = np.abs(expected.states.net).max()
        np.testing.assert_allclose(problem.states.net, expected.states.net, atol=1e-12 * scale)


def test_results_are_independent_of_threads():
    model = build_model(cantilever(material("corotated"), cells=8))
    positions = []
    for threads in (1, 2):
        problem = changing(model, "float32", capacity=200)
        problem.device.threads = threads
        begin_step(problem, model.rest)
        run = supple.PBNG("none").begin(problem)
        for seed in range(3):
            problem.refresh(1, springs(model, 150, seed))
            run.advance(3)
        positions.append(problem.u)
    np.testing.assert_array_equal(*positions)


def test_invalid_exchanges_are_refused():
    model = MODELS["cantilever"]
    with pytest.raises(
        ValueError, match="tetrahedra cannot be replaced: their term was created without a capacity"
    ):
        changing(model).refresh(0, model.terms[0])
    with pytest.raises(
        ValueError, match="springs of 2 vertices can only be replaced by stencils of the same kind"
    ):
        changing(model).refresh(1, model.terms[0])
    beyond = replace(springs(model, 1), vertices=np.array([[0, model.vertices]], np.int32))
    with pytest.raises(ValueError, match=f"must lie between 0 and {model.vertices - 1}"):
        changing(model).refresh(1, beyond)
