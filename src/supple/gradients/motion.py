"""motion_gradient(): derivatives of a function of a motion in time, by going back through its steps.

Every backward Euler step ends where the net forces vanish, inertia among them, so that an adjoint λ tells
what a step makes of where it begins: x̂ = xₙ + Δt vₙ, and vₙ = (1 - damping)(xₙ - xₙ₋₁)/Δt but for the first
one. Going back, states between checkpoints are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.asking import Options, compute_of, takes_options
from supple.checks import LARGEST, finite_rows, listed, positive, shown, whole_number
from supple.gradients.gradient import Gradient, gradient_at
from supple.gradients.polishing import Polished, problem_of
from supple.gradients.report import GradientReport, NoGradientError
from supple.materials import evolving
from supple.problem import Problem
from supple.scene import Body, Scene, SceneFile
from supple.scene.contact import contact_of
from supple.scene.scene import scene_of
from supple.simulate import Frame, simulate
from supple.solvers import Solver
from supple.state import State

TOLERANCE = 1e-10
"""Of every step, unless given: the next step begins where it ends, so that polishing would come too late."""

Loss = Callable[[int, np.ndarray], ArrayLike | None]
"""The number of a frame, from 1, and its positions (n, 3) to ∂L/∂x (n, 3), or to None for nothing."""


@dataclass(repr=False, eq=False)
class MotionGradient:
    """dL/dθ for what is the same throughout a motion: forces (n, 3) on all vertices and gravity (3,);
    start_positions and start_velocities (n, 3); parameters: by body and name, what was wanted. frames: the
    positions (n, 3) of all frames; reports: of the adjoint systems of all steps, the last first."""

    forces: np.ndarray
    gravity: np.ndarray
    start_positions: np.ndarray
    start_velocities: np.ndarray
    frames: list[np.ndarray] = field(default_factory=list)
    reports: list[GradientReport] = field(default_factory=list)
    parameters: dict[tuple[Body, str], Any] = field(default_factory=dict)


@takes_options
def motion_gradient(
    scene: Scene | SceneFile,
    loss: Loss,
    solver: Solver | str | None = "newton",
    *,
    wanted: Mapping[Body, Sequence[str]] | None = None,
    checkpoints: int = 10,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int | None = None,
    damping: float | None = None,
    start: np.ndarray | State | None = None,
    velocities: np.ndarray | None = None,
    **options: Unpack[Options],
) -> MotionGradient:
    """The derivatives of L = Σ Lₖ(xₖ) of the frames of a dynamic scene.

    loss: called as loss(k, x) for frame k, from 1, at positions x (n, 3); returns ∂Lₖ/∂x (n, 3), or None.
    wanted: for bodies, the names of parameters of their materials, or "density". checkpoints: how many steps
    lie between states that are kept; the others are computed twice. dt, frames, substeps, damping, start,
    velocities and options: as for `supple.simulate`, with a tolerance of 1e-10 unless given.
    """
    owner = scene_of(scene)
    _refuse(owner)
    if not callable(loss):
        raise TypeError(f"loss is a function of the number of a frame and its positions, got {shown(loss)}")
    every = whole_number("checkpoints", checkpoints)
    parts = whole_number("substeps", owner.substeps if substeps is None else substeps)
    count = parts * whole_number("frames", owner.frames if frames is None else frames)
    lost = owner.damping if damping is None else damping
    options.setdefault("tolerance", TOLERANCE)
    pace: dict[str, Any] = {
        "dt": positive("dt", owner.dt if dt is None else dt, "s") / parts,
        "substeps": 1,
        "damping": lost,
        "quasistatic": False,
    }

    def steps(first: int, last: int, begin: Any, speed: Any) -> list[Frame]:
        limits: dict[str, Any] = {"first_frame": first, "frames": last, "start": begin, "velocities": speed}
        return list(simulate(scene, solver, **pace, **limits, **options))

    kept, found = _forward(steps, count, every, start, velocities, parts)
    back = _Backward(loss, float(lost), parts, wanted or {}, compute_of(options))
    for first in sorted(kept, reverse=True):
        begin, speed = kept[first]
        for frame in reversed(steps(first, min(first + every - 1, count), begin, speed)):
            back.through(frame)
    total = back.total
    assert total is not None
    total.frames = found
    return total


def _forward(
    steps: Callable[..., list[Frame]], count: int, every: int, start: Any, velocities: Any, parts: int
) -> tuple[dict[int, tuple[Any, Any]], list[np.ndarray]]:
    """What the first step of every stretch begins from, by its number, and the positions of all frames."""
    kept: dict[int, tuple[Any, Any]] = {}
    found, begin, speed = [], start, velocities
    for first in range(1, count + 1, every):
        kept[first] = begin, speed
        done = steps(first, min(first + every - 1, count), begin, speed)
        found += [frame.positions for frame in done if frame.index % parts == 0]
        begin, speed = done[-1].state, None
    return kept, found


def _refuse(scene: Scene) -> None:
    """What depends on the past in other ways than by positions and velocities."""
    if scene.integrator != "backward_euler":
        raise NoGradientError(
            f"Only motions by backward Euler can be differentiated yet, not by {scene.integrator}."
        )
    if contact_of(scene.contact).method == "grid":
        raise NoGradientError(
            'Motions of bodies that a grid carries cannot be differentiated yet; take contact="none".'
        )
    if scene.winds:
        raise NoGradientError("Motions in the wind cannot be differentiated yet; take the wind away.")
    if scene.obstacles:
        raise NoGradientError("Motions against obstacles cannot be differentiated yet; take these away.")
    flowing = [body.name for body in scene.bodies if evolving(type(body.material))]
    if flowing:
        raise NoGradientError(
            f"Motions of materials that flow, {listed(flowing)}, cannot be differentiated yet."
        )


class _Backward:
    """Goes through steps from the last to the first."""

    def __init__(
        self, loss: Loss, damping: float, parts: int, wanted: Mapping[Body, Sequence[str]], compute: Any
    ) -> None:
        self._loss, self._keep, self._parts = loss, 1.0 - damping, parts
        self._wanted, self._compute = wanted, compute
        self._problem: Problem | None = None
        self._ahead: dict[int, np.ndarray] = {}
        self.total: MotionGradient | None = None

    def through(self, frame: Frame) -> None:
        k, x = frame.index, frame.positions
        direct = self._ahead.pop(k, np.zeros_like(x))
        given = self._loss(k // self._parts, x) if k % self._parts == 0 else None
        if given is not None:
            direct = direct + finite_rows(f"∂L/∂x of frame {k // self._parts}", given, len(x), limit=LARGEST)
        self._problem = problem_of(frame, self._compute, self._problem)
        balance = self._problem.balance().imbalance
        found = gradient_at(Polished(self._problem, balance, balance, 0, 0.0), frame, direct)
        self._add(found, k)

    def _add(self, found: Gradient, k: int) -> None:
        by_anchor = found.start_positions
        if self.total is None:
            zeros = [np.zeros_like(by_anchor) for _ in range(3)]
            self.total = MotionGradient(zeros[0], np.zeros(3), zeros[1], zeros[2])
        total, one = self.total, 0 if k == 1 else 1
        total.forces += found.forces
        total.gravity += found.gravity
        total.reports.append(found.report)
        for body, names in self._wanted.items():
            for name in names:
                before = total.parameters.get((body, name), 0.0)
                total.parameters[body, name] = before + getattr(found.of(body), name)
        self._give(k - 1, (1.0 + one * self._keep) * by_anchor)
        if k == 1:
            total.start_velocities += found.start_velocities
            total.start_positions += self._ahead.pop(0)
        else:
            self._give(k - 2, -self._keep * by_anchor)

    def _give(self, k: int, vectors: np.ndarray) -> None:
        """What a later step adds to ∂L/∂x of step k, 0 for the start."""
        self._ahead[k] = self._ahead.get(k, 0.0) + vectors
