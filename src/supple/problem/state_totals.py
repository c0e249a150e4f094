"""Sums over elements or vertices of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.kernels import kernel
from supple.problem.force_kernels import evaluate_elements
from supple.problem.reductions import PARTS, add_up

if TYPE_CHECKING:
    from supple.problem.problem import Problem


@kernel
def add_values(team, values, parts, sums):
    add_up(team, 0, values, parts, sums)


Memory = tuple[np.ndarray, np.ndarray, np.ndarray]


class Totals:
    """Sums of kernel results over the active batch members, in float64; work memory is reused."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._memory: dict[tuple[int, int], Memory] = {}

    def of(self, quantity: Any, own: np.ndarray) -> np.ndarray:
        """(batch, 1) sum of a quantity over elements."""
        return self.total(evaluate_elements, 1, own, quantity, own, self._problem.u)

    def total(self, kernel: Callable[..., None], fields: int, own: np.ndarray, *args: Any) -> np.ndarray:
        """(batch, fields) sums of the values that a kernel writes for all lanes of `own`."""
        *_, sums = self.evaluate(kernel, fields, own, *args)
        self._problem.device.download(sums)
        return sums.copy()

    def sum_values(self, values: np.ndarray) -> np.ndarray:
        """(batch, fields) sums of values (batch, rows, fields, lanes) in device memory."""
        batch_size, _, fields, _ = values.shape
        key = id(values), fields
        if key not in self._memory:
            self._memory[key] = values, np.zeros((batch_size, fields, PARTS)), np.zeros((batch_size, fields))
        *_, sums = self._memory[key]
        self._problem.device.run(add_values, 2, *self._memory[key])
        self._problem.device.download(sums)
        return sums.copy()

    def evaluate(self, kernel: Callable[..., None], fields: int, own: np.ndarray, *args: Any) -> Memory:
        """Run a kernel and sum its values.

        Args:
            kernel: Kernel that writes values and sums.
            fields: Values per lane.
            own: Vertices or elements, one row per packed row of values.
            args: Further arguments of the kernel.

        Returns:
            Values (batch, rows, fields, lanes), sums of blocks, and sums (batch, fields).
        """
        p = self._problem
        memory = self._memory.get((id(own), fields))
        if memory is None:
            values = p.zeros((p.batch_size, len(own), fields, p.device.lanes))
            sums = np.zeros((p.batch_size, fields, PARTS)), np.zeros((p.batch_size, fields))
            memory = self._memory[id(own), fields] = values, *sums
        p.device.run(kernel, 3, *args, *memory)
        return memory
