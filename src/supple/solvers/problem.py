"""The problem every solver works on: minimise the (incremental) potential of one step.

E(u) = Σ terms(u) - f · u + ½ Σ kᵢ |uᵢ - ûᵢ|² over the displacements u of the free vertices, with external
forces f. In quasistatics k = 0 [PBNG eq. 17]; for backward Euler k = m/Δt² and û = uₙ + Δt vₙ [PBNG eq. 20].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from supple.kernels import RECORD, default_threads, lanes_of, run, threads_for
from supple.model import Model
from supple.ordering import Links, batch_elements, batch_links, batch_vertices, colour_count, widest_colour
from supple.ordering.colours import Colours
from supple.solvers.evaluation import (
    Energy,
    Inversion,
    VertexRows,
    evaluate_balance,
    evaluate_elements,
    evaluate_potential,
)
from supple.solvers.records import ONCE, Clear, Coast, Displace, Put, Return, on_records
from supple.solvers.refresh import make_layout, refresh, take_stencils
from supple.solvers.sums import PARTS
from supple.state import State
from supple.terms import Term, inversion

MIN_BATCHES_PER_THREAD = 16
"""Below this many batches per colour and thread, waiting costs more than a further thread gains."""


def check_precision(precision: str) -> None:
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision must be 'float32' or 'float64', got {precision!r}")


def padded(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., n, 3) of the vertices with a zero for the padding vertex n."""
    return np.concatenate([vectors, np.zeros((*vectors.shape[:-2], 1, 3))], axis=-2)


def norm(values: np.ndarray) -> float:
    """|values|, summed in a fixed order; BLAS would bring its own threads, which stall on a busy machine."""
    return math.sqrt(float(np.square(values).sum()))


@dataclass(frozen=True)
class Balance:
    """residual |r| [N]; scale |s| [N], s the sums of force magnitudes; rounding: the net force [N] that
    rounding alone explains in the working precision; at_rest: there are no loads, and at no vertex do the
    forces stand out from rounding."""

    residual: float
    scale: float
    rounding: float
    at_rest: bool

    @property
    def finite(self) -> bool:
        return math.isfinite(self.residual) and math.isfinite(self.scale)

    @property
    def imbalance(self) -> float:
        """|r| / |s|, between 0 and 1; 0 at rest."""
        if not self.finite:
            return math.inf
        return 0.0 if self.at_rest or self.scale == 0 else self.residual / self.scale


class Problem:
    """The potential of one step of a model in working precision, with its unknown u.

    u, anchor and net are (n + 1, 4) records of displacements, û and net forces; the last is padding. So are
    `last`, u at the beginning of the step, and `velocity`. There is one copy of the state here, there may be
    several on a device; those that are `active` are worked on. growths: how often there was not enough room
    for stencils that come and go.
    """

    device = "cpu"
    copies = 1

    @property
    def kinds(self) -> int:
        """How many of the copies are of different materials."""
        return 1

    def __init__(
        self,
        model: Model,
        precision: str,
        threads: int | None = None,
        lanes: int | None = None,
        at_once: float | None = None,
    ) -> None:
        check_precision(precision)
        self.model = model
        self.dtype = np.dtype(precision)
        self.lanes = lanes or lanes_of(self.dtype)
        self.inertia = np.zeros(model.vertices)
        self.force, self._loaded = model.force, bool(model.force[model.free].any())
        self._acting: tuple | None = None if model.varying else ((), None)
        self._at_once = at_once
        self.layout, self.growths = make_layout(self), 0
        self._arrange()
        self.u, self.anchor, self.net, self.last, self.velocity = (
            np.zeros((model.vertices + 1, RECORD), self.dtype) for _ in range(5)
        )
        self._targets = np.zeros((len(model.pinned), RECORD), self.dtype)
        self._aims: np.ndarray | None = None
        slot = np.full(model.vertices + 1, -1)
        slot[model.pinned] = np.arange(len(model.pinned))
        self._at_targets = Put(self.u, slot, self._targets)
        self._moving = False
        self.active = np.arange(self.copies, dtype=np.int32)
        self._shared: dict[str, Any] = {}
        self._energy_scale = np.zeros(self.copies)
        self._energies: np.ndarray | None = None
        fewest = max(1, len(self.vertices.own) // max(1, self.colours))
        wanted = default_threads() if threads is None else threads
        self.threads = max(1, min(wanted, fewest // MIN_BATCHES_PER_THREAD))
        self._edge = model.mean_edge
        if self.layout is not None:
            take_stencils(self)

    def _arrange(self) -> None:
        """What kernels get of terms and vertices: by batches of vertices, and by elements."""
        model, layout = self.model, self.layout
        if layout is None:
            batches = batch_vertices(model.terms, model.free, self.dtype, self.lanes, self._at_once)
        else:
            batches = layout.batches
        self.terms = batches.terms
        self.batch_colours: Colours = batches.colour_start if layout is None else layout.colours
        self.elements = [batch_elements(term, self.dtype, model.vertices, self.lanes) for term in model.terms]
        force = np.ascontiguousarray(self._force_by_batch(batches.own))
        self.vertices = VertexRows(batches.own, batches.width, force, self._by_batch(batches.own))

    def refresh(self, index: int, term: Term) -> None:
        """Exchange the stencils of a term with a capacity for those of another of its kind, between steps or
        between sweeps. What a solve goes on from, u and all that moves, stays as it is."""
        refresh(self, index, term)

    def _force_by_batch(self, own: np.ndarray) -> np.ndarray:
        """External forces (batches, 3, lanes) [N]."""
        return np.swapaxes(padded(self.force)[..., own[:, 0], :], -1, -2).astype(self.dtype)

    def set_force(self, force: np.ndarray) -> None:
        """Replace the external forces of the model by others (n, 3) [N]."""
        self.force, self._acting = force, None
        self._loaded = bool(force[..., self.model.free, :].any())
        self.vertices.force[:] = self._force_by_batch(self.vertices.own)
        self.push(self.vertices.force)

    def load(self, time: float, further: np.ndarray | None = None) -> None:
        """Let those external forces act that the model has at a time [s], and further ones (n, 3) [N], in an
        array that nobody changes."""
        fractions = self.model.fractions_at(time)
        if self._acting is None or self._acting[0] != fractions or self._acting[1] is not further:
            force = self.model.force_of(fractions)
            self.set_force(force if further is None else force + further)
            self._acting = fractions, further

    def take_materials(self, model: Model) -> bool:
        """Go over to a model that differs from this one in material parameters only. False where some are not
        the same in a whole term, which needs a new problem."""
        materials = {
            k: (old.material, new.material)
            for k, (old, new) in enumerate(zip(self.model.terms, model.terms, strict=True))
            if old is not new
        }
        if any(np.ndim(p) for pair in materials.values() for material in pair for p in material):
            return False

        def taken(k: int, rows: Any) -> Any:
            material = materials[k][1] if k in materials else None
            return rows if material is None else rows._replace(material=material._make(map(float, material)))

        self.terms = tuple(taken(k, rows) for k, rows in enumerate(self.terms))
        self.elements = [replace(e, rows=taken(k, e.rows)) for k, e in enumerate(self.elements)]
        self.model = model
        self._shared.clear()
        for name in ("_rest_stiffness", "_softness"):
            self.__dict__.pop(name, None)
        return True

    def _by_batch(self, own: np.ndarray) -> np.ndarray:
        """k of every batch; lanes that stand for no vertex get a tiny one, so that their step is 0."""
        return np.append(self.inertia, 1e-30)[own].astype(self.dtype)

    def batch_links(self) -> Links | None:
        """The vertices that weak constraints tie together."""
        return batch_links(self.model.terms, self.model.free, self.dtype, self.lanes)

    def run(self, kernel: Callable, phases: int, *args: Any) -> None:
        """Run a kernel of that many phases on all threads."""
        run(kernel, self.threads, threads_for(phases), *args)

    def step(self, kernel: Callable, phases: int, *args: Any, widest: int | None = None) -> None:
        """Run a kernel whose first argument is `Steps`; a device may do it later, and several at once.
        widest: how many items a phase of its own has at most."""
        self.run(kernel, phases, ONCE, *args)

    def wait(self) -> None:
        """Return when all kernels are done; on the CPU they are."""

    def pull(self, array: np.ndarray) -> None:
        """Bring an array that kernels have written to the host; it is there already on the CPU."""

    def push(self, array: np.ndarray, rows: int | None = None) -> None:
        """Let kernels see what the host has written into an array, or into its first rows."""

    def assign(self, target: np.ndarray, source: np.ndarray, copy: int | None = None) -> None:
        """target[:] = source, where the kernels' copies of both live; of one copy of the state or all."""
        target[:] = source

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for numbers in the working precision, zero where the kernels' copy lives."""
        return np.zeros(shape, self.dtype)

    def clear(self, array: np.ndarray) -> None:
        """array[:] = 0 where the kernels' copy lives; for what methods remember, not for records."""
        array[:] = 0

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """What a solver prepares once for all steps of this problem."""
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    @property
    def colours(self) -> int:
        return colour_count(self.batch_colours)

    @cached_property
    def widest(self) -> int:
        """Batches of the colour that has the most."""
        return widest_colour(self.batch_colours)

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) float64."""
        self.pull(self.u)
        return self.model.rest + self.u[:-1, :3]

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self.u[:-1, :3] = positions - self.model.rest
        self.push(self.u)

    @property
    def state(self) -> State:
        """A copy of what the next step goes on from: u, and the velocities that were set last."""
        self.pull(self.u)
        return State(self.u[:-1, :3].copy(), self.velocity[:-1, :3].copy())

    @state.setter
    def state(self, state: State) -> None:
        self.u[:-1, :3] = state.displacements
        self.push(self.u)
        self.set_velocities(state.velocities)

    def displacements_on_device(self, copy: int = 0) -> Any:
        """A copy of the records u where the kernels' is, None on the CPU."""
        return None

    def all_displacements_on_device(self) -> Any:
        """The same of all copies of the state, one after the other."""
        return None

    def prescribe(self, time: float) -> None:
        """Move the pinned vertices to where they are at a time [s], and let the forces of that time act."""
        self.load(time)
        self.pin(self.model.prescribed(time))

    def pin(self, positions: np.ndarray) -> None:
        """Move the pinned vertices to positions (k, 3) [m]."""
        self._on_records(self._put(positions))

    def _put(self, positions: np.ndarray) -> Put:
        if positions is self._aims:  # which nobody can have changed
            return self._at_targets
        if self._aims is None or not np.array_equal(positions, self._aims):
            targets = self._targets.reshape(self.copies, len(self.model.pinned), RECORD)
            targets[..., :3] = positions - self.model.rest[self.model.pinned]
            self.push(self._targets)
        self._aims = positions.copy() if positions.flags.writeable else positions
        return self._at_targets

    def set_inertia(self, dt: float, anchor: np.ndarray) -> None:
        """Make this a backward Euler step: k = m/Δt² and û = anchor - rest, (n, 3) positions."""
        self.set_time_step(dt)
        self.anchor[:-1, :3] = anchor - self.model.rest
        self.push(self.anchor)

    def set_time_step(self, dt: float) -> None:
        """k = m/Δt²."""
        self.inertia = self.model.mass / (dt * dt)
        self.vertices.inertia[:] = self._by_batch(self.vertices.own)
        self.push(self.vertices.inertia)
        if "_softness" in self.__dict__:
            self._soften(self._softness)
            self.push(self._softness)

    def set_velocities(self, velocities: np.ndarray) -> None:
        """Start a motion with velocities (n, 3) [m/s]."""
        self._vectors(self.velocity)[:] = velocities
        self.push(self.velocity)
        self._moving = False

    def coast(self, dt: float, damping: float, pinned: np.ndarray) -> None:
        """Begin a backward Euler step of Δt where the last one has ended: v = (1 - damping) Δu/Δt, and u = û
        = uₙ + Δt v, but for the pinned vertices, which move to positions (k, 3) [m]. What has been prescribed
        meanwhile counts as velocity."""
        keep = 1.0 - damping if self._moving else -1.0
        coast = Coast(self.u, self.last, self.velocity, self.anchor, float(dt), keep)
        self._on_records(coast, self._put(pinned))
        self._moving = True

    def return_to_anchor(self) -> None:
        """u = û, but for the pinned vertices."""
        self._on_records(Return(self.u, self.anchor, self._at_targets.slot))

    def displace(self, drift: np.ndarray) -> None:
        """u += drift, records."""
        self._on_records(Displace(self.u, drift))

    def _on_records(self, *operations: Any) -> None:
        """Do operations on records, one after the other."""
        self.run(on_records, 1, self._counts(operations), operations)

    def _counts(self, operations: tuple) -> tuple[int, ...]:
        """How many records each of them has to do with."""
        return tuple(
            o.memory.size // RECORD if isinstance(o, Clear) else self.model.vertices + 1 for o in operations
        )

    def velocities(self, dt: float, damping: float) -> np.ndarray:
        """(n, 3) at the end of a step [m/s]."""
        return (1.0 - damping) * (self.vectors(self.u).astype(float) - self.vectors(self.last)) / dt

    def vectors(self, records: np.ndarray) -> np.ndarray:
        """What records have for the vertices, (n, 3); with a leading axis where there are several copies."""
        self.pull(records)
        return self._vectors(records)

    def _vectors(self, records: np.ndarray) -> np.ndarray:
        return records[:-1, :3]

    def balance(self) -> Balance:
        """Evaluate the net forces into `net` and measure them."""
        return self.balances()[0]

    def balances(self) -> dict[int, Balance]:
        """The same for every active copy of the state."""
        self._energies = None
        softness = self._softness
        figures = self._measure(self.u, self._sizes, softness, *self._measured)
        return {copy: self._balance(copy, *figures[copy]) for copy in map(int, self.active)}

    def _balance(self, copy: int, r2: float, s2: float, a2: float, reach: float, ratio: float) -> Balance:
        length = float(np.finfo(self.dtype).eps) * (reach + self._edge)
        at_rest = not self.is_loaded(copy) and ratio <= 4 * length
        return Balance(math.sqrt(r2), math.sqrt(s2), length * math.sqrt(a2), at_rest)

    def is_loaded(self, copy: int) -> bool:
        """Whether external forces act on free vertices."""
        return self._loaded

    def _measure(
        self, u: np.ndarray, sizes: np.ndarray, softness: np.ndarray, parts: np.ndarray, figures: np.ndarray
    ) -> np.ndarray:
        """(copies, 5) figures of the forces at displacements u, see `measure`."""
        memory = self.net, sizes, softness, parts, figures
        self.run(evaluate_balance, 3, self.terms, self.vertices, u, self.anchor, *memory)
        self.pull(figures)
        return figures

    @cached_property
    def _sizes(self) -> np.ndarray:
        """s and tr A by copy, batch and lane."""
        return self.zeros((self.copies, len(self.vertices.own), 2, self.lanes))

    @cached_property
    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        return self._sum_memory(self.copies, 5)

    def _sum_memory(self, copies: int, fields: int) -> tuple[np.ndarray, np.ndarray]:
        """For the sums of parts and of the whole."""
        return np.zeros((copies, fields, PARTS)), np.zeros((copies, fields))

    @cached_property
    def _rest_stiffness(self) -> np.ndarray:
        """tr A of every vertex at rest without inertia, by kind of copy, batch and lane."""
        kinds, batches, lanes = self.kinds, len(self.vertices.own), self.lanes
        u = np.zeros((kinds * (self.model.vertices + 1), RECORD), self.dtype)
        sizes = np.zeros((kinds, batches, 2, lanes), self.dtype)
        self.wait()  # what a device has yet to do is for the copies that are active now
        active, self.active = self.active, np.arange(kinds, dtype=np.int32)
        any_softness = np.zeros((1, batches, lanes), self.dtype)
        self._measure(u, sizes, any_softness, *self._sum_memory(kinds, 5))
        self.active = active
        self.pull(sizes)
        stiffness = sizes[:, :, 1].astype(float) - 3 * self.vertices.inertia[:, 0]
        return np.where(np.arange(lanes) < self.vertices.width[:, None], stiffness, 0)

    @cached_property
    def _softness(self) -> np.ndarray:
        """1 / tr A at rest, by kind of copy, batch and lane."""
        softness = np.zeros(self._rest_stiffness.shape, self.dtype)
        self._soften(softness)
        return softness

    def _soften(self, softness: np.ndarray) -> None:
        stiffness = self._rest_stiffness + 3 * self.vertices.inertia[:, 0]
        softness[:] = 1 / np.maximum(stiffness, 1e-30)

    def energy(self) -> float:
        """E(u) [J], summed in float64."""
        return float(self.energies()[0])

    def energy_of(self, copy: int) -> float:
        """E(u) of one copy of the state [J] at the last look."""
        if self._energies is None:
            self._energies = self.energies()
        return float(self._energies[copy])

    def energies(self) -> np.ndarray:
        """(copies,) E(u) [J]."""
        stored, outer = self.stored_energies(), np.zeros((self.copies, 2))
        if self.inertia.any() or self._loaded:
            vertices = self.vertices
            outer = self._total(evaluate_potential, 2, vertices.own, vertices, self.u, self.anchor)
        self._energy_scale = np.abs(stored).sum(axis=1) + np.abs(outer).sum(axis=1)
        return stored.sum(axis=1) + outer[:, 0]

    def stored_energies(self) -> np.ndarray:
        """(copies, terms) energy of every term [J]."""
        stored = [self._total_of(Energy(e.rows), e.own) for e in self.elements]
        return np.concatenate(stored, axis=1) if stored else np.zeros((self.copies, 0))

    def element_energies(self, term: int) -> np.ndarray:
        """(m,) energy of every element of a term [J]."""
        elements, count = self.elements[term], len(self.model.terms[term].vertices)
        values = self._evaluate(
            evaluate_elements, 1, elements.own, Energy(elements.rows), elements.own, self.u
        )
        self.pull(values[0])
        return values[0][0].ravel()[:count].astype(float)

    def energy_rounding(self, copy: int = 0) -> float:
        """What rounding alone may have changed in the last E(u) [J]: it is relative to the magnitudes of the
        parts of E, and to the stiffness of the elements, since large parts of ψ cancel near the rest."""
        eps = float(np.finfo(self.dtype).eps)
        scale = 500 * float(self._energy_scale[copy])
        stiffness = norm(self._rest_stiffness[copy if self.kinds > 1 else 0])
        return eps * (scale + 10 * self._edge**2 * stiffness)

    def inverted(self) -> int:
        """Number of elements with negative volume."""
        return int(self.inversions()[0])

    def inversions(self) -> np.ndarray:
        """(copies,) number of elements with negative volume."""
        solid = [elements for elements in self.elements if inversion.known(type(elements.rows))]
        found = [self._total_of(Inversion(e.rows), e.own) for e in solid]
        return np.rint(np.sum(found, axis=0)[:, 0]).astype(int) if found else np.zeros(self.copies, int)

    def _total_of(self, quantity: Any, own: np.ndarray) -> np.ndarray:
        """(copies, 1) the sum of a quantity over elements."""
        return self._total(evaluate_elements, 1, own, quantity, own, self.u)

    def _total(self, kernel: Callable, fields: int, own: np.ndarray, *args: Any) -> np.ndarray:
        """(copies, fields) what a kernel writes for all lanes of `own`, summed up in float64."""
        *_, sums = self._evaluate(kernel, fields, own, *args)
        self.pull(sums)
        return sums.copy()

    def _evaluate(self, kernel: Callable, fields: int, own: np.ndarray, *args: Any) -> tuple:
        """What a kernel writes for all lanes of `own` (copies, rows, fields, lanes), sums of parts, and their
        sums."""
        shape = self.copies, len(own), fields, self.lanes
        memory = self.shared(
            f"{fields} values for each of {id(own)}",
            lambda: (self.zeros(shape), *self._sum_memory(self.copies, fields)),
        )
        self.run(kernel, 3, *args, *memory)
        return memory
