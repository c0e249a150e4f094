"""Newton system H Δu = f at the problem's present u, with treatment of indefinite H.

    accuracy ← forcing term                                 `Linearization.accuracy`
    Δu ← PCG(H, f, M);  p ← negative curvature met          `Linearization.direction`
        M ← multilevel preconditioner of H                  `_preconditioner`
        p found: H ← its projected replacement, new M, Δu   `Linearization.projected_direction`
    (H - K) Δu = f with the stiffness K of follower loads   `Linearization.follower_direction`

f are the net forces, and Δu is `d` in the code. The projected H is the sum of the positive semi-definite
parts of the element matrices, or else the upper bound used by sweeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.linear import (
    Assembly,
    FollowerSystem,
    GasSystem,
    Matrix,
    Multilevel,
    NotPositive,
    Parts,
    Preconditioner,
    Solution,
    add_gas_stiffness,
    curvature_along,
    shares_along,
    solve,
    solve_per_body,
)
from supple.linear.block_matrix import Blocks3x3
from supple.linear.multilevel.preconditioner import as_records
from supple.problem import Problem
from supple.solvers.newton_methods.rigid_modes import RigidModes, deflated_cg
from supple.terms import Term

LINEAR_ITERATIONS = 1000
"""Iteration limit of one linear solve."""

LOOSE_ACCURACY, TIGHT_ACCURACY, QUADRATIC_ACCURACY = 0.1, 1e-4, 1e-5
"""Bounds of the relative accuracy of a linear solve, and the accuracy for constant H.

With constant H one step is sufficient.
"""

MAX_REUSE_ITERATIONS = 20
"""Iterations of a linear solve after which the next solve builds a new preconditioner."""

PROBE_ACCURACY = 1e-2
"""Relative accuracy of the solve with a random right-hand side that searches for negative curvature."""


class Direction(NamedTuple):
    """Newton direction and the curvature met while solving for it.

    Attributes:
        d: (n + 1, 4) solution Δu of H Δu = f [m], padded vectors in device memory.
        projected: True if H was not positive definite and was replaced by the sum of the positive
            semi-definite parts of the element matrices.
        negative_curvature: (n + 1, 4) direction p of negative curvature, padded vectors like d, or None.
        slope: f · Δu [J].
        curvature: Smallest curvature met, p · H p / |p|² of p or Δu [N/m], if a probe was requested. None if
            H was rejected for its diagonal or a coarse level.
        shares: (n,) contributions of the vertices to p · H p [J], if a probe found p.
        rigid_only: True if a probe showed that H is concave along rigid motions of unconstrained bodies only
            (rigid_modes.py).
        errors: (parts,) remaining relative error of Δu and of the probe for each connected component, if
            there are several.
    """

    d: np.ndarray
    projected: bool
    negative_curvature: np.ndarray | None
    slope: float
    curvature: float | None
    shares: np.ndarray | None = None
    rigid_only: bool = False
    errors: np.ndarray = np.zeros(1)


def _constant(term: Term) -> bool:
    """True if a term without a material has a constant Hessian, like ties; contacts change."""
    return term.ties and term.capacity is None


class Linearization:
    """Newton directions of a problem in float64.

    Disconnected components are solved independently.

    Args:
        problem: Problem in float64.
        per_component: Iterate until every component has the requested accuracy. Otherwise `Direction.errors`
            contains the accuracy of each.

    Attributes:
        free: (f,) free vertices.
        parts: Connected components of the free vertices.
    """

    def __init__(self, problem: Problem, per_component: bool = True) -> None:
        self.problem, self._per_component = problem, per_component
        self.assembly: Assembly = problem.get_shared("assembly", lambda: Assembly(problem))
        self._hierarchy: Multilevel = problem.get_shared("multilevel", lambda: Multilevel(self.assembly))
        self.parts: Parts = problem.get_shared("parts", lambda: Parts(self.assembly))
        self.free = self.assembly.free
        terms = problem.model.terms
        self.quadratic = all(_constant(t) if t.material is None else t.material.quadratic for t in terms)
        """True if H is constant, so that one step reaches the minimum."""
        self.iterations = self.projected_solves = 0
        self._reused_preconditioner: Preconditioner | None = None
        self._reuses_preconditioner = problem.keeps_prepared and self._hierarchy.is_persistent
        self._cached_probe: tuple[tuple, float, Direction] | None = None
        self._rigid_modes: tuple[Matrix, RigidModes] | None = None

    def accuracy(self, residual: float, before: float | None, tolerance: float) -> float:
        """Return the forcing term of a linear solve [Eisenstat and Walker 1996].

        Args:
            residual: Present residual [N].
            before: Residual before the last step [N], or None at the first step.
            tolerance: Relative residual to reach.
        """
        if self.quadratic:
            return min(QUADRATIC_ACCURACY, tolerance)
        if before is None:
            return LOOSE_ACCURACY
        return min(LOOSE_ACCURACY, max(0.9 * (residual / before) ** 2, TIGHT_ACCURACY))

    def direction(self, accuracy: float, absolute_tolerance: float, probe: bool = False) -> Direction:
        """Return the Newton direction at the problem's u, whose net forces must have been evaluated.

        Uses the exact H if it is positive definite as far as detected, otherwise its projected replacement.
        The direction of the last probe is returned if it belongs to the same system and is accurate enough.

        Args:
            accuracy: Relative accuracy in the energy norm.
            absolute_tolerance: Residual that is sufficient in any case [N].
            probe: Search for negative curvature also along a random right-hand side.
        """
        system = self._system_key()
        if self._cached_probe is not None and not probe:
            key, cached_accuracy, direction = self._cached_probe
            if cached_accuracy <= accuracy and key == system:
                return direction
        direction = self._compute_direction(accuracy, absolute_tolerance, probe)
        self._cached_probe = (system, accuracy, direction) if probe else None
        return direction

    def _system_key(self) -> tuple:
        """Return a key of H and f: diagnostics of the forces summed over all vertices, and the inertia."""
        p = self.problem
        return p.layout.version, id(p.loads.inertia), p.diagnostics.statistics.tobytes()

    def _compute_direction(self, accuracy: float, absolute_tolerance: float, probe: bool) -> Direction:
        fields: dict[str, Any] = {}
        try:
            exact = self._solve("exact", accuracy, absolute_tolerance, probe)
            if exact.negative_curvature is None:
                return exact
            fields = {
                "negative_curvature": exact.negative_curvature,
                "curvature": exact.curvature,
                "shares": exact.shares,
            }
        except NotPositive:
            if probe:
                fields = self._find_negative_curvature()
        self.projected_solves += 1
        deflated = self._deflated_direction(accuracy) if probe else None
        if deflated is not None and deflated.rigid_only:
            return deflated
        if deflated is not None:
            fields = {
                "negative_curvature": deflated.negative_curvature,
                "curvature": deflated.curvature,
                "shares": deflated.shares,
            }
        return self.projected_direction(accuracy, absolute_tolerance)._replace(**fields)

    def _find_negative_curvature(self) -> dict[str, Any]:
        """Find negative curvature of an H without preconditioner; return the fields of `Direction` for it.

        The preconditioner of the positive part of H is used.
        """
        M = self._projected_preconditioner()
        if M is None:
            return {}
        H = self.assembly.matrix("exact", new_memory=True)
        p, _ = self._probe(H, M)
        return {} if p is None else self._curvature_fields(H, p, M)

    def _projected_preconditioner(self) -> Preconditioner | None:
        """Return the preconditioner of the positive part of H, or else of the upper bound used by sweeps."""
        self._reused_preconditioner = None  # the next one reuses its memory
        for kind in ("projected", "bound"):
            try:
                return self._hierarchy.at(self.assembly.matrix(kind), self.assembly.positions)
            except NotPositive:
                continue
        return None

    def _exact_rigid_modes(self, exact: Blocks3x3) -> tuple[Matrix, RigidModes] | None:
        """Return the exact H and the free rigid motions under the net forces.

        None if there are no such motions, or if H is not finite.
        """
        if not self.parts.loose.any() or self.problem.loads.inertia.any():
            return None
        return self._find_rigid_modes(add_gas_stiffness(self.assembly, self.assembly.to_host(exact)))

    def _find_rigid_modes(self, H: Matrix) -> tuple[Matrix, RigidModes] | None:
        """Return H and the rigid motions of bodies that it leaves free; None if there are none."""
        if not self.parts.loose.any() or self.problem.loads.inertia.any():
            return None
        assembly, p, positions = self.assembly, self.problem, self.assembly.positions
        if not np.isfinite(H.data).all():
            return None
        p.device.download(positions)
        modes = RigidModes(H, positions, assembly.restrict(p.states.net).reshape(-1, 3), self.parts)
        return (H, modes) if modes.free.any() else None

    def _deflate(self, records: np.ndarray) -> np.ndarray:
        """Return padded vectors (f, 4) without free rigid motions, as a copy if there are such motions."""
        if self._rigid_modes is None:
            return records
        self.problem.device.download(records)
        return as_records(self._rigid_modes[1].deflate(records[:, :3].ravel()))

    def _deflated_direction(self, accuracy: float) -> Direction | None:
        """Return the Newton direction in the complement of free rigid motions.

        It has `rigid_only` set if H is convex there as far as detected; otherwise it contains a direction of
        negative curvature. None without free rigid motions.
        """
        M = self._projected_preconditioner() if self._rigid_modes is not None else None
        if M is None or self._rigid_modes is None:
            return None
        (H, modes), spread = self._rigid_modes, self.assembly.spread
        net = self.assembly.restrict(self.problem.states.net)
        try:
            d, p, errors = deflated_cg(modes, H, M, net, accuracy, LINEAR_ITERATIONS)
            if p is None:
                noise = self._noise[:, :3].ravel()
                _, p, probe_errors = deflated_cg(modes, H, M, noise, PROBE_ACCURACY, LINEAR_ITERATIONS)
                errors = np.maximum(errors, probe_errors)
        except NotPositive:
            return None
        along = d if p is None else p
        work = (along * (H @ along)).reshape(-1, 3).sum(axis=1)
        shares = np.zeros(self.problem.model.vertices)
        shares[self.free] = work
        curvature = float(work.sum() / max(float(along @ along), 1e-300))
        direction = Direction(
            spread(as_records(d)), True, None, float(net @ d), curvature, None, p is None, errors
        )
        if p is None:
            return direction
        return direction._replace(negative_curvature=spread(as_records(p)), shares=shares)

    def _curvature_fields(self, H: Blocks3x3, p: np.ndarray, M: Preconditioner) -> dict[str, Any]:
        """Return the fields of `Direction` for a direction p (f, 4) that ended conjugate gradients."""
        shares = np.zeros(self.problem.model.vertices)
        shares[self.free] = shares_along(M)
        return {
            "negative_curvature": self.assembly.spread(p),
            "curvature": curvature_along(H, p, M),
            "shares": shares,
        }

    def projected_direction(self, accuracy: float, absolute_tolerance: float) -> Direction:
        """Return Δu for the positive semi-definite part of every element.

        That matrix may be singular; then the upper bound used by sweeps replaces it. The direction is 0 with
        slope 0 if the bound is not positive definite or not finite either.
        """
        for kind in ("projected", "bound"):
            try:
                direction = self._solve(kind, accuracy, absolute_tolerance)
            except NotPositive:
                continue
            if kind == "bound" or (direction.negative_curvature is None and direction.slope > 0):
                return direction._replace(projected=True, negative_curvature=None)
        return Direction(self.problem.zeros(self.problem.u.shape), True, None, 0.0, None)

    def _solve(self, kind: str, accuracy: float, absolute_tolerance: float, probe: bool = False) -> Direction:
        if self.problem.gases:
            return self._solve_enclosed(kind, accuracy, absolute_tolerance, probe)
        assembly = self.assembly
        H = assembly.matrix(kind)
        if kind == "exact":
            self._rigid_modes = self._exact_rigid_modes(H)
        M = self._preconditioner(H, kind)
        b = self._deflate(assembly.gather(self.problem.states.net))
        solution, slope, errors = self._solve_system(H, b, M, accuracy, absolute_tolerance)
        solution = solution._replace(x=self._deflate(solution.x))
        if solution.iterations > MAX_REUSE_ITERATIONS or solution.negative is not None:
            self._reused_preconditioner = None
        self.iterations += solution.iterations
        direction = Direction(assembly.spread(solution.x), False, None, slope, None, errors=errors)
        p = solution.negative
        if not probe:
            return direction._replace(negative_curvature=None if p is None else assembly.spread(p))
        if p is None:
            p, probe_errors = self._probe(H, M)
            direction = direction._replace(errors=np.maximum(errors, probe_errors))
        if p is None:
            return direction._replace(curvature=curvature_along(H, solution.x, M))
        return direction._replace(**self._curvature_fields(H, p, M))

    def _solve_enclosed(
        self, kind: str, accuracy: float, absolute_tolerance: float, probe: bool
    ) -> Direction:
        """Return the Newton direction of bodies with sealed gas."""
        assembly, spread, net = self.assembly, self.assembly.spread, self.problem.states.net
        matrix = assembly.matrix(kind)
        if kind == "exact":
            self._rigid_modes = self._exact_rigid_modes(matrix)
        system = GasSystem(assembly, matrix, *([self._rigid_modes[1].deflate] if self._rigid_modes else []))
        H, b = system.matrix, assembly.restrict(net)
        solution = system.solve(b, accuracy, absolute_tolerance, LINEAR_ITERATIONS)
        p = solution.negative
        if p is None and probe:
            p = system.solve(self._noise[:, :3].ravel(), PROBE_ACCURACY, 0.0, LINEAR_ITERATIONS).negative
        self.iterations += solution.iterations
        direction = Direction(spread(as_records(solution.x)), False, None, float(b @ solution.x), None)
        if probe:
            along = p if p is not None else solution.x if solution.x.any() else b
            work = (along * (H @ along)).reshape(-1, 3).sum(axis=1)
            shares = np.zeros(self.problem.model.vertices)
            shares[self.free] = work
            curvature = float(work.sum() / max(float(along @ along), 1e-300))
            direction = direction._replace(curvature=curvature, shares=None if p is None else shares)
        return direction if p is None else direction._replace(negative_curvature=spread(as_records(p)))

    def follower_direction(self, accuracy: float) -> Direction:
        """Return Δu of T Δu = f, where T = H - K contains the load stiffness K of tractions that follow their
        surface.

        The net forces f at the problem's u must have been evaluated. If the solve fails, Δu = 0 and
        `projected` is set. T has no energy, so no curvature is reported.
        """
        assembly, problem = self.assembly, self.problem
        net = assembly.restrict(problem.states.net)
        try:
            system = FollowerSystem(assembly)
            modes = self._find_rigid_modes(system.matrix)
            if modes is not None:
                system.without = modes[1].deflate
            x, iterations = system.solve(net, accuracy, LINEAR_ITERATIONS)
        except NotPositive:
            return Direction(problem.zeros(problem.u.shape), True, None, 0.0, None)
        self.iterations += iterations
        return Direction(assembly.spread(as_records(x)), False, None, float(net @ x), None)

    def _preconditioner(self, H: Blocks3x3, kind: str) -> Preconditioner:
        """Return the preconditioner of H, or that of an earlier state while it is equally effective.

        In a sequence of solves that start close to their solutions, set-up takes as long as use.
        """
        if kind != "exact" or self._reused_preconditioner is None:
            M = self._hierarchy.at(H, self.assembly.positions)
            self._reused_preconditioner = M if self._reuses_preconditioner and kind == "exact" else None
            return M
        return self._reused_preconditioner

    def _solve_system(
        self, H: Blocks3x3, b: np.ndarray, M: Preconditioner, accuracy: float, absolute_tolerance: float
    ) -> tuple[Solution, float, np.ndarray]:
        """Return the solution x, b · x, and the remaining error of each component.

        A positive absolute tolerance applies to all components together.
        """
        if self.parts.count < 2 or absolute_tolerance > 0:
            solution, slope = solve(H, b, M, accuracy, absolute_tolerance, LINEAR_ITERATIONS)
            return solution, slope, np.zeros(self.parts.count)
        solution, errors = solve_per_body(
            H, b, M, accuracy, LINEAR_ITERATIONS, self.parts.number, self._per_component
        )
        return solution, float(np.vdot(b[:, :3], solution.x[:, :3])), errors

    def _probe(self, H: Blocks3x3, M: Preconditioner) -> tuple[np.ndarray | None, np.ndarray]:
        """Search for a direction of negative curvature with a random right-hand side.

        Returns:
            Direction (f, 4) or None, and the remaining error of each component.
        """
        solution, _, errors = self._solve_system(H, self._deflate(self._noise), M, PROBE_ACCURACY, 0.0)
        return solution.negative, errors

    @property
    def _noise(self) -> np.ndarray:
        """(f, 4) random right-hand side with components along every direction, always the same."""
        size = 3 * len(self.free)
        noise: np.ndarray = self.problem.get_shared(
            "noise", lambda: as_records(np.random.default_rng(0).normal(size=size))
        )
        return noise
