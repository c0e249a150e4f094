"""Where and how to compute: the one list of devices, precisions and threads, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supple.checks import one_of, thread_count
from supple.kernels.device import DEVICES, check_device

if TYPE_CHECKING:
    from supple.solvers import Solver

PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Compute:
    """device: "cpu" or "cuda". precision: "float32" or "float64", of positions and forces; residuals are
    summed up in float64 always. threads: of the CPU, all cores unless given; at most 64, or four for each
    core where that is more."""

    device: str = "cpu"
    precision: str = "float64"
    threads: int | None = None

    def __post_init__(self) -> None:
        one_of("device", self.device, DEVICES)
        one_of("precision", self.precision, PRECISIONS)
        thread_count(self.threads)

    def refuse_absent(self) -> None:
        """Refuse a device for which the packages are not installed."""
        check_device(self.device)

    def suited_to(self, solver: Solver) -> Compute:
        """This, or what a solver can do in place of it: another device, another precision."""
        device = self.device if self.device in solver.devices else solver.devices[0]
        precision = self.precision if self.precision in solver.precisions else solver.precisions[-1]
        return replace(self, device=device, precision=precision)
