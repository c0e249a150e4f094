"""HTML result pages for runs and comparisons."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from supple.io import ResultsError
from supple.runs import comparison as comparison_pictures
from supple.runs.comparison import COLUMNS, format_settings, read_comparison, trial_of
from supple.runs.pictures import PLOT_ABSCISSAS, QUANTITIES, draw_picture, make_appearance
from supple.runs.result_text import has_inverted, inversion_warning, inverted, outcome, solver_name
from supple.runs.saved import SCENE_COPY, SavedRun, load_run
from supple.solve.report import History
from supple.support.text import format_cell_counts, format_duration, pluralize
from supple.view import comparison_plot, frames_plot, history_plot
from supple.view.html_page import Figure, Page, Table, draw_figure, film_uri, page_file, picture_uri
from supple.view.style import THEMES, Theme

PLOT_SIZE = (1200, 780)
NO_HISTORY = "Energy curves need a recorded history: `supple run SCENE --record-history`."


def page_of(folder: Path) -> Page:
    if (folder / "comparison.json").exists():
        return _page_of_comparison(folder)
    return _page_of_run(load_run(folder))


def write_page(folder: Path, path: Path | None = None) -> tuple[Path, Page]:
    """Write the result page of a folder.

    Args:
        folder: Results folder of a run or comparison.
        path: File to write; report.html in the results folder by default.

    Returns:
        The path and the page.
    """
    page = page_of(folder)
    path = page_file(folder / "report.html" if path is None else path)
    page.write(path)
    return path, page


def _page_of_run(run: SavedRun) -> Page:
    manifest, folder = run.manifest, run.folder.path
    frames, totals, scene = manifest["frames"], manifest["totals"], manifest["scene"]
    last, is_sequence = frames[-1], len(frames) > 1
    film, remarks = None, []
    if (folder / "film.mp4").is_file():
        film = film_uri(folder / "film.mp4")
        remarks += (
            [] if film else ["The film is too large for this page; see film.mp4 in the results folder."]
        )
    warning = inversion_warning(frames)
    remarks += [warning] if warning else []
    remarks += [] if any(frame["history"] for frame in frames) else [NO_HISTORY]
    quantities = {
        "vertices": f"{scene['vertices']:,}",
        "cells": format_cell_counts(scene),
        "solver": solver_name(manifest),
        "precision": f"{last['precision']}, {pluralize(last['threads'], 'thread')}",
        **({"frames": f"{len(frames)} of {scene['frames']}"} if is_sequence else {}),
        "iterations": f"{sum(frame['iterations'] for frame in frames):,}",
        "worst relative residual"
        if is_sequence
        else "relative_residual": f"{max(f['relative_residual'] for f in frames):.2e}",
        "reduction": f"{last['reduction']:.2e}",
        "energy": f"{last['energy']:.6g} J",
        "solving": format_duration(totals["seconds"]),
        "inverted elements": inverted(frames) if has_inverted(frames) else "none",
    }
    return Page(
        title=scene["title"],
        subtitle=f"{Path(scene['file']).name} · {manifest['date'][:10]}",
        verdict=outcome(frames),
        good=all(frame["ok"] for frame in frames),
        quantities=quantities,
        pictures=[_picture(run)],
        plots=_plots(manifest),
        tables=[_frames_table(frames)] if is_sequence else [],
        scene=(folder / SCENE_COPY).read_text(encoding="utf-8"),
        environment=_environment_table(manifest),
        film=film,
        remarks=remarks,
    )


def _picture(run: SavedRun) -> Figure:
    index = len(run.manifest["frames"])

    def draw(path: Path, theme: Theme) -> None:
        draw_picture(run, make_appearance(run.file, theme=theme.name), index, path)

    return draw_figure(f"Frame {index}" if index > 1 else "The equilibrium", draw)


def _title(quantity: str) -> str:
    """Caption of a key: Relative residual."""
    return quantity.replace("_", " ").capitalize()


def _plots(manifest: dict[str, Any]) -> list[Figure]:
    """Convergence plots, and plots over all frames.

    Convergence is plotted from recorded histories, otherwise from the callback data of the last frame.
    """
    frames, tolerance = manifest["frames"], manifest["solver"]["tolerance"]
    histories = {f"frame {f['index']}": History(**f["history"]) for f in frames if f["history"]}
    plots = []
    if histories:
        for quantity, against in product(QUANTITIES, PLOT_ABSCISSAS):
            caption = f"{_title(quantity)} against {against}"
            options = {"tolerance": tolerance, "size": PLOT_SIZE}
            plots.append(draw_figure(caption, history_plot, histories, quantity, against, **options))
    elif manifest.get("looks"):
        curves = {f"frame {frames[-1]['index']}": History(**manifest["looks"])}
        where = " in the last frame" if len(frames) > 1 else ""
        for against in PLOT_ABSCISSAS:
            options = {"tolerance": tolerance, "size": PLOT_SIZE}
            caption = f"Relative residual against {against}{where}"
            plots.append(draw_figure(caption, history_plot, curves, "relative_residual", against, **options))
    if len(frames) > 1:
        for name, label in (
            ("relative_residual", "relative residual |r| / |s|"),
            ("iterations", "iterations"),
        ):
            values = np.array([frame[name] for frame in frames], float)
            options = {"size": PLOT_SIZE, "logarithmic": name == "relative_residual"}
            options |= {"tolerance": tolerance} if name == "relative_residual" else {}
            plots.append(draw_figure(f"{_title(name)} of each frame", frames_plot, values, label, **options))
    return plots


def _frames_table(frames: list[dict[str, Any]]) -> Table:
    columns = (
        "frame",
        "outcome",
        "time [s]",
        "iterations",
        "relative residual",
        "reduction",
        "energy [J]",
        "seconds",
        "inverted",
    )
    rows = [
        (
            f"{frame['index']}",
            frame["outcome"].replace("_", " "),
            f"{frame['time']:.4g}",
            f"{frame['iterations']:,}",
            f"{frame['relative_residual']:.2e}",
            f"{frame['reduction']:.2e}",
            f"{frame['energy']:.6g}",
            f"{frame['seconds']:.3g}",
            f"{frame['inverted']:,}",
        )
        for frame in frames
    ]
    return Table("Frames", columns, rows)


def _page_of_comparison(folder: Path) -> Page:
    manifest = read_comparison(folder)
    ran = [entry for entry in manifest["trials"] if entry["error"] is None]
    if not ran:
        raise ResultsError(f"{folder} has no result of any solver, so there is nothing to show.")
    trials = [trial_of(entry) for entry in ran]
    best = min(ran, key=lambda entry: entry["relative_residual"])
    plots = [
        draw_figure(
            f"{_title(quantity)} against {against}",
            comparison_plot,
            trials,
            against,
            subtitle=format_settings(manifest),
            size=PLOT_SIZE,
            quantity=quantity,
        )
        for quantity, against in product(comparison_pictures.QUANTITIES, PLOT_ABSCISSAS)
    ]
    return Page(
        title=f"{manifest['scene']['title']}: {pluralize(len(ran), 'solver')} compared",
        subtitle=" · ".join(
            [Path(manifest["scene"]["file"]).name, format_settings(manifest), manifest["date"][:10]]
        ),
        verdict=f"{best['label']} has the smallest relative residual, {best['relative_residual']:.1e}, after "
        f"{pluralize(best['iterations'], 'iteration')}, {format_duration(best['seconds'])}.",
        good=True,
        quantities={},
        pictures=[
            _stored_figure(folder / entry["picture"], entry["label"]) for entry in ran if entry["picture"]
        ],
        plots=plots,
        tables=[_trials_table(ran)],
        scene=(folder / SCENE_COPY).read_text(encoding="utf-8") if (folder / SCENE_COPY).exists() else "",
        environment=_environment_table(manifest),
        remarks=[f"{e['label']} was not run: {e['error']}." for e in manifest["trials"] if e["error"]],
    )


def _stored_figure(path: Path, caption: str) -> Figure:
    """Existing picture, used for both themes."""
    return Figure(caption, **dict.fromkeys(THEMES, picture_uri(path)))


def _trials_table(trials: list[dict[str, Any]]) -> Table:
    rows = [(trial["label"], *(cell(trial) for cell in COLUMNS.values())) for trial in trials]
    return Table("Figures", ("solver", *COLUMNS), rows)


def _environment_table(manifest: dict[str, Any]) -> dict[str, str]:
    machine, versions = manifest["machine"], manifest["versions"]
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores",
        "system": machine["system"],
        "date": manifest["date"].replace("T", " "),
        **versions,
    }
