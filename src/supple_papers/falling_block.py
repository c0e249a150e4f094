"""One representative time step of a falling clamped block [PBNG Fig. 3, PXPBD Fig. 1 and 3]."""

from __future__ import annotations

from functools import cache

import numpy as np

import supple
from supple import PBNG
from supple.config.stop_criteria import StopCriteria
from supple.model.model import Model
from supple.problem import Problem
from supple.solve.batch_solve import solve
from supple.solvers import Solver
from supple_papers.common import clamped_scene, time_step_problem
from supple_papers.measurements import Measurements, Quantities

CELL, SMALL_CELL = 2 / 15, 1 / 15
"""Cell sizes [m], which the papers do not give.

With the papers' zeta = 0.5, a block of 15³ of the smaller cells is unstable.
"""

COUNTS = (10, 40, 100, 200)


@cache
def start(cells: int, cell: float = CELL) -> tuple[Model, np.ndarray, np.ndarray]:
    """Model, positions and velocities of the block after eight steps of 0.01 s."""
    material = supple.Corotated(young=1000, poisson=0.3)
    scene = clamped_scene(
        supple.block(cells, size=[cells * cell] * 3), material, 10, 0.01, gravity=(0, -9.8, 0)
    )
    for frame in supple.simulate(scene, solver=PBNG(acceleration="chebyshev"), tolerance=1e-6, frames=8):
        state = frame.model, frame.positions, np.asarray(frame.velocities)
    return state


def step(measurements: Measurements, cell: float = CELL) -> Problem:
    """Return the problem of the ninth step."""
    model, x, v = start(15 if measurements.full else 6, cell)
    return time_step_problem(model, 0.01, x, v)


def measure_residuals(measurements: Measurements, solver: Solver, cell: float = CELL) -> Quantities:
    """Relative residual after several iteration counts, and primary and secondary residuals if available."""
    report = solve(
        step(measurements, cell), solver, StopCriteria(max_iterations=max(COUNTS)), record_history=True
    )
    history = report.history
    assert history is not None
    quantities: Quantities = {"outcome": report.outcome.name.lower()}
    for name, values in (
        ("", history.residual),
        ("primary ", history.primal_residual),
        ("secondary ", history.dual_residual),
    ):
        if values:
            first = max(values) if name == "primary " else values[0]  # the primary residual is 0 at the start
            quantities |= {f"{name}{k}": values[k] / first for k in COUNTS if k < len(values)}
    return quantities
