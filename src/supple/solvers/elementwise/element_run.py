"""Common parts of element-wise methods: options, steps in (pseudo-)time, and the run itself.

    x ← x̃ = xₙ + Δt vₙ + W f_ext,  clear history variables      `ElementRun._begin_step`
    for each iteration                                          `ElementRun.advance`
        for each projection, color by color                     `sweep_projections`
            for each batch of elements                          `BatchUpdate`
                update x and history variables                  `project` of the method
        contact of vertices with obstacles                      elementwise/contact_projection.py
    in pseudo-time, after sweeps_per_step sweeps: a new step    `ElementRun._next_step`

All of them solve x = x̃ + W Σ f(x) [GPBD eq. 6]. x̃ are the positions under inertia and external forces
alone, f are the forces of the elements, and W = Δt²/m, 0 for pinned vertices. A sweep visits every element
once, color by color and projection after projection, and updates the positions of its vertices and its
history variables. The projections are prepared once for all steps. Contact forces of obstacles act on single
vertices after the elements of each sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba import types

from supple.kernels import RECORD, do, item_number, overload_by_type, row_address
from supple.model.model import Model
from supple.ordering import ElementBatches, color_bounds, each_color, is_dynamic
from supple.problem import Problem
from supple.problem.dirichlet_rows import corner_normals
from supple.problem.vertex_kernels import Displace
from supple.solvers.base import Run, Solver
from supple.solvers.elementwise.contact_projection import contact_projections
from supple.solvers.elementwise.projection import (
    PrescribedCoordinates,
    Projection,
    StoredForces,
    WeightedElements,
    collect_remarks,
    maker_for,
    project,
    vertex_rows,
)
from supple.solvers.elementwise.pseudo_time import RestDetector, pseudo_momentum
from supple.solvers.launch import iterate, run_iterations
from supple.support.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_iterations,
    check_number,
    check_positive,
)


def rows_of(start: Any, batch: int) -> tuple[int, int]:
    """Row range (first, last) of a batch, last excluded.

    `start` holds both; start = () means that every batch is one row.
    """
    return start[batch], start[batch + 1]


@overload_by_type(rows_of)
def _rows_of(start, batch):
    if isinstance(start, types.BaseTuple):
        return lambda start, batch: (batch, batch + 1)
    return lambda start, batch: (start[batch], start[batch + 1])


class BatchUpdate(NamedTuple):
    """Work item: update one batch of a projection's elements."""

    projection: Any
    u: Any


@do.of(BatchUpdate)
def _update_batch(update, batch):
    begin, end = rows_of(update.projection.elements.start, item_number(batch))
    for k in range(begin, end):
        project(update.projection, row_address(batch, k), update.u)


def sweep_projections(projections: Any, team: Any, phase: int, u: Any) -> int:
    """Update every element of every projection once, color by color; return the next phase.

    Projections are processed one after another.
    """
    return phase


@overload_by_type(sweep_projections, control_flow=True)
def _sweep_projections(projections, team, phase, u):
    if len(projections) == 0:
        return lambda projections, team, phase, u: phase

    def first_then_rest(projections, team, phase, u):
        colors = projections[0].elements.color_start
        bounds = color_bounds(colors, 0)
        next_phase = each_color(team, phase, colors, bounds, BatchUpdate(projections[0], u))
        return sweep_projections(projections[1:], team, next_phase, u)

    return first_then_rest


class ElementSweep(NamedTuple):
    """Iteration of element-wise methods: one sweep over all projections."""

    projections: Any
    u: Any


@iterate.of(ElementSweep)
def _sweep(sweep, team, phase, iteration):
    return sweep_projections(sweep.projections, team, phase, sweep.u)


class PreparedProjections(NamedTuple):
    """Prepared projections of a method, valid while W stays the same.

    Attributes:
        inertia: (n,) inertia from which W is computed [N/m].
        dynamic: True for steps in time, False for pseudo-time.
        weights: (n + 1,) W [m/N].
        version: Version of the problem layout.
        by_term: Projections of each term, in the order of visits.
        projections: All projections.
        phases: Number of phases of a sweep.
        widest: Largest number of batches in a phase.
        memory: History variables of all projections.
        external: External forces and the displacement W f by them, or empty.
    """

    inertia: np.ndarray
    dynamic: bool
    weights: np.ndarray
    version: int
    by_term: dict[int, list]
    projections: tuple
    phases: int
    widest: int
    memory: list[np.ndarray]
    external: list[np.ndarray]


REST_NUMBERS, WEIGHT_NUMBERS = 10, 4
"""Numbers read by a visit of a tetrahedron: shape gradients and volume, and W of the corners."""


@dataclass(frozen=True)
class ElementOptions(Solver):
    """Options of every element-wise method.

    A quasistatic problem is run to rest in pseudo-time (XPBD-QS) [PBNG section 6.1].

    Args:
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities, as XPBD-QS [PBNG
            section 6.1], less the fraction pseudo_damping, our own.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    ordering: Literal["colors", "clusters", "cells"] = "colors"
    vertex_order: Literal["mesh", "smallest_last"] = "mesh"
    cluster_size: int = 5
    attachments_first: bool = False
    pseudo_dt: float = 0.01
    sweeps_per_step: int = 10
    pseudo_time: Literal["flow", "dynamics"] = "flow"
    pseudo_damping: float = 0.0
    iterations: int | None = None

    def __post_init__(self) -> None:
        check_choice("ordering", self.ordering, ("colors", "clusters", "cells"))
        check_choice("vertex_order", self.vertex_order, ("mesh", "smallest_last"))
        check_integer("cluster_size", self.cluster_size)
        check_flag("attachments_first", self.attachments_first)
        check_positive("pseudo_dt", self.pseudo_dt, "s")
        check_integer("sweeps_per_step", self.sweeps_per_step)
        check_choice("pseudo_time", self.pseudo_time, ("flow", "dynamics"))
        check_number("pseudo_damping", self.pseudo_damping, at_least=0, below=1)
        check_iterations(self.iterations)

    any_term: ClassVar[bool] = False
    accepts_guess: ClassVar[bool] = False
    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        "cluster_size": ("ordering", "clusters"),
        "pseudo_damping": ("pseudo_time", "dynamics"),
    }
    batches: ClassVar[bool] = True
    keeps_forces: ClassVar[bool] = False
    """True if a step of pseudo-time starts with the forces of the previous one.

    This requires forces that are linear in the history variables.
    """
    history_size: ClassVar[int] = 0
    """Number of history variables per tetrahedron."""

    def begin(self, problem: Problem) -> ElementRun:
        return ElementRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        return model.elements * ((REST_NUMBERS + WEIGHT_NUMBERS + self.history_size) * number + 16)


class ElementRun(Run):
    """Run of an element-wise method; a problem supports one run per method at a time."""

    check_every = 10
    patience = 1000

    def __init__(self, method: ElementOptions, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self._prepared = self._prepare_projections()
        self.rest = None if self.dynamic else RestDetector(problem)
        self._momentum = (
            None if self.dynamic else pseudo_momentum(problem, method.pseudo_time, method.pseudo_damping)
        )
        self._begin_step()

    def advance(self, iterations: int) -> None:
        """Run a number of sweeps; in pseudo-time, start a new step after every `sweeps_per_step` sweeps."""
        if self.problem.layout.version != self._prepared.version:
            self._restart_step()
        while iterations > 0:
            count = iterations
            if not self.dynamic:
                if self._sweeps_in_step == self.method.sweeps_per_step:
                    self._next_step()
                count = min(count, self.method.sweeps_per_step - self._sweeps_in_step)
            self.sweep(self.projections, count)
            self._sweeps_in_step += count
            iterations -= count

    def _next_step(self) -> None:
        """Start the next step of pseudo-time."""
        assert self.rest is not None
        self.rest.step()
        if self._momentum is not None:
            self.problem.device.apply_to_vectors(self._momentum)
        if self.method.keeps_forces:
            self._resume_step()
        else:
            self._begin_step()

    def _begin_step(self) -> None:
        """Clear all forces and move to x̃ = x + Δt v + W f_ext.

        The problem's u is x + Δt v already, with v = 0 in pseudo-time.
        """
        p = self.problem
        for memory in self._prepared.memory:
            p.device.clear(memory)
        p.contacts.detect()
        self._add_external_displacement()
        self._sweeps_in_step = 0

    def _resume_step(self) -> None:
        """Start the next step of pseudo-time with the forces of the previous one.

        The start is x̃ = x + W f_ext plus W times these forces. They are applied again, since x - x̃ - W f
        would accumulate rounding errors.
        """
        self.problem.contacts.detect()
        self._add_external_displacement()
        self.sweep(tuple(StoredForces(q.elements, q) for q in self.projections), 1)
        self._sweeps_in_step = 0

    def _restart_step(self) -> None:
        """Restart the step after a change of stencils, because displacements by removed stencils are unknown.

        In pseudo-time, this is a new step from the end of the previous one.
        """
        self._prepared = self._prepare_projections()
        if self.dynamic:
            states = self.problem.states
            self.problem.device.assign(states.u, states.anchor)
            self.problem.device.apply_to_vectors(states.dirichlet_operation)
        self._begin_step()

    def _add_external_displacement(self) -> None:
        """u += W f_ext."""
        p = self.problem
        displacement = external_displacement(self._prepared, p)
        p.device.apply_to_vectors(Displace(p.u, displacement, int(len(displacement) > p.model.vertices + 1)))

    def sweep(self, projections: tuple, count: int) -> None:
        """Visit every element of the projections `count` times."""
        p, work = self.problem, self._prepared
        sweep = ElementSweep(projections, p.u)
        p.device.step(run_iterations, count * work.phases, sweep, count, widest=work.widest)

    @property
    def dynamic(self) -> bool:
        """True for steps in time, False for steps in pseudo-time."""
        return self._prepared.dynamic

    @property
    def weights(self) -> np.ndarray:
        """W (n + 1,)."""
        return self._prepared.weights

    @property
    def projections(self) -> tuple:
        return self._prepared.projections

    @property
    def colors(self) -> int:
        """Total number of colors of all projections."""
        return self._prepared.phases

    @property
    def recovers_from_inversion(self) -> bool:
        return self.method.recovers_from_inversion

    def is_moving(self, member: int) -> bool:
        return self.rest is not None and not self.rest.at_rest(member)

    def notes(self, member: int = 0) -> list[str]:
        notes = [f"{self.colors} element colors"]
        if self.rest is not None:
            notes += self.rest.notes(self.method, member)
        return notes + collect_remarks(self.projections, self._sweeps_in_step)

    def residuals(self) -> tuple[float, float] | None:
        from supple.solvers.elementwise.multiplier_residuals import (
            residuals,  # imports the projections of all methods
        )

        return residuals(self)

    def _prepare_projections(self) -> PreparedProjections:
        """Return the prepared projections, cached from an earlier run of the method with the same W."""
        cache = self.problem.get_shared("projections of element-wise methods", dict)
        cached = cache.get(self.method)
        version = self.problem.layout.version
        if cached and (cached.version, id(cached.inertia)) == (version, id(self.problem.loads.inertia)):
            return cached
        dynamic = bool(self.problem.loads.inertia.any())
        weights = weights_of(self.problem, self.method.name, None if dynamic else self.method.pseudo_dt)
        if cached is not None and not np.array_equal(cached.weights, weights):
            cached = None
        if cached is None or cached.version != version:
            cached = self._create_projections(weights, dynamic, cached)
        cache[self.method] = cached._replace(inertia=self.problem.loads.inertia, dynamic=dynamic)
        return cache[self.method]

    def _create_projections(
        self, weights: np.ndarray, dynamic: bool, before: PreparedProjections | None
    ) -> PreparedProjections:
        """Prepare projections, reusing those in `before` for terms that have not changed."""
        p, method = self.problem, self.method
        terms = p.model.terms
        order = sorted(range(len(terms)), key=lambda k: terms[k].ties != method.attachments_first)
        by_term = {
            k: self._make_projections_of_term(k, weights)
            if before is None or is_dynamic(terms[k])
            else before.by_term[k]
            for k in order
        }
        projections = [q for k in order for q in by_term[k]]
        if len(rollers := p.model.rollers):
            projections.append(
                PrescribedCoordinates(vertex_rows(len(rollers)), (), rollers, p.states.dirichlet_operation)
            )
        projections.extend(contact_projections(p, weights))
        memory = [array for q in projections for array in q.memory]
        sizes = np.concatenate([[0], *(np.diff(q.elements.color_start) for q in projections)])
        work = by_term, tuple(projections), len(sizes) - 1, int(sizes.max())
        return PreparedProjections(p.loads.inertia, dynamic, weights, p.layout.version, *work, memory, [])

    def _make_projections_of_term(self, k: int, weights: np.ndarray) -> list:
        """Create the projections of a term, with memory (batch, rows, fields, lanes)."""
        p, term = self.problem, self.problem.model.terms[k]
        batches = self._element_batches(k)
        make = maker_for(self.method, term, batches.rows)
        constrained = corner_normals(p.model, batches.corners, p.dtype)
        elements = WeightedElements(
            *batches.projection_fields, batches.gather_corners(weights, p.dtype), constrained
        )
        projections: list[Projection] = make(self.method, term, elements)
        return [
            q._replace(memory=tuple(p.zeros((p.batch_size, *m.shape)) for m in q.memory)) for q in projections
        ]

    def _element_batches(self, k: int) -> ElementBatches:
        """Return the elements of a term in the order of the method's options."""
        p, method = self.problem, self.method
        if is_dynamic(p.model.terms[k]):
            return p.layout.colored_elements(k, 1)
        size = method.cluster_size if method.ordering == "clusters" else 1
        cells = method.ordering == "cells" and p.model.terms[k].fills
        options = k, size, cells, method.vertex_order == "smallest_last"
        return p.get_shared(f"elements of term {options}", lambda: p.layout.colored_elements(*options))


def weights_of(problem: Problem, method: str, pseudo_dt: float | None) -> np.ndarray:
    """Compute W (n + 1,): Δt²/m of the free vertices [m/N], 0 for pinned vertices and padding.

    Args:
        problem: Problem.
        method: Solver name for the error message.
        pseudo_dt: Step size of pseudo-time [s], None in dynamics.

    Raises:
        ValueError: A free vertex has no positive mass.
    """
    model = problem.model
    stiffness = problem.loads.inertia if pseudo_dt is None else model.mass / pseudo_dt**2
    W = np.zeros(model.vertices + 1)
    if np.any(stiffness[model.free] <= 0):
        raise ValueError(
            f"{method} divides by vertex masses, which must be positive for all free vertices; use a "
            "positive density"
        )
    W[:-1][model.free] = 1 / stiffness[model.free]
    return W


def external_displacement(work: PreparedProjections, problem: Problem) -> np.ndarray:
    """W f_ext as padded vectors, cached while the external forces stay the same."""
    cache, force = work.external, problem.loads.force
    if not cache or cache[0] is not force:
        model = problem.model
        drift = np.zeros((*force.shape[:-2], model.vertices + 1, RECORD), problem.dtype)
        drift[..., :-1, :3] = work.weights[:-1, None] * model.unconstrained(force)
        cache[:] = force, drift.reshape(-1, RECORD)
    return cache[1]
