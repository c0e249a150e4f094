"""A beam that is twisted and let go, with the four sets of parameters of PBCM Fig. 8.

    python benchmarks/plastic_twist.py

Writes what twist remains to benchmarks/results/plastic_twist.json and a picture to docs/images. The paper has
no numbers: (a) is a plastic beam, (b) creeps faster, (c) yields later, (d) has its plastic strain limited.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

import supple
from supple.io.machine import machine

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "plastic_twist.json"
PICTURE = REPOSITORY / "docs" / "images" / "plastic_twist.png"
LENGTH, ANGLE = 4.0, np.pi
SETS = {
    "a": {"yield_strain": 0.05, "creep": 3.0},
    "b: creeps faster": {"yield_strain": 0.05, "creep": 30.0},
    "c: yields later": {"yield_strain": 0.25, "creep": 3.0},
    "d: at most 0.1": {"yield_strain": 0.05, "creep": 3.0, "max_plastic_strain": 0.1},
}
SOLVERS = {"pbd": supple.PBD(iterations=30, stiffness=0.5), "newton": supple.Newton()}


def beam(turned: bool, **plastic: float) -> tuple[supple.Scene, supple.Body]:
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.02, damping=0.1)
    kind = supple.PlasticStVK(young=1e4, poisson=0.3, **plastic)
    body = scene.add_solid(supple.block((16, 3, 3), size=(LENGTH, 0.8, 0.8)), kind, density=50)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    if turned:
        turn = supple.Rotate(axis=(1, 0, 0), centre=(LENGTH, 0.4, 0.4), angle=ANGLE, duration=0.5)
        scene.pin(body.where(lambda X: X[:, 0] >= LENGTH), turn)
    return scene, body


def twist_left(body: supple.Body, positions: np.ndarray) -> float:
    """By how much the end is turned about x [rad]."""
    end = body.where(lambda X: X[:, 0] >= LENGTH).indices
    before, after = (x[end][:, 1:] - x[end][:, 1:].mean(axis=0) for x in (body.points, positions))
    cross = (before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]).sum()
    return float(np.arctan2(cross, (before * after).sum()))


def let_go(solver: str, **plastic: float) -> tuple[float, float, supple.Result, supple.Body]:
    """(twist that is left, largest plastic strain, where it comes to rest, the beam)."""
    scene, body = beam(True, **plastic)
    limits = {} if solver == "pbd" else {"tolerance": 1e-4}
    *_, held = supple.simulate(scene, SOLVERS[solver], frames=50, **limits)
    free, body = beam(False, **plastic)
    state = supple.State(held.state.displacements, 0 * held.state.velocities, held.state.history)
    rest = supple.equilibrium(free, "newton", start=state, tolerance=1e-5)
    return twist_left(body, rest.positions), float(rest.evaluate().plastic_strain.max()), rest, body


def main() -> None:
    found: dict = {"machine": machine(), "angle": ANGLE}
    pictures = []
    for solver in SOLVERS:
        for name, plastic in SETS.items():
            angle, strain, rest, _ = let_go(solver, **plastic)
            found[f"{solver}, {name}"] = {"twist_left": angle, "plastic_strain": strain}
            print(solver, name, round(angle, 3), round(strain, 3), flush=True)
            if solver == "pbd":
                shown = supple.picture(
                    rest,
                    field="displacement",
                    camera=(20, 16),
                    size=(640, 420),
                    title=f"({name[0]}){name[1:]}",
                )
                pictures.append(Image.fromarray(shown))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    whole = Image.new("RGB", (1280, 840), "white")
    for k, image in enumerate(pictures):
        whole.paste(image, (640 * (k % 2), 420 * (k // 2)))
    whole.save(PICTURE)


if __name__ == "__main__":
    main()
