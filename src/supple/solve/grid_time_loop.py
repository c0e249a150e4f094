"""Time stepping of bodies embedded in a background grid, with a new grid in every step.

At the start of a step, vertex masses and velocities are transferred to the grid nodes. The solver advances
the nodes, and vertices follow them [PXPBD section 5.5, Jiang et al. 2015]. The grid has a single velocity at
each point, so that bodies do not pass through each other, although surfaces may cross within a cell. No
vertex should move by more than a fraction of a cell in a step (CFL), so that the number of steps per frame is
adaptive.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from supple.collision import distances_to
from supple.grid import Forces, GridModel, NodePlanes, interpolate, make_grid_model
from supple.grid.node_planes import planes_of_nodes, shapes_after
from supple.model.model import Step
from supple.problem import Problem
from supple.problem.history_variables import AFFINE
from supple.scene.contact_settings import open_on_grid
from supple.solve.batch_solve import make_device, solve_batch
from supple.solve.report import Outcome, Report, lag_notes
from supple.solve.time_loop import TimeLoop, merge_reports
from supple.support.text import pluralize

log = logging.getLogger("supple")

MAX_STEPS = 10_000
"""Largest number of steps per frame; more indicate a blow-up."""

GRADIENT_TRANSFERS = 20
"""Transfers that determine the gradients of given velocities."""


class GridTimeLoop(TimeLoop):
    """Time stepping of a problem whose vertices are embedded in a grid; batch size 1."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = self.problem.model
        assert model.grid is not None
        for sentence in open_on_grid(model.bodies, model.grid.spacing):
            log.warning("%s.", sentence)

    def begin(self) -> None:
        if self.problem.batch_size > 1 or self.schedule.quasistatic:
            raise ValueError(
                'contact="grid" does not support equilibria or batch_size; use contact="weak" or "barrier"'
            )
        super().begin()

    @property
    def history_name(self) -> str:
        return AFFINE

    def advance(self, forces: np.ndarray | None = None, pins: np.ndarray | None = None) -> list[Report]:
        self.refuse_interrupted()
        self._interrupted = True
        begin, now, end = self.time, 0.0, self.schedule.dt
        pinned = self.problem.positions[self.problem.model.pinned]
        reports: list[Report] = []
        while now < end:
            step = self._next_step(end - now)
            last = step >= end - now
            now = end if last else now + step
            prescribed = None if pins is None else pinned + now / end * (pins - pinned)
            reports.append(self._step(begin + now, step, prescribed, forces))
            if reports[-1].outcome is Outcome.FAILED or len(reports) > MAX_STEPS:
                reports[-1].outcome = Outcome.FAILED
                break
        self.index += 1
        self._interrupted = False
        report = merge_reports(reports)
        report.notes.append(f"{pluralize(len(reports), 'step')} on a grid of {self._nodes:,} nodes")
        report.notes += lag_notes(report)
        return [report]

    def _next_step(self, remaining: float) -> float:
        """Length Δt [s] of the next step, with `remaining` [s] remaining in the frame.

        Vertices move by at most a fraction of a cell; the remaining steps all have this length.
        """
        grid = self.problem.model.grid
        assert grid is not None
        fastest = float(np.linalg.norm(self.finish_frame()[0], axis=1).max(initial=0.0))
        limit = min(self.schedule.step, grid.cfl * grid.spacing / fastest if fastest > 0 else math.inf)
        return remaining / max(1, math.ceil(remaining / limit * (1 - 1e-9)))

    def _step(
        self, time: float, dt: float, prescribed: np.ndarray | None, forces: np.ndarray | None
    ) -> Report:
        """Advance by one step that ends at a time [s]."""
        p, model = self.problem, self.problem.model
        x, v = p.positions, self.finish_frame()[0]
        began = self._pop_setup_start() or perf_counter()
        loads = Forces(
            self._forces(time, forces, x, v),
            model.prescribed(time) if prescribed is None else prescribed,
            model.materials_at(time) or {},
        )
        assert model.grid is not None
        embedded = make_grid_model(
            model, model.grid.spacing, (x, v, self._affine(x, v)), loads, dt, str(p.dtype)
        )
        grid_problem = self._make_grid_problem(embedded, x, time, dt)
        grid_problem.loads.set_time_step(dt)
        grid_problem.states.set_velocities(embedded.velocities)
        grid_problem.begin_step(time, dt, 0.0, None, embedded.prescribed)
        (report,) = solve_batch(
            grid_problem, self.solver, self.stop, self._keeps_history, self._callback, began
        )
        self._update_vertices(grid_problem, embedded, x, dt, loads)
        self._nodes = len(embedded.points.nodes)
        self._last_step = Step(math.inf, p.positions, loads.force, model.materials_at(time), time)
        report.vertices, report.elements = model.vertices, model.elements
        return self._complete_report(report, grid_problem, embedded)

    def _forces(self, time: float, extra: np.ndarray | None, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(n, 3) external forces on vertices [N]."""
        model = self.problem.model
        winds: Any = [wind(x, v, time) for wind in model.winds]
        return model.force_at(time) + sum(winds, 0.0 if extra is None else extra)

    def _affine(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(n, 3, 3) velocity gradients [1/s] of the last step, or those of given velocities on the grid."""
        known, model = self.problem.history.motions()[0].get(AFFINE), self.problem.model
        if known is not None:
            return known.reshape(-1, 3, 3)
        assert model.grid is not None
        points, gradients = interpolate(x, model.grid.spacing), np.zeros((len(x), 3, 3))
        for _ in range(GRADIENT_TRANSFERS):  # affine velocities are a fixed point of this transfer
            gradients = points.gradient(points.transfer(model.mass, v, gradients))
        return gradients

    def _make_grid_problem(self, embedded: GridModel, x: np.ndarray, time: float, dt: float) -> Problem:
        """Create the problem of the grid nodes."""
        own, obstacles = self.problem, embedded.model.obstacles
        device = make_device(own.device.name, embedded.model)
        threads = own.device.threads if device is None else None
        if obstacles is None:
            return Problem(embedded.model, str(own.dtype), threads, device)
        shapes = shapes_after(obstacles, time - dt, time)
        planes = planes_of_nodes(obstacles, shapes, embedded.points, x)
        return Problem(
            embedded.model, str(own.dtype), threads, device, contacts=partial(NodePlanes, shapes, planes)
        )

    def _update_vertices(
        self, grid_problem: Problem, embedded: GridModel, x: np.ndarray, dt: float, loads: Forces
    ) -> None:
        """Update vertices from the nodes."""
        p, model, points = self.problem, self.problem.model, embedded.points
        u = grid_problem.states.vectors(grid_problem.u)[0].astype(float)
        velocity = (1.0 - self.schedule.damping) ** (dt / self.schedule.step) / dt * u
        positions = x + points.gather(u)
        v = points.gather(velocity)
        if not np.isfinite(positions).all():
            positions, v, velocity = x, np.zeros_like(x), np.zeros_like(u)
        positions[model.pinned] = loads.pinned
        v[model.pinned] = (loads.pinned - x[model.pinned]) / dt
        p.positions = positions
        p.states.set_velocities(v)
        p.history.set_motions([{AFFINE: points.gradient(velocity).reshape(-1, 9)}])

    def _complete_report(self, report: Report, grid_problem: Problem, embedded: GridModel) -> Report:
        """Complete a report: obstacle depth or gap of vertices, contact forces per body.

        Node forces are divided among embedded bodies in proportion to their masses.
        """
        obstacles = grid_problem.contacts.obstacles
        contact = None if report.contact is None else report.contact.obstacles
        if report.contact is None or contact is None or obstacles is None:
            return report
        accelerations = grid_problem.contacts.get_planes(0)[2].sum(axis=0) / embedded.model.mass[:, None]
        forces = {}
        for name, own in self.problem.model.body_vertices:
            mass = np.zeros(self.problem.model.vertices)
            mass[own] = self.problem.model.mass[own]
            forces[name] = tuple((embedded.points.spread(mass) @ accelerations).tolist())
        distance, _, nearest = distances_to(grid_problem.contacts.shapes, self.problem.positions)
        distance[~self.problem.model.free] = math.inf
        owner = obstacles.obstacle[nearest]
        least = [float(distance[owner == k].min(initial=math.inf)) for k in range(len(obstacles.names))]
        each = tuple(
            replace(entry, max_penetration=max(0.0, -d), min_gap=max(0.0, d) if d < math.inf else None)
            for entry, d in zip(contact.each, least, strict=True)
        )
        report.contact = replace(report.contact, obstacles=replace(contact, each=each, forces=forces))
        return report

    def last_steps(self) -> list[Step | None]:
        """External forces and parameters at the end of the frame; inertia belongs to the nodes."""
        return [self._last_step]


def make_time_loop(problem: Problem, *options: Any, **kwargs: Any) -> TimeLoop:
    """Create a problem's time stepping, grid-based if its model has a grid."""
    loop_class = TimeLoop if problem.model.grid is None else GridTimeLoop
    return loop_class(problem, *options, **kwargs)
