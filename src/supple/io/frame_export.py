"""Frame export to other programs, from a results folder or during a simulation.

Obstacles are additional bodies, whose points follow those of the scene's bodies.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.api.simulate import Frame, Result
from supple.collision import Obstacles
from supple.collision.obstacles.render_meshes import ObstacleMesh, obstacle_meshes, transform_meshes
from supple.contact.state.dynamic_term_updates import evaluate_dynamic_terms
from supple.io.checksums import Checksums, check_unchanged, compact_checksums, read_checksums
from supple.io.errors import FrameError, ResultsError
from supple.io.formats import FORMATS, ExportContext, Format, FrameData
from supple.io.formats.interface import AddFrame
from supple.io.frames import SavedFrame, frame_path, read_frame
from supple.io.lock import hold_lock
from supple.io.results import ResultsFolder
from supple.io.saved_bodies import DATA, SKINS, SavedBody, read_bodies
from supple.meshes import TriMesh
from supple.model.model import Step
from supple.postprocess.evaluate import evaluate_model
from supple.postprocess.evaluation import Fields, parse_quantities
from supple.scene import Scene, SceneFile
from supple.scene.build import assemble_model, initial_positions_of
from supple.scene.scene import scene_of
from supple.scene.shapes.obstacle import obstacles_of
from supple.support.arguments import (
    check_path,
    check_positive,
    check_vectors,
    format_value,
    iterate_argument,
    suggest_name,
)
from supple.support.os_errors import add_path_to_os_errors
from supple.support.progress import Progress


@dataclass(frozen=True, eq=False)
class ObstacleSurfaces:
    """Obstacles of an export as additional bodies, with outlines."""

    obstacles: Obstacles
    shapes: tuple[ObstacleMesh, ...]
    bodies: tuple[SavedBody, ...]

    @staticmethod
    def of(obstacles: Obstacles | None, context: ExportContext) -> ObstacleSurfaces | None:
        """Surfaces of obstacles; None without visible obstacles."""
        if obstacles is None:
            return None
        points = np.concatenate([body.mesh.points for body in context.bodies])
        shapes = sorted(
            obstacle_meshes(obstacles, points), key=lambda each: int(obstacles.obstacle[each.row])
        )
        outline_points = transform_meshes(shapes, obstacles, 0.0)
        first, bodies = len(points), []
        for k, name in enumerate(obstacles.names):
            mine = [i for i, each in enumerate(shapes) if obstacles.obstacle[each.row] == k]
            if mine:
                starts = np.cumsum([0, *(len(outline_points[i]) for i in mine)])
                triangles = np.concatenate(
                    [s + shapes[i].triangles for s, i in zip(starts[:-1], mine, strict=True)]
                )
                mesh = TriMesh(np.concatenate([outline_points[i] for i in mine]), triangles)
                own = slice(first, first + int(starts[-1]))
                bodies.append(SavedBody(name, mesh, own, None, mesh.measures))
                first = own.stop
        return ObstacleSurfaces(obstacles, tuple(shapes), tuple(bodies)) if bodies else None

    def add_to_context(self, context: ExportContext) -> ExportContext:
        """The context with obstacles as additional bodies."""
        return replace(context, bodies=[*context.bodies, *self.bodies])

    def add_to_frame(self, frame_data: FrameData, time: float) -> FrameData:
        """Append obstacle points at a time [s] to a frame; body fields are 0 there."""
        points = transform_meshes(self.shapes, self.obstacles, time)
        cells = sum(body.mesh.n_cells for body in self.bodies)
        vertices = sum(map(len, points))
        fields = Fields(
            {name: _pad_zeros(values, vertices) for name, values in frame_data.fields.vertices.items()},
            {name: _pad_zeros(values, cells) for name, values in frame_data.fields.cells.items()},
        )
        return replace(frame_data, positions=np.concatenate([frame_data.positions, *points]), fields=fields)


def _pad_zeros(values: np.ndarray, extra: int) -> np.ndarray:
    return np.concatenate([values, np.zeros((extra, *values.shape[1:]), values.dtype)])


log = logging.getLogger("supple")

Values = Callable[[Any], Fields]
"""Function of a frame that returns additional fields for its files."""


def export_frames(
    results: str | os.PathLike[str],
    formats: str | Iterable[str],
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    values: Values | None = None,
    obstacles: Obstacles | None = None,
) -> dict[str, Path]:
    """Export the initial state, as frame 0, and all frames of a results folder.

    Nothing is simulated. For an unfinished run, the complete frames are exported.

    Args:
        results: Results folder.
        formats: Formats such as "usd,glb".
        output: Output folder; by default the results folder.
        progress: Called as progress(done, total) after each frame.
        values: Function of a frame that returns additional fields.
        obstacles: Obstacles shown with the bodies.

    Returns:
        File or folder of each format, by its name.
    """
    chosen = parse_formats(formats)
    _refuse_without_fields(chosen, values)
    folder = ResultsFolder(check_path(results, "a results folder"))
    indices, context, single = open_results(folder)
    target = _make_folder(folder.path if output is None else check_path(output, "a folder to write to"))
    with hold_lock(target):
        paths = _write(
            context, _read(folder.path, indices, progress), chosen, target, values, obstacles, single
        )
        compact_checksums(target)
    return paths


def export_own(
    results: Path,
    formats: str | Iterable[str],
    values: Values | None = None,
    obstacles: Obstacles | None = None,
) -> dict[str, Path]:
    """Export the frames into the results folder whose lock the caller holds."""
    indices, context, single = open_results(ResultsFolder(results))
    frames, chosen = _read(results, indices, None), parse_formats(formats)
    return _write(context, frames, chosen, results, values, obstacles, single)


def _refuse_without_fields(formats: list[Format], values: Values | None) -> None:
    if values is not None and not any(format.fields for format in formats):
        able = ", ".join(name for name, format in FORMATS.items() if format.fields)
        names = ", ".join(format.name for format in formats)
        raise ResultsError(f"{names} cannot hold fields; {able} can.")


def save_frames(
    scene: Scene | SceneFile,
    frames: Iterable[Any] | Result,
    formats: str | Iterable[str],
    output: str | os.PathLike[str],
    dt: float | None = None,
    initial: ArrayLike | None = None,
    fields: str | Iterable[str] | None = None,
) -> dict[str, Path]:
    """Write frames during a simulation, with one frame in memory at a time.

    Args:
        scene: Scene.
        frames: Frames of `simulate`, results of `equilibrium`, or positions (n, 3) [m].
        formats: Formats such as "usd,glb".
        output: Output folder.
        dt: Time from frame to frame [s]; by default the scene's.
        initial: (n, 3) initial positions [m], written as frame 0 at time 0; by default the scene at rest.
        fields: Additional fields such as "von_mises,cauchy", see `evaluate`; for USD, VTU, NPZ and Zarr.

    Returns:
        File or folder of each format, by its name.

    Raises:
        ResultsError: The scene has no bodies, or no format can hold the fields.
        ValueError: A format, a field or an argument is invalid.

    Example: `save_frames(scene, supple.simulate(scene), "usd", "animation")`.
    """
    scene = scene_of(scene)
    if not scene.bodies:
        raise ResultsError("the scene has no bodies, so there is nothing to write.")
    if isinstance(frames, Result):
        frames = [frames]
    frames = iterate_argument(frames, "frames must be those of simulate(), or a list of results")
    context = ExportContext(scene.bodies, check_positive("dt", scene.dt if dt is None else dt, "s"))
    chosen, target = parse_formats(formats), _make_folder(check_path(output, "a folder to write to"))
    names = parse_quantities(fields)
    values = _field_evaluator(scene, names) if names else None
    _refuse_without_fields(chosen, values)
    with hold_lock(target):
        frame_data = _with_start(_frame_data(frames, scene, context.dt), scene, initial)
        return _write(context, frame_data, chosen, target, values, obstacles_of(scene))


def _field_evaluator(scene: Scene, names: list[str]) -> Values:
    """Function that evaluates fields of results, or of positions under the scene's loads at their time."""
    model = assemble_model(scene)

    def values(frame: Any) -> Fields:
        if isinstance(frame, Result):
            return frame.evaluate().fields(names)
        x = frame.positions
        step = Step(np.inf, x, model.force_at(frame.time), model.materials_at(frame.time), frame.time)
        return evaluate_model(evaluate_dynamic_terms(model, x, frame.time), x, step).fields(names)

    return values


def parse_formats(formats: str | Iterable[str]) -> list[Format]:
    """Return formats by their names, comma-separated or in a list, without duplicates."""
    words = (
        formats.split(",")
        if isinstance(formats, str)
        else list(iterate_argument(formats, "formats are names"))
    )
    if not all(isinstance(word, str) for word in words):
        raise ResultsError(f"formats must be names such as 'usd,glb'; got {format_value(formats)}.")
    names = list(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    if not names:
        raise ResultsError(f"no format given; available formats: {', '.join(FORMATS)}.")
    for name in names:
        if name not in FORMATS:
            raise ResultsError(f"there is no format {name!r}; {suggest_name(name, FORMATS)}")
        FORMATS[name].refuse_missing_package()
    return [FORMATS[name] for name in names]


def open_results(folder: ResultsFolder) -> tuple[range, ExportContext, bool]:
    """Open a results folder for export.

    Returns:
        Indices of the complete frames, the data shared by all frames, and True for a single equilibrium.
    """
    if not folder.path.is_dir():
        raise ResultsError(f"there is no results folder {folder.path}; `supple run SCENE` creates one.")
    if not (folder.path / folder.report).exists():
        raise ResultsError(
            f"{folder.path} has no report.json, so it is not a results folder of `supple run`."
        )
    report = folder.read_report()
    indices = folder.indices(report)
    if 1 not in indices:
        raise ResultsError(
            f"{folder.path} has no complete frame yet; `supple run SCENE --resume` continues the run."
        )
    names = report["scene"]["bodies"]
    for path in (frame_path(folder.path, 1, ".vtu"), folder.path / SKINS, folder.path / DATA):
        check_unchanged(path, "`supple run` with --resume writes it again.")
    bodies = read_bodies(folder.path, frame_path(folder.path, 1, ".vtu"), names)
    single = report["solver"].get("single_equilibrium", False)
    return indices, ExportContext(bodies, report["scene"]["dt"]), single


def _read(folder: Path, indices: range, progress: Progress | None) -> Iterator[SavedFrame]:
    checksums = read_checksums(folder)
    for done, index in enumerate(indices, start=1):
        _check_files(folder, index, checksums)
        yield read_frame(folder, index)
        if progress is not None:
            progress(done, len(indices))


def _check_files(folder: Path, index: int, checksums: Checksums | None) -> None:
    """Refuse a frame whose NPZ file has changed since it was written.

    A changed VTU file, which is not read, gives a warning.
    """
    paths = frame_path(folder, index, ".npz"), frame_path(folder, index, ".vtu")
    for path in paths if checksums is not None else ():
        if checksums is None or path.name not in checksums.digests or checksums.is_intact(path.name):
            continue
        how = f"{path} is damaged: it does not match its checksum; `supple run` with --resume writes it again"
        if path.suffix == ".npz" and path.exists():
            raise FrameError(f"{how}.")
        log.warning("%s", how)


def _make_folder(output: Path) -> Path:
    """Return a folder, created if necessary."""
    if output.exists() and not output.is_dir():
        raise ResultsError(f"{output} is a file; name a folder for the exported files.")
    output.mkdir(parents=True, exist_ok=True)
    return output


def _write(
    context: ExportContext,
    frames: Iterable[Any],
    formats: list[Format],
    output: Path,
    values: Values | None = None,
    obstacles: Obstacles | None = None,
    single: bool = False,
) -> dict[str, Path]:
    surfaces = ObstacleSurfaces.of(obstacles, context)
    with_obstacles = context if surfaces is None else surfaces.add_to_context(context)
    paths = {format.name: output / format.path for format in formats}
    any_frame = False
    with ExitStack() as stack:
        contexts = [with_obstacles if format.obstacles else context for format in formats]
        writers = [
            (stack.enter_context(_open_writer(format, paths[format.name], format_context)), format)
            for format, format_context in zip(formats, contexts, strict=True)
        ]
        for frame in frames:
            any_frame = True
            fields = Fields() if values is None else values(frame)
            frame_data = FrameData(frame.positions, frame.index, frame.time, fields)
            time = _obstacle_time(frame, single)
            with_surfaces = frame_data if surfaces is None else surfaces.add_to_frame(frame_data, time)
            for add, format in writers:
                add(with_surfaces if format.obstacles else frame_data)
            del frame_data, with_surfaces, frame  # keeps one frame in memory
        if not any_frame:
            raise ResultsError(
                "there are no frames to write: pass at least one, or continue the run with --resume."
            )
    return paths


@contextmanager
def _open_writer(format: Format, path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Open the writer of a format; operating system errors, such as a full disk, name the export."""
    hidden = path.with_name(f".unfinished_{path.name}")
    with add_path_to_os_errors(path, hidden), format.writer(path, context) as add:

        def add_frame(frame_data: FrameData) -> None:
            with add_path_to_os_errors(path, hidden):
                add(frame_data)

        yield add_frame


def _obstacle_time(frame: Any, single: bool) -> float:
    """Time of the obstacles of a frame [s]; a single equilibrium belongs to the end of all motions."""
    if isinstance(frame, Result):
        return frame.step.time if frame.step is not None else np.inf
    return np.inf if single and frame.index > 0 else frame.time


def _with_start(frames: Iterator[Any], scene: Scene, initial: ArrayLike | None) -> Iterator[Any]:
    """Insert the initial state before frame 1; frames with another first index are unchanged."""
    for first in frames:
        if first.index == 1:
            count = scene.bodies[-1].vertices.stop
            positions = (
                initial_positions_of(scene)
                if initial is None
                else check_vectors("initial", initial, count, ResultsError)
            )
            yield SavedFrame(positions, np.zeros_like(positions), 0, 0.0)
        yield first
        del first  # keeps one frame in memory
        yield from frames


def _frame_data(frames: Iterable[Any], scene: Scene, dt: float) -> Iterator[Any]:
    """Convert results and plain arrays to frames with index and time."""
    count = scene.bodies[-1].vertices.stop
    for number, frame in enumerate(frames, start=1):
        given = frame.positions if isinstance(frame, Result) else frame
        positions = check_vectors(f"frame {number}", given, count, ResultsError)
        if isinstance(frame, Frame):
            yield frame
        elif isinstance(frame, Result):
            yield Frame(**vars(frame), index=number, time=number * dt)
        else:
            yield SavedFrame(positions, np.zeros((count, 3)), number, number * dt)
