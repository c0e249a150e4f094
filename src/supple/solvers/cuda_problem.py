"""A problem whose arrays live on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.kernels.cuda import Mirror, launch, measure, require_device
from supple.model import Model
from supple.solvers.problem import Balance, Problem, evaluate_balance

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

    def balance(self) -> Balance:
        """The same figures as on the CPU, measured on the device."""
        m = self._mirror.of
        if not hasattr(self, "_device_sizes"):
            stiffness = self._rest_stiffness + 3 * self.vertices.inertia[:, 0]
            self._softness = 1 / np.maximum(stiffness, 1e-30)
            self._device_sizes = np.empty((len(self.vertices.own), 2, self.lanes), self.dtype)
        self.run(
            evaluate_balance, 1, self.terms, self.vertices, self.u, self.anchor, self.net, self._device_sizes
        )
        r2, s2, a2, reach, ratio = measure(m(self.net), m(self._device_sizes), m(self._softness), m(self.u))
        length = float(np.finfo(self.dtype).eps) * (reach + self._edge)
        at_rest = not self._loaded and ratio <= 4 * length
        return Balance(math.sqrt(r2), math.sqrt(s2), length * math.sqrt(a2), at_rest)

    def set_inertia(self, dt: float, anchor: np.ndarray) -> None:
        super().set_inertia(dt, anchor)
        self.__dict__.pop("_device_sizes", None)
