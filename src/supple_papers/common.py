"""Scenes and measures shared by experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

import supple
from supple.solvers import Solver
from supple_papers.internals import Model, Problem, closest_in_body, make_device
from supple_papers.measurements import Measurements

SOFT = supple.Corotated(young=1e5, poisson=0.3)
"""Material of the block of PBNG section 11.1."""

PLAIN = supple.PBNG(acceleration=None, tied_groups=False)
"""PBNG as in the paper, without acceleration."""

END_TIME = 100.0
"""Time [s] at which all motions have ended."""


def cells_of(measurements: Measurements, small: int = 11, paper: int = 31) -> int:
    """Return the number of cells along the edge of a block; the paper has 32,768 vertices."""
    return paper if measurements.full else small


def face(body: supple.scene.Body, axis: int, value: float) -> supple.scene.VertexSet:
    """Return the vertices of a body with this rest coordinate."""
    return body.where(np.flatnonzero(np.abs(body.points[:, axis] - value) < 1e-9))


def clamped_scene(
    mesh: supple.TetMesh, material: Any, density: float, dt: float, **scene_options: Any
) -> supple.Scene:
    """Scene with a body clamped at its smallest x."""
    scene = supple.Scene(quasistatic=False, dt=dt, **scene_options)
    body = scene.add_solid(mesh, material, density=density)
    low = mesh.points[:, 0].min()
    scene.pin(body.where(lambda X: X[:, 0] <= low + 1e-9))
    return scene


def twisted_block(cells: int, material: Any, angle: float = 1.0, stretch: float = 0.3) -> supple.Scene:
    """Unit block with one end rotated and pulled, as in PBNG section 11.1."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), material, density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 1e-9))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=angle)
    scene.pin(body.where(lambda X: X[:, 0] >= 1 - 1e-9), motion=turn + supple.Translate((stretch, 0, 0)))
    return scene


def cube_of_six(cells: int) -> supple.TetMesh:
    """Unit cube with six tetrahedra per cell, as in GPBD: 20,250 for 15³ cells and 48,000 for 20³."""
    line = np.arange(cells + 1)
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    strides = np.array([(cells + 1) ** 2, cells + 1, 1])
    paths = [np.cumsum([0, *way]) for way in permutations(strides)]
    first = points[(points < cells).all(axis=1)] @ strides
    return supple.TetMesh(points / cells, (first[:, None, None] + paths).reshape(-1, 4), repair=True)


def time_step_problem(
    model: Model, dt: float, x: np.ndarray, v: np.ndarray | float, precision: str = "float64"
) -> Problem:
    """Return the problem of one backward Euler step from positions x with velocities v."""
    problem = Problem(model, precision)
    begin_time_step(problem, dt, x, v, 0.0)
    return problem


def begin_time_step(
    problem: Problem, dt: float, x: np.ndarray, v: np.ndarray | float, time: float = 0.0
) -> None:
    """Set up a backward Euler step from positions x with velocities v that ends at `time` [s]."""
    problem.positions = x
    problem.states.set_velocities(v)
    problem.loads.set_time_step(dt)
    problem.begin_step(time, dt)


def march(
    scene: supple.Scene, problem: Problem, solver: Solver, x: np.ndarray, steps: int, sweeps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions and velocities after each step from x at rest, like `simulate` without reports."""
    v = np.zeros_like(x)
    for k in range(1, steps + 1):
        begin_time_step(problem, scene.dt, x, v, k * scene.dt)
        solver.begin(problem).advance(sweeps)
        v = (problem.positions - x) / scene.dt
        x = problem.positions
        yield x, v


def problem_on(measurements: Measurements, scene: supple.Scene, precision: str = "float32") -> Problem:
    """Return the problem of a scene on the device of timed rows."""
    model = supple.scene.build_model(scene)
    return Problem(model, precision, device=make_device(measurements.device, model))


def at_rest(
    scene: supple.Scene, precision: str = "float64", measurements: Measurements | None = None
) -> Problem:
    """Return the equilibrium problem of a scene at the end of all motions.

    If measurements are given, the problem is on the device of their timed rows.
    """
    model = supple.scene.build_model(scene)
    problem = Problem(
        model, precision, device=make_device("cpu" if measurements is None else measurements.device, model)
    )
    problem.begin_step(np.inf)
    return problem


def solve_once(
    scene: supple.Scene, solver: Solver, record_history: bool = False, **limits: Any
) -> supple.Frame:
    """Solve a quasistatic scene once, from rest, at the end of all motions.

    Solves that fail are results, too: unlike `supple.equilibrium`, nothing is repeated in shorter load steps.

    Args:
        scene: Quasistatic scene.
        solver: Solver.
        record_history: Record the residual history.
        **limits: Fields of `supple.StopCriteria`, without defaults.
    """
    (frame,) = supple.simulate(
        scene,
        solver=solver,
        dt=END_TIME,
        frames=1,
        record_history=record_history,
        stop=supple.StopCriteria(**limits),
    )
    return frame


def step_once(
    scene: supple.Scene,
    solver: Solver,
    x: np.ndarray,
    v: np.ndarray,
    record_history: bool = False,
    **limits: Any,
) -> supple.Frame:
    """Take one backward Euler step from positions x with velocities v; arguments as for `solve_once`."""
    (frame,) = supple.simulate(
        scene,
        solver=solver,
        frames=1,
        initial=x,
        velocities=v,
        initial_guess="coast",
        record_history=record_history,
        stop=supple.StopCriteria(**limits),
    )
    return frame


def reductions(scene: supple.Scene, solver: Solver, counts: tuple[int, ...]) -> dict[str, float]:
    """Relative residual after several iteration counts, and time of one iteration [ms]."""
    report = solve_once(scene, solver, record_history=True, max_iterations=max(counts)).report
    history = report.history
    assert history is not None
    left = {str(k): history.residual[min(k, len(history.residual) - 1)] / history.residual[0] for k in counts}
    return left | {"ms": 1e3 * report.seconds / max(report.iterations, 1)}


def jacobians(model: Model, x: np.ndarray) -> np.ndarray:
    """(elements,) det F."""
    now, rest = x[model.tets], model.rest[model.tets]
    return np.linalg.det(now[:, 1:] - now[:, :1]) / np.linalg.det(rest[:, 1:] - rest[:, :1])


def volume(model: Model, x: np.ndarray) -> float:
    corners = x[model.tets]
    return float(np.linalg.det(corners[:, 1:] - corners[:, :1]).sum() / 6)


def elastic_energy(model: Model) -> Callable[[np.ndarray], float]:
    """Return the stored elastic energy [J] as a function of positions."""
    problem = Problem(model, "float64")

    def energy(x: np.ndarray) -> float:
        problem.positions = x
        return float(problem.diagnostics.stored_energies().sum())

    return energy


def penetration_depth(frame: supple.Frame, body: supple.scene.Body, other: supple.scene.Body) -> float:
    """Depth of the deepest vertex of a body inside another solid [m], 0 if none is inside."""
    x, other_mesh = (
        frame.positions_of(body),
        supple.TetMesh(frame.positions_of(other), np.asarray(other.mesh.cells), repair=True),
    )
    within = np.linalg.norm(_nearest(x, other_mesh) - x, axis=1) < 1e-9
    if not within.any():
        return 0.0
    outside = supple.TriMesh(
        other_mesh.points[other_mesh.surface_vertices],
        np.searchsorted(other_mesh.surface_vertices, other_mesh.surface),
    )
    return float(np.linalg.norm(_nearest(x[within], outside) - x[within], axis=1).max())


def _nearest(points: np.ndarray, mesh: Any) -> np.ndarray:
    """Closest points of a mesh to points (k, 3)."""
    corners, weights = closest_in_body(points, mesh)
    return np.einsum("kj,kji->ki", weights, mesh.points[corners])


def ms_per_sweep(problem: Problem, solver: Solver, sweeps: int = 20) -> float:
    """Time of a sweep [ms], the best of three runs after a warm-up."""
    from time import perf_counter

    run = solver.begin(problem)
    run.advance(2)
    problem.device.wait()
    best = np.inf
    for _ in range(3):
        began = perf_counter()
        run.advance(sweeps)
        problem.device.wait()
        best = min(best, (perf_counter() - began) / sweeps)
    return 1e3 * best
