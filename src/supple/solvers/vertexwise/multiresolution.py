"""Coarse layers of cloth in device memory, and two methods that couple them to the cloth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import kernel, parallel_for, record_at, store_record
from supple.model.model import Model
from supple.ordering import VertexBatches, batch_vertices, color_bounds, widest_color
from supple.problem import Problem
from supple.problem.force_kernels import Forces
from supple.problem.loads import Loads, pad_vectors
from supple.problem.vertex_kernels import act, on_records
from supple.solvers.acceleration.acceleration import NoMemory
from supple.solvers.launch import run_iterations
from supple.solvers.pbng import Sweep, VertexUpdate
from supple.solvers.vertexwise.cloth_hierarchy import Layers, is_sheet
from supple.solvers.vertexwise.tied_groups import no_tied_groups
from supple.terms import Term


class CopyVectors(NamedTuple):
    """Copy u = other[stands]: padded vectors of vertices that stand for others."""

    u: Any
    other: Any
    represents: Any


@act.of(CopyVectors)
def _copy_vectors(operation, item, i):
    store_record(operation.u, i, record_at(operation.other, operation.represents[i]))


@kernel
def evaluate_forces(team, terms, vertices, u, anchor, net, sizes):
    """Write net forces of all vertices to `net`."""
    parallel_for(team, 0, 0, len(vertices.own), Forces(terms, vertices, u, anchor, net, sizes))


class Group:
    """Original vertices, or vertices of one layer: batches and loads."""

    def __init__(
        self, problem: Problem, model: Model, terms: tuple[Term, ...], own: np.ndarray, part: slice
    ) -> None:
        device, dtype = problem.device, problem.dtype
        self.device, self.part = device, part
        self.batches: VertexBatches = batch_vertices(terms, own, dtype, device.lanes, device.at_once)
        self.loads = Loads(model, self.batches, dtype, device)
        self.rejected = device.zeros((1, *self.loads.rows.inertia.shape), dtype)
        self._local_index = np.minimum(self.batches.own[:, 0] - part.start, part.stop - part.start)

    def set_force(self, force: np.ndarray) -> None:
        """Set the external forces (k, 3) [N] of the k vertices of the group."""
        rows = self.loads.rows.force
        rows[:] = np.swapaxes(pad_vectors(force)[self._local_index], -1, -2)
        self.device.upload(rows)


class Multiresolution(ABC):
    """Cloth with coarse layers.

    Attributes:
        seconds: Time of the construction of the layers [s].
    """

    def __init__(self, problem: Problem, layers: Layers, share: float, *binding: Term) -> None:
        self.problem, self.layers, self.share = problem, layers, share
        self.fine_terms, self.seconds = problem.model.terms, 0.0
        model, device = layers.model, problem.device
        own = (problem.model.terms, *(layer.terms for layer in layers.layers))
        self.groups = []
        for number, terms in enumerate(own):
            part = slice(*layers.first[number : number + 2].tolist())
            scaled_terms = (*(self._scale_stiffness(term) for term in terms), *binding)
            self.groups.append(Group(problem, model, scaled_terms, layers.member(number), part))
        shape = model.vertices + 1, problem.u.shape[1]
        self.u, self.anchor, self.constrained_at = (device.zeros(shape, problem.dtype) for _ in range(3))
        self.represents = np.append(layers.represents, problem.model.vertices)
        self._same = np.arange(problem.model.vertices + 1)
        for group in self.groups:
            group.loads.set_constrained(self.constrained_at)

    def _scale_stiffness(self, term: Any) -> Any:
        """Return a membrane with the stiffness fraction `share`; other terms are unchanged."""
        if self.share == 1 or not is_sheet(term):
            return term
        return term.scale_thickness(self.share)

    def begin(self) -> None:
        """Initialize all layers from the problem's state, forces and inertia."""
        loads = self.problem.loads
        self.force, self.inertia = (
            self.share * self.layers.spread(values) for values in (loads.force, loads.inertia)
        )
        for group in self.groups:
            group.loads.set_forces_and_inertia(self.force, self.inertia)
        states = self.problem.states
        pairs = [(self.u, states.u), (self.anchor, states.anchor)]
        if self.problem.model.constraint_projection is not None:
            pairs.append((self.constrained_at, states.constrained_at))
        for own, other in pairs:
            self._copy(CopyVectors(own, other, self.represents))

    def write_back(self) -> None:
        """Copy the displacements of the original vertices to the problem."""
        self._copy(CopyVectors(self.problem.u, self.u, self._same), but_last=True)

    def _copy(self, operation: CopyVectors, but_last: bool = False) -> None:
        """Execute a copy operation on the device."""
        count = len(operation.represents) - but_last
        self.problem.device.run(on_records, 1, (count,), (operation,))

    @abstractmethod
    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        """Sweep over the coarsest layer, then once over each finer layer and the original model.

        Args:
            coarse_sweeps: Number of sweeps over the coarsest layer.
            kappa: Factor κ of the effect of the layers on the cloth.
        """

    def sweep(self, number: int, count: int) -> None:
        """Sweep `count` times over layer `number`; number 0 is the original model."""
        p, group = self.problem, self.groups[number]
        batches, colors = group.batches, group.batches.color_start
        update = VertexUpdate(batches.terms, group.loads.rows, self.u, self.anchor, 1.0, group.rejected)
        tied_groups = p.get_shared("no tied groups", no_tied_groups)
        sweep = Sweep(update, colors, color_bounds(colors, 0), tied_groups, NoMemory(0), (), p.device.records)
        phases, widest = count * batches.colors, widest_color(colors)
        p.device.step(run_iterations, phases, sweep, count, widest=widest)

    def collect_rejected(self) -> int:
        """Return the number of rejected non-finite moves since the last call."""
        device, count = self.problem.device, 0
        for group in self.groups:
            device.download(group.rejected)
            count += int(group.rejected.sum())
            device.clear(group.rejected)
        return count


class BoundLayers(Multiresolution):
    """Layers coupled to the cloth by weak constraints, as in the paper.

    Args:
        problem: Problem with cloth.
        layers: Coarse layers.
        divided: True for the paper's printed method, which divides stiffness and loads between layers.
        binding: Factor of the stiffness of the weak constraints.
    """

    def __init__(self, problem: Problem, layers: Layers, divided: bool, binding: float) -> None:
        share = 1 / len(layers.counts) if divided else 1.0
        bound = replace(layers.binding, stiffness=binding * share * layers.binding.stiffness)
        super().__init__(problem, layers, share, bound)
        self._divided = divided
        self._stiffness = [group.batches.terms[-1].stiffness.copy() for group in self.groups]

    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        self._fade(kappa)
        self.sweep(len(self.groups) - 1, coarse_sweeps)
        for number in reversed(range(len(self.groups) - 1)):
            self.sweep(number, 1)

    def _fade(self, kappa: float) -> None:
        """Scale weak constraints of the cloth by κ; if `divided`, scale those and the loads of all layers."""
        device, groups = self.problem.device, self.groups if self._divided else self.groups[:1]
        for group, full_stiffness in zip(groups, self._stiffness, strict=False):
            now = group.batches.terms[-1].stiffness
            now[:] = kappa * full_stiffness
            device.upload(now)
        if self._divided:
            for group in self.groups[1:]:
                group.loads.set_forces_and_inertia(kappa * self.force, kappa * self.inertia)


class ProlongedLayers(Multiresolution):
    """Layers whose displacements are prolonged to the next finer layer.

    A layer starts at the state of the finer layer. Its load is the residual of the finer layer, distributed
    to its corners, minus its own internal forces at that state. It moves by the remaining correction only,
    which vanishes at convergence.
    """

    def __init__(self, problem: Problem, layers: Layers) -> None:
        super().__init__(problem, layers, 1.0)
        self.net, self.sizes = (problem.device.zeros(self.u.shape, problem.dtype) for _ in range(2))
        self._free = layers.model.free[:, None]
        self._parts = [group.part for group in self.groups]
        self._prolongation = [layer.spread.T.tocsr() for layer in layers.layers]

    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        device, layers = self.problem.device, self.layers.layers
        device.download(self.u)
        for number, layer in enumerate(layers, 1):
            span = self._parts[number]
            left = layer.spread @ self._forces(number - 1)
            self.u[span] = self.u[self._parts[number - 1]][layer.fine_vertex]
            self.anchor[span] = self.u[span]
            device.upload(self.u)
            device.upload(self.anchor)
            self.groups[number].set_force(np.zeros_like(left))
            self.groups[number].set_force(left - self._forces(number))
        self.sweep(len(layers), coarse_sweeps)
        for number in reversed(range(len(layers))):
            self._prolong(number, kappa)
            self.sweep(number, 1)

    def _forces(self, number: int) -> np.ndarray:
        """(k, 3) net forces of the vertices of a layer [N]."""
        group, device = self.groups[number], self.problem.device
        batches = group.batches
        device.run(
            evaluate_forces, 1, batches.terms, group.loads.rows, self.u, self.anchor, self.net, self.sizes
        )
        device.download(self.net)
        return self.net[self._parts[number], :3].astype(float)

    def _prolong(self, number: int, kappa: float) -> None:
        """Prolong the displacement of the next coarser layer to a layer."""
        device, span, next_one = self.problem.device, self._parts[number], self._parts[number + 1]
        device.download(self.u)
        moved = (self.u[next_one, :3] - self.anchor[next_one, :3]).astype(float)
        move = self._prolongation[number] @ moved
        self.u[span, :3] += (kappa * self._free[span] * move).astype(self.u.dtype)
        device.upload(self.u)
