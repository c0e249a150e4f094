"""External forces and inertia on the free vertices."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from supple.kernels import kernel
from supple.model.model import Model
from supple.ordering import VertexBatches
from supple.ordering.batch_moves import write_lanes
from supple.problem.device import Device, on_shared_data
from supple.problem.dirichlet_rows import ConstrainedRows, batch_normals, normals_of
from supple.problem.force_kernels import VertexRows

NO_INERTIA = 1e-30
"""Inertia of lanes without a vertex [N/m]; makes their steps zero."""


def pad_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., n, 3) with a zero for the padding vertex n."""
    return np.concatenate([vectors, np.zeros((*vectors.shape[:-2], 1, 3))], axis=-2)


class Loads:
    """External forces and inertia.

    Attributes:
        force: (n, 3) forces [N], or (batch, n, 3) if they differ.
        inertia: (n,) k = m/Δt² [N/m], 0 in quasistatics.
        rows: Both, packed by vertex batches in device memory.
        acting: (batch or 1, bodies) True if forces act on free vertices of the body.
        changes: Number of changes of forces or inertia.
    """

    def __init__(self, model: Model, batches: VertexBatches, dtype: np.dtype, device: Device) -> None:
        self.model, self.dtype, self.device = model, dtype, device
        self.inertia = np.zeros(model.vertices)
        self.force = model.force
        self.changes = 0
        self.lay_out(batches)
        self.set(model.force)
        self._acting: tuple | None = None if model.varying else ((), None)

    def lay_out(self, batches: VertexBatches, blocks: int = 1) -> None:
        """Allocate the packed arrays for new vertex batches."""
        self._own = batches.own
        self.rows = VertexRows(batches.own, batches.width, np.empty(0), self._inertia_by_batch(self._own))
        self.resize(blocks)
        self.rows.force[:] = self._force_by_batch(self._own)

    def update_lanes(self, slots: np.ndarray) -> None:
        """Update the packed data of reassigned lanes; `slots` (k, 3) are batch, lane and vertex."""
        if not len(slots):
            return
        v, rows = slots[:, 2], self.rows
        force = np.empty((len(rows.force), len(v), 3), self.dtype)
        inertia = np.empty((len(v), 1), self.dtype)
        _gather(v, self.force.reshape(-1, *self.force.shape[-2:]), self.inertia, NO_INERTIA, force, inertia)
        arrays: tuple = (rows.force, rows.inertia)
        values: tuple = (force, inertia)
        if rows.constrained:
            arrays += (rows.constrained.normal,)
            values += (self._normals[v].astype(self.dtype),)
        with on_shared_data(self.device):
            self.device.run(write_lanes, 1, arrays, values, slots)

    @cached_property
    def _normals(self) -> np.ndarray:
        return normals_of(self.model)

    def resize(self, blocks: int) -> None:
        """Allocate packed forces: `blocks` is the batch size, or 1 for shared forces."""
        shape = blocks, len(self._own), 3, self._own.shape[-1]
        if self.rows.force.shape != shape:
            self.rows = self.rows._replace(force=np.zeros(shape, self.dtype))

    def set_constrained(self, records: np.ndarray) -> None:
        """Set the padded vectors of prescribed coordinates, `States.constrained_at`."""
        if self.model.constraint_projection is not None and (
            not self.rows.constrained or self.rows.constrained.at is not records
        ):
            constrained = ConstrainedRows(batch_normals(self.model, self._own, self.dtype), records)
            self.rows = self.rows._replace(constrained=constrained)

    def set_contact_planes(self, planes: Any) -> None:
        """Set the contact planes, `Contacts.planes`."""
        self.rows = self.rows._replace(contact=planes)

    def set_step_bounds(self, step_bounds: Any) -> None:
        """Set the step bounds, `TrustRegion.step_bounds`."""
        self.rows = self.rows._replace(step_bounds=step_bounds)

    def set(self, force: np.ndarray) -> None:
        """Set the external forces (n, 3), or (batch, n, 3) after `resize` [N]."""
        self.force, self._acting = force, None
        self.changes += 1
        self.acting = np.atleast_2d(self.model.loaded_bodies(force))
        self.rows.force[:] = self._force_by_batch(self._own)
        self.device.upload(self.rows.force)

    def set_time(self, time: float, extra: np.ndarray | None = None) -> None:
        """Set the external forces of the model at a given time.

        Args:
            time: Time [s].
            extra: (n, 3) additional forces [N]. The array must not change afterwards.
        """
        fractions = self.model.fractions_at(time)
        if self._acting is None or self._acting[0] != fractions or self._acting[1] is not extra:
            force = self.model.force_of(fractions)
            self.set(force if extra is None else force + extra)
            self._acting = fractions, extra

    def set_time_step(self, dt: float) -> None:
        """Set k = m/Δt² for a step size [s], see `Model.inertia`."""
        self.changes += 1
        self.inertia = self.model.inertia(dt)
        self.rows.inertia[:] = self._inertia_by_batch(self._own)
        self.device.upload(self.rows.inertia)

    def copy_from(self, other: Loads, member: int = 0) -> None:
        """Copy forces and inertia of one batch member of another problem."""
        self.set_forces_and_inertia(
            other.force if other.force.ndim == 2 else other.force[member], other.inertia
        )

    def set_forces_and_inertia(self, force: np.ndarray, inertia: np.ndarray) -> None:
        """Set forces (n, 3) [N] and inertia (n,) [N/m]."""
        self.set(force)
        if self.inertia is not inertia:
            self.changes += 1
            self.inertia = inertia
            self.rows.inertia[:] = self._inertia_by_batch(self._own)
            self.device.upload(self.rows.inertia)

    def _force_by_batch(self, own: np.ndarray) -> np.ndarray:
        """Packed forces (batches, 3, lanes), or one such block per batch member."""
        return np.swapaxes(pad_vectors(self.force)[..., own[:, 0], :], -1, -2)

    def _inertia_by_batch(self, own: np.ndarray) -> np.ndarray:
        return np.append(self.inertia, NO_INERTIA)[own].astype(self.dtype)

    @property
    def any(self) -> bool:
        """True if any external force or inertia is nonzero."""
        return bool(self.acting.any() or self.inertia.any())


@kernel
def _gather(vertices, by_vertex, inertia_by_vertex, none, force, inertia):
    """Gather forces and inertia of vertices; indices beyond the last vertex are padding."""
    for k in range(len(vertices)):
        v = vertices[k]
        exists = v < len(inertia_by_vertex)
        inertia[k, 0] = inertia_by_vertex[v] if exists else none
        for block in range(len(force)):
            for axis in range(3):
                force[block, k, axis] = by_vertex[min(block, len(by_vertex) - 1), v, axis] if exists else 0.0


def share_or_stack(forces: list[np.ndarray]) -> Any:
    """Return the shared array if all are the same object, otherwise the stacked arrays (batch, n, 3)."""
    return forces[0] if all(force is forces[0] for force in forces) else np.stack(forces)
