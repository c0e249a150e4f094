"""Report of a solve: outcome, residuals, energy, timing and contact."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from supple.contact.state.contact_report import ContactReport
from supple.problem import Balance
from supple.solvers.newton_methods.error_estimate import ErrorEstimate
from supple.support.text import pluralize


class Outcome(Enum):
    """Outcome of a solve; its value is the sentence shown to users.

    Attributes:
        CONVERGED: The relative residual is below the tolerance.
        MAX_ITERATIONS: The iteration limit came first. Raise `max_iterations`, or use another solver.
        TIME_LIMIT: The time limit came first. Raise `time_limit`, or continue from the state of the result.
        FIXED_ITERATIONS: A given number of iterations was made without a tolerance. Set `tolerance` to solve
            to an accuracy.
        STAGNATED: Neither residual nor energy decreases. Use more `load_steps`, `substeps` or frames, another
            solver or another acceleration.
        INTERSECTING: Forces balance, but surfaces have passed through each other. Use contact = "barrier", a
            larger contact stiffness or a finer mesh.
        UNSOLVED_BEFORE: Forces balance, but not in an earlier step with the accelerations that this one
            continues. Use smaller steps, more iterations or integrator = "backward_euler".
        UNBOUNDED: The energy decreases without bound. Pin loose bodies, reduce the pressure, use a material
            that stiffens, or simulate a motion.
        ROUNDING_LIMIT: Rounding errors exceed the tolerance. Use precision = "float64" or a larger tolerance.
        FAILED: Forces became infinite or NaN; the result is the last finite state. Use smaller steps or more
            `load_steps`.
    """

    CONVERGED = "Converged: the relative residual is below the tolerance."
    MAX_ITERATIONS = (
        "Stopped after the allowed iterations, before the tolerance was reached. Raise max_iterations, or "
        "use another solver."
    )
    TIME_LIMIT = (
        "Stopped at the time limit, before the tolerance was reached. Raise time_limit, or continue from "
        "this state."
    )
    FIXED_ITERATIONS = "Completed the requested iterations; no tolerance was set."
    STAGNATED = (
        "Stagnated: further iterations reduce neither the relative residual nor the energy. Use more "
        "load_steps (equilibrium), more substeps or frames (motion), another solver or another acceleration."
    )
    INTERSECTING = (
        "Not converged: forces balance, but surfaces have passed through each other, or an obstacle through "
        "a body. Use contact='barrier', a larger contact stiffness, or a finer mesh near obstacles."
    )
    UNSOLVED_BEFORE = (
        "Not converged: forces balance in this step, but it uses accelerations of an earlier step in which "
        "they do not. Use smaller steps, more iterations or integrator='backward_euler'."
    )
    UNBOUNDED = (
        "Stopped: the energy decreases without bound, so there is no equilibrium to reach. Pin loose bodies, "
        "reduce the pressure, use a stiffening material, or simulate a motion."
    )
    ROUNDING_LIMIT = (
        "Stopped above the tolerance: the remaining residual is rounding error of this precision. Use a "
        "larger tolerance, or float64 instead of float32."
    )
    FAILED = (
        "Failed: the forces became infinite or NaN; the last finite state is returned. Use smaller steps or "
        "more load_steps."
    )

    @property
    def ok(self) -> bool:
        """True if the solve reached its tolerance, or ran to completion without one."""
        return self in (Outcome.CONVERGED, Outcome.FIXED_ITERATIONS)

    def sentence(self, inverted: str = "", far: bool = False) -> str:
        """Return the sentence shown to the user.

        Args:
            inverted: Number of inverted elements in words, such as "15 inverted elements".
            far: True if a fixed number of iterations ended far from equilibrium.

        Returns:
            The sentence, with the additions at the end of its first clause.
        """
        phrases = ["far from balance"] if far else []
        phrases += [inverted] if inverted else []
        if not phrases:
            return self.value
        head = re.split("[:;.]", self.value, maxsplit=1)[0]
        return f"{head}, {', '.join(phrases)}{self.value[len(head) :]}"


FAR_RELATIVE_RESIDUAL = 1e-2
"""Relative residual above which a fixed number of iterations, without a tolerance, has ended far from
equilibrium: the residual forces are a hundredth of the acting forces. In time steps, the momentum error has
to meet this tolerance, too, so that weight and inertia of every body balance to 10 %."""


def lag_notes(report: Report, guesses: tuple[str, ...] = ()) -> list[str]:
    """Notes about a time step that ended far from equilibrium: visible effect and remedies.

    Args:
        report: Report of the step.
        guesses: Values of initial_guess that may help.
    """
    if not report.is_far_from_balance:
        return []
    remedies = ["more iterations", *(f"initial_guess='{guess}'" for guess in guesses), "a tolerance"]
    reason = f"relative residual {report.relative_residual:.2g}"
    if report.momentum_error > 1:
        reason += ", loads and inertia of a body differ"
    return [
        f"the step ended far from balance ({reason}): bodies move slower, or are softer, than they should; "
        f"use {', '.join(remedies[:-1])} or {remedies[-1]}"
    ]


@dataclass(frozen=True)
class IterationInfo:
    """State of a solve after an iteration, the argument of callbacks.

    Attributes:
        iteration: Number of iterations so far, 0 at the start.
        relative_residual: Relative residual.
        seconds: Time of the solver so far, without compilation [s].
        measure_energy: Function that evaluates the energy, see `energy`.
        stage: "solve"; "load step to 25%" before the last load step; "refinement" in float64.
        solver: Name of the solver; in a comparison, the label of the trial.
        frame: Number of the frame being computed; None for an equilibrium.
    """

    iteration: int
    relative_residual: float
    seconds: float
    measure_energy: Callable[[], float] = field(repr=False, compare=False)
    stage: str = "solve"
    solver: str = ""
    frame: int | None = None

    @property
    def energy(self) -> float:
        """Energy [J], evaluated on access and therefore valid during the callback only."""
        return self.measure_energy()


@dataclass
class History:
    """Convergence history: one entry per recorded iteration, where iteration 0 is the start.

    Attributes:
        iterations: Numbers of iterations.
        seconds: Times since the start [s].
        residual: Norms |r| [N].
        relative_residual: Relative residuals.
        energy: Energies [J].
        primal_residual: Residuals of positions [N] of methods with multipliers [PXPBD eq. 11]; otherwise
            empty.
        dual_residual: Residuals of multipliers of these methods [PXPBD eq. 12]; otherwise empty.
    """

    iterations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    relative_residual: list[float] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    primal_residual: list[float] = field(default_factory=list)
    dual_residual: list[float] = field(default_factory=list)

    def add(self, iteration: int, seconds: float, balance: Balance, energy: float) -> None:
        """Append an entry.

        Args:
            iteration: Number of iterations.
            seconds: Time since the start [s].
            balance: Residual norms.
            energy: Energy [J].
        """
        self.iterations.append(iteration)
        self.seconds.append(seconds)
        self.residual.append(balance.residual)
        self.relative_residual.append(balance.relative_residual)
        self.energy.append(energy)

    def append(self, continuation: History) -> None:
        """Append a continued solve's history without its first entry.

        Args:
            continuation: History of the continued solve.
        """
        done, clock = self.iterations[-1], self.seconds[-1]
        self.iterations += [done + k for k in continuation.iterations[1:]]
        self.seconds += [clock + s for s in continuation.seconds[1:]]
        self.residual += continuation.residual[1:]
        self.relative_residual += continuation.relative_residual[1:]
        self.energy += continuation.energy[1:]

    def add_multipliers(self, residuals: tuple[float, float] | None) -> None:
        """Append primal and dual residuals.

        Args:
            residuals: (|g| [N], |h|), or None for methods without multipliers.
        """
        if residuals is not None:
            self.primal_residual.append(residuals[0])
            self.dual_residual.append(residuals[1])


@dataclass
class Report:
    """Report of one solve.

    Attributes:
        outcome: Convergence, limit or failure that ended the solve.
        solver: Name of the solver.
        iterations: Number of iterations.
        relative_residual: |r| / |s|, scale-free and between 0 and 1. r is the gradient of the (incremental)
            potential over free vertices [N], and s_i is the sum of the magnitudes of all forces at vertex i.
            If a rigid body with mass deviates more from its equations of motion, relative to the forces on
            it, its value is reported instead.
        reduction: |r| relative to its value at the first iterate, as in plots of the papers.
        residual: |r| [N].
        energy: Total (incremental) potential [J].
        seconds: Wall-clock time of the solve without compilation [s].
        tolerance: Tolerance of the relative residual, or None.
        max_iterations: Iteration limit, explicit or default, including iterations in which prescribed motions
            were in progress; None for a time limit without tolerance.
        compile_seconds: Time of kernel compilation [s].
        setup_seconds: Time of the set-up before the solve [s].
        precision: "float32" or "float64".
        threads: Number of threads.
        vertices: Number of vertices.
        elements: Number of elements.
        colors: Number of colors of the solver's ordering, 0 without one.
        inverted: Number of elements with det F < 0.
        inverted_before: Number at the start of the motion, or at its last frame if that had fewer; 0 for an
            equilibrium, whatever its start.
        rejected: Number of vertex steps rejected because they were not finite.
        momentum_error: Momentum error of a time step along free rigid motions of bodies, and with a tolerance
            of the free vertices of supported bodies, relative to what the tolerance, or 1e-2 without one,
            allows; at most 1 if it is met. 0 for equilibria; without a tolerance it is not evaluated in
            batches and on a GPU. See `supple.solve.momentum`.
        error_estimate: Error estimate: distance of each body from the equilibrium; None if not computed.
        contact: Contact between bodies, with obstacles, and of obstacles in faces; None in scenes without
            obstacles and without contact between bodies.
        passed_since: Time [s] of the first frame in which an obstacle and a body passed through each other.
            They may be on the wrong sides since then. None for none.
        notes: Sentences for the user.
        history: Convergence history, if requested.
    """

    outcome: Outcome
    solver: str
    iterations: int
    relative_residual: float
    reduction: float
    residual: float
    energy: float
    seconds: float
    tolerance: float | None = None
    max_iterations: int | None = None
    compile_seconds: float = 0.0
    setup_seconds: float = 0.0
    precision: str = "float64"
    threads: int = 1
    vertices: int = 0
    elements: int = 0
    colors: int = 0
    inverted: int = 0
    inverted_before: int = 0
    rejected: int = 0
    momentum_error: float = 0.0
    error_estimate: ErrorEstimate | None = None
    contact: ContactReport | None = None
    passed_since: float | None = None
    notes: list[str] = field(default_factory=list)
    history: History | None = field(default=None, repr=False)

    @property
    def primal_residual(self) -> float | None:
        """Final residual of positions |g| [N] [PXPBD eq. 11].

        None unless a method with multipliers recorded a history.
        """
        return (
            self.history.primal_residual[-1]
            if self.history is not None and self.history.primal_residual
            else None
        )

    @property
    def dual_residual(self) -> float | None:
        """Final residual of multipliers |h| [PXPBD eq. 12].

        None unless a method with multipliers recorded a history.
        """
        return (
            self.history.dual_residual[-1]
            if self.history is not None and self.history.dual_residual
            else None
        )

    @property
    def is_far_from_balance(self) -> bool:
        """True if a solve without tolerance ended with relative residual > 1e-2 or momentum error > 1."""
        imbalanced = self.relative_residual > FAR_RELATIVE_RESIDUAL or self.momentum_error > 1
        return self.outcome is Outcome.FIXED_ITERATIONS and imbalanced

    @property
    def ok(self) -> bool:
        """True if the solve succeeded.

        This requires three conditions: the tolerance was met, or a fixed number of iterations ended with a
        relative residual of at most 1e-2; at most `inverted_before` elements are inverted; and no surfaces
        have passed through each other, nor a body and an obstacle in this frame or an earlier one.
        """
        intersecting = self.contact is not None and self.contact.is_intersecting
        intersecting = intersecting or self.passed_since is not None
        return (
            self.outcome.ok
            and not self.is_far_from_balance
            and not intersecting
            and self.inverted <= self.inverted_before
        )

    @property
    def short_outcome(self) -> str:
        """Outcome in few words, such as: converged, 15 inverted elements."""
        name = self.outcome.name.lower().replace("_", " ")
        return ", ".join(
            [name, *(["far from balance"] if self.is_far_from_balance else []), *self._inversions()]
        )

    @property
    def sentence(self) -> str:
        """Outcome sentence, including the number of inverted elements."""
        return self.outcome.sentence("".join(self._inversions()), self.is_far_from_balance)

    def _inversions(self) -> list[str]:
        """Inverted element count in words; empty without inversions."""
        return [pluralize(self.inverted, "inverted element")] if self.inverted else []

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON.

        Returns:
            Values by name; the outcome is given as name and as sentence.
        """
        values = asdict(replace(self, error_estimate=None, contact=None))
        values["error_estimate"] = self.error_estimate.to_dict() if self.error_estimate else None
        values["contact"] = self.contact.to_dict() if self.contact else None
        values["outcome"] = self.outcome.name.lower()
        values["sentence"], values["ending"] = self.sentence, self.short_outcome
        values["ok"] = self.ok
        values["primal_residual"], values["dual_residual"] = self.primal_residual, self.dual_residual
        return values

    def _limit(self) -> str:
        """Iteration limit in words, if it ended the solve."""
        return f" of {self.max_iterations:,} allowed" if self.outcome is Outcome.MAX_ITERATIONS else ""

    def __str__(self) -> str:
        lines = [
            self.sentence,
            f"  {self.solver}, {self.precision}, {pluralize(self.vertices, 'vertex', 'vertices')}, "
            f"{pluralize(self.elements, 'element')}",
            f"  iterations {self.iterations:,}{self._limit()}, {self.seconds:.3g} s"
            + (f" (+ {self.compile_seconds:.3g} s compiling)" if self.compile_seconds else ""),
            f"  relative residual {self.relative_residual:.2e}, reduction {self.reduction:.2e}, energy "
            f"{self.energy:.6g} J",
        ]
        if self.error_estimate is not None:
            lines.append(f"  {self.error_estimate}")
        if self.contact is not None:
            lines += [f"  {line}" for line in str(self.contact).splitlines()]
        if self.primal_residual is not None:
            lines.append(
                f"  residuals of positions {self.primal_residual:.2e} N, of multipliers "
                f"{self.dual_residual:.2e}"
            )
        if self.rejected:
            lines.append(f"  rejected, since not finite: {pluralize(self.rejected, 'vertex step')}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])
