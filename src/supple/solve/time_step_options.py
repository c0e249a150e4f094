"""Time stepping parameters of motions."""

from __future__ import annotations

from dataclasses import dataclass

from supple.problem.initial_guess import INITIAL_GUESSES
from supple.scene import Scene
from supple.solve.integrators import INTEGRATORS, RULES
from supple.solvers import Solver
from supple.support.arguments import check_choice, check_flag, check_integer, check_number, check_positive


@dataclass(frozen=True)
class StepSchedule:
    """Time stepping parameters.

    Attributes:
        dt: Time from frame to frame [s].
        substeps: Steps per frame.
        damping: Fraction of every velocity that is removed per step.
        quasistatic: Compute one equilibrium per frame, without inertia.
        integrator: One of `INTEGRATORS`.
        initial_guess: Initial guess of a step, one of `INITIAL_GUESSES`.
    """

    dt: float
    substeps: int
    damping: float
    quasistatic: bool
    integrator: str = "backward_euler"
    initial_guess: str = "adaptive"

    @property
    def step(self) -> float:
        """Step length Δt [s]."""
        return self.dt / self.substeps

    @property
    def inertia(self) -> float:
        """Inertial time scale τ of m/τ² in a step [s]."""
        return self.step * (RULES[self.integrator].inertia if self.integrator in RULES else 1.0)


def make_schedule(
    scene: Scene,
    solver: Solver,
    dt: float | None,
    substeps: int | None,
    damping: float | None,
    quasistatic: bool | None,
    integrator: str | None = None,
    initial_guess: str | None = None,
) -> StepSchedule:
    """Combine time stepping arguments with defaults of the scene, and with the solver's own damping."""
    dt = check_positive("dt", scene.dt if dt is None else dt, "s")
    substeps = check_integer("substeps", scene.substeps if substeps is None else substeps)
    damping = check_number("damping", scene.damping if damping is None else damping, at_least=0, below=1)
    quasistatic = scene.quasistatic if quasistatic is None else check_flag("quasistatic", quasistatic)
    integrator_name = check_choice(
        "integrator", scene.integrator if integrator is None else integrator, INTEGRATORS
    )
    guess = scene.initial_guess if initial_guess is None else initial_guess
    guess = check_choice("initial_guess", guess, INITIAL_GUESSES)
    steps = 1 if quasistatic else substeps
    return StepSchedule(dt, steps, total_damping(solver, damping), quasistatic, integrator_name, guess)


def total_damping(solver: Solver, damping: float) -> float:
    """Fraction of every velocity that scene and solver together remove per step."""
    solver_damping = solver.damping
    return (
        1 - (1 - damping) * (1 - solver_damping) if damping and solver_damping else damping or solver_damping
    )
