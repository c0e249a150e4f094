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
from supple.grid import Carried, Forces, NodePlanes, carry, interpolate
from supple.grid.node_planes import planes_of_nodes, shapes_after
from supple.model.model import Step
from supple.problem import Problem
from supple.problem.history import AFFINE
from supple.scene.contact_settings import open_on_grid
from supple.solve.loop import make_device, solve_batch
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

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        model = self.problem.model
        assert model.grid is not None
        for sentence in open_on_grid(model.bodies, model.grid.spacing):
            log.warning("%s.", sentence)

    def begin(self) -> None:
        if self.problem.copies > 1 or self.schedule.quasistatic:
            raise ValueError(
                'contact="grid" is for motions of one scene, not for equilibria or copies of the state; '
                '"weak" and "barrier" are for these'
            )
        super().begin()

    @property
    def past(self) -> str:
        return AFFINE

    def advance(self, forces: np.ndarray | None = None, pins: np.ndarray | None = None) -> list[Report]:
        self.refuse_interrupted()
        self._interrupted = True
        begin, now, end = self.time, 0.0, self.schedule.dt
        held = self.problem.positions[self.problem.model.pinned]
        reports: list[Report] = []
        while now < end:
            step = self._next_step(end - now)
            last = step >= end - now
            now = end if last else now + step
            aim = None if pins is None else held + now / end * (pins - held)
            reports.append(self._step(begin + now, step, aim, forces))
            if reports[-1].outcome is Outcome.FAILED or len(reports) > MAX_STEPS:
                reports[-1].outcome = Outcome.FAILED
                break
        self.index += 1
        self._interrupted = False
        report = merge_reports(reports)
        report.notes.append(f"{pluralize(len(reports), 'step')} on a grid of {self._nodes:,} nodes")
        report.notes += lag_notes(report)
        return [report]

    def _next_step(self, left: float) -> float:
        """Length Δt [s] of the next step, with `left` [s] remaining in the frame.

        Vertices move by at most a fraction of a cell; the remaining steps all have this length.
        """
        grid = self.problem.model.grid
        assert grid is not None
        fastest = float(np.linalg.norm(self.settle()[0], axis=1).max(initial=0.0))
        limit = min(self.schedule.step, grid.cfl * grid.spacing / fastest if fastest > 0 else math.inf)
        return left / max(1, math.ceil(left / limit * (1 - 1e-9)))

    def _step(self, time: float, dt: float, aim: np.ndarray | None, forces: np.ndarray | None) -> Report:
        """Advance by one step that ends at a time [s]."""
        p, model = self.problem, self.problem.model
        x, v = p.positions, self.settle()[0]
        began = self._take_began() or perf_counter()
        acting = Forces(
            self._forces(time, forces, x, v),
            model.prescribed(time) if aim is None else aim,
            model.materials_at(time) or {},
        )
        assert model.grid is not None
        carried = carry(model, model.grid.spacing, (x, v, self._affine(x, v)), acting, dt, str(p.dtype))
        on_grid = self._problem_of(carried, x, time, dt)
        on_grid.loads.set_time_step(dt)
        on_grid.states.set_velocities(carried.velocities)
        on_grid.begin_step(time, dt, 0.0, None, carried.prescribed)
        (report,) = solve_batch(on_grid, self.solver, self.stop, self._keeps_history, self._watch, began)
        self._take(on_grid, carried, x, dt, acting)
        self._nodes = len(carried.points.nodes)
        self._acting = Step(math.inf, p.positions, acting.force, model.materials_at(time), time)
        report.vertices, report.elements = model.vertices, model.elements
        return self._of_vertices(report, on_grid, carried)

    def _forces(self, time: float, further: np.ndarray | None, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(n, 3) external forces on vertices [N]."""
        model = self.problem.model
        winds: Any = [wind(x, v, time) for wind in model.winds]
        return model.force_at(time) + sum(winds, 0.0 if further is None else further)

    def _affine(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(n, 3, 3) velocity gradients [1/s] of the last step, or those of given velocities on the grid."""
        known, model = self.problem.history.motions()[0].get(AFFINE), self.problem.model
        if known is not None:
            return known.reshape(-1, 3, 3)
        assert model.grid is not None
        points, found = interpolate(x, model.grid.spacing), np.zeros((len(x), 3, 3))
        for _ in range(GRADIENT_TRANSFERS):  # affine velocities are a fixed point of this transfer
            found = points.gradient(points.transfer(model.mass, v, found))
        return found

    def _problem_of(self, carried: Carried, x: np.ndarray, time: float, dt: float) -> Problem:
        """Create the problem of the grid nodes."""
        own, obstacles = self.problem, carried.model.obstacles
        device = make_device(own.device.name, carried.model)
        threads = own.device.threads if device is None else None
        if obstacles is None:
            return Problem(carried.model, str(own.dtype), threads, device)
        shapes = shapes_after(obstacles, time - dt, time)
        found = planes_of_nodes(obstacles, shapes, carried.points, x)
        return Problem(
            carried.model, str(own.dtype), threads, device, contacts=partial(NodePlanes, shapes, found)
        )

    def _take(self, on_grid: Problem, carried: Carried, x: np.ndarray, dt: float, acting: Forces) -> None:
        """Update vertices from the nodes."""
        p, model, points = self.problem, self.problem.model, carried.points
        u = on_grid.states.vectors(on_grid.u)[0].astype(float)
        velocity = (1.0 - self.schedule.damping) ** (dt / self.schedule.step) / dt * u
        moved = x + points.gather(u)
        v = points.gather(velocity)
        if not np.isfinite(moved).all():
            moved, v, velocity = x, np.zeros_like(x), np.zeros_like(u)
        moved[model.pinned] = acting.pinned
        v[model.pinned] = (acting.pinned - x[model.pinned]) / dt
        p.positions = moved
        p.states.set_velocities(v)
        p.history.move_on([{AFFINE: points.gradient(velocity).reshape(-1, 9)}])

    def _of_vertices(self, report: Report, on_grid: Problem, carried: Carried) -> Report:
        """Complete a report: obstacle depth or gap of vertices, contact forces per body.

        Node forces are divided among embedded bodies in proportion to their masses.
        """
        obstacles = on_grid.contacts.obstacles
        if report.contact is None or obstacles is None:
            return report
        pushes = on_grid.contacts.found(0)[2].sum(axis=0) / carried.model.mass[:, None]
        bodies = {}
        for name, own in self.problem.model.body_vertices:
            mass = np.zeros(self.problem.model.vertices)
            mass[own] = self.problem.model.mass[own]
            bodies[name] = tuple((carried.points.spread(mass) @ pushes).tolist())
        distance, _, nearest = distances_to(on_grid.contacts.shapes, self.problem.positions)
        distance[~self.problem.model.free] = math.inf
        owner = obstacles.obstacle[nearest]
        least = [float(distance[owner == k].min(initial=math.inf)) for k in range(len(obstacles.names))]
        touched = tuple(
            replace(each, depth=max(0.0, -d), gap=max(0.0, d))
            for each, d in zip(report.contact.obstacles, least, strict=True)
        )
        report.contact = replace(report.contact, obstacles=touched, bodies=bodies)
        return report

    def last_steps(self) -> list[Step | None]:
        """External forces and parameters at the end of the frame; inertia belongs to the nodes."""
        return [self._acting]


def make_time_loop(problem: Problem, *options: Any, **named: Any) -> TimeLoop:
    """Create a problem's time stepping, grid-based if its model has a grid."""
    kind = TimeLoop if problem.model.grid is None else GridTimeLoop
    return kind(problem, *options, **named)
