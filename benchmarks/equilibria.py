"""Convergence of the solvers: scenes of the PBNG paper, starts far from equilibrium, a mesh with slivers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.materials import MATERIALS
from supple.model.model import Model
from supple.solvers import default_solver
from supple.view import history_plot

ROOT = Path(__file__).resolve().parents[1]
SCENES, IMAGES = ROOT / "scenes", ROOT / "docs" / "images"
DATA = Path(os.environ.get("SUPPLE_DATA", ROOT.parent / "shared" / "meshes"))

PBNG = supple.PBNG(acceleration="chebyshev")


def twisted_block() -> dict[str, Any]:
    """Both ends rotated and pulled at once, the interior undeformed at the start [PBNG 11.1]."""
    model = model_of("twist")
    return {
        "to_tolerance": {
            p: quantities(solve(model, default_solver(), 1e-4, precision=p)) for p in ("float32", "float64")
        },
        "agreement": agreement(model),
        "to_reduction": time_to_reduction(model, 1e-2),
    }


def agreement(model: Model) -> dict[str, Any]:
    """The largest distance between PBNG's and Newton's vertices, over the size of the body."""
    pbng = solve(model, PBNG, 1e-8)
    newton = solve(model, supple.Newton(), 1e-9)
    distance = np.linalg.norm(pbng.positions - newton.positions, axis=1).max()
    return {
        "difference": float(distance / np.ptp(model.rest, axis=0).max()),
        "pbng": quantities(pbng),
        "newton": quantities(newton),
    }


def time_to_reduction(model: Model, reduction: float) -> dict[str, Any]:
    """Seconds until |r| has fallen to a part of its start: PBNG, and Newton with every linear solver and both
    positive definite Hessians, without line search."""
    contestants: dict[str, tuple[Any, str, int]] = {
        f"pbng {precision}": (PBNG, precision, 60) for precision in ("float32", "float64")
    }
    for linear in ("direct", "amg", "cg"):
        for hessian in ("projected", "bound"):
            solver = supple.Newton(hessian=hessian, linear_solver=linear, line_search=False)
            contestants[f"newton {hessian} {linear}"] = (solver, "float64", 6)
    reached = {
        name: first_below(model, solver, precision, reduction, limit)
        for name, (solver, precision, limit) in contestants.items()
    }
    newton = min(v["seconds"] for name, v in reached.items() if name.startswith("newton") and v["seconds"])
    ratios = {p: newton / reached[f"pbng {p}"]["seconds"] for p in ("float32", "float64")}
    return {"reduction": reduction, "reached": reached, "fastest_newton_seconds": newton, "ratio": ratios}


def first_below(
    model: Model, solver: Any, precision: str, reduction: float, limit: int, repeats: int = 3
) -> dict[str, Any]:
    """Iterations and minimal seconds of some repeats to a reduction; None if it is not reached."""
    best: dict[str, Any] = {"iterations": None, "seconds": None}
    for _ in range(repeats):
        history = supple.equilibrium(
            model,
            solver=solver,
            tolerance=None,
            max_iterations=limit,
            precision=precision,
            record_history=True,
        ).report.history
        below = np.flatnonzero(np.array(history.residual) <= reduction * history.residual[0])
        if len(below):
            seconds = history.seconds[below[0]]
            best = {"iterations": int(below[0]), "seconds": min(best["seconds"] or seconds, seconds)}
    return best


PLAIN = supple.PBNG(acceleration="none")

GRAVITY = {
    "bar_gravity": {"chebyshev": PBNG, "no acceleration": PLAIN},
    "hanging_blocks": {
        "no acceleration": PLAIN,
        "chebyshev": PBNG,
        "no links": supple.PBNG(acceleration="none", tied_groups=False),
    },
}
"""Solvers for each scene; the first one is expected to converge, the others are for comparison."""


def gravity_scenes() -> dict[str, Any]:
    """Bar under gravity [PBNG 11.4] and a block hanging from another by stiff springs [PBNG 11.3]."""
    results = {}
    for name, solvers in GRAVITY.items():
        model = model_of(name)
        runs = {
            label: solve(model, solver, 1e-6, record_history=True, max_iterations=6000)
            for label, solver in solvers.items()
        }
        history_plot(
            IMAGES / f"{name}_residual.png",
            {label: run.report.history for label, run in runs.items()},
            title=f"{supple.load_scene(SCENES / f'{name}.toml').title}: PBNG",
        )
        results[name] = {label: quantities(run) | decades(run.report.history) for label, run in runs.items()}
    return results


def decades(history: supple.History) -> dict[str, float]:
    """Decrease of the relative residual, and its largest increase above the previous minimum."""
    relative_residual = np.array(history.relative_residual)
    rise = relative_residual / np.minimum.accumulate(relative_residual)
    return {
        "decades": float(np.log10(relative_residual[0] / relative_residual.min())),
        "largest_rise": float(rise.max()),
    }


def recoveries() -> dict[str, Any]:
    """Return to the rest shape from random vertices and from a plane."""
    results: dict[str, Any] = {}
    for start in ("scrambled", "flattened"):
        file = supple.load_scene(SCENES / f"{start}.toml")
        body, pin = file.scene.bodies[0], file.scene.pins[0]
        for material in ("corotated", "neo_hookean", "stable_neo_hookean"):
            scene = supple.Scene(gravity=(0, 0, 0))
            copy = scene.add_solid(body.mesh, MATERIALS[material](young=1000, poisson=0.3), density=10)
            scene.pin(copy.where(pin.on.indices))
            model = supple.scene.build_model(scene)
            result = solve(model, PBNG, 1e-4, initial=file.initial_positions(model))
            error = float(np.linalg.norm(result.positions - model.rest, axis=1).max())
            results[f"{start} {material}"] = quantities(result) | {"error": error}
    return results


def linear_solvers() -> dict[str, Any]:
    """Seconds of Newton to a relative residual of 1e-8 with every linear solver, on systems of different
    types."""
    models = {
        "twisted block": twisted(cells=15),
        "bar": model_of("bar_gravity"),
        "stiff springs": model_of("hanging_blocks"),
    }
    return {
        f"{name}, {3 * np.count_nonzero(model.free):,} unknowns": {
            linear: quantities(solve(model, supple.Newton(linear_solver=linear), 1e-8, max_iterations=40))
            for linear in ("direct", "amg", "cg", "auto")
        }
        for name, model in models.items()
    }


def twisted(cells: int) -> Model:
    """The block of scenes/twist.toml with other cells."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), supple.Corotated(young=1e5, poisson=0.3), density=10)
    for pin in supple.load_scene(SCENES / "twist.toml").scene.pins:
        side = pin.on.points[0, 0]
        scene.pin(body.where(np.isclose(body.points[:, 0], side)), motion=pin.motion)
    return supple.scene.build_model(scene)


def bunny() -> dict[str, Any] | None:
    """The Stanford bunny with its slivers, standing on its feet; None if its mesh is missing."""
    if not (DATA / "bunny.mesh").is_file():
        return None
    mesh = supple.load_mesh(DATA / "bunny.mesh")
    low, high = mesh.bounds[:, 1]
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, supple.Corotated(young=2e4, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] <= low + 0.05 * (high - low)))
    model = supple.scene.build_model(scene)
    results = {}
    for precision in ("float32", "float64"):
        result = solve(model, PBNG, 1e-4, precision=precision, max_iterations=100_000)
        sag = float(np.linalg.norm(result.positions - model.rest, axis=1).max() / (high - low))
        results[precision] = quantities(result) | {"sag": sag}
    return results


def solve(model: Model, solver: Any, tolerance: float, **options: Any) -> supple.Result:
    return supple.equilibrium(model, solver=solver, tolerance=tolerance, **options)


def model_of(name: str) -> Model:
    return supple.scene.build_model(supple.load_scene(SCENES / f"{name}.toml").scene)


def quantities(result: supple.Result) -> dict[str, Any]:
    report = result.report
    columns = (
        "iterations",
        "relative_residual",
        "reduction",
        "seconds",
        "vertices",
        "elements",
        "inverted",
        "notes",
    )
    return {"outcome": report.outcome.name.lower()} | {name: getattr(report, name) for name in columns}


SECTIONS: dict[str, Callable[[], Any]] = {
    "twisted_block": twisted_block,
    "linear_solvers": linear_solvers,
    "gravity": gravity_scenes,
    "recovery": recoveries,
    "bunny": bunny,
}
