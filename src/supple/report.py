"""What a solve returns beside positions: how it ended and the figures that show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from supple.apart_report import ApartReport
from supple.problem import Balance
from supple.problem.touched import ContactReport
from supple.solvers.newton_steps.certificate import Certificate
from supple.weak_contact import MetReport
from supple.words import counted


class Outcome(Enum):
    """How a solve ended. The value is the sentence shown to the user."""

    CONVERGED = "Converged: the imbalance is below the tolerance."
    BUDGET_ITERATIONS = "Stopped after the allowed iterations, before the tolerance was reached."
    BUDGET_TIME = "Stopped when the time budget ran out, before the tolerance was reached."
    COMPLETED = "Ran as long as was asked for; no tolerance was set."
    STAGNATED = (
        "Stagnated: further iterations reduce neither the imbalance nor the energy. "
        "More steps (`steps` of an equilibrium, `substeps` or more frames of a motion), another solver or "
        "acceleration may get further."
    )
    PASSED = (
        "Not converged: forces balance, but surfaces have passed through each other, or an obstacle through "
        "a face. contact = 'barrier', or a larger stiffness of contact, keeps bodies apart; a finer mesh "
        "feels obstacles."
    )
    UNSOLVED_BEFORE = (
        "Not converged: forces balance in this step, but not in one before it, from whose accelerations it "
        "goes on. Smaller steps, more iterations or integrator = 'backward_euler' may solve that one."
    )
    UNBOUNDED = "Stopped: the energy falls without end, and there is no equilibrium to be reached from here."
    PRECISION = "Stopped above the tolerance: what is left of the forces is rounding in this precision."
    FAILED = "Failed: the forces became infinite or NaN; the last finite state is returned."

    @property
    def ok(self) -> bool:
        """True when the solve did what was asked: reached its tolerance, or had none to reach."""
        return self in (Outcome.CONVERGED, Outcome.COMPLETED)

    def sentence(self, inverted: str = "", far: bool = False) -> str:
        """The sentence shown to the user, with the number of inverted elements ("15 inverted elements") and
        whether a fixed number of iterations ended far from balance."""
        told = ["far from balance"] if far else []
        told += [inverted] if inverted else []
        if not told:
            return self.value
        head, mark, rest = self.value.partition(":")
        if mark:
            return f"{head}, {', '.join(told)}:{rest}"
        head, mark, rest = self.value.partition(";")
        return f"{head.removesuffix('.')}, {', '.join(told)}{mark or '.'}{rest}"


FAR_IMBALANCE = 1e-2
"""Imbalance above which a fixed number of iterations, without a tolerance, has ended far from balance: the
forces that are left over are a hundredth of those that act."""


def lag_notes(report: Report, guesses: tuple[str, ...] = ()) -> list[str]:
    """What a motion looks like whose step ended far from balance, and what would help.

    Args:
        report: Of the step.
        guesses: Values of initial_guess that may help.
    """
    if not report.far:
        return []
    remedies = ["more iterations", *(f"initial_guess='{guess}'" for guess in guesses), "a tolerance"]
    return [
        f"the step ended far from balance (imbalance {report.imbalance:.2g}): bodies move slower, or are "
        f"softer, than they should; {', '.join(remedies[:-1])} or {remedies[-1]} would help"
    ]


@dataclass
class History:
    """One entry per iteration that was kept; iteration 0 is the start. primary [N] and secondary: the
    residuals of positions and of multipliers, of methods that have these [PXPBD eq. 11, 12]; none of
    others."""

    iterations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    imbalance: list[float] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    primary: list[float] = field(default_factory=list)
    secondary: list[float] = field(default_factory=list)

    def add(self, iteration: int, seconds: float, balance: Balance, energy: float) -> None:
        self.iterations.append(iteration)
        self.seconds.append(seconds)
        self.residual.append(balance.residual)
        self.imbalance.append(balance.imbalance)
        self.energy.append(energy)

    def go_on(self, further: History) -> None:
        """Add what a solve has kept that began where this one ended, but for its start."""
        done, clock = self.iterations[-1], self.seconds[-1]
        self.iterations += [done + k for k in further.iterations[1:]]
        self.seconds += [clock + s for s in further.seconds[1:]]
        self.residual += further.residual[1:]
        self.imbalance += further.imbalance[1:]
        self.energy += further.energy[1:]

    def add_multipliers(self, residuals: tuple[float, float] | None) -> None:
        """What a method with multipliers has beside these, if it is one."""
        if residuals is not None:
            self.primary.append(residuals[0])
            self.secondary.append(residuals[1])


@dataclass
class Report:
    """The figures of one solve.

    imbalance: |r| / |s|, r = gradient of the (incremental) potential over free vertices [N] and
        s_i = the sum of the magnitudes of all forces at vertex i; scale-free, between 0 and 1. Where a rigid
        body with a mass is further from its law of motion, relative to the forces on it, its own counts.
    reduction: |r| / |r at the first iterate|, as in the papers' plots.
    residual: |r| [N].  energy: total (incremental) potential [J].
    primary [N], secondary: the residuals of positions and of multipliers [PXPBD eq. 11, 12], where a history
        was kept of a method that has these; None of others.
    inverted: elements with det F < 0. inverted_before: where the motion began, or its last frame, if that had
        fewer; 0 of an equilibrium, whatever it was started from.
    max_iterations: those that were allowed, given or not, with those in which pins were on their way.
    certificate: how far every body is from the equilibrium, where that was computed.
    contact: what bodies do to obstacles and obstacles to bodies, where there are any; met: what bodies do to
        each other, where they see each other.
    seconds: wall clock of the solve without compilation, which is compile_seconds.
    """

    outcome: Outcome
    solver: str
    iterations: int
    imbalance: float
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
    colours: int = 0
    inverted: int = 0
    inverted_before: int = 0
    rejected: int = 0
    certificate: Certificate | None = None
    contact: ContactReport | None = None
    met: MetReport | ApartReport | None = None
    notes: list[str] = field(default_factory=list)
    history: History | None = field(default=None, repr=False)

    @property
    def primary(self) -> float | None:
        """|g| [N] at the end, see above."""
        return self.history.primary[-1] if self.history is not None and self.history.primary else None

    @property
    def secondary(self) -> float | None:
        """|h| at the end, see above."""
        return self.history.secondary[-1] if self.history is not None and self.history.secondary else None

    @property
    def far(self) -> bool:
        """True where a solve without a tolerance ended with an imbalance above 1e-2."""
        return self.outcome is Outcome.COMPLETED and self.imbalance > FAR_IMBALANCE

    @property
    def ok(self) -> bool:
        """True where the tolerance was met, or a fixed number of iterations ended near balance (an imbalance
        of at most 1e-2), no elements are inverted but those with which a motion began, and no surface has
        passed through another."""
        passed = any(contact is not None and contact.passed for contact in (self.contact, self.met))
        return self.outcome.ok and not self.far and not passed and self.inverted <= self.inverted_before

    @property
    def ending(self) -> str:
        """The outcome in few words: converged, or: converged, 15 inverted elements."""
        name = self.outcome.name.lower().replace("_", " ")
        return ", ".join([name, *(["far from balance"] if self.far else []), *self._inversions()])

    @property
    def sentence(self) -> str:
        """The outcome as a sentence, with the number of inverted elements."""
        return self.outcome.sentence("".join(self._inversions()), self.far)

    def _inversions(self) -> list[str]:
        return [counted(self.inverted, "inverted element")] if self.inverted else []

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON; the outcome appears as its name and as its sentence."""
        values = asdict(replace(self, certificate=None))
        values["certificate"] = self.certificate.to_dict() if self.certificate else None
        values["outcome"] = self.outcome.name.lower()
        values["sentence"], values["ending"] = self.sentence, self.ending
        values["ok"] = self.ok
        values["primary"], values["secondary"] = self.primary, self.secondary
        return values

    def _limit(self) -> str:
        """The limit, where it was what ended the solve."""
        return f" of {self.max_iterations:,} allowed" if self.outcome is Outcome.BUDGET_ITERATIONS else ""

    def __str__(self) -> str:
        lines = [
            self.sentence,
            f"  {self.solver}, {self.precision}, {counted(self.vertices, 'vertex', 'vertices')}, "
            f"{counted(self.elements, 'element')}",
            f"  iterations {self.iterations:,}{self._limit()}, {self.seconds:.3g} s"
            + (f" (+ {self.compile_seconds:.3g} s compiling)" if self.compile_seconds else ""),
            f"  imbalance {self.imbalance:.2e}, reduction {self.reduction:.2e}, energy {self.energy:.6g} J",
        ]
        if self.certificate is not None:
            lines.append(f"  {self.certificate}")
        if self.contact is not None:
            lines.append(f"  {self.contact}")
        if self.met is not None:
            lines.append(f"  {self.met}")
        if self.primary is not None:
            lines.append(
                f"  residuals of positions {self.primary:.2e} N, of multipliers {self.secondary:.2e}"
            )
        if self.rejected:
            lines.append(f"  rejected, since not finite: {counted(self.rejected, 'vertex step')}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])
