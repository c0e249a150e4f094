"""equilibria(): many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from time import perf_counter

import numpy as np

from supple.asking import UNSAID, Tolerance, check_circumstances, request
from supple.checks import each, whole_number
from supple.kernels import RECORD
from supple.magnitudes import refuse_beyond
from supple.model import Conditions, Model, Step
from supple.problem import Problem
from supple.problem.materials import are_uniform, materials_of, with_materials
from supple.problem.sums import PARTS
from supple.report import Report
from supple.scene import Scene, SceneFile, Variation, build_model
from supple.scene.scene import scene_of
from supple.scene.variations import conditions
from supple.simulate import Result
from supple.solvers import Solver
from supple.solving import Stop, on_device, solve_copies

MOST_AT_ONCE = 1024
"""Equilibria solved together on a device, if its memory allows."""

MOST_ROWS = 65_535
"""Rows that a grid of a CUDA device may have, one for each equilibrium."""

MEMORY_SHARE = 0.8
"""The part of a device's free memory that a batch may fill."""

Progress = Callable[[int], None]
"""Called with the number of equilibria that are done."""


def equilibria(
    scene: Scene | SceneFile,
    variations: Iterable[Variation],
    solver: Solver | str | None = None,
    *,
    tolerance: Tolerance = UNSAID,
    max_iterations: int | None = None,
    time_budget: float | None = None,
    precision: str = "float64",
    device: str = "cpu",
    threads: int | None = None,
    at_once: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """The equilibrium of a scene under each of many conditions, in the order given.

    Results come as they are ready, so that tens of thousands need no more memory than a batch. Each stops by
    its own tolerance and has its own report. On a CUDA device all solvers but Newton solve up to 1024
    together, or `at_once`, as far as they fit into its memory; on the CPU they are solved one by one. The
    limits hold for each equilibrium; a time budget on a device for each batch. solver, tolerance, threads and
    scene files: as for `equilibrium`."""
    asked = request(scene, solver, tolerance, max_iterations, time_budget, always_tolerance=True)
    if at_once is not None:
        whole_number("at_once", at_once)
    check_circumstances(precision, device, threads, progress=progress)
    varied = each(variations, "variations are a list of supple.Variation(...)")
    scene = scene_of(scene)
    model = build_model(scene, quasistatic=True)
    refuse_beyond(model, precision)
    start = asked.start(None, model)
    every = (_started(conditions(scene, model, variation), start) for variation in varied)
    run = partial(_solved, model, every, asked.solver, asked.stop)
    return _counted(run(precision, device, threads, at_once), progress)


def _started(c: Conditions, start: np.ndarray | None) -> Conditions:
    """With the scene file's start where a variation has none of its own."""
    return replace(c, start=start) if c.start is None and start is not None else c


def _counted(results: Iterator[Result], progress: Progress | None) -> Iterator[Result]:
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done)
        yield result


def _solved(
    model: Model,
    every: Iterator[Conditions],
    solver: Solver,
    stop: Stop,
    precision: str,
    device: str,
    threads: int | None,
    at_once: int | None,
) -> Iterator[Result]:
    """As many at once as the device and the solver can, with one problem for all as far as it suits them."""
    together = device == "cuda" and solver.batches
    problem: Problem | None = None
    while chunk := list(islice(every, 1)):
        if together:
            held = 0 if problem is None else problem.copies  # whose memory the next ones take over
            chunk += islice(every, _most_at_once(model, precision, solver, at_once, held) - 1)
        began = perf_counter()
        if problem is None or not problem.take(chunk):
            problem = None  # before there are two of them on the device
            problem = _make_problem(model, chunk, precision, device, threads)
        reports = solve_copies(problem, solver, stop, began=began)
        if together:
            for report in reports:
                report.notes.append(f"solved together with {problem.copies - 1} others")
        yield from _results(problem, chunk, reports)
    if together:
        from supple.kernels.cuda import release_memory

        problem = None
        release_memory()


def _most_at_once(model: Model, precision: str, solver: Solver, at_once: int | None, held: int) -> int:
    """How many of them fit on the CUDA device, where some are held already."""
    from supple.kernels.cuda import free_memory, require_device

    require_device()
    each = bytes_per_copy(model, precision, solver)
    fitting = int(MEMORY_SHARE * (free_memory() + held * each) / each)
    return max(1, min(fitting, at_once or MOST_AT_ONCE, MOST_ROWS))


def _make_problem(
    model: Model, chunk: list[Conditions], precision: str, device: str, threads: int | None
) -> Problem:
    own = [c.materials for c in chunk if c.materials is not None]
    alone = len(chunk) == 1 and are_uniform((*materials_of(model), *chain(*own)))
    where = on_device(device, model, len(chunk))
    problem = Problem(model, precision, threads, where, varied=bool(own) and not alone)
    problem.take(chunk)
    return problem


def _results(problem: Problem, chunk: list[Conditions], reports: list[Report]) -> Iterator[Result]:
    found = zip(problem.states.positions, problem.states.take(), chunk, reports, strict=True)
    for copy, (x, state, c, report) in enumerate(found):
        model = problem.layout.model
        if c.materials is not None:
            model = problem.model if problem.copies == 1 else with_materials(model, c.materials)
        there = problem.states.on_device(copy)
        yield Result(x, report, model, state=state, step=Step(np.inf, x, c.force), on_device=there)


def bytes_per_copy(model: Model, precision: str, solver: Solver) -> int:
    """What each further copy needs on the device: records of u and net and what moves in time, forces and
    sums by vertex, energies, the parameters of every visit, in case materials differ, and what the solver
    remembers."""
    visits = sum(term.vertices.size + len(term.vertices) for term in model.terms)
    numbers = 9 * RECORD * (model.vertices + 1) + 16 * model.vertices + model.elements
    numbers += 2 * visits + 16 * PARTS + solver.remembers(model)
    return int(1.1 * np.dtype(precision).itemsize * numbers)
