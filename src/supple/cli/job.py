"""Run job: a scene file with overriding options, and the frames that it yields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from supple.api.simulate import Frame, equilibrium, simulate
from supple.api.solver_syntax import parse_solver
from supple.cli.bundled_scenes import list_scene_files
from supple.cli.tetrahedralization_status import show_tetrahedralization
from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.io import SavedFrame
from supple.model.model import Model
from supple.model.state import State
from supple.postprocess.evaluate import evaluate_model
from supple.postprocess.evaluation import Fields
from supple.scene import SceneFile, build_model, load_scene
from supple.scene.build import initial_positions_of
from supple.solve.batch_solve import Callback
from supple.solve.call_options import resolve_solver
from supple.solvers import Solver
from supple.solvers.options import plain_options
from supple.support.arguments import suggest_name


@dataclass(frozen=True, eq=False)
class Job:
    """Scene file with all options of a run.

    Attributes:
        file: The scene file.
        solver: Solver of every step.
        stop: Termination criteria.
        frames: Number of frames.
        backend: Device, precision and threads.
        record_history: Record the residual history of every solve.
        fields: Quantities to write with every frame.
    """

    file: SceneFile
    solver: Solver
    stop: StopCriteria
    frames: int
    backend: Backend
    record_history: bool
    fields: Sequence[str] = ()

    def fields_at_start(self, model: Model) -> Fields | None:
        """Fields to write with frame 0; None without requested fields."""
        return evaluate_model(model, self.initial.positions).fields(self.fields) if self.fields else None

    @property
    def single(self) -> bool:
        """True for a single equilibrium at the end of all motions, False for multiple frames."""
        return self.frames == 1 and self.file.scene.quasistatic

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that must be equal in a resumed run."""
        return {
            "method": self.solver.name,
            "options": plain_options(self.solver),
            **asdict(self.stop),
            "precision": self.backend.precision,
            "single_equilibrium": self.single,
        }

    @property
    def initial(self) -> SavedFrame:
        """Frame 0: initial positions and velocities at time 0."""
        scene = self.file.scene
        moving = np.concatenate([body.velocities for body in scene.bodies])
        if self.file.initial is None:
            return SavedFrame(initial_positions_of(scene), moving, 0, 0.0)
        model = build_model(scene)
        positions, velocities = self.file.initial_positions(model), self.file.initial_velocities(model)
        assert positions is not None
        return SavedFrame(positions, moving if velocities is None else velocities, 0, 0.0)

    def solve(self, last: SavedFrame | None, callback: Callback | None) -> Iterator[Frame]:
        """Yield the frames after the last complete one.

        Args:
            last: Last complete frame; None starts at the beginning.
            callback: Callback of every iteration.
        """
        scene = self.file.scene
        initial: np.ndarray | State | None = None
        velocities: np.ndarray | None = None
        if last is not None and last.state is not None:
            initial = last.state
        elif last is not None:
            initial, velocities = last.positions, last.velocities
        elif self.file.initial is not None:
            model = build_model(scene)
            initial, velocities = self.file.initial_positions(model), self.file.initial_velocities(model)
        options: dict[str, Any] = {
            "stop": self.stop,
            "backend": self.backend,
            "record_history": self.record_history,
            "initial": initial,
            "callback": callback,
        }
        if not self.single:
            first = 1 if last is None else last.index + 1
            yield from simulate(
                scene,
                solver=self.solver,
                frames=self.frames,
                first_frame=first,
                velocities=velocities,
                **options,
            )
        elif last is None:
            result = equilibrium(scene, solver=self.solver, **options)
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
    """Load a scene file, or a bundled scene by name.

    Raises:
        FileNotFoundError: There is neither; the message suggests similar names.
    """
    if not path.exists():
        shipped = list_scene_files()
        if str(path) not in shipped:
            known = [*(str(other) for other in sorted(path.parent.glob("*.toml"))), *shipped]
            raise FileNotFoundError(f"there is no scene file {path}; {suggest_name(str(path), known)}")
        path = shipped[str(path)]
    with show_tetrahedralization():
        return load_scene(path)


def solver_for(file: SceneFile, text: str | None) -> Solver:
    """Solver of the scene file, or another one given by name and options.

    Args:
        file: The scene file.
        text: Solver and options such as newton or pbng:acceleration=chebyshev. None, or the name of the
            file's solver, selects that solver with the options of the file.
    """
    own = text is None or text.casefold() == file.solver.method
    return resolve_solver(None, file) if own else parse_solver(str(text))
