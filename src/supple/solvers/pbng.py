"""Position-based nonlinear Gauss-Seidel [PBNG: Y. Chen et al. 2024, section 7]:

    û ← uₙ + Δt vₙ, target of inertia                       Problem.begin_step (problem/problem.py)
    u ← initial guess                                       predict_fall (problem/initial_guess.py)
    for each sweep                                          `_sweep`
        for each vertex i, color by color  [section 10]     each_color (ordering/coloring.py)
            fᵢ ← -∂E/∂uᵢ,  Aᵢ ≈ ∂²E/∂uᵢ²  [eq. 33, 34]      net_force (problem/force_kernels.py), fᵢ: r there
            Δuᵢ ← Aᵢ⁻¹ (fᵢ + rᵢ)  [eq. 30]                  solve_with_contact
                                                            (collision/obstacles/friction_cone.py)
            uᵢ ← uᵢ + ω t Δuᵢ  [eq. 28]                     move (vertexwise/move.py)
        the same for groups of tied vertices, our own       sweep_groups (vertexwise/tied_group_moves.py)
        acceleration  [section 7.3]                         accelerate (acceleration/acceleration.py)
        u out of obstacles, into the trust region           clamp_all (contact/state/obstacle_kernels.py)
        contact planes every 10 sweeps (paper: per step)    `_detect_contacts`
    v ← (u - uₙ)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)

u are displacements, x = X + u. E is the elastic, weak constraint and external energy plus the inertial term ½
m/Δt² |u - û|²; section 7 is the case without inertia. External forces are part of E and not of û, in contrast
to x̂ [section 6]. rᵢ is the contact force of obstacles, 0 without. Vertices of one color share no element or
constraint, so each sees the latest positions of its neighbors, as in a serial sweep.

    PBNG                                here, right column in the letters of this file
    x_i, x̂                              X + uᵢ, X + û + Δt² M⁻¹ f_ext
    f_i + f_i^ext [eq. 30]              fᵢ, with inertia
    A [eq. 33, 34]                      Aᵢ - m/Δt² I
    C̃ [eq. 32]                          `bound_coefficients` or `hessian_bound` of the material
    2μ, λ of any isotropic ψ [eq. 32]   2μ, λ by default; own pairs include μ, λ + μ of NeoHookean and
                                        μ, |f″(J)| of LogNeoHookean
    C_c, K_c [eq. 18, 19]               constraint_gap, stiffness of terms/weak_constraint.py
    x̄_i, n_i [section 7.2]              Planes (collision/obstacles/contact_planes.py)
    ω, γ, ρ [section 7.3]               `PaperSOR`, `Chebyshev`; the ω of the box is that of `SOR`
    Ψ^cm(F^mem), E^cm [eq. 35, 36]      h ψ(F), h E of `TriangleElasticity` with thickness h; ψ of Corotated,
                                        or of PlaneStressCorotated with λ = E ν/(1 - ν²)
    F^mem, J(F^mem) [eq. 36]            F = F^mem + n n₀ᵀ with the normals n, n₀; J = det F
    λ/4 J² L^mem ⊗ L^mem [section 8.1]  λ cof F ⊗ cof F, the same matrix in the plane of the triangle
    k_b θ_e²/2 [eq. 35]                 HingeBending(k_b, weighted=False, rest="flat"), θ in (-π, π]
    ∂θ/∂x ⊗ ∂θ/∂x [eq. 37]              ∇C ∇Cᵀ + max(C κ, 0.01 |∇C|²) I of terms/base/constraint.py, C = θ

Aᵢ bounds ∂²E/∂uᵢ² from above unless elements are inverted (`hessian_bound`, materials/material.py).

The paper's method is acceleration=None, tied_groups=False and, in time steps, initial_guess="inertial" of the
scene. Its section 7.3 is `PaperSOR` and `PaperChebyshev`. Deviations; no option turns off 3 to 6:

1. The defaults are Anderson acceleration and tied groups. `SOR` relaxes vertex steps; otherwise, ω is 1.
   hessian="exact" takes the exact blocks of vertex block descent (VBD), for tetrahedra only
   (vertexwise/vertex_block_descent.py); acceleration and tied groups remain.
2. Section 7 prints no initial guess; that it is x̂ is inferred from Fig. 19 and 20 (eq. 22 prints f_ext with
   a minus sign). "inertial" starts pinned bodies at û + Δt² g and others at û + Δt² ΣF/Σm, both x̂ under
   gravity alone. The default is "adaptive", which starts pinned bodies at û.
3. Some materials have bounds of their own in place of eq. 32. Hinges and springs, C²k/2, add the multiple of
   I above to the rank-one eq. 37: C κ bounds C ∇²C, and 0.01 |∇C|² keeps steps finite.
4. The contact force rᵢ, with Coulomb friction, lets the vertex end at an admissible position. Section 7.2
   instead projects penetrating vertices onto the surface once, before the step. If then Δuᵢ · n < 0, it
   projects Δuᵢ = Aᵢ⁻¹ fᵢ onto the tangent plane. Its fixed point has fᵢ ∥ Aᵢ n, not fᵢ ∥ n.
5. t ≤ 1 keeps the energy finite, and non-finite moves are discarded. Accelerations restart, in general from
   their best state, when E or |f| has grown.
6. Barrier contact keeps every vertex in its ball of a trust region, in which surfaces cannot intersect
   (contact/state/trust_region.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, scale
from supple.collision import solve_with_contact
from supple.contact.state.obstacle_kernels import clamp_all
from supple.kernels import do, gather, shared_lane_min, split_lanes
from supple.linear.condensed import condense_stiffness
from supple.model.model import Model
from supple.ordering import color_bounds, each_color
from supple.problem import Balance, Balances, Problem
from supple.problem.diagnostics import Totals
from supple.problem.dirichlet_rows import constrained_at
from supple.problem.force_kernels import net_force
from supple.solvers.acceleration import (
    ACCELERATIONS,
    Acceleration,
    Anderson,
    accelerate,
    acceleration_of,
    begin_acceleration,
)
from supple.solvers.base import Run, Solver
from supple.solvers.launch import iterate, run_iterations
from supple.solvers.vertexwise.move import move
from supple.solvers.vertexwise.tied_group_moves import group_data, no_tied_groups, sweep_groups
from supple.solvers.vertexwise.vertex_block_descent import exact_blocks
from supple.support.arguments import check_choice, check_flag, check_iterations
from supple.support.keywords import suggest_keywords
from supple.terms import deform_all, limit_step, update_deformations

ANDERSON = Anderson()
"""Default acceleration of PBNG."""

DETECTION_INTERVAL = 10
"""Sweeps between searches for obstacle contacts, counted across calls of `advance`."""


class Sweep(NamedTuple):
    """One sweep over the vertices and tied groups, with acceleration and bound constraints.

    All vertices are updated color by color, then groups of tied vertices. After the acceleration, vertices
    are projected out of obstacles and back into the trust region.

    Attributes:
        update: Update of a SIMD batch.
        colors: SIMD batches of each color.
        bounds: Item range of the first color.
        tied_groups: Groups of tied vertices.
        acceleration: Acceleration.
        clamps: Projections out of obstacles and into the trust region.
        records: Number of vectors to project.
        deforms: Grid-embedded bodies; their F is computed at the start of the sweep, for lookup by the
            updates.
    """

    update: Any
    colors: Any
    bounds: Any
    tied_groups: Any
    acceleration: Any
    clamps: Any
    records: Any
    deforms: Any = ()


@iterate.of(Sweep)
def _sweep(sweep, team, phase, iteration):
    """Sweep once over the vertices, then over the tied groups, and accelerate."""
    update = sweep.update
    phase = deform_all(sweep.deforms, team, phase)
    phase = each_color(team, phase, sweep.colors, sweep.bounds, update)
    phase = sweep_groups(sweep.tied_groups, team, phase, update.u, update.anchor, update.omega)
    phase = accelerate(sweep.acceleration, team, phase, iteration, update.u)
    return clamp_all(sweep.clamps, team, phase, sweep.records)


class VertexUpdate(NamedTuple):
    """Update of the vertices of a SIMD batch: uᵢ += ω t Aᵢ⁻¹ (fᵢ + rᵢ).

    rᵢ are the contact forces of obstacles, and t ≤ 1 keeps the energy finite.

    Attributes:
        terms: Packed energy terms.
        vertices: Packed vertex data.
        u: Displacements, padded vectors [m].
        anchor: Inertial targets û, padded vectors [m].
        omega: Relaxation factor ω.
        rejected: Counters of discarded non-finite moves.
    """

    terms: Any
    vertices: Any
    u: Any
    anchor: Any
    omega: Any
    rejected: Any


@do.of(VertexUpdate)
def _update_vertices(update, item):
    """Update the vertices of one batch: the body of the inner loop of the box."""
    terms, vertices, u = update.terms, update.vertices, update.u
    batch = split_lanes(item, vertices.width)
    ui = gather(u, vertices.own, batch, 0)
    f, A, _, inverse_square_safe_radius = net_force(terms, vertices, batch, u, update.anchor, ui)
    N = constrained_at(vertices.constrained, batch)  # projection onto constrained directions
    # ω Δuᵢ = ω Aᵢ⁻¹ (fᵢ + rᵢ), rᵢ = 0 without obstacles [eq. 30]
    step = solve_with_contact(vertices.contact, vertices.own, batch, N, A, f, ui, update.omega)
    t = shared_lane_min(batch, limit_step(terms, batch, u, ui, step, inverse_square_safe_radius))
    move(vertices, batch, u, ui, add(ui, scale(t, step)), update.rejected)  # [eq. 28]
    update_deformations(terms, vertices.own, batch, u, ui)  # F of grid-embedded elements


@suggest_keywords
@dataclass(frozen=True)
class PBNG(Solver):
    """Position-based nonlinear Gauss-Seidel (PBNG): sweeps over the vertices, with acceleration.

    Args:
        acceleration: `Anderson(window=10)`, which needs no estimate; `Chebyshev(rho=..., gamma=...,
            first_iteration=...)`; `SOR(omega=...)`; those of the paper, `PaperChebyshev()` and `PaperSOR()`;
            a name such as "chebyshev" for one with default options; None for the paper's method without
            acceleration.
        tied_groups: Also move vertices tied by a weak constraint as one group, after the sweep over single
            vertices. Stiff constraints then converge as fast as the bodies they connect. False is the paper's
            method.
        hessian: Block A of a vertex update: "bound", positive definite [PBNG eq. 32-34], or "exact",
            ∂²E/∂uᵢ² of tetrahedra, the block of vertex block descent (VBD). Its steps may go uphill in
            compressed, nearly incompressible bodies.
        iterations: Sweeps per step unless the call sets a limit.
    """

    name: ClassVar[str] = "pbng"
    batches: ClassVar[bool] = True
    parts: ClassVar[dict[str, dict[str, Any]]] = {"acceleration": ACCELERATIONS}

    acceleration: (
        Acceleration | Literal["none", "sor", "chebyshev", "anderson", "paper_sor", "paper_chebyshev"] | None
    ) = ANDERSON
    tied_groups: bool = True
    hessian: Literal["bound", "exact"] = "bound"
    iterations: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "acceleration", acceleration_of(self.acceleration))
        check_flag("tied_groups", self.tied_groups)
        check_choice("hessian", self.hessian, ("bound", "exact"))
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> PBNGRun:
        return PBNGRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        acceleration = acceleration_of(self.acceleration)
        return 0 if acceleration is None else acceleration.memory(model.vertices, number)


class PBNGRun(Run):
    """PBNG run on one problem."""

    check_every = 10

    def __init__(self, options: PBNG, problem: Problem) -> None:
        self.problem, self.options = problem, options
        self._sweeps_since_detection = 0
        self.acceleration = begin_acceleration(None, problem)
        if problem.contacts.rigid and problem.device.name == "cpu":
            problem.dynamic_terms.condense = condense_stiffness
        self._update_stencils()

    def advance(self, count: int) -> None:
        """Run `count` sweeps.

        After a change of stencils or a motion of rigid bodies, the acceleration restarts: earlier sweeps do
        not predict the next ones.
        """
        if self._is_outdated:
            self._update_stencils()
        if self.problem.gases:
            for _ in range(count):
                self.problem.gases.predict_pressures()
                self._run_sweeps(1)
        else:
            self._run_sweeps(count)

    def _run_sweeps(self, count: int) -> None:
        if self.problem.trust_region:
            self._sweep_in_trust_region(count)
        elif self.problem.contacts:
            self._sweep_with_obstacles(count)
        else:
            self._launch_sweeps(count)

    def _sweep_with_obstacles(self, count: int) -> None:
        """Sweep with obstacles, searching for contacts every `DETECTION_INTERVAL` sweeps."""
        while count > 0:
            sweeps = min(count, DETECTION_INTERVAL - self._sweeps_since_detection)
            self._launch_sweeps(sweeps)
            count, self._sweeps_since_detection = count - sweeps, self._sweeps_since_detection + sweeps
            if self._sweeps_since_detection == DETECTION_INTERVAL:
                self._detect_contacts()

    def _sweep_in_trust_region(self, count: int) -> None:
        """Sweep within the trust region.

        A tight trust region is rebuilt at the current positions, so that surfaces in contact can move
        over long distances together.
        """
        for _ in range(count):
            if self.problem.trust_region.near_bound:
                self.problem.dynamic_terms.set_step_bounds()
            if self.problem.contacts:
                self._sweep_with_obstacles(1)
            else:
                self._launch_sweeps(1)

    def _launch_sweeps(self, count: int) -> None:
        """Run `count` sweeps in one kernel launch."""
        p = self.problem
        colors, acceleration = p.layout.batch_colors, self.acceleration.prepare_sweeps(count)
        terms = p.layout.terms if self.options.hessian == "bound" else exact_blocks(p.layout.terms)
        update = VertexUpdate(terms, p.loads.rows, p.u, p.states.anchor, self.omega, self._rejected)
        copies_of_u = self.acceleration.copies_of_u
        bounds, clamps = (
            color_bounds(colors, 0),
            (*p.contacts.clamp(*copies_of_u), *p.trust_region.clamp(*copies_of_u)),
        )
        deforms = p.layout.deforms(p.u)
        sweep = Sweep(
            update, colors, bounds, self.tied_groups, acceleration, clamps, p.device.records, deforms
        )
        phases = count * (len(deforms) + self.colors + acceleration.phases + int(bool(clamps)))
        p.device.step(run_iterations, phases, sweep, count, widest=p.layout.widest)

    def _detect_contacts(self) -> None:
        """Recompute the contact planes of obstacles at the vertices; may change u."""
        p, self._sweeps_since_detection = self.problem, 0
        p.contacts.detect()
        p.trust_region.restore_bounds()
        for records in self.acceleration.copies_of_u:
            p.device.assign(records, p.u)

    def start_at(self, balances: Balances) -> None:
        if self._is_outdated:
            self._update_stencils()
        self.acceleration.start_at(balances)

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Restart the acceleration if it increased the residual; return True if that changed u."""
        moved = self.acceleration.observe(balance, member)
        self.problem.trust_region.outdated |= moved
        return moved

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        moved = self.acceleration.observe_all(balances, active)
        self.problem.trust_region.outdated |= bool(moved.any())
        return moved

    def _update_stencils(self) -> None:
        """Prepare all data that depend on the current stencils."""
        p = self.problem
        self._version, self._rigid_moves = p.layout.version, p.contacts.moves
        acceleration = acceleration_of(self.options.acceleration)
        self.omega = 1.0 if acceleration is None else acceleration.relaxation
        safeguard = self.acceleration.safeguard
        self.acceleration = begin_acceleration(acceleration, p)
        self.acceleration.resume(safeguard)
        self.tied_groups = (
            group_data(p) if self.options.tied_groups else p.get_shared("no tied groups", no_tied_groups)
        )
        shape = p.batch_size, *p.loads.rows.inertia.shape
        self._rejected = p.get_shared("rejected", lambda: p.zeros(shape))

    @property
    def _is_outdated(self) -> bool:
        """True if stencils or rigid bodies have changed since they were last processed."""
        return (self.problem.layout.version, self.problem.contacts.moves) != (
            self._version,
            self._rigid_moves,
        )

    @property
    def colors(self) -> int:
        return self.problem.layout.colors + len(self.tied_groups.color_start) - 1

    @property
    def needs_monitoring(self) -> bool:
        return self.acceleration.needs_monitoring

    def collect_rejected(self) -> list[int]:
        """Return the number of discarded non-finite moves of each batch member, and reset the counters."""
        p = self.problem
        totals = p.get_shared("rejected in all", lambda: Totals(p))
        counts = np.rint(totals.sum_values(self._rejected)[:, 0]).astype(int)
        if counts.any():
            p.device.clear(self._rejected)
        return counts.tolist()

    def notes(self, member: int = 0) -> list[str]:
        return self.acceleration.notes(member)
