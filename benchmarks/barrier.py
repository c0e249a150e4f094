"""Barrier contact: what it costs, into results/barrier.json, and whether anything intersects, by ipctk.

Pressed blocks of more and more cells, each from one equilibrium; and blocks that fall onto each other in a
box, with the part of the time that finding contacts takes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from intersecting import intersects

import supple
from supple.io.machine import machine
from supple.problem.following import Following

RESULTS = Path(__file__).parent / "results" / "barrier.json"
RUBBER = supple.StableNeoHookean(young=1e5, poisson=0.3)


def pressed(cells: int, contact: str = "barrier") -> dict[str, Any]:
    """Two blocks pressed together by a quarter of their height."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=contact)  # type: ignore[arg-type]
    low = scene.add_solid(supple.block(cells=cells), RUBBER, name="low")
    above = supple.block(cells=max(1, 2 * cells // 3), size=(0.8, 1, 0.8)).translated((0.12, 1.02, 0.07))
    high = scene.add_solid(above, RUBBER, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -0.5, 0)))
    result = supple.equilibrium(scene, tolerance=1e-6)
    report = result.report
    return {
        "cells": cells,
        "contact": contact,
        "vertices": len(result.positions),
        "outcome": report.outcome.name.lower(),
        "iterations": report.iterations,
        "seconds": report.seconds,
        "contacts": report.met.contacts,
        "gap": getattr(report.met, "gap", None),
        "depth": report.met.depth,
        "intersects": intersects(scene, result.positions),
    }


def dropped(count: int, contact: str = "barrier", frames: int = 20, cells: int = 4) -> dict[str, Any]:
    """Blocks in turned positions fall onto each other and a floor; seconds that finding contacts takes."""
    rng = np.random.default_rng(0)
    scene = supple.Scene(quasistatic=False, dt=0.01, contact=contact)  # type: ignore[arg-type]
    scene.add_obstacle(supple.Plane(), friction=0.3)
    for k in range(count):
        mesh = supple.block(cells=cells, size=(0.4, 0.4, 0.4)).translated((-0.2, -0.2, -0.2))
        mesh = mesh.rotated(rng.normal(size=3), rng.uniform(0, 3))
        place = (0.45 * (k % 2), 0.4 + 0.72 * (k // 2), 0.1 * rng.normal())
        scene.add_solid(mesh.translated(place), supple.StableNeoHookean(young=2e4, poisson=0.3), density=100)
    spent = 0.0

    def timed(function: Any) -> Any:
        def call(*given: Any) -> Any:
            nonlocal spent
            began = perf_counter()
            found = function(*given)
            spent += perf_counter() - began
            return found

        return call

    kept = Following.make_room, Following._look
    Following.make_room, Following._look = timed(kept[0]), timed(kept[1])  # type: ignore[method-assign]
    try:
        seconds, passed, deepest, most = 0.0, 0, 0.0, 0
        for frame in supple.simulate(scene, supple.PBNG(iterations=20), frames=frames):
            seconds += frame.report.seconds
            passed += intersects(scene, frame.positions)
            deepest, most = max(deepest, frame.report.met.depth), max(most, frame.report.met.contacts)
    finally:
        Following.make_room, Following._look = kept  # type: ignore[method-assign]
    return {
        "objects": count,
        "contact": contact,
        "vertices": len(frame.positions),
        "frames": frames,
        "seconds": seconds,
        "finding_contacts": spent / seconds,
        "most_contacts": most,
        "deepest": deepest,
        "frames_that_intersect": passed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="*", default=[4, 8, 12])
    parser.add_argument("--objects", type=int, nargs="*", default=[6])
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine(), "pressed": [], "dropped": []}
    for contact in ("barrier", "weak"):
        pressed(2, contact), dropped(1, contact, 1)  # which compiles
        figures["pressed"] += [pressed(cells, contact) for cells in arguments.cells]
        figures["dropped"] += [dropped(count, contact) for count in arguments.objects]
        RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
