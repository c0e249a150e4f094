"""What a gradient says of itself: how exact the state is, and how the adjoint system was solved."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from supple.words import counted

EXACT = 1e-8
"""The imbalance from which on gradients are good to about five digits."""


class NoGradientError(ValueError):
    """There is no gradient where it was asked for."""


@dataclass
class GradientReport:
    """The figures of one gradient.

    imbalance: of the state at which it is taken, after `steps` Newton steps from the imbalance `before`,
    which moved no vertex further than `moved` [m]. linear_solver, iterations and residual |H λ - b|/|b| of
    the adjoint system. curvature: the smallest p · H p/|p|² [N/m] that was seen; stable: whether none was
    negative. contacts: how many vertices obstacles push, which count as held there, and grazing: how many of
    these hardly. seconds: all of it, adjoint_seconds: without the Newton steps; both without compilation.
    """

    imbalance: float
    before: float
    steps: int
    moved: float
    linear_solver: str
    iterations: int
    residual: float
    curvature: float
    stable: bool
    contacts: int = 0
    grazing: int = 0
    seconds: float = 0.0
    adjoint_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"Gradient at an imbalance of {self.imbalance:.1e}, after {counted(self.steps, 'Newton step')} "
            f"from {self.before:.1e}",
            f"  {self.linear_solver}: {counted(self.iterations, 'iteration')}, residual {self.residual:.1e}, "
            f"{self.adjoint_seconds:.3g} s of {self.seconds:.3g} s",
            f"  smallest curvature seen {self.curvature:.3g} N/m",
        ]
        return "\n".join(lines + [f"  {note}" for note in self.notes])
