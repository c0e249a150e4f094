"""Write the figures of benchmarks/results into the table of README.md: python benchmarks/readme.py"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    readme.write_text(before + BEGIN + "\n".join(lines()) + "\n" + END + after)


def lines() -> Iterator[str]:
    measured = json.loads((RESULTS / "foundation.json").read_text())
    figures = {name: section["figures"] for name, section in measured["sections"].items()}
    machine = measured["machine"]
    yield f"| {machine['cores']} cores of an {machine['cpu']} | |"
    yield "|---|---|"
    for what, value in foundation(figures):
        yield f"| {what} | {value} |"
    path = RESULTS / "gpu.json"
    if path.exists():
        gpu = json.loads(path.read_text())
        yield f"| **one {gpu['card']}** | |"
        for run in gpu["sweeps"]:
            if run["precision"] == "float32":
                yield f"| sweep, {run['vertices']:,} vertices, float32 | {run['us_per_sweep']:.0f} µs |"


def foundation(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for precision, materials in figures["sweeps"].items():
        run = materials["corotated"]
        size = f"{run['vertices']:,} vertices, {run['tets']:,} tetrahedra"
        yield f"PBNG sweep, {size}, {precision}", f"{run['ms_min']:.1f} ms"
    large = figures["large_block"]["float32"]
    size = f"{large['vertices']:,} vertices, {large['tets']:,} tetrahedra"
    yield f"PBNG sweep, {size}, float32", f"{large['ms_min']:.0f} ms"
    yield (
        "the same beside a process that keeps one core busy (32,768 vertices)",
        (f"{figures['busy_core']['ratio']:.1f} times as long"),
    )
    twist = figures["twisted_block"]
    for precision, run in twist["to_tolerance"].items():
        what = f"twisted and stretched block, imbalance 1e-4 from the undeformed state, {precision}"
        yield what, f"{run['seconds']:.2g} s, {run['iterations']} sweeps"
    yield "PBNG and Newton, both converged, differ by", f"{twist['agreement']['difference']:.0e} of the size"
    reached = twist["to_reduction"]["reached"]
    yield "residual reduced to 1e-2: PBNG, float32", f"{reached['pbng float32']['seconds']:.2g} s"
    yield (
        "residual reduced to 1e-2: our fastest Newton",
        f"{twist['to_reduction']['fastest_newton_seconds']:.2g} s",
    )


if __name__ == "__main__":
    main()
