"""Text of comparison results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.words import counted, say_cells, say_seconds

Entry = dict[str, Any]
"""Report entry of a solver that ran."""

COLUMNS: dict[str, Callable[[Entry], str]] = {
    "outcome": lambda entry: entry["outcome"].replace("_", " "),
    "iterations": lambda entry: f"{entry['iterations']:,}",
    "seconds": lambda entry: f"{entry['seconds']:.3g}",
    "ms/iteration": lambda entry: f"{entry['ms_per_iteration']:.3g}" if entry["iterations"] else "",
    "imbalance": lambda entry: f"{entry['imbalance']:.1e}",
    "reduction": lambda entry: f"{entry['reduction']:.1e}",
    "energy [J]": lambda entry: f"{entry['energy']:.6g}",
    "inverted": lambda entry: f"{entry['inverted']:,}",
    "colours": lambda entry: f"{entry['colours'] or ''}",
}


def setting(account: dict[str, Any]) -> str:
    """One-line settings: 4,096 vertices, 16,875 tetrahedra · equilibrium · float64, 2 threads"""
    scene, frame = account["scene"], account["warmup"]["frames"] + 1
    step = "equilibrium" if scene["quasistatic"] else f"frame {frame}, Δt = {scene['dt']:.3g} s"
    threads = max((entry["threads"] for entry in account["trials"] if entry["error"] is None), default=1)
    return (
        f"{scene['vertices']:,} vertices, {say_cells(scene)} · {step} · "
        f"{account['precision']}, {threads} thread" + ("s" if threads > 1 else "")
    )


def caption(entry: Entry) -> str:
    """Picture caption: 40 iterations, 0.12 s · residual × 2.9e-02 · 3 inverted elements"""
    parts = [
        f"{counted(entry['iterations'], 'iteration')}, {say_seconds(entry['seconds'])}",
        f"residual × {entry['reduction']:.1e}",
        f"imbalance {entry['imbalance']:.1e}",
    ]
    if entry["inverted"]:
        parts.append(f"{entry['inverted']:,} inverted elements")
    return " · ".join(parts)
