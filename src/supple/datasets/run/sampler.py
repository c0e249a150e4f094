"""Equilibria of one scene for many parameter values, with shared problem data built once."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from supple.api.equilibria import BatchSolver, is_batched, make_problem_under
from supple.api.simulate import equilibrium
from supple.config.backend import Backend
from supple.datasets.errors import DatasetError
from supple.datasets.read.quantities import SampleQuantities
from supple.datasets.spec.parametric_scene import Source, Values
from supple.datasets.store.dataset_store import OUTCOMES, Store
from supple.datasets.store.integrity import refuse_changed
from supple.kernels.devices import DeviceError
from supple.model.model import Conditions, Model, latest_model
from supple.problem import Problem
from supple.scene.errors import SceneError
from supple.solve.batch_solve import make_problem, solve
from supple.solve.call_options import Options, resolve_request
from supple.solve.report import Outcome, Report
from supple.solvers import Solver
from supple.solvers.newton_methods.error_estimate import prepare

SYSTEM_ERRORS = MemoryError, OSError, DeviceError
"""System errors, which would fail for every sample and abort the run."""

ConditionsOrError = Conditions | SceneError
"""Conditions for the scene's model, or the error in the given values."""


@dataclass(frozen=True, eq=False)
class SampleResult:
    """Result of one sample.

    Attributes:
        measured: Quantities of the sample; None without a result.
        report: Report of the solve.
        sentence: Reason for a missing result.
        retries: Number of repeated attempts.
        warm: True if the solve started from other samples.
        crashed: True if an unexpected error ended the solve.
    """

    measured: SampleQuantities | None
    report: Report | None
    sentence: str = ""
    retries: int = 0
    warm: bool = False
    crashed: bool = False

    @property
    def ok(self) -> bool:
        """True for an equilibrium that reached its tolerance without inverted elements."""
        return self.report is not None and self.report.outcome is Outcome.CONVERGED and self.report.ok

    def is_nearer_than(self, other: SampleResult) -> bool:
        """True if this result has the smaller relative residual."""
        if self.report is None or other.report is None:
            return self.report is not None
        return bool(self.report.relative_residual < other.report.relative_residual)

    def report_row(self) -> dict[str, Any]:
        """Report row of the sample."""
        row = {"retries": self.retries, "warm": int(self.warm)}
        if self.report is None:
            nothing = dict.fromkeys(("relative_residual", "position_error", "energy", "seconds"), np.nan)
            none = {"iterations": 0, "inverted": 0, "stable": 0}
            outcome = "crashed" if self.crashed else "invalid"
            return {"outcome": OUTCOMES.index(outcome), **nothing, **none, **row}
        report, error_estimate = self.report, self.report.error_estimate
        return row | {
            "outcome": OUTCOMES.index(report.outcome.name.lower()),
            "relative_residual": report.relative_residual,
            "position_error": np.nan if error_estimate is None else error_estimate.position_error,
            "energy": report.energy,
            "iterations": report.iterations,
            "seconds": report.seconds,
            "inverted": report.inverted,
            "stable": int(error_estimate is not None and error_estimate.stable),
        }


def crash_result(error: Exception) -> SampleResult:
    """Result of a crashed sample, with error message and source location.

    Raises:
        Exception: Errors of the system or the GPU are raised again.
    """
    of_card = type(error).__module__.startswith(("numba.cuda", "numba_cuda", "cuda"))
    if of_card or isinstance(error, SYSTEM_ERRORS):
        raise error
    *_, last = traceback.extract_tb(error.__traceback__)
    location = f"{Path(last.filename).name}, line {last.lineno}"
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return SampleResult(
        None,
        None,
        f"Its solve ended with an unexpected error: {message} ({location}).",
        crashed=True,
    )


def scene_of_store(store: Store) -> Source:
    """Load scene and varied quantities of a store.

    Raises:
        DatasetError: The scene differs from the scene that the store was created with.
    """
    refuse_changed(store)
    source = Source.load(store.path / "scene.toml", store.path)
    for varied in store.facts["varied"]:
        source.vary(varied["label"], varied["paths"])
    vertices = store.facts["vertices"]
    if source.model.vertices != vertices:
        raise DatasetError(
            f"{store.path}: its scene has {source.model.vertices:,} vertices now and had "
            f"{vertices:,} when the data set was created; a mesh file has changed, or this version "
            "of supple generates other meshes. Restore the mesh file, or create the data set again."
        )
    return source


class Sampler:
    """Equilibrium solver for samples of a store.

    Args:
        store: The store.
        threads: Threads per solve. Small problems run faster in parallel processes.
        device_workers: Number of workers on the same device.
    """

    def __init__(self, store: Store, threads: int | None = 1, device_workers: int = 1) -> None:
        self.source = scene_of_store(store)
        self.model: Model = self.source.model
        solve_table = store.spec["solve"]
        limits = ("tolerance", "position_tolerance", "max_iterations", "time_limit")
        options: Options = {name: solve_table[name] for name in limits if solve_table[name] is not None}  # type: ignore[assignment]
        if solve_table["position_tolerance"] is False:
            options["position_tolerance"] = None
        options["backend"] = Backend(solve_table["device"], solve_table["precision"], threads)
        self.request = resolve_request(self.source.file, None, options, always_tolerance=True)
        if self.request.stop.tolerance is None:
            raise DatasetError(
                f"{store.path}: its scene has no tolerance ([stop] tolerance = false), so no sample "
                "could count as converged. Set one under [solve] of the data set, or under [stop] "
                "of the scene."
            )
        self.cold = self.request.initial(None, self.model)
        self.batched = not self.source.rebuilds and is_batched(
            self.model, self.request.solver, self.request.backend
        )
        self._problem: Problem | None = None
        self._batches: BatchSolver | None = None
        self._device_workers = device_workers
        self._near = self.request.solver.for_close_guess()

    def precompute_conditions(self, every: Sequence[Values]) -> Sequence[ConditionsOrError | None]:
        """Precompute conditions for `solve`; None if samples need their own models."""
        if self.source.rebuilds:
            return [None] * len(every)
        with suppress(Exception):  # samples are retried one by one later
            return self.source.conditions_of(every)
        return [None] * len(every)

    def solve(
        self,
        values: Values,
        starts: Sequence[np.ndarray | None],
        known_conditions: ConditionsOrError | None = None,
    ) -> SampleResult:
        """Solve one sample.

        The initial positions are tried in order. If all attempts fail, loads and motions are applied in
        steps.

        Args:
            values: Value of each varied quantity.
            starts: (n, 3) initial positions to try [m]; None stands for the scene's own.
            known_conditions: Conditions from `precompute_conditions`, if already computed.
        """
        try:
            model, conditions = self._model_and_conditions(values, known_conditions)
        except SceneError as error:
            return SampleResult(None, None, str(error))
        except Exception as error:
            return crash_result(error)
        best: SampleResult | None = None
        for number, initial in enumerate(starts):
            begun = replace(conditions, initial=self.cold if initial is None else initial)
            result = self._attempt(
                model,
                begun,
                number,
                initial is not None,
                self._near if number == 0 and initial is not None else None,
            )
            if result.ok:
                return result
            best = result if best is None or result.is_nearer_than(best) else best
        assert best is not None
        return self._solve_with_load_steps(values, conditions, replace(best, retries=len(starts)))

    def solve_all(
        self, every: Sequence[Values], starts: Sequence[np.ndarray | None]
    ) -> Iterator[SampleResult]:
        """Solve several samples, batched up to device capacity.

        Args:
            every: Values of each sample.
            starts: (n, 3) initial positions of each sample [m]; None stands for the scene's own.
        """
        all_conditions = self._conditions(every)
        begun = (
            replace(c, initial=self.cold if initial is None else initial)
            for c, initial in zip(all_conditions, starts, strict=True)
            if isinstance(c, Conditions)
        )
        solved = self._batch_by_batch(begun)
        for values, each, initial in zip(every, all_conditions, starts, strict=True):
            if isinstance(each, SceneError | SampleResult):
                yield each if isinstance(each, SampleResult) else SampleResult(None, None, str(each))
                continue
            solution = next(solved)
            if isinstance(solution, SampleResult):
                one = solution
            else:
                positions, report = solution
                measured = SampleQuantities(self.model, positions, each.force, each.materials)
                one = SampleResult(measured, report, report.sentence, warm=initial is not None)
            yield one if one.ok else self._solve_with_load_steps(values, each, replace(one, retries=1))

    def _conditions(self, every: Sequence[Values]) -> Sequence[Conditions | SceneError | SampleResult]:
        """Conditions or error for each set of values."""
        with suppress(Exception):
            return self.source.conditions_of(every) if every else []
        return [self._own_conditions(values) for values in every]

    def _own_conditions(self, values: Values) -> Conditions | SceneError | SampleResult:
        try:
            return self.source.conditions_of([values])[0]
        except Exception as error:
            return crash_result(error)

    def _batch_by_batch(
        self, every: Iterator[Conditions]
    ) -> Iterator[tuple[np.ndarray, Report] | SampleResult]:
        """Yield positions and reports; samples of a crashed batch are solved one by one."""
        if self._batches is None:
            self._batches = BatchSolver(self.model, self.request, share=1 / self._device_workers)
        while chunk := self._batches.next_batch(every):
            try:
                problem, _, reports = self._batches.solve(chunk)
                states = list(problem.states.positions)
            except Exception as error:
                self._batches.end()
                results = (
                    [crash_result(error)] if len(chunk) == 1 else self._batch_by_batch(iter([c]))
                    for c in chunk
                )
                yield from (result for each in results for result in each)
            else:
                yield from zip(states, reports, strict=True)

    def _model_and_conditions(
        self, values: Values, known_conditions: ConditionsOrError | None
    ) -> tuple[Model, Conditions]:
        if self.source.rebuilds:
            model = self.source.make_model(values)
            return model, Conditions(model.prescribed(np.inf), model.force_at(np.inf))
        conditions = known_conditions or self.source.conditions_of([values])[0]
        if isinstance(conditions, SceneError):
            raise conditions
        return self.model, conditions

    def _attempt(
        self, model: Model, conditions: Conditions, number: int, warm: bool, solver: Solver | None
    ) -> SampleResult:
        """Solve and evaluate; unexpected errors become a crashed result."""
        try:
            report, problem = self._solve_problem(model, conditions, solver)
            measured = self._sample_quantities(model, problem, conditions)
        except Exception as error:
            self._problem = None  # its arrays may be partially written
            return replace(crash_result(error), retries=number, warm=warm)
        return SampleResult(measured, report, report.sentence, number, warm)

    def _sample_quantities(self, model: Model, problem: Problem, conditions: Conditions) -> SampleQuantities:
        """Quantities of a solved problem, including dynamic terms such as contacts in their current state."""
        history = {}
        if model.dynamic_terms:
            model = latest_model(model, problem.model)
            (history,) = problem.history.get_variables()
        return SampleQuantities(model, problem.positions, conditions.force, conditions.materials, history)

    def _solve_problem(
        self, model: Model, conditions: Conditions, solver: Solver | None = None
    ) -> tuple[Report, Problem]:
        request = self.request
        if self.source.rebuilds:
            problem = make_problem(model, True, request.backend)
            problem.set_conditions([conditions])
        else:
            if self._problem is None or not self._problem.set_conditions([conditions]):
                self._problem = None
                self._problem = self._prepare_problem(conditions)
            problem = self._problem
        report = solve(problem, solver or request.solver, request.stop)
        return report, problem

    def _prepare_problem(self, conditions: Conditions) -> Problem:
        """Shared problem of all samples.

        Solver preparation uses the values in the scene file, independent of the first sample, so that samples
        do not depend on other shards.
        """
        problem = make_problem(self.model, True, self.request.backend)
        problem.keeps_prepared = True
        if problem.dtype == np.float64 and not problem.contacts:
            prepare(problem)
        return (
            problem
            if problem.set_conditions([conditions])
            else make_problem_under(self.model, [conditions], self.request.backend)
        )

    def _solve_with_load_steps(
        self, values: Values, conditions: Conditions, before: SampleResult
    ) -> SampleResult:
        """Solve with load steps after failed attempts; returns the previous result if this fails as well."""
        request = self.request
        try:
            model = self.source.make_model(values)
            result = equilibrium(
                model,
                solver=request.solver,
                initial=self.cold,
                load_steps=4,
                stop=request.stop,
                backend=request.backend,
            )
        except Exception as error:
            crash_result(error)
            return before
        if not result.report.ok:
            return before
        measured = SampleQuantities(self.model, result.positions, conditions.force, conditions.materials)
        if self.source.rebuilds or model.dynamic_terms:
            state = result.state
            history = {} if state is None else state.history
            measured = SampleQuantities(result.model, result.positions, conditions.force, None, history)
        return SampleResult(measured, result.report, retries=before.retries + 1)
