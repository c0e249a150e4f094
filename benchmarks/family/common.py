"""Scenes, measures and plots that the papers' benchmarks share."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

import supple
from supple.papers.measuring import clamped, elastic_energy, jacobians, place, placed, volume
from supple.view.plots import plot_axes, save
from supple.view.style import DASHES, LIGHT, SMALL_SIZE

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results" / "family.json"
IMAGES = REPOSITORY / "docs" / "images"
SCENES = REPOSITORY / "scenes"
DATA = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes"))

__all__ = [
    "DATA",
    "SCENES",
    "Figures",
    "at",
    "clamped",
    "curves",
    "elastic_energy",
    "jacobians",
    "once",
    "place",
    "placed",
    "say",
    "sources",
    "volume",
]

Figures = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@cache
def sources() -> str:
    """A hash of the sources that the figures depend on, as they are when a benchmark starts."""
    root, digest = Path(supple.__file__).parent, hashlib.sha256()
    for folder in ("algebra", "kernels", "materials", "meshes", "ordering", "solvers", "terms"):
        for path in sorted((root / folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def once(label: str, measure: Callable[[], Figures]) -> Figures:
    """A row of a long table: measured, or taken from an interrupted run with the same sources."""
    path = user_cache_path("supple") / "benchmarks" / f"rows-{sources()}.json"
    rows = json.loads(path.read_text()) if path.is_file() else {}
    if label not in rows:
        rows[label] = measure()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows))
    say(f"{label}: {rows[label]}")
    return rows[label]


def at(values: Iterable[float], places: Iterable[int]) -> dict[str, float]:
    """The values at some places that exist, by place."""
    values = list(values)
    return {str(i): float(f"{values[i]:.4g}") for i in places if i < len(values)}


def curves(
    name: str,
    title: str,
    subtitle: str,
    lines: dict[str, tuple[str, Any, Any]],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = True,
) -> None:
    """A plot of named lines (solver, x, y), solvers in their colours, variants in other dashes."""
    axes = plot_axes((1600, 1000), title, subtitle)
    used: dict[str, int] = {}
    for label, (solver, x, y) in lines.items():
        variant = used[solver] = used.get(solver, -1) + 1
        style = DASHES[variant % len(DASHES)]
        axes.plot(x, y, color=LIGHT.curve(solver), linestyle=style, linewidth=1.5, label=label)
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xscale("log" if log_x else "linear")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    left, bottom, _, height = axes.get_position().bounds
    axes.set_position((left, bottom, 0.74 - left, height))
    axes.legend(fontsize=SMALL_SIZE, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    IMAGES.mkdir(parents=True, exist_ok=True)
    save(axes, IMAGES / f"family_{name}.png")
