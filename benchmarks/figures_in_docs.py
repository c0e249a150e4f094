"""Write results of benchmarks/results into the pages that show them: python benchmarks/figures_in_docs.py"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"


def main() -> None:
    measured = json.loads((RESULTS / "foundation.json").read_text())
    sections = {name: section["figures"] for name, section in measured["sections"].items()}
    machine = f"{measured['machine']['cores']} cores of an {measured['machine']['cpu']}"
    write("README.md", [*table(machine, foundation(sections)), *cuda(), "", *peers()])
    write("docs/design/links.md", table(machine, links(sections["gravity"]["hanging_blocks"])))
    newton = [*reductions(sections["twisted_block"]["to_reduction"]), *choices(sections["linear_solvers"])]
    write("docs/design/newton.md", table(machine, newton))
    write("docs/design/acceleration.md", accelerations())
    write("docs/design/changing_stencils.md", changing_stencils())
    write("docs/design/parameters.md", parameters())


def write(page: str, lines: Iterable[str]) -> None:
    """Replace the text between the two marks of a page."""
    path = ROOT / page
    before, rest = path.read_text().split(BEGIN)
    path.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def table(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {title} | |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows)]


def foundation(sections: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for precision, materials in sections["sweeps"].items():
        run = materials["corotated"]
        yield f"PBNG sweep, {size(run)}, {precision}", f"{run['ms_min']:.1f} ms"
    yield (
        "the same in float32, next to a process that keeps one core busy",
        (f"{sections['busy_core']['ratio']:.1f} times as long"),
    )
    large = sections["large_block"]["float32"]
    yield f"PBNG sweep, {size(large)}, float32", f"{large['ms_min']:.0f} ms"
    twist = sections["twisted_block"]
    for precision, run in twist["to_tolerance"].items():
        case = (
            "twisted and stretched block, to relative residual 1e-4, interior vertices initially undeformed"
        )
        what = f"{case}, {precision}"
        yield what, f"{run['seconds']:.2g} s, {run['iterations']} sweeps"
    yield "PBNG and Newton, both converged, differ by", f"{twist['agreement']['difference']:.0e} of its size"
    reached = twist["to_reduction"]
    yield (
        "its residual reduced to 1e-2: PBNG, float32",
        f"{reached['reached']['pbng float32']['seconds']:.2g} s",
    )
    yield "its residual reduced to 1e-2: our fastest Newton", f"{reached['fastest_newton_seconds']:.2g} s"


def parameters() -> Iterator[str]:
    """Cost of parameters by element on each measured device."""
    yield "| PBNG sweep, one CPU thread or one GPU | uniform | copies | gathered | gathered over copies |"
    yield "|---|---|---|---|---|"
    for device, measured in json.loads((RESULTS / "parameters.json").read_text()).items():
        for row in measured["rows"]:
            what = f"{device}, {row['material']}, {row['cells']}³ cells, {row['precision']}"
            times = " | ".join(f"{row['ms_min'][way]:.3g} ms" for way in ("uniform", "copies", "gathered"))
            yield f"| {what} | {times} | {100 * row['gathered_over_copies_min'] - 100:+.0f} % |"


def size(run: dict[str, Any]) -> str:
    return f"{run['vertices']:,} vertices, {run['tets']:,} tetrahedra"


def cuda() -> Iterator[str]:
    path = RESULTS / "gpu.json"
    if path.exists():
        measured = json.loads(path.read_text())
        yield f"| **one {measured['card']}** | |"
        for run in measured["sweeps"]:
            if run["precision"] == "float32":
                yield f"| PBNG sweep, {size(run)}, float32 | {run['us_per_sweep']:.0f} µs |"
        for run in measured["cube"]:
            figures = "per iteration of a long run / per frame of one iteration"
            what = f"25³ stable neo-Hookean cube, {run['method']}, {figures}"
            yield f"| {what} | {run['us_per_iteration']:.0f} µs / {run['us_per_frame']:.0f} µs |"
        for run in measured["equilibria"]:
            what = (
                f"twisted and stretched block, relative residual 1e-4, {run['acceleration']}, "
                f"{run['precision']}"
            )
            yield f"| {what} | {run['ms']:.1f} ms, {run['iterations']} sweeps |"
        for run in measured["batches"]:
            what = f"{run['equilibria']} such equilibria together, {run['acceleration']}, {run['precision']}"
            yield f"| {what} | {run['per_second']:.0f} per second, without set-up and error estimates |"
        for run in measured["many"]:
            what = f"{run['equilibria']:,} such equilibria in one call, {run['acceleration']}, float32"
            speed = f"{run['per_second']:.0f} per second"
            yield f"| {what} | {speed}, including set-up, without error estimates |"
        best = min(measured["substeps"], key=lambda run: run["ms_per_step"])
        what = f"block XPBD, 50 substeps, {best['tets']:,} tetrahedra, {best['ordering']}, float32"
        yield f"| {what} | {best['ms_per_step']:.1f} ms |"


def peers() -> Iterator[str]:
    """A row for each package, all of one run."""
    measured = json.loads((RESULTS / "peers.json").read_text())
    cells, cores, cpu = measured["cells"], measured["machine"]["cores"], measured["machine"]["cpu"]
    script = "[benchmarks/peers.py](benchmarks/peers.py)"
    block = f"{(cells + 1) ** 3:,} vertices and {5 * cells**3:,} tetrahedra"
    yield f"Other packages on {cores} cores of an {cpu}, in one run of {script}."
    yield f"One sweep covers a block of {block}: PBNG and VBD move every vertex"
    yield "once, PBD projects every tetrahedron once. Each package runs as fast as it can on a CPU, with its"
    yield "own precision and threads."
    yield ""
    yield "| | | threads | |"
    yield "|---|---|---|---|"
    for run in measured["rows"]:
        package = f"{run['package']} {run['version']}"
        how = f"{run['method']}, {run['arithmetic']}"
        longer = "" if run["ratio"] == 1 else f", {run['ratio']:.1f} times as long"
        yield f"| {package} | {how} | {run['threads']} | {run['ms_per_sweep']:.1f} ms{longer} |"


def accelerations() -> Iterator[str]:
    """A row for each scene, a column for each acceleration."""
    measured = json.loads((RESULTS / "accelerations.json").read_text())
    names = list(next(iter(measured["scenes"].values())))
    cores, cpu = measured["machine"]["cores"], measured["machine"]["cpu"]
    yield f"Sweeps to a relative residual of 1e-4 in float64, and seconds on {cores} cores of an {cpu}:"
    yield ""
    yield "| | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for scene, runs in measured["scenes"].items():
        cells = (
            f"{run['iterations']:,}, {run['seconds']:.2g} s"
            if run["outcome"] == "converged"
            else f"{run['outcome'].replace('_', ' ')}, {run['relative_residual']:.0e}"
            for run in runs.values()
        )
        yield f"| {scene} | " + " | ".join(cells) + " |"


def changing_stencils() -> Iterator[str]:
    """A row for each number of springs in each block."""
    measured = json.loads((RESULTS / "stencils.json").read_text())
    cpu = measured["machine"]["cpu"]
    yield f"| one thread of an {cpu}, float32 | complete set-up | refresh | sweep without, with |"
    yield "|---" * 4 + "|"
    for block in measured["blocks"]:
        for run in block["springs"]:
            what = f"{block['vertices']:,} vertices, {run['count']:,} springs, {run['moved']:,} recolored"
            times = f"{run['sweep_without_ms']:.1f} ms, {run['sweep_with_ms']:.1f} ms"
            yield f"| {what} | {block['set_up_ms']:.0f} ms | {run['refresh_ms']:.1f} ms | {times} |"


def links(runs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for label, run in runs.items():
        yield (
            label,
            f"{run['outcome']} after {run['iterations']} sweeps, relative residual "
            f"{run['relative_residual']:.1e}",
        )


def choices(section: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, runs in section.items():
        times = ", ".join(f"{linear} {run['seconds']:.2g} s" for linear, run in runs.items())
        yield f"newton, relative residual 1e-8, {name}", times


def reductions(section: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, run in section["reached"].items():
        text = f"{run['seconds']:.2g} s, {run['iterations']} iterations" if run["seconds"] else "not reached"
        yield f"{name}, reduction 1e-2", text


if __name__ == "__main__":
    main()
