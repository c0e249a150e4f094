"""Sweeps and seconds of PBNG to a relative residual of 1e-4, by acceleration: python
benchmarks/accelerations.py

Writes benchmarks/results/accelerations.json; figures_in_docs.py shows it in docs/design/acceleration.md.
"""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SUPPLE_DATA", ROOT.parent / "shared" / "meshes"))
SCENES = ("twist", "bar_gravity", "hanging_blocks", "ball_squash")
LIMIT = 40_000


def bunny() -> supple.Scene | None:
    """The bunny of foundation.py under gravity, with badly shaped slivers; None if its mesh is missing."""
    path = DATA / "bunny.mesh"
    if not path.exists():
        return None
    mesh = supple.load_mesh(path)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, supple.Corotated(young=2e4, poisson=0.3), density=1000)
    height = mesh.points[:, 1]
    scene.pin(body.where(height <= height.min() + 0.05 * np.ptp(height)))
    return scene


def row(scene: supple.Scene, acceleration: str) -> dict[str, Any]:
    report = supple.equilibrium(scene, solver=supple.PBNG(acceleration), max_iterations=LIMIT).report
    return {
        "outcome": report.outcome.name.lower(),
        "iterations": report.iterations,
        "relative_residual": report.relative_residual,
        "seconds": report.seconds,
        "notes": report.notes,
    }


def main() -> None:
    scenes = {name: supple.load_scene(ROOT / "scenes" / f"{name}.toml").scene for name in SCENES}
    hard = bunny()
    if hard is not None:
        scenes["bunny under gravity"] = hard
    results: dict[str, Any] = {"date": str(date.today()), "machine": machine(), "scenes": {}}
    for name, scene in scenes.items():
        results["scenes"][name] = {a: row(scene, a) for a in ("none", "sor", "chebyshev", "anderson")}
        print(name, {a: (r["outcome"], r["iterations"]) for a, r in results["scenes"][name].items()})
    path = ROOT / "benchmarks" / "results" / "accelerations.json"
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
