"""What a run does: a scene file and the options that override it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from supple.io import SavedFrame
from supple.scene import SceneFile, build_model
from supple.scene.checks import closest
from supple.simulate import Frame, Stop, Watcher, equilibrium, simulate
from supple.solvers import SOLVERS, Solver

DEFAULT_TOLERANCE = 1e-4
"""Where neither the file nor the command line says when to stop."""


@dataclass(frozen=True, eq=False)
class Job:
    """A scene with everything that determines its frames, and how to compute them."""

    file: SceneFile
    solver: Solver
    stop: Stop
    frames: int
    precision: str
    device: str
    threads: int | None
    history: bool

    @property
    def single(self) -> bool:
        """One equilibrium with all motions at their end, rather than frames of a motion."""
        return self.frames == 1 and self.file.scene.quasistatic

    @property
    def settings(self) -> dict[str, Any]:
        """What a resumed run must have in common with the interrupted one."""
        return {
            "method": self.solver.name,
            "options": asdict(self.solver),  # type: ignore[call-overload]
            **asdict(self.stop),
            "precision": self.precision,
            "single_equilibrium": self.single,
        }

    @property
    def fingerprint(self) -> str:
        """A hash of the scene file and of the meshes that it reads."""
        digest = hashlib.sha256(self.file.path.read_bytes())
        for body in self.file.scene.bodies:
            digest.update(body.mesh.points.tobytes())
            digest.update(body.mesh.tets.tobytes())
        return digest.hexdigest()

    def solve(self, last: SavedFrame | None, watch: Watcher | None) -> Iterator[Frame]:
        """The frames after the last complete one, None where there is none."""
        scene = self.file.scene
        if last is not None:
            start: np.ndarray | None = last.positions
        else:
            start = None if self.file.start is None else self.file.start_positions(build_model(scene))
        options: dict[str, Any] = {
            **asdict(self.stop),
            "precision": self.precision,
            "device": self.device,
            "threads": self.threads,
            "history": self.history,
            "start": start,
            "watch": watch,
        }
        if not self.single:
            first = 1 if last is None else last.index + 1
            velocities = None if last is None else last.velocities
            yield from simulate(
                scene, self.solver, frames=self.frames, first_frame=first, velocities=velocities, **options
            )
        elif last is None:
            result = equilibrium(scene, self.solver, **options)
            still = np.zeros_like(result.positions)
            yield Frame(result.positions, result.report, result.model, still, 1, scene.dt)


def make_solver(file: SceneFile, method: str | None) -> Solver:
    """The file's solver, or another one with its own defaults."""
    if method is None or method == file.solver.method:
        return SOLVERS[file.solver.method](**file.solver.options)
    if method not in SOLVERS:
        raise ValueError(f"there is no solver {method!r}; {closest(method, SOLVERS)}")
    return SOLVERS[method]()


def make_stop(
    file: SceneFile,
    solver: Solver,
    tolerance: float | None,
    max_iterations: int | None,
    time_budget: float | None,
) -> Stop:
    """The file's limits with those given here in their place."""
    stop = Stop(
        file.stop.tolerance if tolerance is None else tolerance,
        file.stop.max_iterations if max_iterations is None else max_iterations,
        file.stop.time_budget if time_budget is None else time_budget,
    )
    limits = (stop.tolerance, stop.max_iterations, stop.time_budget, solver.iterations)
    return Stop(tolerance=DEFAULT_TOLERANCE) if all(limit is None for limit in limits) else stop
