"""Time of pictures and films compared with the solves that they show.

    python benchmarks/pictures.py

The twisted block of scenes/twist.toml, 32,768 vertices. Results go to benchmarks/results/pictures.json, with
the machine and date.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine, versions
from supple.view import Shape, film, picture
from supple.view.film import SIZE as FILM_SIZE
from supple.view.picture import SIZE as PICTURE_SIZE

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "pictures.json"
TWIST = REPOSITORY / "scenes" / "twist.toml"
FRAMES = 60

FIRST_PICTURE = """
import sys
from time import perf_counter
import numpy as np
import supple
model = supple.scene.build_model(supple.load_scene(sys.argv[1]).scene)
positions = np.load(sys.argv[2])
began = perf_counter()
from supple.view import picture
assert picture(sys.argv[3], model, positions, title="Time to picture") is None
print(perf_counter() - began)
"""


def main() -> None:
    scene = supple.load_scene(TWIST).scene
    supple.equilibrium(scene, tolerance=0.5)  # compiles
    with tempfile.TemporaryDirectory() as name:
        measurements = {
            "what": "scenes/twist.toml, 32,768 vertices, 148,955 tetrahedra, float64",
            "picture": time_pictures(scene, Path(name)),
            "film": time_film(scene, Path(name)),
            "machine": machine(),
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    RESULTS.write_text(json.dumps(measurements, indent=2) + "\n")
    print(json.dumps(measurements, indent=2))


def time_pictures(scene: supple.Scene, folder: Path) -> dict[str, Any]:
    """Seconds from a solved frame to its PNG file: the first picture of a process, with import and probing of
    the renderer, and later ones."""
    result = supple.equilibrium(scene, tolerance=1e-4)
    np.save(folder / "positions.npy", result.positions)
    arguments = [str(TWIST), str(folder / "positions.npy"), str(folder / "picture.png")]
    first = [
        float(
            subprocess.check_output(
                [sys.executable, "-c", FIRST_PICTURE, *arguments], stderr=subprocess.DEVNULL
            )
        )
        for _ in range(5)
    ]
    later = []
    for _ in range(6):
        began = perf_counter()
        picture(folder / "picture.png", result.model, result.positions)
        later.append(perf_counter() - began)
    return {
        "size": PICTURE_SIZE,
        "first_of_a_process_seconds": statistics.median(first),
        "later_seconds": statistics.median(later[1:]),
    }


def time_film(scene: supple.Scene, folder: Path) -> dict[str, Any]:
    """Seconds to simulate frames of the twist, and to make a film of them."""
    began = perf_counter()
    frames = list(supple.simulate(scene, dt=1 / FRAMES, frames=FRAMES, tolerance=1e-4))
    simulating = perf_counter() - began
    shapes = [Shape(frame.positions, f"frame {frame.index}") for frame in frames]
    began = perf_counter()
    film(folder / "film.mp4", frames[0].model, shapes, title="Twist")
    filming = perf_counter() - began
    return {
        "frames": FRAMES,
        "size": FILM_SIZE,
        "iterations": sum(frame.report.iterations for frame in frames),
        "simulating_seconds": simulating,
        "filming_seconds": filming,
    }


if __name__ == "__main__":
    main()
