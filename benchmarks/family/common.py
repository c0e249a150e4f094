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

import numpy as np
from platformdirs import user_cache_path

import supple
from supple.model import Model
from supple.problem import Problem
from supple.view.plots import plot_axes, save
from supple.view.style import DASHES, LIGHT, SMALL_SIZE

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results" / "family.json"
IMAGES = REPOSITORY / "docs" / "images"
SCENES = REPOSITORY / "scenes"
DATA = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes"))

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


def clamped(
    mesh: supple.TetMesh, material: Any, density: float, dt: float, **scene_options: Any
) -> supple.Scene:
    """A body held at its least x."""
    scene = supple.Scene(quasistatic=False, dt=dt, **scene_options)
    body = scene.add_solid(mesh, material, density=density)
    low = mesh.points[:, 0].min()
    scene.pin(body.where(lambda X: X[:, 0] <= low + 1e-9))
    return scene


def placed(model: Model, dt: float, x: np.ndarray, v: np.ndarray | float) -> Problem:
    """One backward Euler step from positions x with velocities v."""
    problem = Problem(model, "float64")
    place(problem, dt, x, v, 0.0)
    return problem


def place(problem: Problem, dt: float, x: np.ndarray, v: np.ndarray | float, time: float) -> None:
    problem.positions = x
    problem.states.set_velocities(v)
    problem.loads.set_time_step(dt)
    problem.begin_step(time, dt)


def jacobians(model: Model, x: np.ndarray) -> np.ndarray:
    """(elements,): det F."""
    now, rest = x[model.tets], model.rest[model.tets]
    return np.linalg.det(now[:, 1:] - now[:, :1]) / np.linalg.det(rest[:, 1:] - rest[:, :1])


def volume(model: Model, x: np.ndarray) -> float:
    corners = x[model.tets]
    return float(np.linalg.det(corners[:, 1:] - corners[:, :1]).sum() / 6)


def elastic_energy(model: Model) -> Callable[[np.ndarray], float]:
    """Energy stored in the elements [J] as a function of positions."""
    problem = Problem(model, "float64")

    def energy(x: np.ndarray) -> float:
        problem.positions = x
        return float(problem.measures.stored_energies().sum())

    return energy


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
