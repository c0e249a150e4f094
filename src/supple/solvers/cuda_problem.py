"""A problem whose arrays live on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.kernels.cuda import Mirror, launch, require_device
from supple.model import Model
from supple.solvers.problem import Problem

LANES = 4
"""Vertices that a warp works on at the same time, with eight threads each."""


class CudaProblem(Problem):
    """The potential of one step on a CUDA device. Host arrays are mirrored there on first use; what kernels
    write stays there until it is pulled."""

    device = "cuda"

    def __init__(self, model: Model, precision: str) -> None:
        self.card = require_device()
        self._mirror = Mirror()
        super().__init__(model, precision, threads=1, lanes=LANES)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        launch(kernel, self.lanes, *(self._mirror.of(arg) for arg in args))

    def pull(self, array: np.ndarray) -> None:
        self._mirror.pull(array)

    def push(self, array: np.ndarray) -> None:
        self._mirror.push(array)

    def assign(self, target: np.ndarray, source: np.ndarray) -> None:
        self._mirror.assign(target, source)
