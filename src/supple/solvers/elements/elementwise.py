"""What the element-wise methods share: options, steps of (pseudo-)time, and the run itself.

All of them solve x = x̃ + W Σ f(x) [GPBD eq. 6], where x̃ is where inertia and external forces alone would
take the vertices, f are the forces of the elements, and W = Δt²/m, 0 for pinned vertices. A sweep visits
every element once and changes the positions of its vertices and what the method remembers of the element.
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
"""Numbers that a visit of a tetrahedron reads: shape gradients and volume, and W of the corners."""


@dataclass(frozen=True)
class ElementOptions(Solver):
    """Options of every element-wise method.

    ordering: "colours" of single elements, "clusters" of up to cluster_size of them [BNH Algorithm 4], or
    "cells" of a block; vertex_order: "smallest_last" takes elements in such an order of their vertices before
    that [BNH section 6.2], "mesh" as they come. weak_first: visit weak constraints before the elements
    instead of after them. A quasistatic problem is run to rest in pseudo-time (XPBD-QS) [PBNG section 6.1],
    in steps of pseudo_dt seconds with sweeps_per_step sweeps each; pseudo_time: "flow", which begins every
    step without velocity, or "dynamics", which keeps velocities but for the part pseudo_damping, as the paper
    does. iterations: sweeps per step when a call sets no other limit.
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
    """Whether a step of pseudo-time takes over the forces of the last one: possible where they are linear in
    what the method remembers."""
    remembers: ClassVar[int] = 0
    """Numbers that it keeps of each tetrahedron."""

    def begin(self, problem: Problem) -> ElementRun:
        return ElementRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        return model.elements * ((REST + WEIGHTS + self.remembers) * number + 16)


class ElementRun(Run):
    """An element-wise method at work on one problem, which has one run of a method at a time."""

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
        """Whether the steps are those of time, not of pseudo-time."""
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
        """Colours of all projections together."""
        return self._workplace.phases

    def notes(self, copy: int = 0) -> list[str]:
        notes = [f"{self.colours} element colours"]
        if self.rest is not None:
            notes += self.rest.notes(self.method, copy)
        return notes + remarks(self.projections, self._sweeps_in_step)

    def on_its_way(self, copy: int) -> bool:
        return self.rest is not None and not self.rest.at_rest(copy)

    def advance(self, iterations: int) -> None:
        """Sweep that many times; in pseudo-time, start a new step whenever one has had its sweeps."""
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
        """Forget all forces and move to x̃ = x + Δt v + W f_ext; the problem's u is x + Δt v already, with
        v = 0 in pseudo-time."""
        p = self.problem
        for memory in self._workplace.memory:
            p.device.clear(memory)
        p.contacts.detect()
        self._displace()
        self._sweeps_in_step = 0

    def _begin_again(self) -> None:
        """The step from its start with other stencils: nobody knows how far those that are gone have moved
        what. In pseudo-time that is a new step, from where the last has led."""
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
        """The next step of pseudo-time with the forces that the last one has found: x̃ = x + W f_ext, and on
        by W times those forces. They are exerted anew, since x - x̃ - W f would collect rounding for ever."""
        self.problem.contacts.detect()
        self._displace()
        self.sweep(tuple(Exerted(q.places, q) for q in self.projections), 1)
        self._sweeps_in_step = 0

    def residuals(self) -> tuple[float, float] | None:
        from supple.solvers.elements.primal_dual import (
            residuals,  # which knows the projections of all methods
        )

        return residuals(self)

    def sweep(self, projections: tuple, count: int) -> None:
        """Visit every element of projections so many times."""
        p, work = self.problem, self._workplace
        sweep = ElementSweep(projections, p.u)
        p.device.step(iterations, count * work.phases, sweep, count, widest=work.widest)

    def _find_workplace(self) -> Workplace:
        """That of an earlier run of this method on the problem, if it had the same W."""
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
        """With the projections that there were before of terms that are still the same."""
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
        """The projections of a term, with memory (copies, rows, fields, lanes)."""
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
