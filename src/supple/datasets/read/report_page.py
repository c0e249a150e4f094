"""Report page of a data set: outcomes, histograms and pictures of extreme samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.read.dataset import Dataset, open_dataset
from supple.datasets.store.status import status
from supple.support.text import format_duration, pluralize
from supple.view.html_page import Figure, Page, Table, draw_figure, page_file
from supple.view.picture import Shape, picture, shared_view
from supple.view.plots import histogram_plot
from supple.view.style import Theme

PLOT_SIZE, PICTURE_SIZE = (1000, 640), (1100, 760)
HISTOGRAMS = {
    "relative_residual": ("relative residual |r| / |s|", True),
    "position_error": ("distance to the equilibrium, relative to the size", True),
    "energy": ("energy [J]", False),
    "seconds": ("seconds", True),
    "iterations": ("iterations", False),
}
"""Axis label of each column, and True for a logarithmic axis."""


def write_page(folder: Path, path: Path | None = None) -> tuple[Path, Page]:
    """Write the report page of a data set.

    Args:
        folder: Folder of the store.
        path: File to write; by default NAME.html next to the store.

    Returns:
        The path and the page.
    """
    data = open_dataset(folder)
    path = page_file(folder.with_suffix(".html") if path is None else path)
    page = page_of(data)
    page.write(path)
    return path, page


def page_of(data: Dataset) -> Page:
    progress, facts = status(data.store), data.store.facts
    missing = progress["outcomes"].get("missing", 0)
    bad = progress["samples"] - progress["good"] - missing
    remarks = [f"{pluralize(missing, 'sample')} of the design not solved yet."] if missing else []
    remarks += [f"Sample {sample}: {text}" for sample, text in list(progress["failures"].items())[:20]]
    machine, versions = facts["machine"], facts["versions"]
    return Page(
        title=data.title,
        subtitle=f"{data.path.name} · {facts['created'][:10]}",
        verdict=f"{progress['good']:,} of {pluralize(progress['samples'], 'sample')} have reached their "
        + (f"tolerance, {bad:,} have not." if bad else "tolerance."),
        good=not bad and not missing,
        quantities=_page_quantities(data, progress),
        pictures=_extremes(data),
        plots=_histograms(data),
        tables=[_inputs(data), _outcomes(progress)],
        scene=(data.path / "scene.toml").read_text(encoding="utf-8"),
        environment={
            "machine": f"{machine['cpu']}, {machine['cores']} cores",
            "system": machine["system"],
            "date": facts["created"].replace("T", " "),
            **versions,
        },
        remarks=remarks,
    )


def _page_quantities(data: Dataset, progress: dict[str, Any]) -> dict[str, str]:
    warm = progress["warm_starts"]
    quantities = {
        "samples": f"{progress['samples']:,}",
        "vertices": f"{data.store.facts['vertices']:,}",
        "shards": f"{progress['finished_shards']:,} of {progress['shards']:,}",
        "work": format_duration(progress["worker_seconds"]),
        "worst relative residual": _number(progress["worst_relative_residual"]),
        "worst position error": _number(progress["worst_position_error"]),
        "with inverted elements": f"{progress['inverted']:,}",
        "begun again": f"{progress['retried']:,}",
    }
    if warm:
        quantities["warm starts"] = f"{warm['fewer_iterations']:.1f} times fewer iterations"
    return quantities


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2e}"


def _inputs(data: Dataset) -> Table:
    rows = [
        (name, _text(column.min(axis=0)), _text(column.max(axis=0)), _text(column.mean(axis=0)))
        for name, column in data.inputs.items()
    ]
    return Table("What varies", ("quantity", "from", "to", "mean"), rows)


def _text(value: Any) -> str:
    return ", ".join(f"{v:.4g}" for v in np.atleast_1d(value))


def _outcomes(progress: dict[str, Any]) -> Table:
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in progress["outcomes"].items()]
    return Table("Outcomes", ("outcome", "samples"), rows)


def _histograms(data: Dataset) -> list[Figure]:
    plots = []
    for name, (label, logarithmic) in HISTOGRAMS.items():
        values = data.report[name][data.ids].astype(float)
        values = values[np.isfinite(values) & ((values > 0) | (not logarithmic))]
        if len(values):
            options = {"size": PLOT_SIZE, "logarithmic": logarithmic}
            plots.append(
                draw_figure(
                    f"{label[0].upper()}{label[1:]}: all samples", histogram_plot, values, label, **options
                )
            )
    return plots


def _extremes(data: Dataset) -> list[Figure]:
    """Pictures of the samples with lowest energy, highest energy and largest displacement."""
    if not len(data.ids) or "positions" not in data:
        return []
    energy, displaced = data.report["energy"][data.ids], data["displacements"]
    furthest = [float(np.abs(displaced[int(sample)]).max()) for sample in data.ids]
    extremes = {
        "the least energy": int(data.ids[energy.argmin()]),
        "the greatest energy": int(data.ids[energy.argmax()]),
        "the largest displacement": int(data.ids[int(np.argmax(furthest))]),
    }
    chosen = {k: " and ".join(text for text, one in extremes.items() if one == k) for k in extremes.values()}
    from supple.scene import build_model

    file = data.scene()
    azimuth, elevation = file.view.camera
    model = build_model(file, quasistatic=True)
    shapes = {k: Shape(np.asarray(data["positions"][k], float), f"sample {k}") for k in chosen}
    view = shared_view(model, list(shapes.values()), "displacement", PICTURE_SIZE, (azimuth, elevation))

    def draw(path: str | os.PathLike[str], shape: Shape, theme: Theme) -> None:
        picture(path, model, shape, field="displacement", size=PICTURE_SIZE, theme=theme.name, view=view)

    return [draw_figure(f"Sample {k}: {text}", draw, shapes[k]) for k, text in chosen.items()]
