"""What a run does: a scene file and the options that override it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.asking import method_of
from supple.checks import closest
from supple.cli.meshing import showing_tetrahedralisation
from supple.cli.shipped import shipped_scenes
from supple.compute import Compute
from supple.evaluating import evaluation_of
from supple.evaluation import Fields
from supple.io import SavedFrame
from supple.model import Model
from supple.scene import SceneFile, build_model, load_scene
from supple.scene.build import start_of
from supple.simulate import Frame, equilibrium, simulate
from supple.solver_text import parse_solver
from supple.solvers import Solver
from supple.solvers.options import plain_options
from supple.solving import Watcher
from supple.state import State
from supple.stop import Stop


@dataclass(frozen=True, eq=False)
class Job:
    """A scene with everything that determines its frames, and how to compute them."""

    file: SceneFile
    solver: Solver
    stop: Stop
    frames: int
    compute: Compute
    history: bool
    fields: Sequence[str] = ()

    def fields_at_start(self, model: Model) -> Fields | None:
        """Those that files of frame 0 are to have, None for none."""
        return evaluation_of(model, self.start.positions).fields(self.fields) if self.fields else None

    @property
    def single(self) -> bool:
        """One equilibrium with all motions at their end, rather than frames of a motion."""
        return self.frames == 1 and self.file.scene.quasistatic

    @property
    def settings(self) -> dict[str, Any]:
        """What a resumed run must have in common with the interrupted one."""
        return {
            "method": self.solver.name,
            "options": plain_options(self.solver),
            **asdict(self.stop),
            "precision": self.compute.precision,
            "single_equilibrium": self.single,
        }

    @property
    def start(self) -> SavedFrame:
        """Frame 0: the shape that the solve begins with, at time 0, with the velocities that it has then."""
        scene = self.file.scene
        moving = np.concatenate([body.velocities for body in scene.bodies])
        if self.file.start is None:
            return SavedFrame(start_of(scene), moving, 0, 0.0)
        model = build_model(scene)
        positions, velocities = self.file.start_positions(model), self.file.start_velocities(model)
        assert positions is not None
        return SavedFrame(positions, moving if velocities is None else velocities, 0, 0.0)

    def solve(self, last: SavedFrame | None, watch: Watcher | None) -> Iterator[Frame]:
        """The frames after the last complete one, None where there is none."""
        scene = self.file.scene
        start: np.ndarray | State | None = None
        velocities: np.ndarray | None = None
        if last is not None and last.state is not None:
            start = last.state
        elif last is not None:
            start, velocities = last.positions, last.velocities
        elif self.file.start is not None:
            model = build_model(scene)
            start, velocities = self.file.start_positions(model), self.file.start_velocities(model)
        options: dict[str, Any] = {
            "stop": self.stop,
            "compute": self.compute,
            "history": self.history,
            "start": start,
            "watch": watch,
        }
        if not self.single:
            first = 1 if last is None else last.index + 1
            yield from simulate(
                scene, self.solver, frames=self.frames, first_frame=first, velocities=velocities, **options
            )
        elif last is None:
            result = equilibrium(scene, self.solver, **options)
            still = np.zeros_like(result.positions)
            yield Frame(
                result.positions,
                result.report,
                result.model,
                still,
                1,
                scene.dt,
                state=result.state,
                step=result.step,
            )


def load_file(path: Path) -> SceneFile:
    """A scene file, or one that comes with supple, by its name; where there is neither, neighbours of the
    file and scenes that come with supple are suggested."""
    if not path.exists():
        shipped = shipped_scenes()
        if str(path) not in shipped:
            known = [*(str(other) for other in sorted(path.parent.glob("*.toml"))), *shipped]
            raise FileNotFoundError(f"there is no scene file {path}; {closest(str(path), known)}")
        path = shipped[str(path)]
    with showing_tetrahedralisation():
        return load_scene(path)


def solver_for(file: SceneFile, text: str | None) -> Solver:
    """The file's solver, also where only its name is given, or another one such as newton or
    pbng:acceleration=chebyshev."""
    return method_of(None, file) if text in (None, file.solver.method) else parse_solver(str(text))
