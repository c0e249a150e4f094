"""Equilibria of one scene for many parameter values, with shared problem data built once."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from supple.api.batch import Batches, move_together, problem_under
from supple.api.simulate import equilibrium
from supple.config.backend import Backend
from supple.datasets.errors import DatasetError
from supple.datasets.read.quantities import Measured
from supple.datasets.run.create import other_files
from supple.datasets.spec.parametric_scene import Source, Values
from supple.datasets.store.dataset_store import OUTCOMES, Store
from supple.datasets.store.integrity import identity_of, origin_of, refuse_changed
from supple.kernels.devices import DeviceError
from supple.model.model import Conditions, Model, latest
from supple.problem import Problem
from supple.scene.errors import SceneError
from supple.solve.loop import make_problem, solve
from supple.solve.options import Options, request
from supple.solve.report import Outcome, Report
from supple.solvers import Solver
from supple.solvers.newton_methods.error_estimate import prepare

SYSTEM_ERRORS = MemoryError, OSError, DeviceError
"""System errors, which would fail for every sample and abort the run."""

Meaning = Conditions | SceneError
"""Conditions for the scene's model, or the error in the given values."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Result of one sample.

    Attributes:
        measured: Quantities of the sample; None without a result.
        report: Report of the solve.
        sentence: Reason for a missing result.
        retries: Number of repeated attempts.
        warm: True if the solve started from other samples.
        crashed: True if an unexpected error ended the solve.
    """

    measured: Measured | None
    report: Report | None
    sentence: str = ""
    retries: int = 0
    warm: bool = False
    crashed: bool = False

    @property
    def ok(self) -> bool:
        """True for an equilibrium that reached its tolerance without inverted elements."""
        return self.report is not None and self.report.outcome is Outcome.CONVERGED and self.report.ok

    def is_nearer_than(self, other: Solved) -> bool:
        """True if this result has the smaller relative residual."""
        if self.report is None or other.report is None:
            return self.report is not None
        return bool(self.report.relative_residual < other.report.relative_residual)

    def figures(self) -> dict[str, Any]:
        """Report row of the sample."""
        found = {"retries": self.retries, "warm": int(self.warm)}
        if self.report is None:
            nothing = dict.fromkeys(("relative_residual", "position_error", "energy", "seconds"), np.nan)
            none = {"iterations": 0, "inverted": 0, "stable": 0}
            outcome = "crashed" if self.crashed else "invalid"
            return {"outcome": OUTCOMES.index(outcome), **nothing, **none, **found}
        report, error_estimate = self.report, self.report.error_estimate
        return found | {
            "outcome": OUTCOMES.index(report.outcome.name.lower()),
            "relative_residual": report.relative_residual,
            "position_error": np.nan if error_estimate is None else error_estimate.position_error,
            "energy": report.energy,
            "iterations": report.iterations,
            "seconds": report.seconds,
            "inverted": report.inverted,
            "stable": int(error_estimate is not None and error_estimate.stable),
        }


def crash(error: Exception) -> Solved:
    """Result of a crashed sample, with error message and source location.

    Raises:
        Exception: Errors of the system or the GPU are raised again.
    """
    of_card = type(error).__module__.startswith(("numba.cuda", "numba_cuda", "cuda"))
    if of_card or isinstance(error, SYSTEM_ERRORS):
        raise error
    *_, last = traceback.extract_tb(error.__traceback__)
    place = f"{Path(last.filename).name}, line {last.lineno}"
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return Solved(
        None,
        None,
        f"Its solve ended with an error that is none of its scene: {said} ({place}).",
        crashed=True,
    )


def scene_of_store(store: Store) -> Source:
    """Load scene and varied quantities of a store.

    Raises:
        DatasetError: The scene differs from the scene that the store was created with.
    """
    refuse_changed(store)
    folder = store.scene_folder
    try:
        source = Source.load(store.path / "scene.toml", folder)
    except SceneError as error:
        if store.has_checksums:
            raise
        raise DatasetError(
            f"{error}\n{store.path} was written by an earlier supple, which left the files that a scene "
            f"names where they were, in {folder}. Put them there, or make a new data set, which has copies."
        ) from None
    for varied in store.facts["varied"]:
        source.vary(varied["label"], varied["paths"])
    vertices = store.facts["vertices"]
    if source.model.vertices != vertices:
        raise DatasetError(
            f"{store.path}: its scene has {source.model.vertices:,} vertices now and had {vertices:,} when "
            f"the set was begun; a mesh file in {folder} has changed, or this version of supple makes other "
            "meshes."
        )
    if not store.has_checksums:
        _refuse_another_scene(store, source)
    return source


def _refuse_another_scene(store: Store, source: Source) -> None:
    """Verify the scene of a store without checksums by identity hash."""
    if changed := other_files(store, source.files):
        raise DatasetError(
            f"{store.path}: {changed}. Put back what was in {store.scene_folder} when it was begun."
        )
    columns = {label: values.reshape(len(values), -1) for label, values in store.inputs.items()}
    if identity_of(origin_of(store.spec, source), store.spec["count"], columns) != store.facts["identity"]:
        raise DatasetError(
            f"{store.path}: its scene.toml, inputs/ or the spec in zarr.json are not those that it was begun "
            "with. Samples would be of another scene than those that are there: put them back as they were, "
            "or make a new data set."
        )


class Sampler:
    """Equilibrium solver for samples of a store.

    Args:
        store: The store.
        threads: Threads per solve. Small problems run faster in parallel processes.
        beside: Number of workers on the same device.
    """

    def __init__(self, store: Store, threads: int | None = 1, beside: int = 1) -> None:
        self.source = scene_of_store(store)
        self.model: Model = self.source.model
        told = store.spec["solve"]
        limits = ("tolerance", "position_tolerance", "max_iterations", "time_limit")
        options: Options = {name: told[name] for name in limits if told[name] is not None}  # type: ignore[assignment]
        if told["position_tolerance"] is False:
            options["position_tolerance"] = None
        options["backend"] = Backend(told["device"], told["precision"], threads)
        self.asked = request(self.source.file, None, options, always_tolerance=True)
        if self.asked.stop.tolerance is None:
            raise DatasetError(
                f"{store.path}: its scene has no tolerance ([stop] tolerance = false), so that no sample "
                "could be known to be good. Give one under [solve] of the data set, or under [stop] of the "
                "scene."
            )
        self.cold = self.asked.initial(None, self.model)
        self.together = not self.source.rebuilds and move_together(
            self.model, self.asked.solver, self.asked.backend
        )
        self._problem: Problem | None = None
        self._batches: Batches | None = None
        self._beside = beside
        self._near = self.asked.solver.near_the_end()

    def meanings(self, every: Sequence[Values]) -> Sequence[Meaning | None]:
        """Precompute conditions for `solve`; None if samples need their own models."""
        if self.source.rebuilds:
            return [None] * len(every)
        with suppress(Exception):  # samples are retried one by one later
            return self.source.conditions_of(every)
        return [None] * len(every)

    def solve(
        self, values: Values, starts: Sequence[np.ndarray | None], meaning: Meaning | None = None
    ) -> Solved:
        """Solve one sample.

        The initial positions are tried in order. If all attempts fail, loads and motions are applied in
        steps.

        Args:
            values: Value of each varied quantity.
            starts: (n, 3) initial positions to try [m]; None stands for the scene's own.
            meaning: Conditions from `meanings`, if already computed.
        """
        try:
            model, conditions = self._under(values, meaning)
        except SceneError as error:
            return Solved(None, None, str(error))
        except Exception as error:
            return crash(error)
        best: Solved | None = None
        for number, initial in enumerate(starts):
            begun = replace(conditions, initial=self.cold if initial is None else initial)
            found = self._attempted(
                model,
                begun,
                number,
                initial is not None,
                self._near if number == 0 and initial is not None else None,
            )
            if found.ok:
                return found
            best = found if best is None or found.is_nearer_than(best) else best
        assert best is not None
        return self._grown(values, conditions, replace(best, retries=len(starts)))

    def solve_all(self, every: Sequence[Values], starts: Sequence[np.ndarray | None]) -> Iterator[Solved]:
        """Solve several samples, batched up to device capacity.

        Args:
            every: Values of each sample.
            starts: (n, 3) initial positions of each sample [m]; None stands for the scene's own.
        """
        found = self._conditions(every)
        sound = (
            replace(c, initial=self.cold if initial is None else initial)
            for c, initial in zip(found, starts, strict=True)
            if isinstance(c, Conditions)
        )
        solved = self._batch_by_batch(sound)
        for values, each, initial in zip(every, found, starts, strict=True):
            if isinstance(each, SceneError | Solved):
                yield each if isinstance(each, Solved) else Solved(None, None, str(each))
                continue
            solution = next(solved)
            if isinstance(solution, Solved):
                one = solution
            else:
                positions, report = solution
                measured = Measured(self.model, positions, each.force, each.materials)
                one = Solved(measured, report, report.sentence, warm=initial is not None)
            yield one if one.ok else self._grown(values, each, replace(one, retries=1))

    def _conditions(self, every: Sequence[Values]) -> Sequence[Conditions | SceneError | Solved]:
        """Conditions or error for each set of values."""
        with suppress(Exception):
            return self.source.conditions_of(every) if every else []
        return [self._own_conditions(values) for values in every]

    def _own_conditions(self, values: Values) -> Conditions | SceneError | Solved:
        try:
            return self.source.conditions_of([values])[0]
        except Exception as error:
            return crash(error)

    def _batch_by_batch(self, every: Iterator[Conditions]) -> Iterator[tuple[np.ndarray, Report] | Solved]:
        """Yield positions and reports; samples of a crashed batch are solved one by one."""
        if self._batches is None:
            self._batches = Batches(self.model, self.asked, share=1 / self._beside)
        while chunk := self._batches.next_of(every):
            try:
                problem, _, reports = self._batches.solve(chunk)
                states = list(problem.states.positions)
            except Exception as error:
                self._batches.end()
                alone = (
                    [crash(error)] if len(chunk) == 1 else self._batch_by_batch(iter([c])) for c in chunk
                )
                yield from (found for each in alone for found in each)
            else:
                yield from zip(states, reports, strict=True)

    def _under(self, values: Values, meaning: Meaning | None) -> tuple[Model, Conditions]:
        if self.source.rebuilds:
            model = self.source.own_model(values)
            return model, Conditions(model.prescribed(np.inf), model.force_at(np.inf))
        found = meaning or self.source.conditions_of([values])[0]
        if isinstance(found, SceneError):
            raise found
        return self.model, found

    def _attempted(
        self, model: Model, conditions: Conditions, number: int, warm: bool, solver: Solver | None
    ) -> Solved:
        """Solve and evaluate; unexpected errors become a crashed result."""
        try:
            report, problem = self._solved(model, conditions, solver)
            measured = self._measured(model, problem, conditions)
        except Exception as error:
            self._problem = None  # its arrays may be partially written
            return replace(crash(error), retries=number, warm=warm)
        return Solved(measured, report, report.sentence, number, warm)

    def _measured(self, model: Model, problem: Problem, conditions: Conditions) -> Measured:
        """Quantities of a solved problem, including dynamic terms such as contacts in their current state."""
        history = {}
        if model.followers:
            model = latest(model, problem.model)
            (history,) = problem.history.take()
        return Measured(model, problem.positions, conditions.force, conditions.materials, history)

    def _solved(
        self, model: Model, conditions: Conditions, solver: Solver | None = None
    ) -> tuple[Report, Problem]:
        asked = self.asked
        if self.source.rebuilds:
            problem = make_problem(model, True, asked.backend)
            problem.take([conditions])
        else:
            if self._problem is None or not self._problem.take([conditions]):
                self._problem = None
                self._problem = self._prepared(conditions)
            problem = self._problem
        report = solve(problem, solver or asked.solver, asked.stop)
        return report, problem

    def _prepared(self, conditions: Conditions) -> Problem:
        """Shared problem of all samples.

        Solver preparation uses the values in the scene file, independent of the first sample, so that samples
        do not depend on other shards.
        """
        problem = make_problem(self.model, True, self.asked.backend)
        problem.keeps_prepared = True
        if problem.dtype == np.float64 and not problem.contacts:
            prepare(problem)
        return (
            problem
            if problem.take([conditions])
            else problem_under(self.model, [conditions], self.asked.backend)
        )

    def _grown(self, values: Values, conditions: Conditions, before: Solved) -> Solved:
        """Solve with load steps after failed attempts; returns the previous result if this fails as well."""
        asked = self.asked
        try:
            model = self.source.own_model(values)
            result = equilibrium(
                model, asked.solver, initial=self.cold, load_steps=4, stop=asked.stop, backend=asked.backend
            )
        except Exception as error:
            crash(error)
            return before
        if not result.report.ok:
            return before
        measured = Measured(self.model, result.positions, conditions.force, conditions.materials)
        if self.source.rebuilds or model.followers:
            state = result.state
            history = {} if state is None else state.history
            measured = Measured(result.model, result.positions, conditions.force, None, history)
        return Solved(measured, result.report, retries=before.retries + 1)
