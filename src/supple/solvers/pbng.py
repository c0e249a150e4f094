"""Position-based nonlinear Gauss-Seidel [PBNG section 7]:

    û ← uₙ + Δt vₙ, what inertia draws vertices to          problem/problem.py, Problem.begin_step
    for each sweep                                          iterating.py, `_sweep`
        for each vertex i, colour by colour  [section 10]   ordering, each_colour
            fᵢ ← -∂E/∂uᵢ,  Aᵢ ≥ ∂²E/∂uᵢ²  [eq. 33, 34]      problem/evaluation.py, net_force
            Δuᵢ ← Aᵢ⁻¹ fᵢ  [eq. 30]                         `_visit`: contact/coulomb.py, respond
            uᵢ ← uᵢ + ω t Δuᵢ  [eq. 28]                     `_visit`: limit_step, vertices/moving.py
        the same for vertices that are tied to each other   vertices/links.py
        acceleration  [section 7.3]                         acceleration/
    v ← (u - uₙ)/Δt                                         stepping.py

u are displacements, x = X + u, and E is the elastic, weak and external energy and ½ m/Δt² |u - û|²: external
forces are in E and not in û, which in the paper's x̂ [section 6] they are; section 7 is the case without
inertia. Vertices of a colour are in no element or constraint together, so that each sees the latest positions
of its neighbours, as in a serial sweep.

The paper's method is acceleration=None, links=False; its section 7.3 is `PaperSOR` and `PaperChebyshev`. Our
own are Anderson's acceleration, which is the default, links, and t ≤ 1, which keeps the energy finite; ω is
1 but with `SOR`. The bound on ∂²ψ/∂F² in Aᵢ is eq. 32 or what the material has in its place. Obstacles add
the force with which the vertex ends where they let it be: Δuᵢ = Aᵢ⁻¹ (fᵢ + rᵢ). Section 7.2 cuts off the part
of Aᵢ⁻¹ fᵢ that leads into them instead, which comes to rest where fᵢ ∥ Aᵢ n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, scale
from supple.checks import check_iterations, flag, one_of
from supple.contact import respond
from supple.kernels import divide, do, gather, least_share
from supple.linear.condensed import condense_stiffness
from supple.model import Model
from supple.ordering import colour_bounds, each_colour
from supple.problem import Balance, Balances, Problem
from supple.problem.contact_records import clamp_all
from supple.problem.evaluation import net_force
from supple.problem.held import held_at
from supple.problem.totals import Totals
from supple.solvers.acceleration import (
    ACCELERATIONS,
    Acceleration,
    Anderson,
    accelerate,
    acceleration_of,
    begin_acceleration,
)
from supple.solvers.iterating import iterate, iterations
from supple.solvers.solver import Run, Solver
from supple.solvers.vertices.exact_blocks import exact_blocks
from supple.solvers.vertices.links import no_links, rows_of_links, sweep_links
from supple.solvers.vertices.moving import move
from supple.terms import deform_all, keep_up, limit_step

ANDERSON = Anderson()
"""The acceleration that PBNG has unless another is asked for."""

DETECT_EVERY = 10
"""Sweeps after which vertices find anew what they may touch, however many a call of `advance` makes."""


class Visit(NamedTuple):
    """Move the vertices of a batch: uᵢ += ω t Aᵢ⁻¹ (fᵢ + rᵢ), rᵢ the forces of obstacles that they touch, and
    t ≤ 1 such that no energy becomes infinite."""

    terms: Any
    vertices: Any
    u: Any
    anchor: Any
    omega: Any
    rejected: Any


@do.of(Visit)
def _visit(visit, place):
    terms, vertices, u = visit.terms, visit.vertices, visit.u
    batch = divide(place, vertices.width)
    ui = gather(u, vertices.own, batch, 0)
    f, A, _, q = net_force(terms, vertices, batch, u, visit.anchor, ui)
    N = held_at(vertices.held, batch)  # projects on directions that are held
    # ω Δuᵢ = ω Aᵢ⁻¹ (fᵢ + rᵢ), rᵢ = 0 without obstacles [eq. 30]
    step = respond(vertices.contact, vertices.own, batch, N, A, f, ui, visit.omega)
    t = least_share(batch, limit_step(terms, batch, u, ui, step, q))
    move(vertices, batch, u, ui, add(ui, scale(t, step)), visit.rejected)  # [eq. 28]
    keep_up(terms, vertices.own, batch, u, ui)  # F of elements that a grid carries


class Sweep(NamedTuple):
    """Visit all vertices colour by colour, then groups of those that are linked, and accelerate; then put all
    vertices out of obstacles and back into their balls. bounds: where the first colour begins and ends;
    records: how many vertices there are to put back; deforms: bodies that a grid carries, whose F visits look
    up and the sweep finds first."""

    visit: Any
    colours: Any
    bounds: Any
    links: Any
    acceleration: Any
    clamps: Any
    records: Any
    deforms: Any = ()


@iterate.of(Sweep)
def _sweep(sweep, team, phase, iteration):
    visit = sweep.visit
    phase = deform_all(sweep.deforms, team, phase)
    phase = each_colour(team, phase, sweep.colours, sweep.bounds, visit)
    phase = sweep_links(sweep.links, team, phase, visit.u, visit.anchor, visit.omega)
    phase = accelerate(sweep.acceleration, team, phase, iteration, visit.u)
    return clamp_all(sweep.clamps, team, phase, sweep.records)


@dataclass(frozen=True)
class PBNG(Solver):
    """PBNG with its acceleration.

    acceleration: `Anderson(window=10)`, which needs no estimate; `Chebyshev(rho=..., gamma=..., start=...)`;
    `SOR(omega=...)`; those of the paper, `PaperChebyshev()` and `PaperSOR()`; a name such as "chebyshev" for
    one as it is; None for none, which is the paper's method.
    links: after the vertices, also move those tied by a weak constraint as one, so that stiff constraints
    converge at the pace of the bodies they tie; False is the paper's method.
    blocks: what stands for ∂²E/∂xᵢ² in a visit, its positive definite "bound" [PBNG eq. 33], or "exact", the
    block itself, which is vertex block descent (VBD) and may go uphill in compressed, nearly incompressible
    bodies.
    iterations: sweeps per step when a call sets no other limit.
    """

    name: ClassVar[str] = "pbng"
    batches: ClassVar[bool] = True
    parts: ClassVar[dict[str, dict[str, Any]]] = {"acceleration": ACCELERATIONS}

    acceleration: (
        Acceleration | Literal["none", "sor", "chebyshev", "anderson", "paper_sor", "paper_chebyshev"] | None
    ) = ANDERSON
    links: bool = True
    blocks: Literal["bound", "exact"] = "bound"
    iterations: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "acceleration", acceleration_of(self.acceleration))
        flag("links", self.links)
        one_of("blocks", self.blocks, ("bound", "exact"))
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> PBNGRun:
        return PBNGRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        acceleration = acceleration_of(self.acceleration)
        return 0 if acceleration is None else acceleration.memory(model.vertices, number)


class PBNGRun(Run):
    """PBNG at work on one problem."""

    check_every = 10

    def __init__(self, options: PBNG, problem: Problem) -> None:
        self.problem, self.options = problem, options
        self._since_detection = 0
        self.acceleration = begin_acceleration(None, problem)
        if problem.contacts.rigid and problem.device.name == "cpu":
            problem.following.condense = condense_stiffness
        self._see_stencils()

    def _see_stencils(self) -> None:
        """Prepare what depends on the stencils that there are."""
        p = self.problem
        self._version, self._moves = p.layout.version, p.contacts.moves
        acceleration = acceleration_of(self.options.acceleration)
        self.omega = 1.0 if acceleration is None else acceleration.relaxation
        caution = self.acceleration.caution
        self.acceleration = begin_acceleration(acceleration, p)
        self.acceleration.resume(caution)
        self.links = rows_of_links(p) if self.options.links else p.shared("no links", no_links)
        shape = p.copies, *p.loads.rows.inertia.shape
        self._rejected = p.shared("rejected", lambda: p.zeros(shape))

    @property
    def _exchanged(self) -> bool:
        """Whether stencils or rigid bodies have changed since the last look at them."""
        return (self.problem.layout.version, self.problem.contacts.moves) != (self._version, self._moves)

    @property
    def colours(self) -> int:
        return self.problem.layout.colours + len(self.links.colour_start) - 1

    @property
    def guarded(self) -> bool:
        return self.acceleration.guarded

    def rejected(self) -> list[int]:
        """Moves of vertices that were not finite and therefore not made, since this was last asked."""
        p = self.problem
        totals = p.shared("rejected in all", lambda: Totals(p))
        counts = np.rint(totals.added(self._rejected)[:, 0]).astype(int)
        if counts.any():
            p.device.clear(self._rejected)
        return counts.tolist()

    def notes(self, copy: int = 0) -> list[str]:
        return self.acceleration.notes(copy)

    def advance(self, count: int) -> None:
        """Sweep that many times. Where stencils were exchanged, or rigid bodies moved, what is known of
        earlier sweeps is no guide to the next."""
        if self._exchanged:
            self._see_stencils()
        if self.problem.gases:
            for _ in range(count):
                self.problem.gases.anticipate()
                self._make_sweeps(1)
        else:
            self._make_sweeps(count)

    def _make_sweeps(self, count: int) -> None:
        if self.problem.room:
            self._sweep_in_balls(count)
        elif self.problem.contacts:
            self._sweep_and_touch(count)
        else:
            self._sweep(count)

    def _sweep_and_touch(self, count: int) -> None:
        """Find anew what obstacles vertices may touch, now and then."""
        while count > 0:
            some = min(count, DETECT_EVERY - self._since_detection)
            self._sweep(some)
            count, self._since_detection = count - some, self._since_detection + some
            if self._since_detection == DETECT_EVERY:
                self._find_planes()

    def _sweep_in_balls(self, count: int) -> None:
        """Balls move along with the vertices, so that surfaces that touch can go far together."""
        for _ in range(count):
            if self.problem.room.tight:
                self.problem.following.make_room()
            if self.problem.contacts:
                self._sweep_and_touch(1)
            else:
                self._sweep(1)

    def _find_planes(self) -> None:
        """Find anew the planes of obstacles that vertices may touch; that may move u."""
        p, self._since_detection = self.problem, 0
        p.contacts.detect()
        p.room.put_back()
        for records in self.acceleration.follows:
            p.device.assign(records, p.u)

    def _sweep(self, count: int) -> None:
        p = self.problem
        colours, acceleration = p.layout.batch_colours, self.acceleration.ahead(count)
        terms = p.layout.terms if self.options.blocks == "bound" else exact_blocks(p.layout.terms)
        visit = Visit(terms, p.loads.rows, p.u, p.states.anchor, self.omega, self._rejected)
        follows = self.acceleration.follows
        bounds, clamps = colour_bounds(colours, 0), (*p.contacts.clamp(*follows), *p.room.confine(*follows))
        deforms = p.layout.deforms(p.u)
        sweep = Sweep(visit, colours, bounds, self.links, acceleration, clamps, p.device.records, deforms)
        phases = count * (len(deforms) + self.colours + acceleration.phases + int(bool(clamps)))
        p.device.step(iterations, phases, sweep, count, widest=p.layout.widest)

    def start_at(self, balances: Balances) -> None:
        if self._exchanged:
            self._see_stencils()
        self.acceleration.start_at(balances)

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """See how far the residual has come; acceleration starts over where it made things worse."""
        moved = self.acceleration.observe(balance, copy)
        self.problem.room.stale |= moved
        return moved

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        moved = self.acceleration.observe_all(balances, active)
        self.problem.room.stale |= bool(moved.any())
        return moved
