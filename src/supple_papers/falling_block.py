"""One representative time step of a falling clamped block [PBNG Fig. 3, PXPBD Fig. 1 and 3]."""

from __future__ import annotations

from functools import cache

import numpy as np

import supple
from supple import PBNG
from supple.solvers import Solver
from supple_papers.common import clamped_scene, step_once, time_step_problem
from supple_papers.internals import Model, Problem
from supple_papers.measurements import Measurements, Quantities

CELL, SMALL_CELL = 2 / 15, 1 / 15
"""Cell sizes [m], which the papers do not give.

With the papers' zeta = 0.5, a block of 15³ of the smaller cells is unstable.
"""

COUNTS = (10, 40, 100, 200)


def block_cells(measurements: Measurements) -> int:
    """Number of cells along an edge."""
    return 15 if measurements.full else 6


def falling_block(cells: int, cell: float = CELL) -> supple.Scene:
    """Block with steps of 0.01 s."""
    material = supple.Corotated(young=1000, poisson=0.3)
    return clamped_scene(
        supple.block(cells, size=[cells * cell] * 3), material, 10, 0.01, gravity=(0, -9.8, 0)
    )


@cache
def start(cells: int, cell: float = CELL) -> tuple[Model, np.ndarray, np.ndarray]:
    """Model, positions and velocities of the block after eight steps."""
    frames = supple.simulate(
        falling_block(cells, cell), solver=PBNG(acceleration="chebyshev"), tolerance=1e-6, frames=8
    )
    *_, frame = frames
    return frame.model, frame.positions, np.asarray(frame.velocities)


def step(measurements: Measurements, cell: float = CELL) -> Problem:
    """Return the problem of the ninth step."""
    model, x, v = start(block_cells(measurements), cell)
    return time_step_problem(model, 0.01, x, v)


def measure_residuals(measurements: Measurements, solver: Solver, cell: float = CELL) -> Quantities:
    """Relative residual after several iteration counts, and primary and secondary residuals if available."""
    cells = block_cells(measurements)
    _, x, v = start(cells, cell)
    scene = falling_block(cells, cell)
    report = step_once(scene, solver, x, v, record_history=True, max_iterations=max(COUNTS)).report
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
