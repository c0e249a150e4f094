"""Successive over-relaxation of a sweep [PBNG section 7.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supple.checks import one_number
from supple.problem import Problem
from supple.solvers.acceleration.acceleration import Acceleration, Unaccelerated


@dataclass(frozen=True)
class SOR(Acceleration):
    """Every vertex goes omega times its step, above 1 further than it would by itself; 1.7 as in the
    paper."""

    kind: ClassVar[str] = "sor"

    omega: float = 1.7

    def __post_init__(self) -> None:
        one_number("omega", self.omega, above=0, below=2)

    @property
    def relaxation(self) -> float:
        return float(self.omega)

    def begin(self, problem: Problem) -> Unaccelerated:
        return Unaccelerated()
