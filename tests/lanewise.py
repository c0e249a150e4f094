"""Problems whose kernels run lane by lane."""

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.kernels.emulated_gpu import run_lanewise
from supple.kernels.simd.load_store import WARP
from supple.model.model import Model
from supple.problem import Cpu, Problem


def lanewise_problem(model: Model, precision: str, concurrent_batches: float | None = None) -> Problem:
    """A problem on the CPU with kernels that process one lane at a time, as CUDA threads do."""
    device = Cpu(model.vertices + 1, np.dtype(precision), threads=1)
    device.lanes, device.concurrent_batches = WARP, concurrent_batches

    def run(kernel: Callable, phases: int, *args: Any) -> None:
        run_lanewise(kernel, phases, np.zeros(1, np.int32), device.records, *args)

    device.run = run
    return Problem(model, precision, device=device)
