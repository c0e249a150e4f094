"""How time passes in a step of Δt: where inertia pulls, over what time, and how fast vertices are afterwards.

Every method solves m/τ² (x - x̂) = f(x), f being all forces but inertia; rules differ in the rest:

    backward Euler   τ = Δt     x̂ = xₙ + Δt vₙ                              v = (x - xₙ)/Δt
    BDF2             τ = ⅔ Δt   x̂ = (4 xₙ - xₙ₋₁)/3 + 2/9 Δt (4 vₙ - vₙ₋₁)  v = (3 x - 4 xₙ + xₙ₋₁)/(2 Δt)
    trapezoidal      τ = ½ Δt   x̂ = xₙ + Δt vₙ + ¼ Δt² aₙ                   v = 2 (x - xₙ)/Δt - vₙ

Backward Euler is of first order and damps all that is fast. BDF2 is of second order and damps it less; the
trapezoidal rule is of second order and damps nothing, also not what a step is too long for, which rings. Both
look back: to the state before, and to the acceleration aₙ = f(xₙ)/m. Where a motion begins, both are made of
the forces there, xₙ₋₁ = xₙ - Δt vₙ + ½ Δt² aₙ and vₙ₋₁ = vₙ - Δt aₙ; later aₙ is (x - x̂)/τ², which is f/m
where the step was solved. Velocities are computed from that, v = vₙ + ½ Δt (aₙ + a) and
v = (4 vₙ - vₙ₋₁ + 2 Δt a)/3, which is the same: x - x̂ is known as the solve has it, and so rounding x̂, by
some ε |x|, is not taken for a velocity of ε |x|/Δt that adds up. [GPBD section 3 names both beside backward
Euler.] The first step of BDF2 ends with v = 2 (x - x₀)/Δt - v₀ = v₀ + (v₀ - v₋₁)/9 + 8/9 Δt a, which is exact
in free fall and of second order as well: the state before that it assumes, from constant accelerations, is
far off where Δt is longer than a period, and would give a velocity of Δt a₀/4 to a body that hardly moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from supple.model import Model
from supple.problem import Problem
from supple.problem.initial_guess import predict_fall
from supple.problem.materials import change_materials
from supple.problem.remembered import ACCELERATION, EARLIER, evolving_parameters

if TYPE_CHECKING:
    from supple.solvers import Solver


class Rule(ABC):
    """What a rule of second order does with displacements u, velocities v and accelerations a, (..., n, 3)
    each, and with what it remembers, `past`, (..., n, 3 k)."""

    past: ClassVar[str]
    """How what it remembers is called in a `State`."""
    inertia: ClassVar[float]
    """τ/Δt"""

    def knows(self, past: np.ndarray, dt: float) -> bool:
        """Whether what is remembered, (n, k), is of steps of Δt [s]."""
        return True

    @abstractmethod
    def first(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        """What is remembered where a motion begins."""

    @abstractmethod
    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        """û"""

    @abstractmethod
    def arrive(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocities where a step has led, with accelerations a there, and what is remembered from there on;
        before: u, v and past of the step's start."""

    def begin(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        """Velocities where the first step of a motion has led, from the same arguments."""
        return self.arrive(a, before, dt)[0]


class BDF2(Rule):
    """past: displacements and velocities a step ago, and how long that step was."""

    past, inertia = EARLIER, 2 / 3

    def knows(self, past: np.ndarray, dt: float) -> bool:
        return bool((np.abs(past[:, 6] - dt) <= 1e-9 * dt).all())

    def first(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        return _with_step(u - dt * v + 0.5 * dt * dt * a, v - dt * a, dt)

    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        return (4 * u - past[..., :3]) / 3 + 2 * dt / 9 * (4 * v - past[..., 3:6])

    def arrive(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        u, v, past = before
        return (4 * v - past[..., 3:6] + 2 * dt * a) / 3, _with_step(u, v, dt)

    def begin(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        _, v, past = before
        return v + (v - past[..., 3:6]) / 9 + 8 * dt / 9 * a


def _with_step(u: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    return np.concatenate([u, v, np.full((*u.shape[:-1], 1), dt)], axis=-1)


class Trapezoidal(Rule):
    """past: accelerations."""

    past, inertia = ACCELERATION, 1 / 2

    def first(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, dt: float) -> np.ndarray:
        return a

    def anchor(self, u: np.ndarray, v: np.ndarray, past: np.ndarray, dt: float) -> np.ndarray:
        return u + dt * v + 0.25 * dt * dt * past

    def arrive(
        self, a: np.ndarray, before: tuple[np.ndarray, np.ndarray, np.ndarray], dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        _, v, last = before
        return v + 0.5 * dt * (last + a), a


RULES: dict[str, Rule] = {"bdf2": BDF2(), "trapezoidal": Trapezoidal()}
"""Those beside backward Euler, by name."""

INTEGRATORS = ("backward_euler", *RULES)


class Integrating:
    """A problem that moves by a rule of second order, all copies of its state at once. The arithmetic is done
    in float64 on the host; the solves are where the problem is."""

    def __init__(self, problem: Problem, rule: Rule, dt: float) -> None:
        self._problem, self._rule, self._dt = problem, rule, dt
        problem.loads.set_time_step(rule.inertia * dt)

    def look_back(self, time: float, forces: np.ndarray | None) -> None:
        """Know where the step begins that ends at a time [s], before the problem begins it: with velocities
        that are set, and forces (n, 3) [N] beside the model's."""
        p, dt = self._problem, self._dt
        u, v = (p.states.vectors(records).astype(float) for records in (p.u, p.states.velocity))
        motions = p.remembered.motions()
        name, first = self._rule.past, u
        known = [name in motion and self._rule.knows(motion[name], dt) for motion in motions]
        if not all(known):
            first = self._rule.first(u, v, self._accelerations(time - dt, forces), dt)
        past = [motions[k][name] if knows else first[k] for k, knows in enumerate(known)]
        self._before = u, v, np.stack(past)
        self._begins = ~np.array(known)

    def pull(self, guess: str, time: float) -> None:
        """Let inertia pull towards x̂ in the step that ends at a time [s], after the problem has begun it."""
        self._problem.states.coast_to(self._rule.anchor(*self._before, self._dt))
        predict_fall(self._problem, guess, time)

    def arrive(self, damping: float) -> np.ndarray:
        """Velocities (copies, n, 3) [m/s] where the step has led; what the next one looks back to is kept.
        Vertices move at the constant velocity at which they are led, where they are."""
        p, dt = self._problem, self._dt
        u, anchor = (p.states.vectors(records).astype(float) for records in (p.u, p.states.anchor))
        a = (u - anchor) / (self._rule.inertia * dt) ** 2
        v, past = self._rule.arrive(a, self._before, dt)
        v = np.where(self._begins[:, None, None], self._rule.begin(a, self._before, dt), v)
        pinned, held = p.model.pinned, p.model.held
        excess = v[:, pinned] - (u - self._before[0])[:, pinned] / dt
        v[:, pinned] -= excess if held is None else np.einsum("kij,ckj->cki", held, excess)
        known = zip(p.remembered.motions(), past, strict=True)
        p.remembered.move_on([motion | {self._rule.past: of_copy} for motion, of_copy in known])
        return (1 - damping) * v

    def _accelerations(self, time: float, forces: np.ndarray | None) -> np.ndarray:
        """(copies, n, 3) [m/s²] of all forces but inertia at a time [s]; 0 where they are infinite."""
        p = self._problem
        change_materials(p, p.model.materials_at(time))
        p.loads.act_at(time, forces)
        p.device.assign(p.states.anchor, p.u)
        p.measures.balances()
        mass = np.where(p.model.mass > 0, p.model.mass, np.inf)[:, None]
        found = p.states.vectors(p.states.net).astype(float) / mass
        return np.where(np.isfinite(found), found, 0.0)


def refuse_rule(name: str, model: Model, solver: Solver) -> None:
    """Refuse a rule of second order where its order, or its forces, mean nothing."""
    if name not in RULES:
        return
    back = "take integrator='backward_euler'"
    if not solver.balances_forces:
        raise ValueError(
            f"{solver.name} makes constraints vanish, whatever forces there are, and integrator={name!r} "
            f"looks back to these; {back}, or xpbd or pbng"
        )
    if model.grid is not None:
        raise ValueError(f"bodies that a grid carries move by backward Euler, not by {name}; {back}")
    if any(model.terms[k].loads for k, _ in model.followers):
        raise ValueError(
            f"integrator={name!r} does not know tractions that follow their surface, nor gas that stays in a "
            f"chamber, which change while a step is solved; {back}"
        )
    if model.obstacles is not None or model.followers:
        raise ValueError(
            f"integrator={name!r} looks back to smooth forces, and those of contact are not; {back}"
        )
    if model.drag is not None:
        raise ValueError(
            f"integrator={name!r} does not know forces in proportion to mass and velocity; {back}, or take "
            "damping that follows from strains"
        )
    flowing = [name for name, *_ in evolving_parameters(model)]
    if flowing:
        raise ValueError(
            f"integrator={name!r} is not for materials that flow or are viscous, whose {flowing[0]} goes on "
            f"by steps of first order; {back}"
        )
