"""gradient(): derivatives of a function L of an equilibrium.

At an equilibrium the net forces r(x, θ) on the free vertices vanish. As θ changes, x follows with H δx =
∂r/∂θ δθ, where H = -∂r/∂x is the Hessian of the energy. One solution of the adjoint system H λ = ∂L/∂x
therefore gives dL/dθ = λ · ∂r/∂θ for every θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.api.simulate import Frame, Result
from supple.gradients.adjoint_system import System, SystemSolution
from supple.gradients.body import BodyGradient, cell_densities, element_groups, volume_forces
from supple.gradients.elements import (
    Response,
    are_tets,
    at_corners,
    element_response,
    hessian_product,
    scatter,
    shape_product,
)
from supple.gradients.gradient_report import EXACT_RESIDUAL, GradientReport, NoGradientError
from supple.gradients.pin_derivatives import motion_derivatives, pinned_rest_derivatives, split_by_pin
from supple.gradients.polish import PolishedState, make_problem_at, polish_timed
from supple.kernels import compilation
from supple.meshes.measures import area_vectors
from supple.model.model import Model, Step
from supple.problem import Problem
from supple.problem.history_variables import ACCELERATION, PREVIOUS_STEP
from supple.scene import Body
from supple.solve.call_options import BackendOptions, resolve_backend, takes_options
from supple.support.arguments import MAX_MAGNITUDE, check_vectors, comma_list, format_value, suggest_name

ACCURACY = 1e-9
"""Relative residual of the adjoint system."""

Loss = ArrayLike | Callable[[np.ndarray], ArrayLike]
"""∂L/∂x (n, 3), or a function of positions (n, 3) that returns it."""


@takes_options
def gradient(result: Result, loss: Loss, **options: Unpack[BackendOptions]) -> Gradient:
    """Differentiate a function L of an equilibrium or time step with respect to all inputs.

    The inputs are forces, gravity, pins, densities, material parameters, rest shape and pressures. Newton
    steps first bring the state closer to the equilibrium, since its accuracy limits that of the gradient. A
    function `loss` is evaluated there; an array is used unchanged. Then one linear system is solved with the
    Hessian at this state. The `report` of the returned gradient describes both.

    Example: `supple.gradient(result, lambda x: x - result.positions).gravity`.

    Args:
        result: Result of `equilibrium`, or a frame of `simulate`.
        loss: ∂L/∂x (n, 3), or a function of positions (n, 3) [m] that returns it.
        **options: backend: a `Backend`, or its device and threads individually; the precision is always
            float64.

    Returns:
        Derivatives, evaluated on access.

    Raises:
        NoGradientError: The Hessian is singular, or the result depends on effects that cannot be
            differentiated.
    """
    if not isinstance(result, Result):
        raise TypeError(
            "gradient() needs a result of supple.equilibrium(...), or a frame of "
            f"supple.simulate(...); got {format_value(result)}"
        )
    backend = resolve_backend(options)
    return gradient_at(polish_timed(lambda: make_problem_at(result, backend)), result, loss)


def gradient_at(state: PolishedState, result: Result, loss: Loss) -> Gradient:
    """Compute the gradient at a polished result."""
    direct = evaluate_loss(loss, state.problem.positions)
    with compilation() as compiled:
        began = perf_counter()
        adjoint, solved, system = solve_adjoint(state.problem, direct)
        seconds = perf_counter() - began - compiled.seconds
    return assemble_gradient(state, result, direct, adjoint, make_report(state, solved, system, seconds))


def evaluate_loss(loss: Loss, x: np.ndarray) -> np.ndarray:
    """∂L/∂x (n, 3) at positions x (n, 3) [m]."""
    return check_vectors("∂L/∂x", loss(x) if callable(loss) else loss, len(x), limit=MAX_MAGNITUDE)


def assemble_gradient(
    state: PolishedState, result: Result, direct: np.ndarray, adjoint: np.ndarray, report: GradientReport
) -> Gradient:
    """Assemble the gradient at a polished result from ∂L/∂x and λ (n, 3)."""
    time = result.time if isinstance(result, Frame) else math.inf
    x, problem = state.problem.positions, state.problem
    return Gradient(report, x, adjoint, result.model, result.step, time, problem, direct)


def solve_adjoint(problem: Problem, direct: np.ndarray) -> tuple[np.ndarray, SystemSolution, System]:
    """Solve H λ = ∂L/∂x for λ (n, 3), zero along constrained directions."""
    system = System(problem)
    system.probe()
    assembly = system.assembly
    b = assembly.unconstrained(direct[assembly.free].ravel())
    solved = system.solve(b.reshape(-1, 3), ACCURACY)
    adjoint = np.zeros_like(direct)
    adjoint[assembly.free] = assembly.unconstrained(solved.x.ravel()).reshape(-1, 3)
    return adjoint, solved, system


def make_report(
    state: PolishedState, solved: SystemSolution, system: System, seconds: float, member: int = 0
) -> GradientReport:
    """Report of one batch member; `seconds` is the time of the adjoint system [s]."""
    notes, stable = [], bool(system.stable[member])
    if not stable:
        notes.append(
            "the equilibrium is unstable: the energy decreases in some direction; the gradient is "
            "that of this state nevertheless"
        )
    if state.relative_residual > EXACT_RESIDUAL:
        notes.append(
            f"the relative residual of the state is {state.relative_residual:.1e}; the relative "
            "error of the gradient may be about a thousand times that"
        )
    if state.grazing:
        notes.append(
            f"{state.grazing} vertices touch an obstacle with negligible force; the gradient is "
            "discontinuous there"
        )
    return GradientReport(
        relative_residual=state.relative_residual,
        initial_relative_residual=state.initial_relative_residual,
        steps=state.steps,
        moved=state.moved,
        linear_solver=solved.solver,
        iterations=solved.iterations,
        residual=float(solved.residual[member]),
        curvature=float(system.curvature[member]),
        stable=stable,
        contacts=state.contacts,
        grazing=state.grazing,
        seconds=state.seconds + seconds,
        adjoint_seconds=seconds,
        notes=notes,
    )


@dataclass(repr=False, eq=False)
class Gradient:
    """dL/dθ for every input θ of an equilibrium, evaluated on first access.

    Units are those of L divided by those of θ. `body` gives the derivatives with respect to properties of one
    body.

    Attributes:
        report: Accuracy and timings.
        positions: (n, 3) positions of the equilibrium [m].
        forces: (n, 3) derivatives with respect to the force on every vertex [1/N], zero at pinned vertices.
        model: Model.
    """

    report: GradientReport
    positions: np.ndarray
    forces: np.ndarray
    model: Model
    _step: Step | None = field(repr=False)
    _time: float
    _problem: Problem
    _direct: np.ndarray

    @property
    def gravity(self) -> np.ndarray:
        """(3,) derivative with respect to the gravitational acceleration, Σ mᵢ λᵢ [s²/m]."""
        return self.model.gravity.fraction(self._time) * (self.model.mass @ self.forces)

    @cached_property
    def pins(self) -> dict[str, np.ndarray]:
        """(k, 3) derivatives with respect to the positions of each pin's vertices [1/m], by pin name.

        For a pin along some directions only, the derivatives along these.
        """
        return split_by_pin(self.model, self._by_pins)

    def motion(
        self, pin: str, make: Callable[[np.ndarray], Callable[..., np.ndarray]], values: ArrayLike
    ) -> np.ndarray:
        """Derivatives with respect to parameters of a pin's motion.

        Args:
            pin: Name of the pin.
            make: Function that creates a motion from an array like `values`.
            values: Parameters of the motion.

        Returns:
            Derivatives, of the shape of `values`.

        Raises:
            ValueError: There is no such pin.

        Example: `supple.gradient(result, result.positions).motion("pin0", supple.Translate, (0, 0, 0))`.
        """
        if pin not in self.pins:
            raise ValueError(f"there is no pin {pin!r}; {suggest_name(pin, self.pins)}")
        (rest,) = (self.model.rest[vertices] for name, vertices, _ in self.model.supports if name == pin)
        return motion_derivatives(make, np.asarray(values, float), rest, self._time, self.pins[pin])

    @property
    def pressures(self) -> np.ndarray:
        """Derivatives with respect to pressures [1/Pa], in order of addition."""
        by_pressure = []
        for term in self.model.terms:
            if term.presses:
                areas = area_vectors(self.positions, term.vertices)
                by_pressure.append(np.einsum("ti,tai->", areas, self.forces[term.vertices]) / 3)
        return np.array(by_pressure)

    @cached_property
    def rest(self) -> np.ndarray:
        """(n, 3) derivatives with respect to rest positions of all vertices of solids [1/m].

        Masses and volume forces change with the rest shape, and pinned vertices follow it according to their
        motions. Other forces stay constant.

        Raises:
            ValueError: The scene has cloth.
            NoGradientError: Attachments or springs were computed from the rest shape, or vertices stick by
                friction.
        """
        cloth = [body.name for body in self.model.bodies if body.mesh.corners != 4]
        if cloth:
            raise ValueError(
                "Derivatives with respect to the rest shape of cloth are not available yet, and the "
                f"scene has {comma_list(cloth)}."
            )
        rest_dependent = {term.name: None for term in self.model.terms if term.depends_on_rest}
        if rest_dependent:
            raise NoGradientError(
                f"The scene has {comma_list(rest_dependent)} that are computed from the rest shape, "
                "and these derivatives are not available yet. Attach vertices to vertices or to "
                "fixed points without keep_offset, and give springs a rest_length."
            )
        if self._sticks:
            raise NoGradientError(
                "Derivatives with respect to the rest shape are not available while vertices stick "
                "to an obstacle. Set friction=0 for this obstacle."
            )
        total = np.zeros_like(self.positions)
        for tets in self._tets.values():
            A = shape_product(tets) + self._volume_changes(tets)
            total += scatter(tets.term.vertices, at_corners(A, tets.term), len(total))
        pinned = pinned_rest_derivatives(self.model, self.positions, self._time, self.pins)
        return total + pinned

    @property
    def initial_positions(self) -> np.ndarray:
        """(n, 3) derivatives with respect to positions at the start of a time step [1/m].

        For frames of motions only.
        """
        return self._by_anchor

    @property
    def initial_velocities(self) -> np.ndarray:
        """(n, 3) derivatives with respect to velocities at the start of a time step [s/m].

        For frames of motions only.
        """
        assert self._by_anchor is not None
        return self._by_anchor * self._dt

    def body(self, body: Body) -> BodyGradient:
        """Derivatives with respect to properties of one body.

        Args:
            body: Body of the scene.

        Returns:
            Derivatives by property, evaluated on access.

        Raises:
            ValueError: The argument is not a body of the scene.

        Example: `supple.gradient(result, result.positions).body(body).young`.
        """
        for own in self.model.bodies:
            if isinstance(body, Body) and isinstance(own, Body) and body.is_like(own):
                return BodyGradient(self, own)
        names = comma_list(own.name for own in self.model.bodies)
        raise ValueError(f"body() needs a body of the scene, which has {names}; got {format_value(body)}")

    @property
    def _sticks(self) -> bool:
        """True if vertices stick to an obstacle by friction."""
        obstacles = self.model.obstacles
        return self.report.contacts > 0 and obstacles is not None and obstacles.has_friction

    @property
    def _dt(self) -> float:
        return math.inf if self._step is None else self._step.dt

    @property
    def _by_anchor(self) -> np.ndarray:
        """m/Δt² λ, derivatives with respect to the inertial prediction x̂ = xₙ + Δt vₙ."""
        if math.isinf(self._dt):
            raise ValueError(
                "initial_positions and initial_velocities need a frame of a motion; this is the "
                "gradient of an equilibrium."
            )
        if self._step is not None and self._step.history.keys() & {ACCELERATION, PREVIOUS_STEP}:
            raise ValueError(
                "Derivatives with respect to the start of a step need integrator='backward_euler'."
            )
        return self.model.inertia(self._dt)[:, None] * self.forces

    @cached_property
    def _tets(self) -> dict[int, Response]:
        """Responses of all terms of tetrahedra, by term number."""
        problem = self._problem
        return {
            k: element_response(problem, k, self.forces)
            for k in range(len(problem.model.terms))
            if are_tets(problem, k)
        }

    @cached_property
    def _by_pins(self) -> np.ndarray:
        """(k, 3) ∂L/∂x - H λ of the pinned vertices, along their constrained directions."""
        net = self._direct - hessian_product(self._problem, self.forces, self._tets)
        return self.model.along(net[self.model.pinned])

    @cached_property
    def _by_mass(self) -> np.ndarray:
        """(n,) derivatives with respect to vertex masses, λ · (g - (x - x̂)/Δt²) [1/kg]."""
        gravity = self.model.gravity
        acceleration = np.tile(gravity.fraction(self._time) * gravity.vector, (len(self.positions), 1))
        if self._step is not None and math.isfinite(self._dt):
            acceleration = acceleration - (self.positions - self._step.anchor) / self._dt**2
        return np.einsum("ni,ni->n", self.forces, acceleration)

    def _volume_changes(self, tets: Response) -> np.ndarray:
        """(Σ ∂L/∂mₐ ρ + Σ λₐ · f)/4 δV over the corners of every tetrahedron, with volume forces f [N/m³].

        δV = V tr M as in `shape_product`.
        """
        (number,) = (k for k, response in self._tets.items() if response is tets)
        group, corners = element_groups(self.model)[number], tets.term.vertices
        density = np.concatenate([cell_densities(part) for part in group])
        force = np.concatenate([volume_forces(self.model, part, self._time) for part in group])
        by_volume = density * self._by_mass[corners].sum(axis=1)
        by_volume += np.einsum("ei,eai->e", force, self.forces[corners])
        return (tets.term.volume / 4 * by_volume)[:, None, None] * np.eye(3)

    def __repr__(self) -> str:
        report = self.report
        return (
            f"<Gradient: {len(self.positions):,} vertices, at a relative residual of "
            f"{report.relative_residual:.1e}, "
            f"{report.linear_solver} in {report.iterations:,} iterations>"
        )
