"""Successive over-relaxation within sweeps, and between sweeps [PBNG section 7.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supple.problem import Problem
from supple.solvers.acceleration.acceleration import Acceleration, Unaccelerated
from supple.solvers.acceleration.chebyshev import Chebyshev, ChebyshevRun
from supple.support.arguments import check_number
from supple.support.keywords import suggest_keywords


@suggest_keywords
@dataclass(frozen=True)
class SOR(Acceleration):
    """Textbook over-relaxation of Gauss-Seidel: scales each vertex step by omega within the sweep.

    Args:
        omega: Relaxation factor, between 0 and 2; 1 is Gauss-Seidel.
    """

    kind: ClassVar[str] = "sor"

    omega: float = 1.7

    def __post_init__(self) -> None:
        check_number("omega", self.omega, above=0, below=2)

    @property
    def relaxation(self) -> float:
        return float(self.omega)

    def begin(self, problem: Problem) -> Unaccelerated:
        return Unaccelerated()


@suggest_keywords
@dataclass(frozen=True)
class PaperSOR(Acceleration):
    """The paper's SOR [PBNG section 7.3]: after a sweep, xˡ⁺¹ = ω (x_PBNG - xˡ⁻¹) + xˡ⁻¹.
    xˡ⁻¹ is the state before the previous sweep. This equals Chebyshev with constant ω and γ = 1.

    Args:
        omega: Relaxation factor ω, between 0 and 2.
    """

    kind: ClassVar[str] = "paper_sor"

    omega: float = 1.7

    def __post_init__(self) -> None:
        check_number("omega", self.omega, above=0, below=2)

    def begin(self, problem: Problem) -> TwoStepRun:
        return TwoStepRun(self, problem)

    def memory(self, vertices: int, number: int) -> int:
        return Chebyshev().memory(vertices, number)


class TwoStepRun(ChebyshevRun):
    """Chebyshev run with constant weight ω from the second sweep on.

    If the residual grows by `RESTART_GROWTH`, the weights restart with ω half as far from 1.
    """

    label = "SOR"

    def __init__(self, options: PaperSOR, problem: Problem) -> None:
        super().__init__(Chebyshev(rho=0.0, gamma=1.0, first_iteration=0), problem)
        self.rho[:] = options.omega

    def _omegas(self, rho: float, sweep: int, count: int) -> list[float]:
        return [1.0 if k == 0 else rho for k in range(sweep, sweep + count)]

    def _reduce_acceleration(self, member: int) -> None:
        self.rho[member] = 0.5 * (self.rho[member] + 1.0)
