"""Objects dropped into a box on a CUDA device: cost of a step of 20 sweeps, in results/contact_card.json.

    python benchmarks/contact_card.py       250,080 vertices in weak contact, searched every ten sweeps, and
                                            when a step begins only
    python benchmarks/contact_card.py --fine 2 --contact barrier --frames 40

Frames are those of `supple.simulate`, reports and positions included, in float32; the last three of each run
are not counted but taken apart, kernel by kernel.
"""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from card import profile
from contact_cases import CASES, Size

import supple
from supple.io import machine, versions
from supple.kernels import compilation
from supple.kernels.cuda import require_device

RESULTS = Path(__file__).parent / "results" / "contact_card.json"
SWEEPS, PROFILED_FRAMES = 20, 3


def measured(contact: Any, size: Size, frames: int, precision: str) -> dict[str, Any]:
    """Seconds and contacts of every frame, and times of kernels in the last ones."""
    scene = CASES["dropped_40"].make(contact, size)
    rows: list[dict[str, Any]] = []
    times: dict[str, list[float]] = {}
    with compilation() as compiled:
        began, before = perf_counter(), 0.0
        moving = supple.simulate(
            scene, solver=supple.PBNG(iterations=SWEEPS), frames=frames, device="cuda", precision=precision
        )
        for frame in moving:
            took = perf_counter() - began - (compiled.seconds - before)
            contact = frame.report.contact.bodies
            rows.append({"seconds": took, "contacts": contact.count, "depth": contact.max_penetration})
            if frame.index == frames - PROFILED_FRAMES:
                times = profile()
            began, before = perf_counter(), compiled.seconds
    timed_rows = rows[1:-PROFILED_FRAMES]
    most = max(row["contacts"] for row in timed_rows)
    groups = {
        "no contact": [row for row in timed_rows if row["contacts"] == 0],
        "up to half of the most contacts": [row for row in timed_rows if 0 < row["contacts"] <= most / 2],
        "more": [row for row in timed_rows if row["contacts"] > most / 2],
    }
    kernels = {name: sum(equilibrium) / PROFILED_FRAMES for name, equilibrium in times.items()}
    return {
        "vertices": sum(len(body.points) for body in scene.bodies),
        "surface_vertices": len(
            {v for body in scene.bodies for v in (body.mesh.surface + body.first).ravel()}
        ),
        "bodies": len(scene.bodies),
        "sweeps": SWEEPS,
        "frames": len(rows),
        "median_ms": {name: 1e3 * median(r["seconds"] for r in g) for name, g in groups.items() if g},
        "median_contacts": {name: median(r["contacts"] for r in g) for name, g in groups.items() if g},
        "deepest": max(row["depth"] for row in rows),
        "kernel_ms_of_a_frame": {
            name: 1e3 * kernels[name] for name in sorted(kernels, key=lambda k: -kernels[k])
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fine", type=float, default=3.5)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--frames", type=int, default=75)
    parser.add_argument("--contact", nargs="*", default=["weak"], choices=["weak", "barrier"])
    parser.add_argument("--refresh", nargs="*", type=int, default=[10, 20], help="sweeps, of weak contact")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    stored = json.loads(given.json.read_text()) if given.json.exists() else {}
    size = Size(given.fine, given.count, True)
    for method in given.contact:
        for refresh in given.refresh if method == "weak" else [10]:
            contact = supple.Contact(method, detection_interval=refresh) if method == "weak" else method
            entry = measured(contact, size, given.frames, given.precision)
            name = f"{method}, found every {refresh} sweeps, fine {given.fine:g}, {given.precision}"
            about = {"date": str(date.today()), "card": require_device(), "machine": machine()}
            stored[name] = {**about, "versions": versions(), **entry}
            print(name, json.dumps(entry), flush=True)
            given.json.write_text(json.dumps(stored, indent=2) + "\n")


if __name__ == "__main__":
    main()
