"""Common parts of element-wise methods: options, steps in (pseudo-)time, and the run itself.

All of them solve x = x̃ + W Σ f(x) [GPBD eq. 6]. x̃ are the positions under inertia and external forces
alone, f are the forces of the elements, and W = Δt²/m, 0 for pinned vertices. A sweep visits every element
once and updates the positions of its vertices and its history variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from supple.checks import check_iterations, flag, one_number, one_of, positive, whole_number
from supple.model import Model
from supple.ordering import ElementBatches, changes
from supple.problem import Problem
from supple.problem.held import corner_normals
from supple.problem.records import Displace
from supple.solvers.elements.element_sweeps import ElementSweep
from supple.solvers.elements.projection import (
    Exerted,
    Places,
    Projection,
    PutBack,
    maker_for,
    remarks,
    vertex_places,
)
from supple.solvers.elements.pseudo_time import Rest, gliding
from supple.solvers.elements.touching import touching
from supple.solvers.elements.workplace import Workplace, drift_of, weights_of
from supple.solvers.iterating import iterations
from supple.solvers.solver import Run, Solver

REST, WEIGHTS = 10, 4
"""Numbers read by a visit of a tetrahedron: shape gradients and volume, and W of the corners."""


@dataclass(frozen=True)
class ElementOptions(Solver):
    """Options of every element-wise method.

    A quasistatic problem is run to rest in pseudo-time (XPBD-QS) [PBNG section 6.1].

    Args:
        ordering: Parallel units: "colours" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        weak_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities except for the
            fraction pseudo_damping, as in the paper.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    ordering: Literal["colours", "clusters", "cells"] = "colours"
    vertex_order: Literal["mesh", "smallest_last"] = "mesh"
    cluster_size: int = 5
    weak_first: bool = False
    pseudo_dt: float = 0.01
    sweeps_per_step: int = 10
    pseudo_time: Literal["flow", "dynamics"] = "flow"
    pseudo_damping: float = 0.0
    iterations: int | None = None

    def __post_init__(self) -> None:
        one_of("ordering", self.ordering, ("colours", "clusters", "cells"))
        one_of("vertex_order", self.vertex_order, ("mesh", "smallest_last"))
        whole_number("cluster_size", self.cluster_size)
        flag("weak_first", self.weak_first)
        positive("pseudo_dt", self.pseudo_dt, "s")
        whole_number("sweeps_per_step", self.sweeps_per_step)
        one_of("pseudo_time", self.pseudo_time, ("flow", "dynamics"))
        one_number("pseudo_damping", self.pseudo_damping, at_least=0, below=1)
        check_iterations(self.iterations)

    any_term: ClassVar[bool] = False
    takes_guess: ClassVar[bool] = False
    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        "cluster_size": ("ordering", "clusters"),
        "pseudo_damping": ("pseudo_time", "dynamics"),
    }
    batches: ClassVar[bool] = True
    resumes: ClassVar[bool] = False
    """True if a step of pseudo-time starts with the forces of the previous one.

    This requires forces that are linear in the history variables.
    """
    remembers: ClassVar[int] = 0
    """Number of history variables per tetrahedron."""

    def begin(self, problem: Problem) -> ElementRun:
        return ElementRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        return model.elements * ((REST + WEIGHTS + self.remembers) * number + 16)


class ElementRun(Run):
    """Run of an element-wise method; a problem supports one run per method at a time."""

    check_every = 10
    patience = 1000

    @property
    def recovers(self) -> bool:
        return self.method.recovers

    def __init__(self, method: ElementOptions, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self._workplace = self._find_workplace()
        self.rest = None if self.dynamic else Rest(problem)
        self._glide = None if self.dynamic else gliding(problem, method.pseudo_time, method.pseudo_damping)
        self._begin_step()

    @property
    def dynamic(self) -> bool:
        """True for steps in time, False for steps in pseudo-time."""
        return self._workplace.dynamic

    @property
    def weights(self) -> np.ndarray:
        """W (n + 1,)."""
        return self._workplace.weights

    @property
    def projections(self) -> tuple:
        return self._workplace.projections

    @property
    def colours(self) -> int:
        """Total number of colors of all projections."""
        return self._workplace.phases

    def notes(self, copy: int = 0) -> list[str]:
        notes = [f"{self.colours} element colours"]
        if self.rest is not None:
            notes += self.rest.notes(self.method, copy)
        return notes + remarks(self.projections, self._sweeps_in_step)

    def on_its_way(self, copy: int) -> bool:
        return self.rest is not None and not self.rest.at_rest(copy)

    def advance(self, iterations: int) -> None:
        """Run a number of sweeps; in pseudo-time, start a new step after every `sweeps_per_step` sweeps."""
        if self.problem.layout.version != self._workplace.version:
            self._begin_again()
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
        assert self.rest is not None
        self.rest.step()
        if self._glide is not None:
            self.problem.device.on_records(self._glide)
        if self.method.resumes:
            self._resume_step()
        else:
            self._begin_step()

    def _begin_step(self) -> None:
        """Clear all forces and move to x̃ = x + Δt v + W f_ext.

        The problem's u is x + Δt v already, with v = 0 in pseudo-time.
        """
        p = self.problem
        for memory in self._workplace.memory:
            p.device.clear(memory)
        p.contacts.detect()
        self._displace()
        self._sweeps_in_step = 0

    def _begin_again(self) -> None:
        """Restart the step after a change of stencils, because displacements by removed stencils are unknown.

        In pseudo-time, this is a new step from the end of the previous one.
        """
        self._workplace = self._find_workplace()
        if self.dynamic:
            states = self.problem.states
            self.problem.device.assign(states.u, states.anchor)
            self.problem.device.on_records(states.prescribing)
        self._begin_step()

    def _displace(self) -> None:
        """u += W f_ext."""
        p = self.problem
        drift = drift_of(self._workplace, p)
        p.device.on_records(Displace(p.u, drift, int(len(drift) > p.model.vertices + 1)))

    def _resume_step(self) -> None:
        """Start the next step of pseudo-time with the forces of the previous one.

        The start is x̃ = x + W f_ext plus W times these forces. They are applied again, since x - x̃ - W f
        would accumulate rounding errors.
        """
        self.problem.contacts.detect()
        self._displace()
        self.sweep(tuple(Exerted(q.places, q) for q in self.projections), 1)
        self._sweeps_in_step = 0

    def residuals(self) -> tuple[float, float] | None:
        from supple.solvers.elements.primal_dual import (
            residuals,  # imports the projections of all methods
        )

        return residuals(self)

    def sweep(self, projections: tuple, count: int) -> None:
        """Visit every element of the projections `count` times."""
        p, work = self.problem, self._workplace
        sweep = ElementSweep(projections, p.u)
        p.device.step(iterations, count * work.phases, sweep, count, widest=work.widest)

    def _find_workplace(self) -> Workplace:
        """Return the prepared projections, cached from an earlier run of the method with the same W."""
        known = self.problem.shared("workplaces of element-wise methods", dict)
        found = known.get(self.method)
        version = self.problem.layout.version
        if found and (found.version, id(found.inertia)) == (version, id(self.problem.loads.inertia)):
            return found
        dynamic = bool(self.problem.loads.inertia.any())
        weights = weights_of(self.problem, self.method.name, None if dynamic else self.method.pseudo_dt)
        if found is not None and not np.array_equal(found.weights, weights):
            found = None
        if found is None or found.version != version:
            found = self._make_workplace(weights, dynamic, found)
        known[self.method] = found._replace(inertia=self.problem.loads.inertia, dynamic=dynamic)
        return known[self.method]

    def _make_workplace(self, weights: np.ndarray, dynamic: bool, before: Workplace | None) -> Workplace:
        """Prepare projections, reusing those in `before` for terms that have not changed."""
        p, method = self.problem, self.method
        terms = p.model.terms
        order = sorted(range(len(terms)), key=lambda k: terms[k].ties != method.weak_first)
        by_term = {
            k: self._project(k, weights) if before is None or changes(terms[k]) else before.by_term[k]
            for k in order
        }
        projections = [q for k in order for q in by_term[k]]
        if len(rollers := p.model.rollers):
            projections.append(PutBack(vertex_places(len(rollers)), (), rollers, p.states.prescribing))
        projections.extend(touching(p, weights))
        memory = [array for q in projections for array in q.memory]
        sizes = np.concatenate([[0], *(np.diff(q.places.colour_start) for q in projections)])
        work = by_term, tuple(projections), len(sizes) - 1, int(sizes.max())
        return Workplace(p.loads.inertia, dynamic, weights, p.layout.version, *work, memory, [])

    def _project(self, k: int, weights: np.ndarray) -> list:
        """Create the projections of a term, with memory (batch, rows, fields, lanes)."""
        p, term = self.problem, self.problem.model.terms[k]
        batches = self._batches(k)
        make = maker_for(self.method, term, batches.rows)
        held = corner_normals(p.model, batches.corners, p.dtype)
        places = Places(*batches.places, batches.gather_corners(weights, p.dtype), held)
        made: list[Projection] = make(self.method, term, places)
        return [q._replace(memory=tuple(p.zeros((p.copies, *m.shape)) for m in q.memory)) for q in made]

    def _batches(self, k: int) -> ElementBatches:
        p, method = self.problem, self.method
        if changes(p.model.terms[k]):
            return p.layout.coloured_elements(k, 1)
        size = method.cluster_size if method.ordering == "clusters" else 1
        cells = method.ordering == "cells" and p.model.terms[k].fills
        how = k, size, cells, method.vertex_order == "smallest_last"
        return p.shared(f"elements of term {how}", lambda: p.layout.coloured_elements(*how))
