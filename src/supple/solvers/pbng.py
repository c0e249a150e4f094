"""Position-based nonlinear Gauss-Seidel [PBNG section 7].

Each sweep visits the vertices colour by colour. A visit makes one modified Newton step on the potential as
a function of that vertex alone: Δxᵢ = Aᵢ⁻¹ fᵢ [PBNG eq. 30], with the positive definite bound Aᵢ of eq. 33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from supple.algebra.matrix3 import dot, scale, solve_spd
from supple.checks import check_iterations, flag, one_number, one_of, whole_number
from supple.kernels import (
    all_lanes,
    divide,
    enter,
    gather,
    inside,
    kernel,
    leads,
    least_share,
    leave,
    load,
    physics,
    proceed,
    scatter,
    select,
    store,
)
from supple.ordering import batch_at, colour_bounds, colour_count
from supple.solvers.acceleration import NOT_ACCELERATED, accelerate
from supple.solvers.anderson import Anderson
from supple.solvers.chebyshev import Chebyshev
from supple.solvers.evaluation import net_force
from supple.solvers.links import no_links, rows_of_links, sweep_links
from supple.solvers.problem import Balance, Problem
from supple.solvers.records import begin_step
from supple.terms import limit_step


@physics
def visit(terms, vertices, batch, u, anchor, omega, rejected):
    """Move the vertices of a batch: xᵢ += ω Aᵢ⁻¹ fᵢ. Where that is not finite they stay, which is counted."""
    ui = gather(u, vertices.own, batch, 0)
    f, A, _ = net_force(terms, vertices, batch, u, anchor, ui)
    step = scale(omega, solve_spd(A, f))
    t = least_share(batch, limit_step(terms, batch, u, ui, step, 0.0 * f[0] + 1.0))
    moved = (ui[0] + t * step[0], ui[1] + t * step[1], ui[2] + t * step[2])
    finite = dot(moved, moved) < 1e30
    kept = (select(finite, moved[0], ui[0]), select(finite, moved[1], ui[1]), select(finite, moved[2], ui[2]))
    if leads(batch):
        scatter(u, vertices.own, batch, 0, kept)
        if not all_lanes(finite):
            store(rejected, batch, 0, load(rejected, batch, 0) + select(finite, 0.0 * t, 1.0))


@kernel
def sweeps(
    team, steps, terms, vertices, batch_colours, links, u, anchor, omega, rejected, acceleration, iterations
):
    """That many accelerated sweeps in every step. rejected (copies, batches, 1, lanes) counts moves that were
    not finite."""
    colours = colour_count(batch_colours)
    first, last = colour_bounds(batch_colours, 0)
    phase = 0
    for _ in range(steps.times):
        phase = begin_step(steps, team, phase)
        for iteration in range(iterations):
            for colour in range(colours):
                place = enter(team, phase, first, last)
                while inside(place, last):
                    batch = divide(batch_at(batch_colours, place), vertices.width)
                    visit(terms, vertices, batch, u, anchor, omega, rejected)
                    place = proceed(team, phase, place, first, last)
                following = colour + 1 if colour + 1 < colours else 0
                bounds = colour_bounds(batch_colours, following)  # read while others still work
                leave(team, phase, first, last)
                first, last = bounds
                phase += 1
            sweep_links(links, team, phase, u, anchor, omega)
            phase += len(links.colour_start) - 1
            accelerate(acceleration, team, phase, iteration, u)
            phase += acceleration.phases


@dataclass(frozen=True)
class PBNG:
    """PBNG with its acceleration.

    acceleration: "anderson", which combines the last `window` sweeps and needs no estimate; "chebyshev" with
    the estimated convergence rate `rho`, the relaxation `gamma` and the sweep at which it starts; "sor",
    which takes `omega` times each vertex's step; or "none".
    links: after the vertices, also move those tied by a weak constraint as one, so that stiff constraints
    converge at the pace of the bodies they tie; False is the paper's method.
    iterations: sweeps per step when a call sets no other limit.
    """

    name: ClassVar[str] = "pbng"

    acceleration: Literal["none", "sor", "chebyshev", "anderson"] = "anderson"
    omega: float = 1.7
    rho: float = 0.99
    gamma: float = 1.5
    start: int = 10
    links: bool = True
    iterations: int | None = None
    window: int = 10

    only_with: ClassVar[dict[str, tuple[str, str]]] = {
        "omega": ("acceleration", "sor"),
        "rho": ("acceleration", "chebyshev"),
        "gamma": ("acceleration", "chebyshev"),
        "start": ("acceleration", "chebyshev"),
        "window": ("acceleration", "anderson"),
    }

    def __post_init__(self) -> None:
        one_of("acceleration", self.acceleration, ("none", "sor", "chebyshev", "anderson"))
        one_number("omega", self.omega, above=0, below=2)
        one_number("rho", self.rho, at_least=0, below=1)
        one_number("gamma", self.gamma, above=0, below=2)
        whole_number("start", self.start, at_least=0)
        flag("links", self.links)
        check_iterations(self.iterations)
        whole_number("window", self.window, at_most=30)

    def begin(self, problem: Problem) -> PBNGRun:
        return PBNGRun(self, problem)


class PBNGRun:
    """PBNG at work on one problem."""

    patience = 500
    recovers = False

    def __init__(self, options: PBNG, problem: Problem) -> None:
        self.problem, self.options = problem, options
        self.check_every = 10
        self.omega = options.omega if options.acceleration == "sor" else 1.0
        self._see_stencils()

    def _see_stencils(self) -> None:
        """Prepare what depends on the stencils that there are."""
        p, options = self.problem, self.options
        self._model = p.model
        self.acceleration: Chebyshev | Anderson | None = None
        if options.acceleration == "chebyshev":
            self.acceleration = Chebyshev(options.rho, options.gamma, options.start, p)
        if options.acceleration == "anderson":
            self.acceleration = Anderson(options.window, p)
        self.links = rows_of_links(p) if options.links else p.shared("no links", no_links)
        shape = p.copies, *p.vertices.inertia.shape
        self._rejected = p.shared("rejected", lambda: p.zeros(shape))

    @property
    def colours(self) -> int:
        return self.problem.colours + len(self.links.colour_start) - 1

    @property
    def guarded(self) -> bool:
        return self.acceleration is not None

    def rejected(self) -> list[int]:
        """Moves of vertices that were not finite and therefore not made, since this was last asked."""
        self.problem.pull(self._rejected)
        counts = self._rejected.reshape(self.problem.copies, -1).sum(axis=1, dtype=int)
        if counts.any():
            self.problem.clear(self._rejected)
        return counts.tolist()

    def notes(self, copy: int = 0) -> list[str]:
        return self.acceleration.notes(copy) if self.acceleration else []

    def advance(self, iterations: int) -> None:
        """Sweep that many times. Where stencils were exchanged, what is known of earlier sweeps is no guide
        to the next."""
        p = self.problem
        if p.model is not self._model:
            self._see_stencils()
        acceleration = self.acceleration.rows(iterations) if self.acceleration else NOT_ACCELERATED
        p.step(
            sweeps,
            iterations * (self.colours + acceleration.phases),
            p.terms,
            p.vertices,
            p.batch_colours,
            self.links,
            p.u,
            p.anchor,
            self.omega,
            self._rejected,
            acceleration,
            iterations,
            widest=p.widest,
        )

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """See how far the residual has come; acceleration starts over where it made things worse."""
        return self.acceleration is not None and self.acceleration.observe(balance, copy)
