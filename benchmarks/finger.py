"""The bending angle of the pneumatic finger of scenes/pneumatic_finger.toml under refinement, and Newton's.

    python benchmarks/finger.py [--finest 3]

Writes benchmarks/results/finger.json: the angle [degrees] of the tip at 25 and 50 kPa, of cells of 3 mm and
smaller, with the default solver and, on the coarsest, with Newton.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine

RESULTS = Path(__file__).parent / "results" / "finger.json"
LENGTH, SIDE, CHAMBERS, PITCH = 0.12, 0.024, 5, 0.024
RUBBER = supple.NeoHookean(young=4.5e5, poisson=0.45)
LAYER = supple.NeoHookean(young=5e6, poisson=0.45)


def chamber(k: int, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the k-th chamber [m], moved outwards."""
    low = np.array([0.003 + k * PITCH, 0.009, 0.003])
    return low - slack, low + np.array([0.018, 0.012, 0.018]) + slack


def within(x: np.ndarray, k: int, slack: float) -> np.ndarray:
    low, high = chamber(k, slack)
    return ((x > low) & (x < high)).all(axis=1)


def finger(refined: int, pressure: float) -> tuple[supple.Scene, supple.Body]:
    """Cells of 3 mm, each edge divided into so many."""
    mesh = supple.bar((40 * refined, 8 * refined, 8 * refined), size=(LENGTH, SIDE, SIDE))
    centres = mesh.points[mesh.tets].mean(axis=1)
    hollow = np.any([within(centres, k, 0.0) for k in range(CHAMBERS)], axis=0)
    scene = supple.Scene(gravity=(0, 0, 0))
    layer = supple.Region("layer", lambda C: C[:, 1] < 0.003, LAYER)
    body = scene.add_solid(supple.select_tets(mesh, ~hollow), RUBBER, density=1070, regions=[layer])
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    for k in range(CHAMBERS):
        scene.add_cavity(body.where(lambda X, k=k: within(X, k, 1e-4)), pressure)
    return scene, body


def angle(body: supple.Body, positions: np.ndarray) -> float:
    """By how much the tip is turned about z [degrees]."""
    tip = body.where(lambda X: X[:, 0] >= LENGTH).indices
    before, after = (x[tip][:, :2] - x[tip][:, :2].mean(axis=0) for x in (body.points, positions))
    cross = (before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]).sum()
    return float(np.degrees(np.arctan2(cross, (before * after).sum())))


def figure(refined: int, pressure: float, solver: str | None) -> dict[str, Any]:
    scene, body = finger(refined, pressure)
    result = supple.equilibrium(scene, solver, tolerance=1e-5)
    return {
        "tets": body.mesh.n_cells,
        "pressure": pressure,
        "solver": result.report.solver,
        "degrees": angle(body, result.positions),
        "imbalance": result.report.imbalance,
        "seconds": result.report.seconds,
        "ok": result.report.ok,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finest", type=int, default=3)
    found = []
    for refined in range(1, parser.parse_args().finest + 1):
        for pressure in (2.5e4, 5e4):
            for solver in (None, "newton") if refined == 1 else (None,):
                found.append(figure(refined, pressure, solver))
                print(found[-1], flush=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "angles": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
