"""Bending angle of the pneumatic finger of scenes/pneumatic_finger.toml under refinement, and that of
Newton.

    python benchmarks/finger.py [--finest 4] [--young 7e5] [--output FILE]

Writes benchmarks/results/finger.json, or FILE, after every figure: the angle [degrees] of the tip at 25 and
50 kPa, of cells of 3 mm and smaller, with the default solver and, on the coarser meshes, with Newton; and
what three meshes say of cells of no size: a(h) = a(0) + c hᵖ through them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

import supple
from supple.io.machine import machine

RESULTS = Path(__file__).parent / "results" / "finger.json"
LENGTH, SIDE, CHAMBERS, PITCH = 0.12, 0.024, 5, 0.024
PRESSURES = 2.5e4, 5e4
COARSE = 2
"""Meshes that are also solved by Newton."""


def chamber(k: int, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the k-th chamber [m], moved outwards."""
    low = np.array([0.003 + k * PITCH, 0.009, 0.003])
    return low - slack, low + np.array([0.018, 0.012, 0.018]) + slack


def within(x: np.ndarray, k: int, slack: float) -> np.ndarray:
    low, high = chamber(k, slack)
    return ((x > low) & (x < high)).all(axis=1)


def finger(
    refined: int, pressure: float, young: float, poisson: float
) -> tuple[supple.Scene, supple.scene.Body]:
    """Mesh with cells of 3 mm, each edge divided by some factor."""
    mesh = supple.block((40 * refined, 8 * refined, 8 * refined), size=(LENGTH, SIDE, SIDE))
    centers = mesh.points[mesh.tets].mean(axis=1)
    hollow = np.any([within(centers, k, 0.0) for k in range(CHAMBERS)], axis=0)
    scene = supple.Scene(gravity=(0, 0, 0))
    layer = supple.scene.Region(
        "layer", lambda C: C[:, 1] < 0.003, supple.NeoHookean(young=5e6, poisson=poisson)
    )
    rubber = supple.NeoHookean(young=young, poisson=poisson)
    body = scene.add_solid(mesh.extract_cells(~hollow), rubber, density=1070, regions=[layer])
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    for k in range(CHAMBERS):
        scene.add_cavity(body.where(lambda X, k=k: within(X, k, 1e-4)), pressure)
    return scene, body


def angle(body: supple.scene.Body, positions: np.ndarray) -> float:
    """Rotation of the tip about z [degrees], away from the chambers."""
    tip = body.where(lambda X: X[:, 0] >= LENGTH).indices
    before, after = (x[tip][:, :2] - x[tip][:, :2].mean(axis=0) for x in (body.points, positions))
    cross = (before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]).sum()
    return -float(np.degrees(np.arctan2(cross, (before * after).sum())))


def figure(refined: int, pressure: float, solver: str | None, *moduli: float) -> dict[str, Any]:
    scene, body = finger(refined, pressure, *moduli)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-5)
    return {
        "cells": 3.0 / refined,
        "tets": body.mesh.n_cells,
        "pressure": pressure,
        "solver": result.report.solver,
        "degrees": angle(body, result.positions),
        "relative_residual": result.report.relative_residual,
        "seconds": result.report.seconds,
        "ok": result.report.ok,
    }


def limit(sizes: list[float], angles: list[float]) -> tuple[float, float]:
    """(a(0), p) of a(h) = a(0) + c hᵖ through three meshes."""
    (h0, h1, h2), (a0, a1, a2) = sizes, angles

    def miss(p: float) -> float:
        return (h0**p - h1**p) * (a2 - a1) - (h1**p - h2**p) * (a1 - a0)

    p = brentq(miss, 0.1, 6.0)
    return a2 + (a2 - a1) * h2**p / (h1**p - h2**p), p


def limits(angles_found: list[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Limits of all triples of successive meshes, by pressure."""
    limit_angles: dict[str, list[dict[str, float]]] = {}
    for pressure in PRESSURES:
        rows = [row for row in angles_found if row["pressure"] == pressure and row["solver"] == "hybrid"]
        sizes, angles = ([row[key] for row in rows] for key in ("cells", "degrees"))
        limit_angles[f"{pressure:g} Pa"] = [
            dict(zip(("degrees", "order"), limit(sizes[k : k + 3], angles[k : k + 3]), strict=True))
            for k in range(len(rows) - 2)
        ]
    return limit_angles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finest", type=int, default=4)
    parser.add_argument("--young", type=float, default=7e5)
    parser.add_argument("--poisson", type=float, default=0.45)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    record = {"machine": machine(), "young": options.young, "poisson": options.poisson, "angles": results}
    for refined in range(1, options.finest + 1):
        for pressure in PRESSURES:
            for solver in (None, "newton") if refined <= COARSE else (None,):
                results.append(figure(refined, pressure, solver, options.young, options.poisson))
                print(results[-1], flush=True)
                options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record["limits"] = limits(results)
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
