"""equilibria(): many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from supple.asking import Options, Request, check_watching, request, takes_options
from supple.checks import each, whole_number
from supple.kernels import RECORD
from supple.magnitudes import refuse_beyond
from supple.model import Conditions, Model, Step
from supple.scene import Scene, SceneFile, Variation, build_model
from supple.scene.scene import scene_of
from supple.scene.variations import conditions
from supple.simulate import Result
from supple.solvers import Solver
from supple.solving import make_problem, solve, solve_copies
from supple.state import State
from supple.stop import Stop

if TYPE_CHECKING:
    from supple.solvers.cuda_batch import CudaBatch

MOST_AT_ONCE = 1024
"""Equilibria solved together on a device, if its memory allows."""

MOST_ROWS = 65_535
"""Rows that a grid of a CUDA device may have, one for each equilibrium."""

MEMORY_SHARE = 0.8
"""The part of a device's free memory that a batch may fill."""

Progress = Callable[[int], None]
"""Called with the number of equilibria that are done."""


@takes_options
def equilibria(
    scene: Scene | SceneFile,
    variations: Iterable[Variation],
    solver: Solver | str | None = None,
    *,
    at_once: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Iterator[Result]:
    """The equilibrium of a scene under each of many conditions, in the order given.

    Results come as they are ready, so that tens of thousands need no more memory than a batch. Each stops by
    its own tolerance and has its own report. On a CUDA device solvers that work in batches, which is PBNG,
    solve up to 1024 together, or `at_once`, as far as they fit into its memory; everything else is solved one
    by one. stop holds for each equilibrium; its time budget on a device for each batch. solver, stop, compute
    and scene files: as for `equilibrium`. progress: called with the number of equilibria that are done."""
    asked = request(scene, solver, options, always_tolerance=True)
    if at_once is not None:
        whole_number("at_once", at_once)
    check_watching(progress=progress)
    varied = each(variations, "variations are a list of supple.Variation(...)")
    scene = scene_of(scene)
    model = build_model(scene, quasistatic=True)
    refuse_beyond(model, asked.compute.precision)
    start = asked.start(None, model)
    every = (_started(conditions(scene, model, variation), start) for variation in varied)
    if asked.compute.device == "cuda" and asked.solver.batches:
        results = _together(model, every, asked, at_once)
    else:
        results = _one_by_one(model, every, asked)
    return _counted(results, progress)


def _started(c: Conditions, start: np.ndarray | None) -> Conditions:
    """With the scene file's start where a variation has none of its own."""
    return replace(c, start=start) if c.start is None and start is not None else c


def _counted(results: Iterator[Result], progress: Progress | None) -> Iterator[Result]:
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done)
        yield result


def _one_by_one(model: Model, every: Iterable[Conditions], asked: Request) -> Iterator[Result]:
    problem = None
    for c in every:
        began = perf_counter()
        varied = model if c.materials is None else with_materials(model, c.materials)
        if problem is None or not (problem.model is varied or problem.take_materials(varied)):
            problem = make_problem(varied, True, asked.compute)
        problem.set_force(c.force)
        problem.positions = model.rest if c.start is None else c.start
        problem.pin(c.pinned)
        report = solve(problem, asked.solver, asked.stop, began=began)
        x, there = problem.positions, problem.displacements_on_device()
        step = Step(np.inf, x, c.force)
        yield Result(x, report, problem.model, state=problem.state, step=step, on_device=there)


def with_materials(model: Model, materials: tuple) -> Model:
    """The model with other materials of its elastic terms."""
    left = iter(materials)

    def varied(term: Any) -> Any:
        return term if term.material is None else replace(term, material=next(left))

    return replace(model, terms=tuple(varied(term) for term in model.terms))


def _together(
    model: Model, every: Iterator[Conditions], asked: Request, at_once: int | None
) -> Iterator[Result]:
    from supple.kernels.cuda import free_memory, release_memory, require_device
    from supple.solvers.cuda_batch import CudaBatch, bytes_per_copy

    require_device()
    solver, precision = asked.solver, asked.compute.precision
    each = bytes_per_copy(model, precision, solver)
    problem: CudaBatch | None = None
    while chunk := list(islice(every, 1)):
        held = problem.copies * each if problem is not None else 0  # which the next ones take over
        fitting = int(MEMORY_SHARE * (free_memory() + held) / each)
        chunk += islice(every, max(1, min(fitting, at_once or MOST_AT_ONCE, MOST_ROWS)) - 1)
        began = perf_counter()
        if problem is not None and problem.suits(chunk):
            problem.take(chunk)
        else:
            problem = None  # before there are two of them on the device
            problem = CudaBatch(model, precision, chunk)
        yield from _solve_batch(problem, chunk, solver, asked.stop, began)
    problem = None
    release_memory()


def _solve_batch(
    problem: CudaBatch, every: list[Conditions], solver: Solver, stop: Stop, began: float
) -> Iterator[Result]:
    reports = solve_copies(problem, solver, stop, began=began)
    moved = problem.u.reshape(problem.copies, -1, RECORD)[:, :-1, :3]
    for copy, (x, c, report) in enumerate(zip(problem.all_positions(), every, reports, strict=True)):
        report.notes.append(f"solved together with {problem.copies - 1} others")
        model = problem.model if c.materials is None else with_materials(problem.model, c.materials)
        state = State(moved[copy].copy(), np.zeros_like(moved[copy]))
        there = problem.displacements_on_device(copy)
        yield Result(x, report, model, state=state, step=Step(np.inf, x, c.force), on_device=there)
