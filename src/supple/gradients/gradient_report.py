"""Gradient report: accuracy of the state, solution of the adjoint system."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from supple.support.text import pluralize

EXACT_RESIDUAL = 1e-8
"""Relative residual below which gradients are accurate to about five digits."""


class NoGradientError(ValueError):
    """The requested gradient does not exist."""


@dataclass
class GradientReport:
    """Accuracy and timings of one gradient.

    Attributes:
        relative_residual: Relative residual of the state at which it is taken.
        initial_relative_residual: Relative residual before the Newton steps.
        steps: Number of Newton steps.
        moved: Largest displacement of a vertex by them [m].
        linear_solver, iterations, residual: Solver of the adjoint system, its iterations and |H λ - b|/|b|.
        curvature: Smallest observed p · H p/|p|² [N/m].
        stable: True if no negative curvature was observed.
        contacts: Number of vertices in contact with obstacles, which count as constrained there.
        grazing: Number of these with a negligible contact force.
        seconds: Total time without compilation [s].
        adjoint_seconds: The same without Newton steps [s].
        notes: Sentences on limitations.
    """

    relative_residual: float
    initial_relative_residual: float
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
        """Return plain values, ready for JSON.

        Returns:
            Values by attribute name.
        """
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"Gradient at a relative residual of {self.relative_residual:.1e}, after "
            f"{pluralize(self.steps, 'Newton step')} "
            f"from {self.initial_relative_residual:.1e}",
            f"  {self.linear_solver}: {pluralize(self.iterations, 'iteration')}, residual "
            f"{self.residual:.1e}, "
            f"{self.adjoint_seconds:.3g} s of {self.seconds:.3g} s",
            f"  smallest curvature seen {self.curvature:.3g} N/m",
        ]
        return "\n".join(lines + [f"  {note}" for note in self.notes])
