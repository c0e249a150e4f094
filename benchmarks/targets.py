"""Targets compared with measurements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Row = tuple[str, str, str, bool | None]
"""Measurement, target, figure, and whether it meets the target (None without a target)."""


def rows(sections: dict[str, Any]) -> Iterator[Row]:
    """Rows of the table for the measured sections."""
    for name, section in ROWS.items():
        if sections.get(name):
            yield from section(sections[name])


def at_most(what: str, limit: float, value: float, unit: str = "") -> Row:
    return what, f"≤ {limit:g}{unit}", f"{value:.3g}{unit}", value <= limit


def at_least(what: str, limit: float, value: float, unit: str = "") -> Row:
    return what, f"≥ {limit:g}{unit}", f"{value:.3g}{unit}", value >= limit


def converged(what: str, run: dict[str, Any], detail: str = "") -> Row:
    text = f"{run['outcome']}, {run['iterations']} iterations, {run['seconds']:.2g} s"
    return what, "converged", text + detail, run["outcome"] == "converged"


def sweeps(section: dict[str, Any]) -> Iterator[Row]:
    for precision, limit in (("float32", 5), ("float64", 9)):
        run = section[precision]["corotated"]
        yield at_most(f"sweep, {run['vertices']:,} vertices, {precision}", limit, run["ms_min"], " ms")
        yield "  median", "", f"{run['ms_per_sweep']:.3g} ms", None
    yield at_most("  set-up", 2, section["float32"]["corotated"]["setup_seconds"], " s")
    for material, run in section["float32"].items():
        if material != "corotated":
            yield f"  {material}, float32", "", f"{run['ms_min']:.3g} ms", None


def large_block(section: dict[str, Any]) -> Iterator[Row]:
    for precision, run in section.items():
        yield f"sweep, {run['vertices']:,} vertices, {precision}", "", f"{run['ms_min']:.3g} ms", None
    yield at_most("  set-up", 20, section["float32"]["setup_seconds"], " s")


def busy_core(section: dict[str, Any]) -> Iterator[Row]:
    yield at_most("sweep with one core taken, slower by", 2.5, section["ratio"], "x")


def twisted_block(section: dict[str, Any]) -> Iterator[Row]:
    for precision, run in section["to_tolerance"].items():
        yield converged(f"twisted block, relative residual 1e-4, {precision}", run)
    yield at_most("  PBNG and Newton differ by", 1e-6, section["agreement"]["difference"], " of its size")
    ratios = section["to_reduction"]["ratio"]
    yield at_least("  reduction 1e-2 sooner than Newton, float32", 20, ratios["float32"], "x")
    yield "  the same, float64", "", f"{ratios['float64']:.3g}x", None
    pbng = section["to_reduction"]["reached"]["pbng float32"]["seconds"]
    for linear in ("direct", "amg", "cg"):
        runs = [v for name, v in section["to_reduction"]["reached"].items() if name.endswith(linear)]
        newton = min(run["seconds"] for run in runs if run["seconds"])
        yield f"  the same, float32, than Newton with {linear}", "", f"{newton / pbng:.3g}x", None
    for name, run in section["to_reduction"]["reached"].items():
        text = f"{run['seconds']:.3g} s, {run['iterations']} iterations" if run["seconds"] else "not reached"
        yield f"    {name}", "", text, None


def linear_solvers(section: dict[str, Any]) -> Iterator[Row]:
    for name, runs in section.items():
        best = min(run["seconds"] for run in runs.values())
        text = ", ".join(f"{linear} {run['seconds']:.2g} s" for linear, run in runs.items())
        yield f"Newton, {name}", "auto ≤ 2x best", text, runs["auto"]["seconds"] <= 2 * best


def gravity(section: dict[str, Any]) -> Iterator[Row]:
    for scene, runs in section.items():
        for i, (label, run) in enumerate(runs.items()):
            detail = (
                f", relative residual {run['relative_residual']:.1e}, rises by "
                f"{run['largest_rise'] - 1:.1%} at most"
            )
            what, aim, text, is_reached = converged(f"{scene}, relative residual 1e-6, {label}", run, detail)
            yield (what, aim, text, is_reached) if i == 0 else (what, "", text, None)


def recovery(section: dict[str, Any]) -> Iterator[Row]:
    for name, run in section.items():
        yield converged(name, run, f", error {run['error']:.1e} m")


def bunny(section: dict[str, Any]) -> Iterator[Row]:
    for precision, run in section.items():
        yield converged(
            f"bunny, relative residual 1e-4, {precision}", run, f", sags by {100 * run['sag']:.2g} %"
        )


ROWS = {
    "sweeps": sweeps,
    "large_block": large_block,
    "busy_core": busy_core,
    "twisted_block": twisted_block,
    "linear_solvers": linear_solvers,
    "gravity": gravity,
    "recovery": recovery,
    "bunny": bunny,
}
