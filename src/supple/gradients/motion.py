"""motion_gradient(): derivatives of a function of a motion, backward through its time steps.

Every backward Euler step ends at zero net force including inertia, so an adjoint λ gives the derivatives with
respect to the start of the step: x̂ = xₙ + Δt vₙ with vₙ = (1 - damping)(xₙ - xₙ₋₁)/Δt, except for the first
step. States between checkpoints are recomputed in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.api.simulate import Frame, simulate
from supple.gradients.gradient import Gradient, gradient_at
from supple.gradients.gradient_report import GradientReport, NoGradientError
from supple.gradients.polish import PolishedState, make_problem_at
from supple.materials import evolving
from supple.model.state import State
from supple.problem import Problem
from supple.scene import Body, Scene, SceneFile
from supple.scene.contact_settings import contact_of
from supple.scene.scene import scene_of
from supple.solve.call_options import Options, resolve_backend, takes_options
from supple.solvers import Solver
from supple.support.arguments import (
    MAX_MAGNITUDE,
    check_integer,
    check_positive,
    check_vectors,
    comma_list,
    format_value,
)

TOLERANCE = 1e-10
"""Default tolerance of every step. Each step starts from the end of the previous one, so later polishing
would not help."""

Loss = Callable[[int, np.ndarray], ArrayLike | None]
"""Function of a frame number, from 1, and positions (n, 3) [m] that returns ∂L/∂x (n, 3), or None."""


@dataclass(repr=False, eq=False)
class MotionGradient:
    """dL/dθ for constant inputs of a motion.

    Attributes:
        forces: (n, 3) derivatives with respect to the forces on all vertices [1/N].
        gravity: (3,) derivative with respect to the gravitational acceleration [s²/m].
        initial_positions: (n, 3) derivatives with respect to the initial positions [1/m].
        initial_velocities: (n, 3) derivatives with respect to the initial velocities [s/m].
        frames: Positions (n, 3) of all frames [m].
        reports: Reports on the adjoint systems of all steps, last step first.
        parameters: Derivatives with respect to the requested parameters, by body and name.
    """

    forces: np.ndarray
    gravity: np.ndarray
    initial_positions: np.ndarray
    initial_velocities: np.ndarray
    frames: list[np.ndarray] = field(default_factory=list)
    reports: list[GradientReport] = field(default_factory=list)
    parameters: dict[tuple[Body, str], Any] = field(default_factory=dict)


@takes_options
def motion_gradient(
    scene: Scene | SceneFile,
    loss: Loss,
    *,
    solver: Solver | str | None = "newton",
    parameters: Mapping[Body, Sequence[str]] | None = None,
    checkpoints: int = 10,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int | None = None,
    damping: float | None = None,
    initial: np.ndarray | State | None = None,
    velocities: np.ndarray | None = None,
    **options: Unpack[Options],
) -> MotionGradient:
    """Differentiate L = Σ Lₖ(xₖ) over the frames of a dynamic scene.

    Args:
        scene: Scene.
        loss: Function (k, x) of the frame number k, from 1, and positions x (n, 3) [m] that returns ∂Lₖ/∂x
            (n, 3), or None.
        solver: Solver.
        parameters: Names of material parameters, or "density", by body.
        checkpoints: Number of steps between stored states; the other states are computed twice.
        dt, frames, substeps, damping, initial, velocities: As for `supple.simulate`.
        **options: As for `supple.simulate`; the default tolerance is 1e-10.

    Returns:
        Derivatives of L, and the positions of all frames.

    Raises:
        NoGradientError: The motion depends on the past in other ways than by positions and velocities.
    """
    owner = scene_of(scene)
    _check_scene(owner)
    if not callable(loss):
        raise TypeError(
            f"loss must be a function of a frame number and its positions, got {format_value(loss)}"
        )
    every = check_integer("checkpoints", checkpoints)
    parts = check_integer("substeps", owner.substeps if substeps is None else substeps)
    count = parts * check_integer("frames", owner.frames if frames is None else frames)
    velocity_loss = owner.damping if damping is None else damping
    options.setdefault("tolerance", TOLERANCE)
    schedule: dict[str, Any] = {
        "dt": check_positive("dt", owner.dt if dt is None else dt, "s") / parts,
        "substeps": 1,
        "damping": velocity_loss,
        "quasistatic": False,
    }

    def steps(first: int, last: int, begin: Any, speed: Any) -> list[Frame]:
        limits: dict[str, Any] = {"first_frame": first, "frames": last, "initial": begin, "velocities": speed}
        return list(simulate(scene, solver=solver, **schedule, **limits, **options))

    checkpoint_states, frame_positions = _forward(steps, count, every, initial, velocities, parts)
    backward = _Backward(loss, float(velocity_loss), parts, parameters or {}, resolve_backend(options))
    for first in sorted(checkpoint_states, reverse=True):
        begin, speed = checkpoint_states[first]
        for frame in reversed(steps(first, min(first + every - 1, count), begin, speed)):
            backward.add_step(frame)
    total = backward.total
    assert total is not None
    total.frames = frame_positions
    return total


def _forward(
    steps: Callable[..., list[Frame]], count: int, every: int, initial: Any, velocities: Any, parts: int
) -> tuple[dict[int, tuple[Any, Any]], list[np.ndarray]]:
    """Compute the motion.

    Returns:
        Start of each stretch between checkpoints, by its first step, and positions of all frames.
    """
    checkpoint_states: dict[int, tuple[Any, Any]] = {}
    positions, begin, speed = [], initial, velocities
    for first in range(1, count + 1, every):
        checkpoint_states[first] = begin, speed
        done = steps(first, min(first + every - 1, count), begin, speed)
        positions += [frame.positions for frame in done if frame.index % parts == 0]
        begin, speed = done[-1].state, None
    return checkpoint_states, positions


def _check_scene(scene: Scene) -> None:
    """Raise a NoGradientError for scenes with path dependence beyond positions and velocities."""
    if scene.integrator != "backward_euler":
        raise NoGradientError(
            f"motion_gradient does not support integrator={scene.integrator!r}; use "
            "integrator='backward_euler'."
        )
    if contact_of(scene.contact).method == "grid":
        raise NoGradientError('motion_gradient does not support contact="grid"; use contact="none".')
    if scene.winds:
        raise NoGradientError("motion_gradient does not support wind; remove it from the scene.")
    if scene.obstacles:
        raise NoGradientError("motion_gradient does not support obstacles; remove them from the scene.")
    flowing = [body.name for body in scene.bodies if evolving(type(body.material))]
    if flowing:
        raise NoGradientError(
            "motion_gradient does not support plastic or viscous materials; use others for "
            f"{comma_list(flowing)}."
        )


class _Backward:
    """Backward pass through the steps, from last to first."""

    def __init__(
        self, loss: Loss, damping: float, parts: int, parameters: Mapping[Body, Sequence[str]], backend: Any
    ) -> None:
        self._loss, self._keep, self._parts = loss, 1.0 - damping, parts
        self._parameters, self._backend = parameters, backend
        self._problem: Problem | None = None
        self._pending: dict[int, np.ndarray] = {}
        self.total: MotionGradient | None = None

    def add_step(self, frame: Frame) -> None:
        """Add the derivatives of one step."""
        k, x = frame.index, frame.positions
        direct = self._pending.pop(k, np.zeros_like(x))
        derivative = self._loss(k // self._parts, x) if k % self._parts == 0 else None
        if derivative is not None:
            direct = direct + check_vectors(
                f"∂L/∂x of frame {k // self._parts}", derivative, len(x), limit=MAX_MAGNITUDE
            )
        self._problem = make_problem_at(frame, self._backend, self._problem)
        balance = self._problem.balance().relative_residual
        gradient = gradient_at(PolishedState(self._problem, balance, balance, 0, 0.0), frame, direct)
        self._add(gradient, k)

    def _add(self, gradient: Gradient, k: int) -> None:
        by_anchor = gradient.initial_positions
        if self.total is None:
            zeros = [np.zeros_like(by_anchor) for _ in range(3)]
            self.total = MotionGradient(zeros[0], np.zeros(3), zeros[1], zeros[2])
        total, one = self.total, 0 if k == 1 else 1
        total.forces += gradient.forces
        total.gravity += gradient.gravity
        total.reports.append(gradient.report)
        for body, names in self._parameters.items():
            for name in names:
                before = total.parameters.get((body, name), 0.0)
                total.parameters[body, name] = before + getattr(gradient.body(body), name)
        self._add_pending(k - 1, (1.0 + one * self._keep) * by_anchor)
        if k == 1:
            total.initial_velocities += gradient.initial_velocities
            total.initial_positions += self._pending.pop(0)
        else:
            self._add_pending(k - 2, -self._keep * by_anchor)

    def _add_pending(self, k: int, vectors: np.ndarray) -> None:
        """Add a later step's contribution to ∂L/∂x of step k, 0 for the initial state."""
        self._pending[k] = self._pending.get(k, 0.0) + vectors
