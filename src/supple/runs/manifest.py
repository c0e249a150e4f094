"""report.json: settings, environment and results of every frame; written and read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from supple.api.simulate import Frame
from supple.io import ResultsError, ResultsFolder, machine, versions
from supple.io.results import REPORT_SCHEMA
from supple.scene import SceneFile
from supple.scene.bodies import cell_counts
from supple.solve.report import History, IterationInfo, Outcome, Report
from supple.support.text import pluralize

NULLABLE_FIELDS = ("relative_residual", "reduction", "residual", "energy")


def new_run_manifest(file: SceneFile, frames: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Report of a run before its first frame.

    Args:
        file: The scene file.
        frames: Number of frames.
        settings: Solver, options and limits, which a resumed run must share with the interrupted one.
    """
    return {
        "scene": {**scene_facts(file), "frames": frames},
        "solver": settings,
        "frames": [],
        "totals": {},
        "looks": None,
        **environment(),
    }


def scene_facts(file: SceneFile) -> dict[str, Any]:
    scene = file.scene
    return {
        "file": str(file.path),
        "folder": str(file.folder.resolve()),
        "title": file.title,
        "sha256": fingerprint(file),
        "bodies": [body.name for body in scene.bodies],
        "vertices": sum(body.mesh.n_vertices for body in scene.bodies),
        **cell_counts(scene.bodies),
        "quasistatic": scene.quasistatic,
        "dt": scene.dt,
    }


def environment() -> dict[str, Any]:
    """Versions, machine and date of a measurement."""
    return {
        "schema": REPORT_SCHEMA,
        "versions": versions(),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def fingerprint(file: SceneFile) -> str:
    """Hash of a scene file and its meshes."""
    digest = hashlib.sha256(file.path.read_bytes())
    for body in file.scene.bodies:
        digest.update(body.mesh.points.tobytes())
        digest.update(body.mesh.cells.tobytes())
        for data in (body.mesh.cell_data, body.mesh.point_data):
            for name in sorted(data):
                digest.update(name.encode() + data[name].tobytes())
    return digest.hexdigest()


class CurveRecorder:
    """Callback that records the convergence curve of the current solve, for the last frame's plot.

    Attributes:
        curve: Lists of iterations, relative residuals and seconds.
    """

    def __init__(self) -> None:
        self.curve: dict[str, list[Any]] = {}

    def record(self, info: IterationInfo) -> None:
        if info.iteration == 0 or not self.curve:
            self.curve = {"iterations": [], "relative_residual": [], "seconds": []}
        state = info.iteration, info.relative_residual, info.seconds
        for values, value in zip(self.curve.values(), state, strict=True):
            values.append(value)


def add_frame(manifest: dict[str, Any], frame: Frame, recorder: CurveRecorder) -> None:
    manifest["frames"].append({"index": frame.index, "time": frame.time, **frame.report.to_dict()})
    manifest["looks"] = recorder.curve
    set_totals(manifest)


def set_totals(manifest: dict[str, Any]) -> None:
    frames = manifest["frames"]
    manifest["totals"] = {
        "frames": len(frames),
        "ok": all(frame["ok"] for frame in frames),
        "frames_not_ok": [frame["index"] for frame in frames if not frame["ok"]],
        "iterations": sum(frame["iterations"] for frame in frames),
        "most_inverted": max((frame["inverted"] for frame in frames), default=0),
        "frames_inverted": [frame["index"] for frame in frames if frame["inverted"]],
        "worst_relative_residual": max((frame["relative_residual"] for frame in frames), default=None),
        "seconds": sum(frame["seconds"] for frame in frames),
        "setup_seconds": sum(frame["setup_seconds"] for frame in frames),
        "compile_seconds": sum(frame["compile_seconds"] for frame in frames),
    }


def complete_frames(
    folder: ResultsFolder, manifest: dict[str, Any], note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Report entries of the intact frames in a folder; restores the convergence curve.

    Args:
        folder: The results folder.
        manifest: Report of the resumed run, completed in place.
        note: Called with a sentence if a frame is damaged.

    Raises:
        ResultsError: The frames belong to another scene or to other settings, or there are too many.
    """
    old = folder.read_report()
    if old["scene"]["sha256"] != manifest["scene"]["sha256"]:
        raise ResultsError(
            f"{folder.path} cannot be continued: {manifest['scene']['file']}, or a mesh that it "
            "reads, has changed since the run began. Undo the change, or start again with "
            "--overwrite."
        )
    changed = [
        f"{name} was {old['solver'].get(name)} and is now {value}"
        for name, value in manifest["solver"].items()
        if old["solver"].get(name) != value
    ]
    if changed:
        raise ResultsError(
            f"{folder.path} cannot be continued with other settings: {'; '.join(changed)}. "
            "Give the same options again, or start again with --overwrite."
        )
    frames, damage = folder.intact_frames(old, manifest["scene"]["vertices"])
    if damage is not None:
        note(f"{damage} The run continues after frame {len(frames)}.")
    n_frames = manifest["scene"]["frames"]
    if len(frames) > n_frames:
        raise ResultsError(
            f"{folder.path} has {pluralize(len(frames), 'frame')} already, more than the {n_frames} "
            "requested."
        )
    restore_infinities(frames)
    manifest["looks"] = old.get("looks")
    return frames


def restore_infinities(frames: list[dict[str, Any]]) -> None:
    """Replace null quantities of frames by infinity, since JSON has neither infinity nor NaN."""
    for frame in frames:
        frame.update({name: math.inf for name in NULLABLE_FIELDS if frame[name] is None})


def report_of(entry: dict[str, Any]) -> Report:
    """Report of a frame or trial, from its JSON entry."""
    values = {field.name: entry[field.name] for field in fields(Report) if field.name in entry}
    history = None if entry["history"] is None else History(**entry["history"])
    return Report(**values | {"outcome": Outcome[entry["outcome"].upper()], "history": history})
