"""Layers of cloth where kernels see them, and the two ways in which they lead the cloth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import each_item, kernel, put_record, record_at
from supple.model import Model
from supple.ordering import VertexBatches, batch_vertices, colour_bounds, widest_colour
from supple.problem import Problem
from supple.problem.evaluation import Forces
from supple.problem.loads import Loads, padded
from supple.problem.records import act, on_records
from supple.solvers.acceleration.acceleration import NoMemory
from supple.solvers.iterating import iterations
from supple.solvers.pbng import Sweep, Visit
from supple.solvers.vertices.layers import Layers, is_sheet
from supple.solvers.vertices.links import no_links
from supple.terms import Term


class Stand(NamedTuple):
    """u = other[stands]: records of vertices that stand for those of another."""

    u: Any
    other: Any
    stands: Any


@act.of(Stand)
def _stand(operation, place, i):
    put_record(operation.u, i, record_at(operation.other, operation.stands[i]))


@kernel
def evaluate_forces(team, terms, vertices, u, anchor, net, sizes):
    """Net forces of the vertices of all batches into the records `net`."""
    each_item(team, 0, 0, len(vertices.own), Forces(terms, vertices, u, anchor, net, sizes))


class Group:
    """The vertices of one layer, or those of the model: their batches, and what acts on them."""

    def __init__(
        self, problem: Problem, model: Model, terms: tuple[Term, ...], own: np.ndarray, part: slice
    ) -> None:
        device, dtype = problem.device, problem.dtype
        self.device, self.part = device, part
        self.batches: VertexBatches = batch_vertices(terms, own, dtype, device.lanes, device.at_once)
        self.loads = Loads(model, self.batches, dtype, device)
        self.rejected = device.zeros((1, *self.loads.rows.inertia.shape), dtype)
        self._place = np.minimum(self.batches.own[:, 0] - part.start, part.stop - part.start)

    def push(self, force: np.ndarray) -> None:
        """Let forces (k, 3) [N] act on its vertices, of which there are k."""
        rows = self.loads.rows.force
        rows[:] = np.swapaxes(padded(force)[self._place], -1, -2)
        self.device.push(rows)


class Multiresolution(ABC):
    """The layers of a problem; seconds: what it took to make them."""

    def __init__(self, problem: Problem, layers: Layers, share: float, *binding: Term) -> None:
        self.problem, self.layers, self.share = problem, layers, share
        self.known, self.seconds = problem.model.terms, 0.0
        model, device = layers.model, problem.device
        own = (problem.model.terms, *(layer.terms for layer in layers.layers))
        self.groups = []
        for number, terms in enumerate(own):
            part = slice(*layers.first[number : number + 2].tolist())
            thinner = (*(self._thinner(term) for term in terms), *binding)
            self.groups.append(Group(problem, model, thinner, layers.member(number), part))
        shape = model.vertices + 1, problem.u.shape[1]
        self.u, self.anchor, self.held_at = (device.zeros(shape, problem.dtype) for _ in range(3))
        self.stands = np.append(layers.stands, problem.model.vertices)
        self._same = np.arange(problem.model.vertices + 1)
        for group in self.groups:
            group.loads.hold_at(self.held_at)

    def _thinner(self, term: Any) -> Any:
        """A membrane that has a share of its stiffness; other terms as they are."""
        if self.share == 1 or not is_sheet(term):
            return term
        return term.thinner(self.share)

    def begin(self) -> None:
        """Where the problem is, under its forces and with its inertia."""
        loads = self.problem.loads
        self.force, self.inertia = (
            self.share * self.layers.spread(found) for found in (loads.force, loads.inertia)
        )
        for group in self.groups:
            group.loads.use(self.force, self.inertia)
        states = self.problem.states
        pairs = [(self.u, states.u), (self.anchor, states.anchor)]
        if self.problem.model.held is not None:
            pairs.append((self.held_at, states.held_at))
        for own, other in pairs:
            self._copy(Stand(own, other, self.stands))

    def bring_back(self) -> None:
        """Let the problem be where the first of the vertices are."""
        self._copy(Stand(self.problem.u, self.u, self._same), but_last=True)

    def _copy(self, operation: Stand, but_last: bool = False) -> None:
        count = len(operation.stands) - but_last
        self.problem.device.run(on_records, 1, (count,), (operation,))

    @abstractmethod
    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        """Sweeps over the coarsest layer, then one over every other, from coarse to fine; κ of what layers
        add to the cloth."""

    def sweep(self, number: int, count: int) -> None:
        """So many times over the vertices of a layer, or of the model, which is number 0."""
        p, group = self.problem, self.groups[number]
        batches, colours = group.batches, group.batches.colour_start
        visit = Visit(batches.terms, group.loads.rows, self.u, self.anchor, 1.0, group.rejected)
        links = p.shared("no links", no_links)
        sweep = Sweep(visit, colours, colour_bounds(colours, 0), links, NoMemory(0), (), p.device.records)
        phases, widest = count * batches.colours, widest_colour(colours)
        p.device.step(iterations, phases, sweep, count, widest=widest)

    def rejected(self) -> int:
        """Moves that were not finite and therefore not made, since this was last asked."""
        device, count = self.problem.device, 0
        for group in self.groups:
            device.pull(group.rejected)
            count += int(group.rejected.sum())
            device.clear(group.rejected)
        return count


class Bound(Multiresolution):
    """Layers that pull the cloth by weak constraints, as the paper's; divided: as printed."""

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
        """What bindings add to the cloth; as printed all of them, and masses of layers."""
        device, groups = self.problem.device, self.groups if self._divided else self.groups[:1]
        for group, whole in zip(groups, self._stiffness, strict=False):
            now = group.batches.terms[-1].stiffness
            now[:] = kappa * whole
            device.push(now)
        if self._divided:
            for group in self.groups[1:]:
                group.loads.use(kappa * self.force, kappa * self.inertia)


class Carrying(Multiresolution):
    """Layers that carry the cloth with them: what is bound to one moves as it does.

    A layer starts where the finer one is, under the forces that are left there, spread over its corners, and
    those that keep it where it is: so it moves by what is still to be done, and not at all in the end.
    """

    def __init__(self, problem: Problem, layers: Layers) -> None:
        super().__init__(problem, layers, 1.0)
        self.net, self.sizes = (problem.device.zeros(self.u.shape, problem.dtype) for _ in range(2))
        self._free = layers.model.free[:, None]
        self._parts = [group.part for group in self.groups]
        self._back = [layer.spread.T.tocsr() for layer in layers.layers]

    def iterate(self, coarse_sweeps: int, kappa: float) -> None:
        device, layers = self.problem.device, self.layers.layers
        device.pull(self.u)
        for number, layer in enumerate(layers, 1):
            here = self._parts[number]
            left = layer.spread @ self._forces(number - 1)
            self.u[here] = self.u[self._parts[number - 1]][layer.kept]
            self.anchor[here] = self.u[here]
            device.push(self.u)
            device.push(self.anchor)
            self.groups[number].push(np.zeros_like(left))
            self.groups[number].push(left - self._forces(number))
        self.sweep(len(layers), coarse_sweeps)
        for number in reversed(range(len(layers))):
            self._carry(number, kappa)
            self.sweep(number, 1)

    def _forces(self, number: int) -> np.ndarray:
        """(k, 3) net forces of the vertices of a layer [N]."""
        group, device = self.groups[number], self.problem.device
        batches = group.batches
        device.run(
            evaluate_forces, 1, batches.terms, group.loads.rows, self.u, self.anchor, self.net, self.sizes
        )
        device.pull(self.net)
        return self.net[self._parts[number], :3].astype(float)

    def _carry(self, number: int, kappa: float) -> None:
        """Move a layer as the next one has moved."""
        device, here, next_one = self.problem.device, self._parts[number], self._parts[number + 1]
        device.pull(self.u)
        moved = (self.u[next_one, :3] - self.anchor[next_one, :3]).astype(float)
        move = self._back[number] @ moved
        self.u[here, :3] += (kappa * self._free[here] * move).astype(self.u.dtype)
        device.push(self.u)
