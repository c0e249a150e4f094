"""Repeated rejection of Newton steps next to obstacles."""

import numpy as np

import supple
from supple.problem import Problem
from supple.solvers.newton_methods.active_set import ActiveSetNewton


def _resting_block():
    scene = supple.Scene(gravity=(0, -3, 0))
    body = scene.add_solid(supple.block(1), supple.Corotated(young=1e3, poisson=0.3), density=20)
    scene.pin(body.where(np.flatnonzero(body.points[:, 1] >= 1)), motion=supple.Translate((0.02, -0.1, 0)))
    scene.add_obstacle(supple.Plane(normal=(0, 1, 0)))
    problem = Problem(supple.scene.build_model(scene), "float64", 1)
    problem.contacts.begin_equilibria([np.inf])
    return problem


def test_rejected_newton_steps_become_rarer():
    problem, tried = _resting_block(), []

    class Astray:
        def __init__(self, twin, tolerance):
            self.twin = twin

        def step(self):
            tried.append(len(tried))
            self.twin.u[:-1, 0] += 0.1 * np.arange(len(self.twin.u) - 1)

    run = ActiveSetNewton(problem, Astray, 1e-8)
    for _ in range(40):
        run.step()
        run.observe(problem.balance())
    assert len(tried) <= 7
    assert run.notes()[1] == "40 steps made by sweeps"
    assert problem.balance().relative_residual < 1e-8
