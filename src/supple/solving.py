"""The one loop around every solver: when to look, when to stop, and what to report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from supple.certifying import Certifying
from supple.compute import Compute
from supple.kernels import compilation
from supple.magnitudes import refuse_beyond
from supple.memory import refuse_large_problem
from supple.model import Model
from supple.problem import Balance, Device, Problem
from supple.report import History, Outcome, Report
from supple.scene import Scene, build_model
from supple.solvers import Run, Solver
from supple.stop import Stop

DEFAULT_ITERATIONS = 20_000
"""Iterations allowed to a solve that has a tolerance and no other limit."""

NO_LIMIT = 2**62
"""Iterations allowed to a solve that has a time budget only."""

PROGRESS = 0.99
"""A figure counts as reduced when it falls below this part of the lowest seen."""

ROUNDED = 3.0
"""A solve that gets stuck below this many times the estimated rounding error has reached the limit of its
precision; measured on all materials in float32, that is at 0.3 times at most."""

Watcher = Callable[[int, float, float], None]
"""Called as watch(iteration, imbalance, seconds) whenever the imbalance has been measured."""


@dataclass
class Progress:
    """What a solve has achieved: the lowest figures so far, the iteration at which anything last improved,
    and the energy [J] when the figures had not for long; it may fall for thousands of iterations before they
    do."""

    residual: float = np.inf
    imbalance: float = np.inf
    at: int = 0
    energy: float = np.inf

    def see(self, balance: Balance, iteration: int) -> None:
        """Either figure may fall alone: the residual, while a body without loads relaxes and all its forces
        vanish together; the imbalance, while forces build up from rest under a load and the residual
        rises."""
        if balance.residual < PROGRESS * self.residual:
            self.residual, self.at = balance.residual, iteration
        if balance.imbalance < PROGRESS * self.imbalance:
            self.imbalance, self.at = balance.imbalance, iteration

    def outcome(
        self, problem: Problem, copy: int, latest: Balance, stop: Stop, run: Run, iteration: int
    ) -> Outcome | None:
        """How a solve ends that has made no progress for long, or None. Iterations that were asked for are
        done all the same, unless rounding is all that they could change."""
        if iteration - self.at <= run.patience:
            return None
        if latest.is_rounding(ROUNDED):
            return Outcome.PRECISION
        energy = problem.measures.energy_of(copy)
        falls = energy < self.energy - problem.measures.energy_rounding(copy)
        self.energy, self.at = energy, iteration
        return None if falls or stop.max_iterations is not None else Outcome.STAGNATED


def solve(
    problem: Problem,
    solver: Solver,
    stop: Stop,
    record: bool = False,
    watch: Watcher | None = None,
    began: float | None = None,
) -> Report:
    """Run a solver on a problem until it should stop. The clock leaves out compilation and recording."""
    return solve_copies(problem, solver, stop, record, watch, began)[0]


def solve_copies(
    problem: Problem,
    solver: Solver,
    stop: Stop,
    record: bool = False,
    watch: Watcher | None = None,
    began: float | None = None,
) -> list[Report]:
    """Run a solver on all copies of a problem's state together, each of which stops when it should. What is
    recorded and watched is the first."""
    limit = stop.max_iterations or (NO_LIMIT if stop.tolerance is None else DEFAULT_ITERATIONS)
    device, measures = problem.device, problem.measures
    device.active = np.arange(problem.copies, dtype=np.int32)  # all, also after a solve that was interrupted
    history = History() if record else None
    copies = range(problem.copies)
    with compilation() as compiled:
        first = measures.balances()
        latest, progress = dict(first), {copy: Progress() for copy in copies}
        ended: dict[int, tuple[Outcome, int, float]] = {}
        clock, iteration = 0.0, 0
        good = problem.zeros(problem.u.shape)
        device.assign(good, problem.u)

        def look() -> None:
            if history is not None:
                history.iterations.append(iteration)
                history.seconds.append(clock)
                history.residual.append(latest[0].residual)
                history.imbalance.append(latest[0].imbalance)
                history.energy.append(problem.energy())
            if watch is not None:
                watch(iteration, latest[0].imbalance, clock)

        look()
        run = solver.begin(problem)  # which may move u already
        run.aim(stop.tolerance, stop.max_iterations)
        setup = perf_counter() - began - compiled.seconds if began is not None else 0.0
        certifying = Certifying(problem, stop)
        checking = stop.tolerance is not None or record or watch is not None or run.guarded
        while True:
            for copy in map(int, device.active):
                outcome = _outcome(latest[copy], stop, iteration, limit, clock, problem, run, certifying)
                if outcome is None and stop.tolerance is not None:
                    outcome = progress[copy].outcome(problem, copy, latest[copy], stop, run, iteration)
                    outcome = certifying.judged(outcome, latest[copy], run)
                if outcome is not None:
                    ended[copy] = outcome, iteration, clock
            if len(ended) == problem.copies:
                break
            if len(device.active) > problem.copies - len(ended):
                device.active = np.array([copy for copy in copies if copy not in ended], np.int32)
            target = iteration + _next_look(run, stop, iteration, limit, clock)
            while iteration < target:  # one by one when recording, which must change nothing else
                count = 1 if record else target - iteration
                compiling, tick = compiled.seconds, perf_counter()
                run.advance(count)
                if record:
                    device.wait()
                iteration += count
                if record:
                    clock += perf_counter() - tick - (compiled.seconds - compiling)
                if checking or iteration >= limit or stop.time_budget is not None:
                    latest |= measures.balances()
                    if iteration == target and _observe(problem, run, latest):
                        latest |= measures.balances()
                    if not run.guarded:
                        _keep(problem, run, latest, good)
                if not record:
                    clock += perf_counter() - tick - (compiled.seconds - compiling)
                look()
            for copy in map(int, device.active):
                progress[copy].see(latest[copy], iteration)
        device.active = np.arange(problem.copies, dtype=np.int32)
        undone = [copy for copy in copies if ended[copy][0] is Outcome.FAILED or ended[copy][1] == 0]
        for copy in undone:
            device.assign(problem.u, good, copy)
        if undone:
            latest = measures.balances()
        certificate = certifying.final(ended[0][0], latest[0])
        energies, inverted, rejected = measures.energies(), measures.inversions(), run.rejected()
    return [
        Report(
            outcome=outcome,
            solver=solver.name,
            iterations=iterations,
            imbalance=latest[copy].imbalance,
            reduction=latest[copy].residual / first[copy].residual if first[copy].residual != 0 else 0.0,
            residual=latest[copy].residual,
            energy=float(energies[copy]),
            seconds=seconds,
            tolerance=stop.tolerance,
            max_iterations=None if limit == NO_LIMIT else limit,
            compile_seconds=compiled.seconds if copy == 0 else 0.0,
            setup_seconds=setup if copy == 0 else 0.0,
            precision=str(problem.dtype),
            threads=device.threads,
            vertices=problem.model.vertices,
            elements=problem.model.elements,
            colours=run.colours,
            inverted=int(inverted[copy]),
            rejected=rejected[copy],
            certificate=certificate,
            notes=run.notes(copy) + _advice(outcome, problem) + certifying.notes(),
            history=history if copy == 0 else None,
        )
        for copy, (outcome, iterations, seconds) in sorted(ended.items())
    ]


def _advice(outcome: Outcome, problem: Problem) -> list[str]:
    """What would get further."""
    at_limit = outcome is Outcome.PRECISION and problem.dtype == np.float32
    return ["precision='float64' would get further"] if at_limit else []


def _observe(problem: Problem, run: Run, latest: dict[int, Balance]) -> bool:
    """Let the method see how far every copy has come; True when that led it to change one."""
    moved = [run.observe(latest[copy], copy) for copy in map(int, problem.device.active)]
    return any(moved)


def _keep(problem: Problem, run: Run, latest: dict[int, Balance], good: np.ndarray) -> None:
    """Remember the states to which a solve that fails goes back."""
    for copy in map(int, problem.device.active):
        if latest[copy].finite or _recovering(problem, run):
            problem.device.assign(good, problem.u, copy)


def _next_look(run: Run, stop: Stop, iteration: int, limit: int, clock: float) -> int:
    """Iterations to do before deciding again whether to stop."""
    count = min(run.check_every - iteration % run.check_every, limit - iteration)
    if stop.time_budget is not None:
        per_iteration, left = clock / iteration if iteration else np.inf, stop.time_budget - clock
        count = count if left >= count * per_iteration else max(1, int(left / per_iteration))
    return count


def _outcome(
    balance: Balance,
    stop: Stop,
    iteration: int,
    limit: int,
    clock: float,
    problem: Problem,
    run: Run,
    certifying: Certifying,
) -> Outcome | None:
    """How the solve ends here, or None to go on."""
    if not balance.finite and not _recovering(problem, run):
        return Outcome.FAILED
    if stop.tolerance is not None and balance.imbalance <= stop.tolerance and certifying.agrees(balance, run):
        return Outcome.CONVERGED
    if stop.time_budget is not None and clock >= stop.time_budget:
        return Outcome.BUDGET_TIME if stop.tolerance is not None else Outcome.COMPLETED
    if iteration >= limit:
        return Outcome.BUDGET_ITERATIONS if stop.tolerance is not None else Outcome.COMPLETED
    return None


def _recovering(problem: Problem, run: Run) -> bool:
    """Whether only forces are infinite, as they are in inverted elements with a barrier, and the method can
    unfold these."""
    if run.recovers:
        problem.device.pull(problem.u)
    return run.recovers and bool(np.isfinite(problem.u[:-1]).all())


def on_device(device: str, model: Model, copies: int = 1) -> Device | None:
    """The device for a problem of a model; None for the CPU."""
    if device == "cpu":
        return None
    from supple.problem.cuda import Cuda

    return Cuda(model.vertices + 1, copies)


def make_problem(scene: Scene | Model, quasistatic: bool, compute: Compute) -> Problem:
    """What a scene or a model amounts to for solvers, where `compute` says."""
    compute.refuse_absent()
    model = scene if isinstance(scene, Model) else build_model(scene, quasistatic)
    refuse_beyond(model, compute.precision)
    refuse_large_problem(model.elements, 4 if compute.precision == "float32" else 8)
    return Problem(model, compute.precision, compute.threads, on_device(compute.device, model))
