"""Numbers of colors, and computing times of sweeps [PBNG Table 1 and 3]."""

from __future__ import annotations

from functools import partial
from typing import Any

import supple
from supple import XPBD
from supple_papers.common import PLAIN, SOFT, at_rest, cells_of, ms_per_sweep, twisted_block
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows


@shows("pbng-table1")
def colors(measurements: Measurements) -> str:
    rows = {
        f"block of {n}³ cells": partial(count_colors, measurements, n)
        for n in ((31, 63) if measurements.full else (15, 31))
    }
    counts = [measurements.part(name, row) for name, row in rows.items()]
    last = counts[-1]
    ratio = last["xpbd [ms]"] / last["pbng [ms]"]
    return measurements.judge(
        f"{last['node colors']} and {last['constraint colors']} colors (paper: 5 and 39); a "
        f"sweep of PBNG takes {last['pbng [ms]']:.3g} ms and one of XPBD {last['xpbd [ms]']:.3g} ms, "
        f"{ratio:.1f} times as long (paper: 0.96 times, on 32K vertices).",
        Claim(
            "color counts match the paper's, within two",
            last["node colors"] == 5 and abs(last["constraint colors"] - 39) <= 2,
        ),
        Claim(
            "PBNG and PBD sweeps take equal time, within a fifth",
            abs(ratio - 0.96) < 0.2,
            "XPBD sweeps wait for 38 colors, PBNG sweeps for 5, and XPBD writes each vertex once per "
            "element. PBNG's cost is arithmetic, which packs and warps make cheap.",
        ),
    )


def count_colors(measurements: Measurements, cells: int) -> Quantities:
    free = supple.Scene(gravity=(0, 0, 0))
    free.add_solid(supple.block(cells), SOFT)
    counts = supple.inspect(free, worst=0)
    problem = at_rest(twisted_block(cells, SOFT), "float32", measurements)
    return {
        "vertices": counts["vertices"],
        "node colors": counts["orderings"]["vertex_colors"],
        "constraint colors": counts["orderings"]["element_colors"],
        "pbng [ms]": ms_per_sweep(problem, PLAIN),
        "xpbd [ms]": ms_per_sweep(problem, XPBD()),
    }


@shows("pbng-table3")
def performance(measurements: Measurements) -> str:
    material_classes = {
        "corotated": supple.Corotated,
        "neo-Hookean": supple.NeoHookean,
        "stable": supple.StableNeoHookean,
    }
    times = {
        name: measurements.part(f"{name}, ms per sweep", partial(sweep_time, measurements, kind))
        for name, kind in material_classes.items()
    }
    vertices = (cells_of(measurements) + 1) ** 3
    corotated, neo, stable = times.values()
    time_per_vertex, paper_time_per_vertex = (1e3 * corotated / vertices, 1e3 * 1300 / 40 / 32**3)
    return measurements.judge(
        f"40 sweeps take {40 * corotated:.3g} ms (corotated), {40 * neo:.3g} ms (neo-Hookean) and "
        f"{40 * stable:.3g} ms (stable) on {vertices:,} vertices, {time_per_vertex:.2g} µs per vertex and "
        "sweep; the "
        f"paper has 1300, 825 and 1300 ms on 32³ and another machine, {paper_time_per_vertex:.2g} µs. "
        "The other "
        "scenes are "
        "rows of their own.",
        Claim("sweeps take at most the paper's time per vertex", time_per_vertex <= paper_time_per_vertex),
        Claim(
            "neo-Hookean is cheapest, within a tenth",
            neo <= 1.1 * min(times.values()),
            "sweeps wait for memory and colors, so material arithmetic matters little: all three are within "
            "a third.",
        ),
    )


def sweep_time(measurements: Measurements, kind: Any) -> float:
    scene = twisted_block(cells_of(measurements), kind(young=1e5, poisson=0.3))
    return ms_per_sweep(at_rest(scene, "float32", measurements), PLAIN)
