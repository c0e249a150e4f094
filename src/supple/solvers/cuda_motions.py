"""Several motions of one model on a CUDA device, which go from step to step together."""

from __future__ import annotations

import numpy as np

from supple.kernels import RECORD
from supple.model import Conditions, Model
from supple.solvers.cuda_batch import CudaBatch


class CudaMotions(CudaBatch):
    """The potentials of the present steps of several motions. Positions, velocities and forces have a leading
    axis, one block for each copy; pinned positions may have one."""

    def __init__(self, model: Model, precision: str, copies: int) -> None:
        super().__init__(model, precision, [Conditions(model.rest[model.pinned], model.force)] * copies)
        self.anchor, self.last, self.velocity = (np.zeros_like(self.u) for _ in range(3))
        one = self._at_targets.slot
        first = np.arange(copies)[:, None] * len(model.pinned)
        slot = np.where(one < 0, -1, one + first).ravel()
        self._targets = np.zeros((copies * len(model.pinned), RECORD), self.dtype)
        self._at_targets = self._at_targets._replace(slot=slot, targets=self._targets)
        force = np.broadcast_to(self.vertices.force, (copies, *self.vertices.force.shape[1:]))
        self.vertices = self.vertices._replace(force=force.copy())
        self.force, self._acting = model.force, None if model.varying else ((), None)
        self._upload()

    def set_force(self, force: np.ndarray) -> None:
        super().set_force(force)
        self._loads = np.broadcast_to(self.model.is_loaded(force), self.copies)

    @property
    def positions(self) -> np.ndarray:
        """(copies, n, 3) float64."""
        return self.model.rest + self.vectors(self.u)

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self._vectors(self.u)[:] = positions - self.model.rest
        self.push(self.u)

    def _vectors(self, records: np.ndarray) -> np.ndarray:
        return records.reshape(self.copies, -1, RECORD)[:, :-1, :3]
