"""What the element-wise methods share: options, steps of (pseudo-)time, and the run itself.

All of them solve x = x̃ + W Σ f(x) [GPBD eq. 6], where x̃ is where inertia and external forces alone would
take the vertices, f are the forces of the elements, and W = Δt²/m, 0 for pinned vertices. A sweep visits
every element once and changes the positions of its vertices and what the method remembers of the element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from supple.checks import check_iterations, flag, one_of, positive, whole_number
from supple.kernels import RECORD
from supple.model import Model
from supple.ordering import ElementBatches, changes
from supple.problem import Problem
from supple.problem.held import corner_normals
from supple.problem.records import Displace
from supple.solvers.element_sweeps import ElementSweep
from supple.solvers.iterating import iterations
from supple.solvers.projection import (
    Exerted,
    Places,
    Projection,
    PutBack,
    make_projections,
    vertex_places,
)
from supple.solvers.solver import Run, Solver
from supple.solvers.touching import touching

REST, WEIGHTS = 10, 4
"""Numbers that a visit of a tetrahedron reads: shape gradients and volume, and W of the corners."""


@dataclass(frozen=True)
class ElementOptions(Solver):
    """Options of every element-wise method.

    ordering: "colours" or "clusters" of up to cluster_size elements [BNH Algorithm 4]; weak_first: visit weak
    constraints before the elements instead of after them. A quasistatic problem is run to rest in pseudo-time
    (XPBD-QS) [PBNG section 6.1]: fully damped steps of pseudo_dt seconds with sweeps_per_step sweeps each.
    iterations: sweeps per step when a call sets no other limit.
    """

    ordering: Literal["colours", "clusters"] = "colours"
    cluster_size: int = 5
    weak_first: bool = False
    pseudo_dt: float = 0.01
    sweeps_per_step: int = 10
    iterations: int | None = None

    def __post_init__(self) -> None:
        one_of("ordering", self.ordering, ("colours", "clusters"))
        whole_number("cluster_size", self.cluster_size)
        flag("weak_first", self.weak_first)
        positive("pseudo_dt", self.pseudo_dt, "s")
        whole_number("sweeps_per_step", self.sweeps_per_step)
        check_iterations(self.iterations)

    any_term: ClassVar[bool] = False
    only_with: ClassVar[dict[str, tuple[str, str]]] = {"cluster_size": ("ordering", "clusters")}
    batches: ClassVar[bool] = True
    recovers: ClassVar[bool] = False
    """Whether inverted elements of materials with a barrier are unfolded, where forces are infinite."""
    resumes: ClassVar[bool] = False
    """Whether a step of pseudo-time takes over the forces of the last one: possible where they are linear in
    what the method remembers."""
    remembers: ClassVar[int] = 0
    """Numbers that it keeps of each tetrahedron."""

    def begin(self, problem: Problem) -> ElementRun:
        return ElementRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        return model.elements * ((REST + WEIGHTS + self.remembers) * number + 16)


class Workplace(NamedTuple):
    """What a method needs for all steps with the same W (n + 1,), which the inertia (n,) gives: the version
    of the layout; its projections of each term, in the order of visits; all of these; the phases of a sweep
    and the most batches that one has; what the projections remember; and the external forces with the
    displacement W f by them."""

    inertia: np.ndarray
    dynamic: bool
    weights: np.ndarray
    version: int
    by_term: dict[int, list]
    projections: tuple
    phases: int
    widest: int
    memory: list[np.ndarray]
    drift: list[np.ndarray]


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
        if not self.dynamic:
            notes.append(
                f"run to rest in pseudo-time steps of {self.method.pseudo_dt:g} s, "
                f"{self.method.sweeps_per_step} sweeps each"
            )
        return notes

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
            self._sweep(self.projections, count)
            self._sweeps_in_step += count
            iterations -= count

    def _next_step(self) -> None:
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
        p, drift = self.problem, self._drift()
        p.device.on_records(Displace(p.u, drift, int(len(drift) > p.model.vertices + 1)))

    def _drift(self) -> np.ndarray:
        """W f_ext, records; remembered, since it is the same in every step."""
        p, known = self.problem, self._workplace.drift
        force = p.loads.force
        if not known or known[0] is not force:
            drift = np.zeros((*force.shape[:-2], p.model.vertices + 1, RECORD), p.dtype)
            drift[..., :-1, :3] = self.weights[:-1, None] * p.model.unheld(force)
            known[:] = force, drift.reshape(-1, RECORD)
        return known[1]

    def _resume_step(self) -> None:
        """The next step of pseudo-time with the forces that the last one has found: x̃ = x + W f_ext, and on
        by W times those forces. They are exerted anew, since x - x̃ - W f would collect rounding for ever."""
        self.problem.contacts.detect()
        self._displace()
        self._sweep(tuple(Exerted(q.places, q) for q in self.projections), 1)
        self._sweeps_in_step = 0

    def _sweep(self, projections: tuple, count: int) -> None:
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
        weights = self._weights(dynamic)
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
        p = self.problem
        batches = self._batches(k)
        held = corner_normals(p.model, batches.corners, p.dtype)
        places = Places(*batches.places, batches.gather_corners(weights, p.dtype), held)
        made: list[Projection] = make_projections(self.method, p.model.terms[k], places)
        return [q._replace(memory=tuple(p.zeros((p.copies, *m.shape)) for m in q.memory)) for q in made]

    def _batches(self, k: int) -> ElementBatches:
        p, method = self.problem, self.method
        if changes(p.model.terms[k]):
            return p.layout.coloured_elements(k, 1)
        size = method.cluster_size if method.ordering == "clusters" else 1
        name = f"elements of term {k} in clusters of {size}"
        return p.shared(name, lambda: p.layout.coloured_elements(k, size))

    def _weights(self, dynamic: bool) -> np.ndarray:
        """W (n + 1,): Δt²/m of the free vertices [m/N], 0 for pinned ones and padding."""
        p = self.problem
        stiffness = p.loads.inertia if dynamic else p.model.mass / self.method.pseudo_dt**2
        W = np.zeros(p.model.vertices + 1)
        free = p.model.free
        if np.any(stiffness[free] <= 0):
            raise ValueError(f"{self.method.name} divides by masses: every free vertex needs a positive one")
        W[:-1][free] = 1 / stiffness[free]
        return W
