"""Backend of computations: device, precision and threads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supple.kernels.devices import DEVICES, check_device
from supple.support.arguments import check_choice, check_thread_count
from supple.support.keywords import suggest_keywords

if TYPE_CHECKING:
    from supple.solvers import Solver

PRECISIONS = ("float32", "float64")
"""Names of the supported precisions."""


@suggest_keywords
@dataclass(frozen=True)
class Backend:
    """Device, precision and threads of a computation.

    Attributes:
        device: "cpu" or "cuda".
        precision: "float32" or "float64", of positions and forces. Residuals are always summed in float64.
        threads: Number of CPU threads, all cores by default. The limit is 64, or four per core if that is
            more.

    Raises:
        ValueError: A setting is unknown or out of range.
    """

    device: str = "cpu"
    precision: str = "float64"
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("device", self.device, DEVICES)
        check_choice("precision", self.precision, PRECISIONS)
        check_thread_count(self.threads)

    def check_available(self) -> None:
        """Check that the device is available.

        Raises:
            ValueError: The device is not available.
        """
        check_device(self.device)

    def fallback_for(self, solver: Solver) -> Backend:
        """Backend for a solver: device or precision are replaced if the solver does not support them.

        Args:
            solver: Solver.

        Returns:
            These settings with the first supported device and the last supported precision as replacements.
        """
        device = self.device if self.device in solver.devices else solver.devices[0]
        precision = self.precision if self.precision in solver.precisions else solver.precisions[-1]
        return replace(self, device=device, precision=precision)
