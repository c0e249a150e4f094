"""Equilibria of one scene with many values, one after the other: what is the same for all is built once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.asking import Options, request
from supple.compute import Compute
from supple.datasets.creating import other_files
from supple.datasets.errors import DatasetError
from supple.datasets.quantities import Measured
from supple.datasets.source import Source, Values
from supple.datasets.store import OUTCOMES, Store
from supple.equilibria import Batches, move_together, problem_under
from supple.model import Conditions, Model
from supple.problem import Problem
from supple.report import Report
from supple.scene.errors import SceneError
from supple.simulate import equilibrium
from supple.solvers import Solver
from supple.solvers.newton_steps.certificate import prepare
from supple.solving import make_problem, solve

Meaning = Conditions | SceneError
"""What values mean for the model of a scene, or what is wrong with them."""


@dataclass(frozen=True, eq=False)
class Solved:
    """One sample: its quantities, its report, and the sentence that says why there are none."""

    measured: Measured | None
    report: Report | None
    sentence: str = ""
    retries: int = 0
    warm: bool = False

    @property
    def ok(self) -> bool:
        return self.report is not None and self.report.ok

    def figures(self) -> dict[str, Any]:
        """Its row of the report."""
        found = {"retries": self.retries, "warm": int(self.warm)}
        if self.report is None:
            nothing = dict.fromkeys(("imbalance", "distance", "energy", "seconds"), np.nan)
            none = {"iterations": 0, "inverted": 0, "stable": 0}
            return {"outcome": OUTCOMES.index("invalid"), **nothing, **none, **found}
        report, certificate = self.report, self.report.certificate
        return found | {
            "outcome": OUTCOMES.index(report.outcome.name.lower()),
            "imbalance": report.imbalance,
            "distance": np.nan if certificate is None else certificate.worst.of_size,
            "energy": report.energy,
            "iterations": report.iterations,
            "seconds": report.seconds,
            "inverted": report.inverted,
            "stable": int(certificate is not None and certificate.stable),
        }


class Sampler:
    """Solves samples of a store. threads: of each solve; small problems are faster side by side. beside: how
    many workers there are on the same device."""

    def __init__(self, store: Store, threads: int | None = 1, beside: int = 1) -> None:
        folder = store.path.parent / store.facts["folder"]
        self.source = Source.load(store.path / "scene.toml", folder)
        for varied in store.facts["varied"]:
            self.source.vary(varied["label"], varied["paths"])
        self.model: Model = self.source.model
        if self.model.vertices != store.facts["vertices"]:
            raise DatasetError(
                f"{store.path}: its scene has {self.model.vertices:,} vertices now and had "
                f"{store.facts['vertices']:,} when the set was begun; a mesh file in {folder} has changed."
            )
        if changed := other_files(store, self.source.files):
            raise DatasetError(f"{store.path}: {changed}. Put back what was in {folder} when it was begun.")
        told = store.spec["solve"]
        limits = ("tolerance", "distance", "max_iterations", "time_budget")
        options: Options = {name: told[name] for name in limits if told[name] is not None}  # type: ignore[assignment]
        if told["distance"] is False:
            options["distance"] = None
        options["compute"] = Compute(told["device"], told["precision"], threads)
        self.asked = request(self.source.file, None, options, always_tolerance=True)
        self.cold = self.asked.start(None, self.model)
        self.together = not self.source.rebuilds and move_together(
            self.model, self.asked.solver, self.asked.compute
        )
        self._problem: Problem | None = None
        self._batches: Batches | None = None
        self._beside = beside
        self._near = self.asked.solver.near_the_end()

    def meanings(self, every: Sequence[Values]) -> Sequence[Meaning | None]:
        """What each of several values means, for `solve`; None where it needs a model of its own."""
        return [None] * len(every) if self.source.rebuilds else self.source.conditions_of(every)

    def solve(
        self, values: Values, starts: Sequence[np.ndarray | None], meaning: Meaning | None = None
    ) -> Solved:
        """The equilibrium with these values, from the first of these positions (n, 3) from which one is
        found; None is the scene's own start. Where there is none, loads and motions grow in steps. meaning:
        what `meanings` says of the values, where that is known."""
        try:
            model, conditions = self._under(values, meaning)
        except SceneError as error:
            return Solved(None, None, str(error))
        best: Solved | None = None
        for number, start in enumerate(starts):
            begun = replace(conditions, start=self.cold if start is None else start)
            report, positions = self._solved(
                model, begun, self._near if number == 0 and start is not None else None
            )
            measured = Measured(model, positions, conditions.force, conditions.materials)
            found = Solved(measured, report, report.outcome.value, number, start is not None)
            if report.ok:
                return found
            best = (
                found
                if best is None or best.report is None or report.imbalance < best.report.imbalance
                else best
            )
        assert best is not None
        return self._grown(values, conditions, replace(best, retries=len(starts)))

    def solve_all(self, every: Sequence[Values], starts: Sequence[np.ndarray | None]) -> Iterator[Solved]:
        """Several equilibria, as many at once as the device can, from these positions (n, 3); None is the
        scene's own start."""
        found = self.source.conditions_of(every) if every else []
        sound = (
            replace(c, start=self.cold if start is None else start)
            for c, start in zip(found, starts, strict=True)
            if isinstance(c, Conditions)
        )
        solved = self._batch_by_batch(sound)
        for values, each, start in zip(every, found, starts, strict=True):
            if isinstance(each, SceneError):
                yield Solved(None, None, str(each))
                continue
            positions, report = next(solved)
            measured = Measured(self.model, positions, each.force, each.materials)
            one = Solved(measured, report, report.outcome.value, warm=start is not None)
            yield one if one.ok else self._grown(values, each, replace(one, retries=1))

    def _batch_by_batch(self, every: Iterator[Conditions]) -> Iterator[tuple[np.ndarray, Report]]:
        if self._batches is None:
            self._batches = Batches(self.model, self.asked, share=1 / self._beside)
        while chunk := self._batches.next_of(every):
            problem, _, reports = self._batches.solve(chunk)
            yield from zip(problem.states.positions, reports, strict=True)

    def _under(self, values: Values, meaning: Meaning | None) -> tuple[Model, Conditions]:
        if self.source.rebuilds:
            model = self.source.own_model(values)
            return model, Conditions(model.prescribed(np.inf), model.force_at(np.inf))
        found = meaning or self.source.conditions_of([values])[0]
        if isinstance(found, SceneError):
            raise found
        return self.model, found

    def _solved(
        self, model: Model, conditions: Conditions, solver: Solver | None = None
    ) -> tuple[Report, np.ndarray]:
        asked = self.asked
        if self.source.rebuilds:
            problem = make_problem(model, True, asked.compute)
            problem.take([conditions])
        else:
            if self._problem is None or not self._problem.take([conditions]):
                self._problem = None
                self._problem = self._prepared(conditions)
            problem = self._problem
        report = solve(problem, solver or asked.solver, asked.stop)
        return report, problem.positions

    def _prepared(self, conditions: Conditions) -> Problem:
        """The one problem of all samples. What its solvers prepare is prepared for the scene as its file has
        it, whichever sample comes first, so that no sample depends on those of other shards."""
        problem = make_problem(self.model, True, self.asked.compute)
        problem.keeps_prepared = True
        if problem.dtype == np.float64 and not problem.contacts:
            prepare(problem)
        return (
            problem
            if problem.take([conditions])
            else problem_under(self.model, [conditions], self.asked.compute)
        )

    def _grown(self, values: Values, conditions: Conditions, before: Solved) -> Solved:
        """What `equilibrium` finds where a solve from nowhere near has failed, or what there was before."""
        asked = self.asked
        try:
            model = self.source.own_model(values)
            result = equilibrium(
                model, asked.solver, start=self.cold, steps=4, stop=asked.stop, compute=asked.compute
            )
        except SceneError:
            return before
        if not result.report.ok:
            return before
        measured = Measured(self.model, result.positions, conditions.force, conditions.materials)
        if self.source.rebuilds:
            measured = Measured(model, result.positions, conditions.force, None)
        return Solved(measured, result.report, retries=before.retries + 1)
