"""comparison.json: settings, results and curves of every solver; its texts, plots and pictures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from supple.api.compare import Comparison, Trial
from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.io import ResultsError
from supple.io.checksums import check_unchanged
from supple.io.replace_file import replacing
from supple.io.results import REPORT_LIMIT
from supple.runs.manifest import environment, report_of, restore_infinities, scene_facts
from supple.runs.pictures import PLOT_ABSCISSAS, make_appearance
from supple.scene import SceneFile
from supple.solve.report import Report
from supple.solvers import SOLVERS
from supple.solvers.options import plain_options
from supple.support.input_files import read_text
from supple.support.text import format_cell_counts, format_duration, pluralize
from supple.view import comparison_plot, picture, shared_view


def new_comparison_manifest(
    file: SceneFile,
    comparison: Comparison,
    stop: StopCriteria,
    backend: Backend,
    warmup: int,
    warmup_converged: bool,
) -> dict[str, Any]:
    return {
        "scene": scene_facts(file),
        "stop": asdict(stop),
        "precision": backend.precision,
        "device": backend.device,
        "warmup": {"frames": warmup, "ok": warmup_converged},
        "trials": [_entry(trial) for trial in comparison.trials],
        "plots": {},
        "note": None,
        **environment(),
    }


def _entry(trial: Trial) -> dict[str, Any]:
    """Quantities and curves of a trial; a failed trial has label, solver, options and error only."""
    entry = {
        "label": trial.label,
        "solver": trial.solver.name,
        "options": plain_options(trial.solver),
        "error": trial.error,
    }
    if trial.report is None:
        return entry
    return {
        **entry,
        "picture": None,
        "ms_per_iteration": _ms_per_iteration(trial.report),
        **trial.report.to_dict(),
    }


def _ms_per_iteration(report: Report) -> float | None:
    return 1e3 * report.seconds / report.iterations if report.iterations else None


def picture_name(label: str) -> str:
    """File name of a trial's picture: picture_pbng_chebyshev.png"""
    return f"picture_{re.sub(r'[^A-Za-z0-9.]+', '_', label).strip('_')}.png"


def read_comparison(folder: Path) -> dict[str, Any]:
    """Read comparison.json from a results folder of `supple compare`.

    Raises:
        ResultsError: The file is not a comparison.
    """
    path = folder / "comparison.json"
    check_unchanged(path, "its numbers may be wrong. Compare again with --overwrite.")
    try:
        manifest = json.loads(read_text(path, REPORT_LIMIT))
        manifest["scene"], manifest["trials"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is not a comparison of supple; `supple compare` writes one.") from error
    ran = [entry for entry in manifest["trials"] if entry["error"] is None]
    restore_infinities(ran)
    for entry in ran:
        for values in entry["history"].values():
            values[:] = [math.inf if value is None else value for value in values]
    return manifest


def trial_of(entry: dict[str, Any]) -> Trial:
    """Trial from its JSON entry.

    Raises:
        ResultsError: This version does not know the solver or its options.
    """
    try:
        solver = SOLVERS[entry["solver"]](**entry["options"])
    except (KeyError, TypeError, ValueError):
        raise ResultsError(
            f"the trial {entry['label']!r} has a solver or options that this version of supple does "
            "not have; run `supple compare` again."
        ) from None
    return Trial(solver, entry["label"], None, report_of(entry))


Entry = dict[str, Any]
"""Report entry of a solver that ran."""

COLUMNS: dict[str, Callable[[Entry], str]] = {
    "outcome": lambda entry: entry["outcome"].replace("_", " "),
    "iterations": lambda entry: f"{entry['iterations']:,}",
    "seconds": lambda entry: f"{entry['seconds']:.3g}",
    "ms/iteration": lambda entry: f"{entry['ms_per_iteration']:.3g}" if entry["iterations"] else "",
    "relative residual": lambda entry: f"{entry['relative_residual']:.1e}",
    "reduction": lambda entry: f"{entry['reduction']:.1e}",
    "energy [J]": lambda entry: f"{entry['energy']:.6g}",
    "inverted": lambda entry: f"{entry['inverted']:,}",
    "colors": lambda entry: f"{entry['colors'] or ''}",
}


def format_settings(manifest: dict[str, Any]) -> str:
    """One-line settings: 4,096 vertices, 16,875 tetrahedra · equilibrium · float64, 2 threads"""
    scene, frame = manifest["scene"], manifest["warmup"]["frames"] + 1
    step = "equilibrium" if scene["quasistatic"] else f"frame {frame}, Δt = {scene['dt']:.3g} s"
    threads = max((entry["threads"] for entry in manifest["trials"] if entry["error"] is None), default=1)
    return (
        f"{scene['vertices']:,} vertices, {format_cell_counts(scene)} · {step} · "
        f"{manifest['precision']}, {threads} thread" + ("s" if threads > 1 else "")
    )


def caption(entry: Entry) -> str:
    """Picture caption: 40 iterations, 0.12 s · residual × 2.9e-02 · 3 inverted elements"""
    parts = [
        f"{pluralize(entry['iterations'], 'iteration')}, {format_duration(entry['seconds'])}",
        f"residual × {entry['reduction']:.1e}",
        f"relative residual {entry['relative_residual']:.1e}",
    ]
    if entry["inverted"]:
        parts.append(f"{entry['inverted']:,} inverted elements")
    return " · ".join(parts)


QUANTITIES: tuple[Literal["residual", "energy"], ...] = ("residual", "energy")


def draw_plots(comparison: Comparison, manifest: dict[str, Any], folder: Path) -> None:
    """Draw residual_iterations.png, residual_seconds.png, energy_iterations.png and energy_seconds.png."""
    for quantity, against in product(QUANTITIES, PLOT_ABSCISSAS):
        name = f"{quantity}_{against}.png"
        with replacing(folder / name) as path:
            comparison_plot(
                path,
                comparison.trials,
                against,
                title=manifest["scene"]["title"],
                subtitle=format_settings(manifest),
                quantity=quantity,
            )
        manifest["plots"][f"{quantity}_{against}"] = name


def draw_pictures(
    comparison: Comparison, file: SceneFile, manifest: dict[str, Any], folder: Path
) -> str | None:
    """Draw a picture per solver with common camera and colors.

    Diverged bodies are drawn to their own scale, with a remark in the subtitle.

    Returns:
        A sentence if VTK could not draw, otherwise None.
    """
    ran = [trial for trial in comparison.trials if trial.report is not None]
    shapes: dict[str, np.ndarray] = {trial.label: trial.positions for trial in ran}  # type: ignore[misc]
    best = min(ran, key=lambda trial: trial.report.relative_residual)  # type: ignore[union-attr]
    near = _near(shapes, shapes[best.label])
    appearance = make_appearance(file)
    view = shared_view(comparison.model, [shapes[label] for label in near], **appearance.options)
    for entry in manifest["trials"]:
        if entry["error"] is None:
            label, entry["picture"] = entry["label"], picture_name(entry["label"])
            with replacing(folder / entry["picture"]) as path:
                manifest["note"] = picture(
                    path,
                    comparison.model,
                    shapes[label],
                    title=f"{manifest['scene']['title']}: {label}",
                    subtitle=caption(entry) + ("" if label in near else " · to its own scale"),
                    view=view if label in near else None,
                    **appearance.options,
                )
    return manifest["note"]


def _near(shapes: dict[str, np.ndarray], best: np.ndarray) -> list[str]:
    """Labels of shapes within one body size of the best shape."""
    reach = float(np.linalg.norm(np.ptp(best, axis=0)))
    return [label for label, x in shapes.items() if np.linalg.norm(x - best, axis=1).max() <= reach]
