"""Batched equilibria: one scene, many variations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Unpack

import numpy as np

from supple.api.simulate import Result
from supple.config.backend import Backend
from supple.kernels import RECORD
from supple.model.model import Conditions, Model, Step
from supple.problem import Problem
from supple.problem.material_update import have_same_layout, with_materials
from supple.problem.reductions import PARTS
from supple.scene import Scene, SceneFile, Variation, build_model
from supple.scene.constraints.rigid_support import Support
from supple.scene.scene import scene_of
from supple.scene.variations import conditions
from supple.solve.batch_solve import make_device, solve_batch
from supple.solve.call_options import Options, Request, check_callbacks, resolve_request, takes_options
from supple.solve.float_range import check_float_range
from supple.solve.load_stepping import calls_for_shorter_steps, solve_along
from supple.solve.report import Report
from supple.solvers import Solver
from supple.solvers.newton_methods.float64_problem import write_back
from supple.support.arguments import check_integer, iterate_argument
from supple.support.progress import OpenProgress

DEFAULT_BATCH_SIZE = 1024
"""Default batch size on a device, if its memory suffices."""

MAX_BATCH_SIZE = 65_535
"""Largest batch size: rows of a CUDA grid, one per equilibrium."""

MEMORY_SHARE = 0.8
"""Fraction of a device's free memory that a batch may fill."""


@takes_options
def equilibria(
    scene: Scene | SceneFile,
    variations: Iterable[Variation],
    *,
    solver: Solver | str | None = None,
    batch_size: int | None = None,
    progress: OpenProgress | None = None,
    **options: Unpack[Options],
) -> Iterator[Result]:
    """Compute equilibria of a scene, one per variation, in the given order.

    Results are yielded as soon as their batch is ready, so that tens of thousands need no more memory than
    one batch. Each equilibrium stops by its own tolerance and has its own report. On a CUDA device, all
    solvers but Newton solve batches; the default solver refines single batch members that sweeps do not bring
    to equilibrium. On the CPU, equilibria are solved one by one.

    Args:
        scene: Scene or scene file.
        variations: Variations of the scene.
        solver: Solver or its name, as in `equilibrium`.
        batch_size: Largest batch size on a device, 1024 by default, reduced to the available memory.
        progress: Called as progress(done, total) after each equilibrium; total is None if `variations` has no
            length.
        **options: `stop` and `backend`, or their fields one by one, as in `equilibrium`. Limits apply to each
            equilibrium; on a device, a time limit applies to each batch.

    Yields:
        The result of each variation.

    Raises:
        ValueError: An option or variation is invalid.
        TypeError: An argument has the wrong type.
    """
    request = resolve_request(scene, solver, options, always_tolerance=True)
    if batch_size is not None:
        check_integer("batch_size", batch_size)
    check_callbacks(progress=progress)
    varied = iterate_argument(variations, "variations are a list of supple.Variation(...)")
    total = len(variations) if isinstance(variations, Sized) else None
    scene = scene_of(scene)
    model = build_model(scene, quasistatic=True)
    check_float_range(model, request.backend.precision)
    initial = request.initial(None, model)
    support = Support(scene, model.pinned, model.constraint_projection)
    every = (_with_initial(conditions(scene, model, variation, support), initial) for variation in varied)
    return _report_progress(solve_conditions(model, every, request, batch_size), total, progress)


def is_batched(model: Model, solver: Solver, backend: Backend) -> bool:
    """True if batch members are advanced together instead of sequentially.

    This requires a CUDA device, a solver with batches, and no dynamic terms, so that all members have the
    same stencils.
    """
    return backend.device == "cuda" and solver.batches and not model.dynamic_terms


def _with_initial(c: Conditions, initial: np.ndarray | None) -> Conditions:
    """Set the scene file's initial positions in conditions without any."""
    return replace(c, initial=initial) if c.initial is None and initial is not None else c


def _report_progress(
    results: Iterator[Result], total: int | None, progress: OpenProgress | None
) -> Iterator[Result]:
    """Pass results on and report their number."""
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done, total)
        yield result


def solve_conditions(
    model: Model, conditions: Iterator[Conditions], request: Request, batch_size: int | None
) -> Iterator[Result]:
    """Solve conditions in the largest batches that device and solver allow."""
    batch_solver = BatchSolver(model, request, batch_size)
    while chunk := batch_solver.next_batch(conditions):
        yield from _results(*batch_solver.solve(chunk))
    batch_solver.end()


class BatchSolver:
    """Batched solver for many conditions; its problem is reused for compatible batches.

    Args:
        model: Model.
        request: Resolved options of the call.
        batch_size: Largest batch size, or None.
        share: Fraction of the device's memory that is available to this solver.
    """

    def __init__(
        self, model: Model, request: Request, batch_size: int | None = None, share: float = 1.0
    ) -> None:
        self._model, self._request, self._batch_size, self._share = model, request, batch_size, share
        self._batched = is_batched(model, request.solver, request.backend)
        self._problem: Problem | None = None

    def next_batch(self, conditions: Iterator[Conditions]) -> list[Conditions]:
        """Take the conditions of the next batch."""
        chunk = list(islice(conditions, 1))
        return (
            chunk + list(islice(conditions, self._max_batch_size - 1)) if chunk and self._batched else chunk
        )

    @property
    def _max_batch_size(self) -> int:
        """Largest batch size for the device's memory, including the memory of the previous batch."""
        from supple.kernels.cuda import free_memory, require_device

        require_device()
        previous_size = 0 if self._problem is None else self._problem.batch_size
        bytes_each = bytes_per_member(self._model, self._request.backend.precision, self._request.solver)
        fitting = int(MEMORY_SHARE * self._share * (free_memory() + previous_size * bytes_each) / bytes_each)
        return max(1, min(fitting, self._batch_size or DEFAULT_BATCH_SIZE, MAX_BATCH_SIZE))

    def solve(self, chunk: list[Conditions]) -> tuple[Problem, list[Conditions], list[Report]]:
        """Solve one batch.

        Returns:
            A problem that holds the solutions until the next batch, the conditions, and the reports.
        """
        request, began = self._request, perf_counter()
        if self._problem is None or not self._problem.set_conditions(chunk):
            self._problem = None  # free its device memory before the next is allocated
            self._problem = make_problem_under(self._model, chunk, request.backend)
        reports = solve_batch(self._problem, request.solver, request.stop, began=began)
        for member, c in enumerate(chunk):
            if calls_for_shorter_steps(reports[member]) and c.path is not None:
                reports[member] = self._solve_along_path(member, c, reports[member])
        if self._batched:
            for report in reports:
                report.notes.append(f"solved in a batch with {self._problem.batch_size - 1} others")
        return self._problem, chunk, reports

    def _solve_along_path(self, member: int, c: Conditions, failed: Report) -> Report:
        """Repeat one batch member's failed solve stepwise along the path of its conditions."""
        assert self._problem is not None
        assert c.path is not None
        problem, request = self._problem, self._request
        single = make_problem_under(self._model, [c], request.backend)
        report = solve_along(c.path, c, single, request.solver, request.stop, failed)
        if report is None:
            return failed
        write_back(single, problem, member)
        return report

    def end(self) -> None:
        """Free the device memory."""
        self._problem = None
        if self._batched:
            from supple.kernels.cuda import release_memory

            release_memory()


def make_problem_under(model: Model, chunk: list[Conditions], backend: Backend) -> Problem:
    """Create a problem for these conditions; compatible conditions can replace them later."""
    material_sets = [c.materials for c in chunk if c.materials is not None]
    is_common = len(chunk) == 1 and all(have_same_layout(model, materials) for materials in material_sets)
    where, varied = make_device(backend.device, model, len(chunk)), bool(material_sets) and not is_common
    problem = Problem(model, backend.precision, backend.threads, where, varied)
    problem.set_conditions(chunk)
    return problem


def _results(problem: Problem, chunk: list[Conditions], reports: list[Report]) -> Iterator[Result]:
    """Yield the result of each batch member."""
    members = zip(problem.states.each(), chunk, reports, strict=True)
    for member, (state, c, report) in enumerate(members):
        model = problem.layout.model
        x = model.rest + state.displacements
        if c.materials is not None:
            model = problem.model if problem.batch_size == 1 else with_materials(model, c.materials)
        if c.gravity is not None:
            model = replace(model, gravity=c.gravity)
        device_displacements = problem.states.on_device(member)
        yield Result(
            x,
            report,
            model,
            state=state,
            step=Step(np.inf, x, c.force, time=c.time, history=state.history),
            on_device=device_displacements,
        )


def bytes_per_member(model: Model, precision: str, solver: Solver) -> int:
    """Device memory per batch member [bytes].

    It includes padded vectors of u, of the step's start and of the solve's checkpoint; forces and sums per
    vertex; energies; the material parameters of every incidence, in case materials differ; and the memory of
    the solver. A tenth is added for rounding up.
    """
    parameters = sum(
        (term.vertices.size + len(term.vertices)) * sum(p.size for p in term.material.stored)
        for term in model.terms
        if term.material is not None
    )
    numbers = 7 * RECORD * (model.vertices + 1) + 16 * model.vertices + model.elements
    numbers += parameters + 16 * PARTS
    size = np.dtype(precision).itemsize
    return int(1.1 * (size * numbers + solver.memory(model, size)))
