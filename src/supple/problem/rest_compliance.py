"""Stiffness of the vertices of a problem at rest, evaluated by the force kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.kernels import RECORD, kernel, member_of, number_at, vector_offset
from supple.problem.reductions import STATISTICS, Cuts
from supple.problem.vertex_kernels import apply_operation, for_each

if TYPE_CHECKING:
    from supple.problem.problem import Problem

MIN_TRACE = 1e-30
"""Lower bound of tr A [N/m] in divisions; unconnected vertices have tr A = 0."""


class ComputeCompliance(NamedTuple):
    """Compliance 1/(tr A + 3 k) of the vertices.

    Attributes:
        sizes: Padded vectors with tr A + 3 k₀ at rest as second number.
        free: (n,) 0 for vertices whose tr A counts as zero.
        before: (n,) inertia k₀ contained in `sizes` [N/m].
        now: (n,) present inertia k [N/m].
        softness: (material sets, n) result [m/N].
    """

    sizes: Any
    free: Any
    before: Any
    now: Any
    softness: Any


@apply_operation.of(ComputeCompliance)
def _compute_compliance(work, item, i):
    trace = 1.0 * number_at(work.sizes, RECORD * (i + vector_offset(item)) + 1)  # 1.0 makes it float64
    rest = trace - 3.0 * work.before[i] if work.free[i] != 0 else 0.0
    work.softness[member_of(item), i] = 1.0 / max(rest + 3.0 * work.now[i], MIN_TRACE)


@kernel
def compute_compliance(team, work):
    for_each(team, 0, (len(work.now),), (work,))


def allocate_statistics(problem: Problem, cuts: Cuts, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Allocate the reduction arrays per block and per body for `reduce_statistics`."""
    parts, bodies, number = len(cuts.vertex) - 1, len(cuts.part) - 1, np.dtype(float)
    zeros = problem.device.zeros
    return zeros((batch_size, STATISTICS, parts), number), zeros((batch_size, bodies, STATISTICS), number)


@contextmanager
def _preserve_forces(problem: Problem) -> Iterator[None]:
    """Restore the net forces and obstacle reactions on exit."""
    device, planes = problem.device, problem.contacts.planes
    forces = [problem.states.net, *([planes.reaction] if planes else [])]
    saved = [device.zeros(array.shape, array.dtype) for array in forces]
    for array, backup in zip(forces, saved, strict=True):
        device.assign(backup, array)
    yield
    for array, backup in zip(forces, saved, strict=True):
        device.assign(array, backup)


class RestCompliance:
    """Stiffness and compliance at rest of every material set in the batch.

    Results that are needed at every convergence check stay in device memory.

    Args:
        problem: Problem to evaluate.
        cuts: Blocks of the reductions.
        evaluate: Called as evaluate(u, sizes, softness, *statistics), see `Diagnostics`.
    """

    def __init__(self, problem: Problem, cuts: Cuts, evaluate: Callable[..., None]) -> None:
        self._problem, self._cuts, self._evaluate = problem, cuts, evaluate
        self._inertia_of_softness: np.ndarray | None = None

    def invalidate(self) -> None:
        """Discard the results after a change of stencils."""
        for name in ("_sizes", "stiffness", "norms"):
            self.__dict__.pop(name, None)
        self._inertia_of_softness = None

    @contextmanager
    def _one_per_material_set(self) -> Iterator[None]:
        """Activate one batch member of each material set."""
        device = self._problem.device
        device.wait()  # pending kernels are for the present active set
        active, device.active = device.active, np.arange(self._problem.material_batch_size, dtype=np.int32)
        try:
            yield
        finally:
            device.active = active

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Padded vectors of s and tr A, and the inertia (n,) [N/m] contained in tr A."""
        p, (softness, _) = self._problem, self._softness
        u, sizes = (p.zeros((p.material_batch_size * (p.model.vertices + 1), RECORD)) for _ in range(2))
        with self._one_per_material_set(), _preserve_forces(p):
            self._evaluate(u, sizes, softness, *allocate_statistics(p, self._cuts, p.material_batch_size))
        return sizes, p.loads.inertia

    @cached_property
    def stiffness(self) -> np.ndarray:
        """(material sets, n) tr A of every vertex without inertia [N/m]; 0 for pinned vertices."""
        p, (sizes, inertia) = self._problem, self._sizes
        p.device.download(sizes)
        traces = sizes.reshape(p.material_batch_size, p.model.vertices + 1, RECORD)[:, :-1, 1].astype(float)
        return np.where(p.model.free, traces - 3 * inertia, 0)

    @cached_property
    def norms(self) -> np.ndarray:
        """(material sets,) |tr A| [N/m]."""
        norms: np.ndarray = np.sqrt(np.square(self.stiffness).sum(axis=1))
        return norms

    @cached_property
    def _softness(self) -> tuple[np.ndarray, np.ndarray]:
        """Memory for 1 / tr A (material sets, n), and a mask of the free vertices (n,)."""
        p = self._problem
        return p.zeros((p.material_batch_size, p.model.vertices)), p.model.free.astype(np.int32)

    def softness(self, update: bool) -> np.ndarray:
        """Compliance 1 / tr A with the present inertia.

        Args:
            update: False to return the array without an update.

        Returns:
            (material sets, n) compliance [m/N].
        """
        inertia, (softness, free) = self._problem.loads.inertia, self._softness
        if update and self._inertia_of_softness is not inertia:
            sizes, before = self._sizes
            with self._one_per_material_set():
                self._problem.device.run(
                    compute_compliance, 1, ComputeCompliance(sizes, free, before, inertia, softness)
                )
            self._inertia_of_softness = inertia
        return softness
