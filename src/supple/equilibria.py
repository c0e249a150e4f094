"""equilibria(): many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from supple.kernels import compilation
from supple.kernels.device import check_device
from supple.model import Conditions, Model
from supple.report import Outcome, Report
from supple.scene import Scene, Variation, build_model
from supple.scene.variations import conditions
from supple.simulate import (
    DEFAULT_ITERATIONS,
    Result,
    Stop,
    is_progress,
    make_problem,
    make_stop,
    outcome_of,
    solve,
)
from supple.solvers import PBNG, Solver
from supple.solvers.problem import Balance
from supple.terms import TetElasticity

MOST_AT_ONCE = 1024
"""Equilibria solved together on a device, if its memory allows."""

MEMORY_SHARE = 0.8
"""The part of a device's free memory that a batch may fill."""

Progress = Callable[[int], None]
"""Called with the number of equilibria that are done."""


def equilibria(
    scene: Scene,
    variations: Iterable[Variation],
    solver: Solver | None = None,
    *,
    tolerance: float | None = 1e-4,
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
    its own tolerance and has its own report. On a CUDA device PBNG solves as many together as fit into its
    memory, or `at_once`; everything else is solved one by one. The limits hold for each equilibrium; a time
    budget on a device for each batch.
    """
    solver = solver or PBNG(acceleration="anderson")
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    if at_once is not None and at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    check_device(device)
    model = build_model(scene, quasistatic=True)
    every = (conditions(scene, model, variation) for variation in variations)
    if device == "cuda" and isinstance(solver, PBNG):
        results = _together(model, every, solver, stop, precision, at_once)
    else:
        results = _one_by_one(model, every, solver, stop, precision, device, threads)
    return _counted(results, progress)


def _counted(results: Iterator[Result], progress: Progress | None) -> Iterator[Result]:
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done)
        yield result


def _one_by_one(
    model: Model,
    every: Iterable[Conditions],
    solver: Solver,
    stop: Stop,
    precision: str,
    device: str,
    threads: int | None,
) -> Iterator[Result]:
    problem = None
    for c in every:
        began = perf_counter()
        if problem is None or c.materials is not None or problem.model is not model:
            varied = model if c.materials is None else _with_materials(model, c.materials)
            problem = make_problem(varied, True, precision, device, threads)
        problem.set_force(c.force)
        problem.positions = model.rest if c.start is None else c.start
        problem.pin(c.pinned)
        report = solve(problem, solver, stop, began=began)
        yield Result(problem.positions, report, problem.model)


def _with_materials(model: Model, materials: tuple) -> Model:
    left = iter(materials)
    return replace(
        model,
        terms=tuple(
            replace(term, material=next(left)) if isinstance(term, TetElasticity) else term
            for term in model.terms
        ),
    )


def _together(
    model: Model, every: Iterator[Conditions], solver: PBNG, stop: Stop, precision: str, at_once: int | None
) -> Iterator[Result]:
    from supple.kernels.cuda import free_memory, require_device
    from supple.solvers.cuda_batch import CudaBatch, bytes_per_copy

    require_device()
    first = next(every, None)
    chunk = [] if first is None else [first]
    while chunk:
        fitting = int(MEMORY_SHARE * free_memory() / bytes_per_copy(model, precision, varied=True))
        size = max(1, min(fitting, at_once or MOST_AT_ONCE))
        chunk += islice(every, size - len(chunk))
        began = perf_counter()
        problem = CudaBatch(model, precision, chunk)
        yield from _solve_batch(problem, solver, stop, began)
        del problem
        chunk = list(islice(every, 1))


def _solve_batch(problem: Any, solver: PBNG, stop: Stop, began: float) -> Iterator[Result]:
    """The loop of `solve` for all copies of a batch, each of which leaves it when it is done."""
    limit = stop.max_iterations or DEFAULT_ITERATIONS
    copies = range(problem.copies)
    with compilation() as compiled:
        first = problem.balances()
        latest, lowest = dict(first), dict(first)
        progress_at, ended = dict.fromkeys(copies, 0), dict.fromkeys(copies, 0)
        outcomes: dict[int, Outcome] = {}
        run = solver.begin(problem)
        setup = perf_counter() - began - compiled.seconds
        clock, iteration = 0.0, 0
        seconds: dict[int, float] = {}
        while True:
            for copy in problem.active:
                stuck = iteration - progress_at[copy] > run.patience
                outcome = outcome_of(latest[copy], stop, iteration, limit, clock, stuck, problem, run)
                if outcome is not None:
                    outcomes[copy], ended[copy], seconds[copy] = outcome, iteration, clock
            problem.active = np.array([c for c in copies if c not in outcomes], np.int32)
            if not len(problem.active):
                break
            tick, compiling = perf_counter(), compiled.seconds
            count = min(run.check_every, limit - iteration)
            run.advance(count)
            iteration += count
            latest.update(problem.balances())
            for copy in problem.active:
                if run.observe(latest[copy], int(copy)):
                    latest[copy] = lowest[copy]
                if is_progress(latest[copy], lowest[copy]):
                    lowest[copy], progress_at[copy] = latest[copy], iteration
            clock += perf_counter() - tick - (compiled.seconds - compiling)
        problem.active = np.arange(problem.copies, dtype=np.int32)
        positions, energies, inverted = problem.all_positions(), problem.energies(), problem.inversions()
    for copy in copies:
        balance: Balance = latest[copy]
        yield Result(
            positions[copy],
            Report(
                outcome=outcomes[copy],
                solver=solver.name,
                iterations=ended[copy],
                imbalance=balance.imbalance,
                reduction=balance.residual / first[copy].residual if first[copy].residual else 0.0,
                residual=balance.residual,
                energy=float(energies[copy]),
                seconds=seconds[copy],
                tolerance=stop.tolerance,
                compile_seconds=compiled.seconds,
                setup_seconds=setup,
                precision=str(problem.dtype),
                vertices=problem.model.vertices,
                elements=problem.model.elements,
                colours=run.colours,
                inverted=int(inverted[copy]),
                rejected=run.rejected_of(copy),
                notes=[*run.notes_of(copy), f"solved together with {problem.copies - 1} others"],
            ),
            problem.model,
        )
