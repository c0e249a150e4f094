"""equilibria(): many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Unpack

import numpy as np

from supple.asking import Options, Request, check_watching, request, takes_options
from supple.checks import each, whole_number
from supple.compute import Compute
from supple.continuation import CUT_BACK, solve_along
from supple.kernels import RECORD
from supple.magnitudes import refuse_beyond
from supple.model import Conditions, Model, Step
from supple.problem import Problem
from supple.problem.materials import are_alike, with_materials
from supple.problem.sums import PARTS
from supple.report import Report
from supple.scene import Scene, SceneFile, Variation, build_model
from supple.scene.scene import scene_of
from supple.scene.support import Support
from supple.scene.variations import conditions
from supple.simulate import Result
from supple.solvers import Solver
from supple.solvers.newton_steps.twin import bring_back
from supple.solving import on_device, solve_copies

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
    its own tolerance and has its own report. On a CUDA device all solvers but Newton solve up to 1024
    together, or `at_once`, as far as they fit into its memory, and the default lets those go on alone that
    sweeps do not bring to rest; on the CPU they are solved one by one. stop
    holds for each equilibrium; its time budget on a device for each batch. solver, stop, compute and scene
    files: as for `equilibrium`. progress: called with the number of equilibria that are done."""
    asked = request(scene, solver, options, always_tolerance=True)
    if at_once is not None:
        whole_number("at_once", at_once)
    check_watching(progress=progress)
    varied = each(variations, "variations are a list of supple.Variation(...)")
    scene = scene_of(scene)
    model = build_model(scene, quasistatic=True)
    refuse_beyond(model, asked.compute.precision)
    start = asked.start(None, model)
    support = Support(scene, model.pinned, model.held)
    every = (_started(conditions(scene, model, variation, support), start) for variation in varied)
    return _counted(solved_under(model, every, asked, at_once), progress)


def move_together(model: Model, solver: Solver, compute: Compute) -> bool:
    """Whether copies of a model's state are moved at once, rather than one by one: on a CUDA device, by a
    solver that can, and with the same stencils for all."""
    return compute.device == "cuda" and solver.batches and not model.followers


def _started(c: Conditions, start: np.ndarray | None) -> Conditions:
    """With the scene file's start where a variation has none of its own."""
    return replace(c, start=start) if c.start is None and start is not None else c


def _counted(results: Iterator[Result], progress: Progress | None) -> Iterator[Result]:
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done)
        yield result


def solved_under(
    model: Model, every: Iterator[Conditions], asked: Request, at_once: int | None
) -> Iterator[Result]:
    """As many at once as the device and the solver can."""
    solving = Batches(model, asked, at_once)
    while chunk := solving.next_of(every):
        yield from _results(*solving.solve(chunk))
    solving.end()


class Batches:
    """Solves one batch of conditions after the other, with one problem for all as far as it suits them.
    share: what part of the device's memory there is for them."""

    def __init__(self, model: Model, asked: Request, at_once: int | None = None, share: float = 1.0) -> None:
        self._model, self._asked, self._at_once, self._share = model, asked, at_once, share
        self._together = move_together(model, asked.solver, asked.compute)
        self._problem: Problem | None = None

    def next_of(self, every: Iterator[Conditions]) -> list[Conditions]:
        """As many of them as are solved at once."""
        chunk = list(islice(every, 1))
        return chunk + list(islice(every, self._most - 1)) if chunk and self._together else chunk

    @property
    def _most(self) -> int:
        """How many fit on the CUDA device, where those of the last batch make room."""
        from supple.kernels.cuda import free_memory, require_device

        require_device()
        held = 0 if self._problem is None else self._problem.copies
        each = bytes_per_copy(self._model, self._asked.compute.precision, self._asked.solver)
        fitting = int(MEMORY_SHARE * self._share * (free_memory() + held * each) / each)
        return max(1, min(fitting, self._at_once or MOST_AT_ONCE, MOST_ROWS))

    def solve(self, chunk: list[Conditions]) -> tuple[Problem, list[Conditions], list[Report]]:
        """A problem whose states are what was found under these conditions, until the next ones."""
        asked, began = self._asked, perf_counter()
        if self._problem is None or not self._problem.take(chunk):
            self._problem = None  # before there are two of them on the device
            self._problem = problem_under(self._model, chunk, asked.compute)
        reports = solve_copies(self._problem, asked.solver, asked.stop, began=began)
        for copy, c in enumerate(chunk):
            if reports[copy].outcome in CUT_BACK and c.path is not None:
                reports[copy] = self._along(copy, c, reports[copy])
        if self._together:
            for report in reports:
                report.notes.append(f"solved together with {self._problem.copies - 1} others")
        return self._problem, chunk, reports

    def _along(self, copy: int, c: Conditions, lost: Report) -> Report:
        """Solve again for conditions that were not reached at once, in steps along their path."""
        assert self._problem is not None
        assert c.path is not None
        problem, asked = self._problem, self._asked
        alone = problem_under(self._model, [c], asked.compute)
        report = solve_along(c.path, c, alone, asked.solver, asked.stop, lost)
        if report is None:
            return lost
        bring_back(alone, problem, copy)
        return report

    def end(self) -> None:
        """Let go of the device's memory."""
        self._problem = None
        if self._together:
            from supple.kernels.cuda import release_memory

            release_memory()


def problem_under(model: Model, chunk: list[Conditions], compute: Compute) -> Problem:
    """A problem that has taken on these conditions, and takes on others like them."""
    own = [c.materials for c in chunk if c.materials is not None]
    alone = len(chunk) == 1 and all(are_alike(model, materials) for materials in own)
    where, varied = on_device(compute.device, model, len(chunk)), bool(own) and not alone
    problem = Problem(model, compute.precision, compute.threads, where, varied)
    problem.take(chunk)
    return problem


def _results(problem: Problem, chunk: list[Conditions], reports: list[Report]) -> Iterator[Result]:
    found = zip(problem.states.each(), chunk, reports, strict=True)
    for copy, (state, c, report) in enumerate(found):
        model = problem.layout.model
        x = model.rest + state.displacements
        if c.materials is not None:
            model = problem.model if problem.copies == 1 else with_materials(model, c.materials)
        if c.gravity is not None:
            model = replace(model, gravity=c.gravity)
        there = problem.states.on_device(copy)
        yield Result(
            x,
            report,
            model,
            state=state,
            step=Step(np.inf, x, c.force, time=c.time, remembered=state.remembered),
            on_device=there,
        )


def bytes_per_copy(model: Model, precision: str, solver: Solver) -> int:
    """What each further copy needs on the device: records of u, of what a step goes on from and of what a
    solve goes back to; forces and sums by vertex, energies, and the parameters of every visit, in case
    materials differ; and what the solver keeps. A tenth is added for what is rounded up."""
    parameters = sum(
        (term.vertices.size + len(term.vertices)) * sum(p.size for p in term.material.stored)
        for term in model.terms
        if term.material is not None
    )
    numbers = 7 * RECORD * (model.vertices + 1) + 16 * model.vertices + model.elements
    numbers += parameters + 16 * PARTS
    size = np.dtype(precision).itemsize
    return int(1.1 * (size * numbers + solver.memory(model, size)))
