"""HTML result pages for runs and comparisons."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from supple.io import ResultsError
from supple.runs import comparison as comparison_pictures
from supple.runs.comparison import COLUMNS, read_comparison, setting, trial_of
from supple.runs.pictures import AGAINST, QUANTITIES, draw_picture, make_appearance
from supple.runs.saved import SCENE, SavedRun, load_run
from supple.runs.text import has_inverted, inversion_warning, inverted, outcome, solver_name
from supple.solve.report import History
from supple.support.text import counted, say_cells, say_seconds
from supple.view import comparison_plot, frames_plot, history_plot
from supple.view.page import Figure, Page, Table, drawn, film_uri, page_file, picture_uri
from supple.view.style import THEMES, Theme

PLOT_SIZE = (1200, 780)
NO_HISTORY = "Curves of the energy need every iteration to be kept: `supple run SCENE --record-history`."


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
    account, folder = run.account, run.folder.path
    frames, totals, scene = account["frames"], account["totals"], account["scene"]
    last, several = frames[-1], len(frames) > 1
    film, remarks = None, []
    if (folder / "film.mp4").is_file():
        film = film_uri(folder / "film.mp4")
        remarks += [] if film else ["The film is too large for this page; it is film.mp4 beside the results."]
    warning = inversion_warning(frames)
    remarks += [warning] if warning else []
    remarks += [] if any(frame["history"] for frame in frames) else [NO_HISTORY]
    figures = {
        "vertices": f"{scene['vertices']:,}",
        "cells": say_cells(scene),
        "solver": solver_name(account),
        "precision": f"{last['precision']}, {counted(last['threads'], 'thread')}",
        **({"frames": f"{len(frames)} of {scene['frames']}"} if several else {}),
        "iterations": f"{sum(frame['iterations'] for frame in frames):,}",
        "worst relative residual"
        if several
        else "relative_residual": f"{max(f['relative_residual'] for f in frames):.2e}",
        "reduction": f"{last['reduction']:.2e}",
        "energy": f"{last['energy']:.6g} J",
        "solving": say_seconds(totals["seconds"]),
        "inverted elements": inverted(frames) if has_inverted(frames) else "none",
    }
    return Page(
        title=scene["title"],
        subtitle=f"{Path(scene['file']).name} · {account['date'][:10]}",
        verdict=outcome(frames),
        good=all(frame["ok"] for frame in frames),
        figures=figures,
        pictures=[_picture(run)],
        plots=_plots(account),
        tables=[_frames_table(frames)] if several else [],
        scene=(folder / SCENE).read_text(encoding="utf-8"),
        circumstances=_circumstances(account),
        film=film,
        remarks=remarks,
    )


def _picture(run: SavedRun) -> Figure:
    index = len(run.account["frames"])

    def draw(path: Path, theme: Theme) -> None:
        draw_picture(run, make_appearance(run.file, theme=theme.name), index, path)

    return drawn(f"Frame {index}" if index > 1 else "The equilibrium", draw)


def _plots(account: dict[str, Any]) -> list[Figure]:
    """Convergence plots, and plots over all frames.

    Convergence is plotted from recorded histories, otherwise from the callback data of the last frame.
    """
    frames, tolerance = account["frames"], account["solver"]["tolerance"]
    histories = {f"frame {f['index']}": History(**f["history"]) for f in frames if f["history"]}
    plots = []
    if histories:
        for quantity, against in product(QUANTITIES, AGAINST):
            caption = f"{quantity.capitalize()} against {against}"
            options = {"tolerance": tolerance, "size": PLOT_SIZE}
            plots.append(drawn(caption, history_plot, histories, quantity, against, **options))
    elif account.get("looks"):
        seen = {f"frame {frames[-1]['index']}": History(**account["looks"])}
        where = " in the last frame" if len(frames) > 1 else ""
        for against in AGAINST:
            options = {"tolerance": tolerance, "size": PLOT_SIZE}
            caption = f"Relative residual against {against}{where}"
            plots.append(drawn(caption, history_plot, seen, "relative_residual", against, **options))
    if len(frames) > 1:
        for name, label in (
            ("relative_residual", "relative residual |r| / |s|"),
            ("iterations", "iterations"),
        ):
            values = np.array([frame[name] for frame in frames], float)
            options = {"size": PLOT_SIZE, "logarithmic": name == "relative_residual"}
            options |= {"tolerance": tolerance} if name == "relative_residual" else {}
            plots.append(drawn(f"{name.capitalize()} of each frame", frames_plot, values, label, **options))
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
    account = read_comparison(folder)
    ran = [entry for entry in account["trials"] if entry["error"] is None]
    if not ran:
        raise ResultsError(f"{folder} has no solver that could be run, so there is nothing to show.")
    trials = [trial_of(entry) for entry in ran]
    best = min(ran, key=lambda entry: entry["relative_residual"])
    plots = [
        drawn(
            f"{quantity.capitalize()} against {against}",
            comparison_plot,
            trials,
            against,
            subtitle=setting(account),
            size=PLOT_SIZE,
            quantity=quantity,
        )
        for quantity, against in product(comparison_pictures.QUANTITIES, AGAINST)
    ]
    return Page(
        title=f"{account['scene']['title']}: {counted(len(ran), 'solver')} compared",
        subtitle=f"{Path(account['scene']['file']).name} · {setting(account)} · {account['date'][:10]}",
        verdict=f"The smallest relative residual, {best['relative_residual']:.1e}, is that of "
        f"{best['label']} "
        f"after {counted(best['iterations'], 'iteration')}, {say_seconds(best['seconds'])}.",
        good=True,
        figures={},
        pictures=[_stored(folder / entry["picture"], entry["label"]) for entry in ran if entry["picture"]],
        plots=plots,
        tables=[_trials_table(ran)],
        scene=(folder / SCENE).read_text(encoding="utf-8") if (folder / SCENE).exists() else "",
        circumstances=_circumstances(account),
        remarks=[f"{e['label']} was not run: {e['error']}." for e in account["trials"] if e["error"]],
    )


def _stored(path: Path, caption: str) -> Figure:
    """Existing picture, used for both themes."""
    return Figure(caption, **dict.fromkeys(THEMES, picture_uri(path)))


def _trials_table(trials: list[dict[str, Any]]) -> Table:
    rows = [(trial["label"], *(cell(trial) for cell in COLUMNS.values())) for trial in trials]
    return Table("Figures", ("solver", *COLUMNS), rows)


def _circumstances(account: dict[str, Any]) -> dict[str, str]:
    machine, versions = account["machine"], account["versions"]
    return {
        "machine": f"{machine['cpu']}, {machine['cores']} cores",
        "system": machine["system"],
        "date": account["date"].replace("T", " "),
        **versions,
    }
