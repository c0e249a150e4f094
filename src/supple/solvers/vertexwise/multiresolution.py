"""Coarse layers of cloth in device memory, and two ways to couple them to the cloth [PBNG section 8.2].

χ₀ is the cloth, groups[0]; χ₁, ..., χₙ are its layers, groups[1], ..., groups[n], from fine to coarse. An
iteration is `BoundLayers.iterate` or `CarriedLayers.iterate`; the header of mpbng.py has both.
"""

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
from supple.problem.vertex_kernels import apply_operation, apply_to_vectors
from supple.solvers.acceleration.acceleration import NoMemory
from supple.solvers.launch import run_iterations
from supple.solvers.pbng import Sweep, VertexUpdate
from supple.solvers.vertexwise.cloth_hierarchy import Layers, is_sheet
from supple.solvers.vertexwise.tied_group_moves import no_tied_groups
from supple.terms import Term


class CopyVectors(NamedTuple):
    """Copy padded vectors: u[i] = other[represents[i]]."""

    u: Any
    other: Any
    represents: Any


@apply_operation.of(CopyVectors)
def _copy_vectors(operation, item, i):
    store_record(operation.u, i, record_at(operation.other, operation.represents[i]))


@kernel
def evaluate_forces(team, terms, vertices, u, anchor, net, sizes):
    """Write net forces of all vertices to `net`."""
    parallel_for(team, 0, 0, len(vertices.own), Forces(terms, vertices, u, anchor, net, sizes))


class LayerVertices:
    """Batches and loads of the cloth or of one layer, whose vertices are `vertex_range` of all vertices."""

    def __init__(
        self, problem: Problem, model: Model, terms: tuple[Term, ...], own: np.ndarray, vertex_range: slice
    ) -> None:
        device, dtype = problem.device, problem.dtype
        self.device, self.vertex_range = device, vertex_range
        self.batches: VertexBatches = batch_vertices(
            terms, own, dtype, device.lanes, device.concurrent_batches
        )
        self.loads = Loads(model, self.batches, dtype, device)
        self.rejected = device.zeros((1, *self.loads.rows.inertia.shape), dtype)
        self._local_index = np.minimum(
            self.batches.own[:, 0] - vertex_range.start, vertex_range.stop - vertex_range.start
        )

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

    def __init__(self, problem: Problem, layers: Layers, stiffness_share: float, *binding: Term) -> None:
        self.problem, self.layers, self.stiffness_share = problem, layers, stiffness_share
        self.fine_terms, self.seconds = problem.model.terms, 0.0
        model, device = layers.model, problem.device
        own = (problem.model.terms, *(layer.terms for layer in layers.layers))
        self.groups = []
        for layer_index, terms in enumerate(own):
            vertex_range = slice(*layers.first[layer_index : layer_index + 2].tolist())
            scaled_terms = (*(self._scale_stiffness(term) for term in terms), *binding)
            self.groups.append(
                LayerVertices(problem, model, scaled_terms, layers.free_mask(layer_index), vertex_range)
            )
        shape = model.vertices + 1, problem.u.shape[1]
        self.u, self.anchor, self.constrained_at = (device.zeros(shape, problem.dtype) for _ in range(3))
        self.represents = np.append(layers.represents, problem.model.vertices)
        self._identity = np.arange(problem.model.vertices + 1)
        for group in self.groups:
            group.loads.set_constrained(self.constrained_at)

    def _scale_stiffness(self, term: Any) -> Any:
        """Return a membrane with the stiffness fraction `stiffness_share`; other terms are unchanged."""
        if self.stiffness_share == 1 or not is_sheet(term):
            return term
        return term.scale_thickness(self.stiffness_share)

    def begin(self) -> None:
        """Initialize all layers from the problem's state, forces and inertia."""
        loads = self.problem.loads
        self.force, self.inertia = (
            self.stiffness_share * self.layers.restrict(values) for values in (loads.force, loads.inertia)
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
        self._copy(CopyVectors(self.problem.u, self.u, self._identity), but_last=True)

    def _copy(self, operation: CopyVectors, but_last: bool = False) -> None:
        """Execute a copy operation on the device."""
        count = len(operation.represents) - but_last
        self.problem.device.run(apply_to_vectors, 1, (count,), (operation,))

    @abstractmethod
    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        """Sweep over the coarsest layer, then once over each finer layer and the original model.

        Args:
            coarse_sweeps: Number of sweeps over the coarsest layer.
            kappa: Factor κ of the effect of the layers on the cloth.
        """

    def sweep(self, layer_index: int, count: int) -> None:
        """Sweep `count` times over the layer χ of an index; χ₀ is the cloth with the rest of the model."""
        p, group = self.problem, self.groups[layer_index]
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
    """Layers coupled to the cloth by weak constraints [PBNG section 8.2].

    Args:
        problem: Problem with cloth.
        layers: Coarse layers.
        divided: True for the paper's printed method, which divides stiffness, mass and loads between layers.
        binding_factor: Factor of the stiffness of the weak constraints.
    """

    def __init__(self, problem: Problem, layers: Layers, divided: bool, binding_factor: float) -> None:
        stiffness_share = 1 / len(layers.counts) if divided else 1.0
        stiffness = binding_factor * stiffness_share * layers.binding.stiffness
        bound = replace(layers.binding, stiffness=stiffness)
        super().__init__(problem, layers, stiffness_share, bound)
        self._divided = divided
        self._stiffness = [group.batches.terms[-1].stiffness.copy() for group in self.groups]

    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        self._scale_by_kappa(kappa)
        self.sweep(len(self.groups) - 1, coarse_sweeps)
        for layer_index in reversed(range(len(self.groups) - 1)):
            self.sweep(layer_index, 1)

    def _scale_by_kappa(self, kappa: float) -> None:
        """Scale the weak constraints of the cloth by κ.

        With divided coupling, also scale the weak constraints, forces and inertia of the coarse layers
        χ₁, ..., χₙ.
        """
        device, groups = self.problem.device, self.groups if self._divided else self.groups[:1]
        for group, full_stiffness in zip(groups, self._stiffness, strict=False):
            now = group.batches.terms[-1].stiffness
            now[:] = kappa * full_stiffness
            device.upload(now)
        if self._divided:
            for group in self.groups[1:]:
                group.loads.set_forces_and_inertia(kappa * self.force, kappa * self.inertia)


class CarriedLayers(Multiresolution):
    """Layers whose corrections are prolonged to the next finer layer.

    Full approximation scheme of a two-grid cycle: inject u, restrict the net forces f, load the layer by τ =
    restricted f - f_layer(u), sweep, prolong κ Δu. The correction Δu vanishes at convergence.
    """

    def __init__(self, problem: Problem, layers: Layers) -> None:
        super().__init__(problem, layers, 1.0)
        self.net, self.sizes = (problem.device.zeros(self.u.shape, problem.dtype) for _ in range(2))
        self._free = layers.model.free[:, None]
        self._vertex_ranges = [group.vertex_range for group in self.groups]
        self._prolongation = [layer.restriction.T.tocsr() for layer in layers.layers]

    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        device, layers = self.problem.device, self.layers.layers
        device.download(self.u)
        for layer_index, layer in enumerate(layers, 1):
            vertex_range = self._vertex_ranges[layer_index]
            restricted_forces = layer.restriction @ self._forces(layer_index - 1)
            self.u[vertex_range] = self.u[self._vertex_ranges[layer_index - 1]][layer.fine_vertex]
            self.anchor[vertex_range] = self.u[vertex_range]
            device.upload(self.u)
            device.upload(self.anchor)
            self.groups[layer_index].set_force(np.zeros_like(restricted_forces))
            self.groups[layer_index].set_force(restricted_forces - self._forces(layer_index))
        self.sweep(len(layers), coarse_sweeps)
        for layer_index in reversed(range(len(layers))):
            self._prolong(layer_index, kappa)
            self.sweep(layer_index, 1)

    def _forces(self, layer_index: int) -> np.ndarray:
        """(k, 3) net forces of the vertices of a layer [N]."""
        group, device = self.groups[layer_index], self.problem.device
        batches = group.batches
        device.run(
            evaluate_forces, 1, batches.terms, group.loads.rows, self.u, self.anchor, self.net, self.sizes
        )
        device.download(self.net)
        return self.net[self._vertex_ranges[layer_index], :3].astype(float)

    def _prolong(self, layer_index: int, kappa: float) -> None:
        """Prolong κ times the correction of the next coarser layer to a layer."""
        device, fine_range = self.problem.device, self._vertex_ranges[layer_index]
        coarse_range = self._vertex_ranges[layer_index + 1]
        device.download(self.u)
        correction = (self.u[coarse_range, :3] - self.anchor[coarse_range, :3]).astype(float)
        prolonged = self._prolongation[layer_index] @ correction
        self.u[fine_range, :3] += (kappa * self._free[fine_range] * prolonged).astype(self.u.dtype)
        device.upload(self.u)
