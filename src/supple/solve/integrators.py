"""Time integrators: inertial target, inertial time scale and end velocity of a time step Δt.

Every integrator solves m/τ² (x - x̂) = f(x), with all forces but inertia in f. Integrators differ in τ, x̂
and v:

    backward Euler   τ = Δt     x̂ = xₙ + Δt vₙ                              v = (x - xₙ)/Δt
    BDF2             τ = ⅔ Δt   x̂ = (4 xₙ - xₙ₋₁)/3 + 2/9 Δt (4 vₙ - vₙ₋₁)  v = (3 x - 4 xₙ + xₙ₋₁)/(2 Δt)
    trapezoidal      τ = ½ Δt   x̂ = xₙ + Δt vₙ + ¼ Δt² aₙ                   v = 2 (x - xₙ)/Δt - vₙ

Backward Euler is first-order accurate and damps all fast motions. BDF2 is second-order accurate and damps
them less. The trapezoidal rule is second-order accurate and damps nothing, so that motions that the step does
not resolve ring. The second-order rules need history variables: the previous state, or the acceleration aₙ =
f(xₙ)/m. At the start of a motion both follow from the initial forces, xₙ₋₁ = xₙ - Δt vₙ + ½ Δt² aₙ and vₙ₋₁ =
vₙ - Δt aₙ; later aₙ is (x - x̂)/τ², which equals f/m if the step converged.

Velocities are computed from accelerations, v = vₙ + ½ Δt (aₙ + a) and v = (4 vₙ - vₙ₋₁ + 2 Δt a)/3, which is
mathematically the same. The solve provides x - x̂ directly; rounding of x̂ by some ε |x| therefore does not
accumulate as a velocity of ε |x|/Δt. [GPBD section 3 names both rules besides backward Euler.]

The first step of BDF2 ends with v = 2 (x - x₀)/Δt - v₀ = v₀ + (v₀ - v₋₁)/9 + 8/9 Δt a, which is exact in free
fall and also second-order accurate. The standard formula assumes constant accelerations before the start. If
Δt is longer than a period, that previous state is far off, and a body that hardly moves would get a velocity
of Δt a₀/4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from supple.model.model import Model
from supple.problem import Problem
from supple.problem.history_variables import ACCELERATION, PREVIOUS_STEP, evolving_parameters
from supple.problem.initial_guess import predict_fall
from supple.problem.material_update import change_materials

if TYPE_CHECKING:
    from supple.solvers import Solver


class Rule(ABC):
    """Second-order time integrator.

    It works on displacements u, velocities v and accelerations a, (..., n, 3) each, and on history variables
    `history_name`, (..., n, k).
    """

    history_name: ClassVar[str]
    """Name of the history variables in a `State`."""
    inertia: ClassVar[float]
    """Inertial time scale τ/Δt."""

    def matches_step(self, past: np.ndarray, dt: float) -> bool:
        """True if history variables (n, k) belong to steps of length Δt [s]."""
        return True

    @abstractmethod
    def initial_history(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        """History variables at the start of a motion."""

    @abstractmethod
    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        """Inertial target û, as a displacement."""

    @abstractmethod
    def finish_step(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and history variables at the end of a step.

        Args:
            a: Accelerations at the end of the step.
            before: u, v and history variables at the start of the step.
            dt: Time step Δt [s].
        """

    def begin(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        """Velocities after a motion's first step, from the arguments of `finish_step`."""
        return self.finish_step(a, before, dt)[0]


class BDF2(Rule):
    """BDF2, with previous displacements, velocities and step length as history variables."""

    history_name, inertia = PREVIOUS_STEP, 2 / 3

    def matches_step(self, past: np.ndarray, dt: float) -> bool:
        return bool((np.abs(past[:, 6] - dt) <= 1e-9 * dt).all())

    def initial_history(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        return _join_history(u - dt * v + 0.5 * dt * dt * a, v - dt * a, dt)

    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        return (4 * u - past[..., :3]) / 3 + 2 * dt / 9 * (4 * v - past[..., 3:6])

    def finish_step(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        u, v, past = before
        return (4 * v - past[..., 3:6] + 2 * dt * a) / 3, _join_history(u, v, dt)

    def begin(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        _, v, past = before
        return v + (v - past[..., 3:6]) / 9 + 8 * dt / 9 * a


def _join_history(u: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """Join displacements, velocities and step length to history variables (..., n, 7)."""
    return np.concatenate([u, v, np.full((*u.shape[:-1], 1), dt)], axis=-1)


class Trapezoidal(Rule):
    """Trapezoidal rule, with accelerations as history variables."""

    history_name, inertia = ACCELERATION, 1 / 2

    def initial_history(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        return a

    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        return u + dt * v + 0.25 * dt * dt * past

    def finish_step(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        _, v, last = before
        return v + 0.5 * dt * (last + a), a


RULES: dict[str, Rule] = {"bdf2": BDF2(), "trapezoidal": Trapezoidal()}
"""Second-order integrators by name."""

INTEGRATORS = ("backward_euler", *RULES)
"""Names of all integrators."""


class SecondOrderIntegrator:
    """Second-order time integration of a problem, all batch members at once.

    Its arithmetic is done in float64 on the host; solves run on the problem's device.
    """

    def __init__(self, problem: Problem, rule: Rule, dt: float) -> None:
        self._problem, self._rule, self._dt = problem, rule, dt
        problem.loads.set_time_step(rule.inertia * dt)

    def prepare_history(self, time: float, forces: np.ndarray | None) -> None:
        """Prepare history variables for a step, after velocities are set and before the problem begins it.

        Args:
            time: End of the step [s].
            forces: (n, 3) forces in addition to the model's [N], or None.
        """
        p, dt = self._problem, self._dt
        u, v = (p.states.vectors(records).astype(float) for records in (p.u, p.states.velocity))
        motions = p.history.motions()
        name, first = self._rule.history_name, u
        matching = [name in motion and self._rule.matches_step(motion[name], dt) for motion in motions]
        if not all(matching):
            first = self._rule.initial_history(u, v, self._accelerations(time - dt, forces), dt)
        past = [motions[k][name] if matches else first[k] for k, matches in enumerate(matching)]
        self._before = u, v, np.stack(past)
        self._is_first_step = ~np.array(matching)

    def set_inertial_target(self, guess: str, time: float) -> None:
        """Set the inertial target x̂ of a step ending at `time` [s], after the problem has begun it."""
        self._problem.states.set_prediction(self._rule.anchor(*self._before, self._dt))
        predict_fall(self._problem, guess, time)

    def finish_step(self, damping: float) -> np.ndarray:
        """Finish a step: compute velocities and store history variables for the next step.

        Prescribed vertices move at the constant velocity of their prescribed motion.

        Args:
            damping: Fraction of every velocity that is removed.

        Returns:
            (batch, n, 3) velocities [m/s].
        """
        p, dt = self._problem, self._dt
        u, anchor = (p.states.vectors(records).astype(float) for records in (p.u, p.states.anchor))
        a = (u - anchor) / (self._rule.inertia * dt) ** 2
        v, past = self._rule.finish_step(a, self._before, dt)
        v = np.where(self._is_first_step[:, None, None], self._rule.begin(a, self._before, dt), v)
        pinned, constrained = p.model.pinned, p.model.constraint_projection
        excess = v[:, pinned] - (u - self._before[0])[:, pinned] / dt
        v[:, pinned] -= excess if constrained is None else np.einsum("kij,ckj->cki", constrained, excess)
        members = zip(p.history.motions(), past, strict=True)
        p.history.set_motions(
            [motion | {self._rule.history_name: variables} for motion, variables in members]
        )
        return (1 - damping) * v

    def _accelerations(self, time: float, forces: np.ndarray | None) -> np.ndarray:
        """(batch, n, 3) accelerations [m/s²] by all forces but inertia at a time [s].

        They are 0 where forces are infinite.
        """
        p = self._problem
        change_materials(p, p.model.materials_at(time))
        p.loads.set_time(time, forces)
        p.device.assign(p.states.anchor, p.u)
        p.diagnostics.balances()
        mass = np.where(p.model.mass > 0, p.model.mass, np.inf)[:, None]
        accelerations = p.states.vectors(p.states.net).astype(float) / mass
        return np.where(np.isfinite(accelerations), accelerations, 0.0)


def check_integrator(name: str, model: Model, solver: Solver) -> None:
    """Check model and solver support for an integrator.

    Second-order rules need smooth forces, and history variables that describe the forces.

    Raises:
        ValueError: The integrator is of second order, and not supported.
    """
    if name not in RULES:
        return
    advice = "use integrator='backward_euler'"
    if not solver.balances_forces:
        raise ValueError(
            f"integrator={name!r} does not support the hard constraints of {solver.name}, which have "
            f"no forces; {advice}, or compliant xpbd, or pbng"
        )
    if model.grid is not None:
        raise ValueError(f"integrator={name!r} does not support contact='grid'; {advice}")
    if any(model.terms[k].loads for k, _ in model.dynamic_terms):
        raise ValueError(
            f"integrator={name!r} does not support tractions that follow their surface, or sealed "
            f"chambers; {advice}"
        )
    if model.obstacles is not None or model.dynamic_terms:
        raise ValueError(f"integrator={name!r} does not support contact or obstacles; {advice}")
    if model.drag is not None:
        raise ValueError(
            f"integrator={name!r} does not support damping proportional to the mass; {advice}, or "
            "damping of strains"
        )
    flowing = [name for name, *_ in evolving_parameters(model)]
    if flowing:
        raise ValueError(
            f"integrator={name!r} does not support plastic or viscous materials (history variable "
            f"{flowing[0]}); {advice}"
        )
