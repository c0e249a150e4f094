"""Problems on the device of one thread."""

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.kernels.access import WARP
from supple.kernels.lanewise import run_lanewise
from supple.model import Model
from supple.solvers.problem import Problem


class LanewiseProblem(Problem):
    def __init__(self, model: Model, precision: str, at_once: float | None = None) -> None:
        super().__init__(model, precision, threads=1, lanes=WARP, at_once=at_once)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        run_lanewise(kernel, phases, np.zeros(1, np.int32), self.model.vertices + 1, *args)
