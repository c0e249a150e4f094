"""Run loaded from its results folder: all data for pictures and evaluation, without simulating."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import numpy as np

from supple.api.simulate import Frame
from supple.collision import Obstacles
from supple.collision.obstacles.rigid_body import RecordedPoses
from supple.contact.state.dynamic_term_updates import evaluate_dynamic_terms
from supple.io import ResultsError, ResultsFolder, SavedFrame, read_frame
from supple.io.checksums import start_checksums
from supple.io.replace_file import replacing
from supple.model.model import Model, Step, inertial_target
from supple.postprocess.evaluate import evaluate_model
from supple.postprocess.evaluation import Evaluation, Fields
from supple.problem.history_variables import RIGID
from supple.runs.manifest import fingerprint, report_of, restore_infinities, set_totals
from supple.runs.result_text import solver_name
from supple.scene import SceneError, SceneFile, build_model, load_scene
from supple.scene.shapes.obstacle import obstacles_of
from supple.solve.integrators import RULES, Rule
from supple.support.text import pluralize
from supple.view.picture import Shape

log = logging.getLogger("supple")

T = TypeVar("T")

SCENE_COPY = "scene.toml"
"""Copy of the scene file in a results folder."""


def begin_results(folder: ResultsFolder, file: SceneFile) -> None:
    """Delete old results, start new checksums and copy the scene file, which may itself be such a copy."""
    text = file.path.read_bytes()
    folder.clear()
    start_checksums(folder.path)
    with replacing(folder.path / SCENE_COPY) as path:
        path.write_bytes(text)


@dataclass(frozen=True, eq=False)
class SavedRun:
    """Run in a results folder.

    Attributes:
        folder: The results folder.
        manifest: Report with the complete frames.
        file: Scene of the run.
        prebuilt_model: Model of the scene, if already built.
        loaded_frames: Frames already in memory, by number.
    """

    folder: ResultsFolder
    manifest: dict[str, Any]
    file: SceneFile
    prebuilt_model: Model | None = None
    loaded_frames: Mapping[int, SavedFrame] = field(default_factory=dict)

    def __repr__(self) -> str:
        done, scene = len(self.manifest["frames"]), self.manifest["scene"]
        return (
            f"<SavedRun {str(self.folder.path)!r}: {done} of {pluralize(scene['frames'], 'frame')}, "
            f"{solver_name(self.manifest)}, {self.file.scene!r}>"
        )

    @cached_property
    def model(self) -> Model:
        model = build_model(self.file.scene) if self.prebuilt_model is None else self.prebuilt_model
        if model.obstacles is None or not model.obstacles.rigid:
            return model
        obstacles = with_known_poses(model.obstacles, [self.frame(index) for index in self.indices])
        return replace(model, obstacles=obstacles)

    def frame(self, index: int) -> SavedFrame:
        known = self.loaded_frames.get(index)
        return read_frame(self.folder.path, index) if known is None else known

    @property
    def title(self) -> str:
        return self.manifest["scene"]["title"]

    @property
    def indices(self) -> range:
        """Numbers of the complete frames; 0 is the initial state."""
        return self.folder.indices(self.manifest)

    @property
    def frames(self) -> SavedFrames:
        """Complete frames with their reports, read on access; frames[0] is frame 1."""
        return SavedFrames(self, range(1, len(self.manifest["frames"]) + 1))

    def shapes(self, indices: Sequence[int] | None = None) -> SavedShapes:
        """Shapes of frames for pictures.

        Args:
            indices: Frame numbers, 0 for the initial state; all frames by default.
        """
        return SavedShapes(self, indices or self.indices)

    def caption(self, index: int) -> str:
        """Picture caption: pbng (chebyshev) · 110 iterations · relative residual 7.6e-05 · frame 3 of 12, 0.3
        s"""
        frames = self.manifest["scene"]["frames"]
        if index == 0:
            return f"the start · frame 0 of {frames}, 0 s" if frames > 1 else "the start"
        frame = self.manifest["frames"][index - 1]
        parts = [
            solver_name(self.manifest),
            pluralize(frame["iterations"], "iteration"),
            f"relative residual {frame['relative_residual']:.1e}",
        ]
        if frames > 1:
            parts.append(f"frame {index} of {frames}, {frame['time']:.3g} s")
        if not frame["ok"]:
            parts.append(frame.get("ending", frame["outcome"].replace("_", " ")))
        return " · ".join(parts)

    def time(self, index: int) -> float:
        """Time of a frame [s]: 0 for the initial state, infinite for a single equilibrium."""
        if index == 0:
            return 0.0
        single = self.manifest["solver"].get("single_equilibrium", False)
        return np.inf if single else float(self.manifest["frames"][index - 1]["time"])

    def evaluate(self, index: int) -> Evaluation:
        """Forces, energies, deformations and stresses of a frame.

        Args:
            index: Frame number; 0 is the initial state.
        """
        frame = self.frame(index)
        x = np.asarray(frame.positions, float)
        history = frame.state.history if frame.state is not None else {}
        model = evaluate_dynamic_terms(self.model, x, self.time(index), history)
        return evaluate_model(model, x, self.step(index))

    def step(self, index: int) -> Step | None:
        """Time step that led to a frame.

        Returns:
            None for the initial state, and for equilibria that depend on constant forces alone.
        """
        if index == 0:
            return None
        scene, single = self.file.scene, self.manifest["solver"].get("single_equilibrium", False)
        time = np.inf if single else self.manifest["frames"][index - 1]["time"]
        force = self.model.force_at(time) if self.model.varying else None
        frame = self.frame(index)
        history = {} if frame.state is None else frame.state.history
        acting = force, self.model.materials_at(time), time, history
        if self.model.grid is not None:  # grid nodes carry the inertia
            return Step(np.inf, frame.positions, *acting)
        if scene.quasistatic:
            still = force is None and acting[1] is None and not history and self.model.obstacles is None
            return None if still else Step(np.inf, frame.positions, *acting)
        rule = RULES.get(scene.integrator)
        if scene.substeps > 1:
            tau = scene.dt / scene.substeps * (1.0 if rule is None else rule.inertia)
            return Step(tau, None, *acting)
        if rule is not None:
            return Step(rule.inertia * scene.dt, self._inertial_target(index, rule), *acting)
        if index - 1 in self.indices:
            before = self.frame(index - 1)
            return Step(
                scene.dt, inertial_target(self.model, before.positions, before.velocities, scene.dt), *acting
            )
        start, v = self.file.initial_positions(self.model), self.file.initial_velocities(self.model)
        v = self.model.velocities if v is None else v
        start = self.model.rest if start is None else start
        return Step(
            scene.dt, start if v is None else inertial_target(self.model, start, v, scene.dt), *acting
        )

    def _inertial_target(self, index: int, rule: Rule) -> np.ndarray | None:
        """Inertial target positions of a second-order step; None if the required history is missing."""
        before = self.frame(index - 1).state if index - 1 in self.indices and index > 1 else None
        if before is None or rule.history_name not in before.history:
            return None
        u, v = before.displacements.astype(float), before.velocities.astype(float)
        return self.model.rest + rule.anchor(u, v, before.history[rule.history_name], self.file.scene.dt)


def with_known_poses(obstacles: Obstacles, frames: Sequence[SavedFrame]) -> Obstacles:
    """Obstacles with the rigid body poses recorded in frames."""
    known = [frame for frame in frames if frame.state is not None and RIGID in frame.state.history]
    if not known:
        return obstacles
    times = np.array([frame.time for frame in known])
    numbers = np.stack([frame.state.history[RIGID] for frame in known if frame.state is not None])
    return replace(obstacles, poses=RecordedPoses(obstacles, times, numbers))


def obstacles_in(folder: Path) -> Obstacles | None:
    """Obstacles of the scene in a results folder; None without a readable scene."""
    if not (folder / SCENE_COPY).exists():
        return None
    manifest = ResultsFolder(folder).read_report()
    try:
        obstacles = obstacles_of(load_scene(folder / SCENE_COPY, manifest["scene"].get("folder")).scene)
        if obstacles is None or not obstacles.rigid:
            return obstacles
        results = ResultsFolder(folder)
        return with_known_poses(obstacles, [read_frame(folder, index) for index in results.indices(manifest)])
    except SceneError as error:
        log.warning("obstacles are omitted, because %s cannot be read: %s", folder / SCENE_COPY, error)
        return None


def fields_of(run: SavedRun, names: Sequence[str]) -> Callable[[SavedFrame], Fields] | None:
    """Function that evaluates named fields of a frame; None without names."""
    return (lambda frame: run.evaluate(frame.index).fields(names)) if names else None


class _FrameSequence(Sequence[T]):
    """Sequence of items of a saved run, read on access."""

    def __init__(self, run: SavedRun, indices: Sequence[int]) -> None:
        self.run, self.indices = run, indices

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> T | Self:
        if isinstance(index, slice):
            return type(self)(self.run, self.indices[index])
        return self._read(self.indices[index])

    @abstractmethod
    def _read(self, index: int) -> T:
        """Read the item of one frame."""


class SavedShapes(_FrameSequence[Shape]):
    """Shapes of frames for pictures."""

    def _read(self, index: int) -> Shape:
        positions = np.asarray(self.run.frame(index).positions, float)
        captions = self.run.caption(index), self.run.step(index), index > 0
        return Shape(positions, *captions, self.run.time(index))


class SavedFrames(_FrameSequence[Frame]):
    """Frames as returned by `simulate`."""

    def _read(self, index: int) -> Frame:
        run, saved = self.run, self.run.frame(index)
        report = report_of(run.manifest["frames"][index - 1])
        return Frame(
            saved.positions, report, run.model, saved.velocities, saved.index, saved.time,
            state=saved.state, step=run.step(index),
        )  # fmt: skip


def load_run(path: Path) -> SavedRun:
    """Load the run in a results folder.

    Args:
        path: The results folder.

    Raises:
        ResultsError: The folder has no run, no complete frame, or a scene that has changed since.
    """
    folder = ResultsFolder(path)
    _refuse_other(path)
    manifest = folder.read_report()
    manifest["frames"] = folder.complete(manifest)
    restore_infinities(manifest["frames"])
    set_totals(manifest)
    if not manifest["frames"]:
        raise ResultsError(f"{path} has no complete frame yet; `supple run` writes them.")
    return SavedRun(folder, manifest, _scene(path, manifest))


def _refuse_other(path: Path) -> None:
    if not path.is_dir():
        raise ResultsError(f"there is no results folder {path}; `supple run SCENE` creates one.")
    if (path / "comparison.json").exists():
        raise ResultsError(
            f"{path} is a comparison, which has no frames to draw; `supple report {path}` shows it."
        )
    if not (path / "report.json").exists():
        raise ResultsError(f"{path} has no report.json, so it is not a results folder of `supple run`.")


def _scene(path: Path, manifest: dict[str, Any]) -> SceneFile:
    """Scene of the run, loaded from the copied scene file and its mesh files."""
    copy = path / SCENE_COPY
    if not copy.exists():
        raise ResultsError(
            f"{path} has no {SCENE_COPY}, the copy of its scene file, without which pins, materials and "
            f"attachments are unknown; run {manifest['scene']['file']} again with --overwrite."
        )
    file = load_scene(copy, manifest["scene"].get("folder"))
    if fingerprint(file) != manifest["scene"]["sha256"]:
        raise ResultsError(
            f"{path} cannot be drawn: {copy}, or a mesh that it reads, has changed since the run began."
        )
    return file
