"""Cached quantities of a state are invalidated by every change of their inputs."""

import numpy as np
from problems import cantilever, material

from supple.model.model import Conditions
from supple.problem import Problem
from supple.scene import build_model


def quantities(problem):
    return problem.balance(), problem.energy(), problem.states.net.copy()


def test_quantities_match_the_present_state():
    model = build_model(cantilever(material("stable_neo_hookean")), quasistatic=True)
    problem, rng = Problem(model, "float64"), np.random.default_rng(0)
    moved = model.rest + 0.01 * rng.normal(size=model.rest.shape)
    force = model.force + rng.normal(size=model.rest.shape)
    stiffer = tuple(t.material._replace(mu=2 * t.material.mu) for t in model.terms)
    changes = [
        lambda p: setattr(p, "positions", moved),
        lambda p: p.loads.set(force),
        lambda p: p.use_materials([stiffer]),
        lambda p: p.set_inertia(0.1, model.rest),
        lambda p: p.set_conditions([Conditions(model.rest[model.pinned], force, initial=moved)]),
    ]
    before = quantities(problem)
    for number, change in enumerate(changes):
        change(problem)
        new_problem = Problem(model, "float64")
        for earlier in changes[: number + 1]:
            earlier(new_problem)
        actual, again, expected = quantities(problem), quantities(problem), quantities(new_problem)
        assert actual[0] == again[0] == expected[0] != before[0]
        assert actual[1] == again[1] == expected[1]
        assert np.array_equal(actual[2], expected[2])
        before = actual


def test_rest_stiffness_does_not_replace_evaluated_forces():
    """Both use the same memory for forces."""
    model = build_model(cantilever(material("stable_neo_hookean")), quasistatic=True)
    problem = Problem(model, "float64")
    problem.positions = model.rest + 0.01 * np.random.default_rng(0).normal(size=model.rest.shape)
    forces = quantities(problem)[2]
    problem.diagnostics.rest_compliance.invalidate()
    problem.diagnostics.energy_rounding()
    assert np.array_equal(quantities(problem)[2], forces)
