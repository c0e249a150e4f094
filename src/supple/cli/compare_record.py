"""comparison.json: what was compared, how each solver did, and all curves."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from supple.cli.record import circumstances, scene_facts
from supple.compare import Comparison, Trial
from supple.report import Report
from supple.scene import SceneFile
from supple.solving import Stop


def new_record(
    file: SceneFile,
    comparison: Comparison,
    stop: Stop,
    precision: str,
    device: str,
    warmup: int,
    settled: bool,
) -> dict[str, Any]:
    return {
        "scene": scene_facts(file),
        "stop": asdict(stop),
        "precision": precision,
        "device": device,
        "warmup": {"frames": warmup, "ok": settled},
        "trials": [_entry(trial) for trial in comparison.trials],
        "plots": {},
        "note": None,
        **circumstances(),
    }


def _entry(trial: Trial) -> dict[str, Any]:
    """The figures and curves of a trial; only label, solver, options and error where it could not be run."""
    entry = {
        "label": trial.label,
        "solver": trial.solver.name,
        "options": asdict(trial.solver),  # type: ignore[call-overload]
        "error": trial.error,
    }
    if trial.report is None:
        return entry
    return {
        **entry,
        "picture": None,
        "ms_per_iteration": _pace(trial.report),
        **trial.report.to_dict(),
    }


def _pace(report: Report) -> float | None:
    return 1e3 * report.seconds / report.iterations if report.iterations else None


def picture_name(label: str) -> str:
    """picture_pbng_chebyshev.png"""
    return f"picture_{re.sub(r'[^A-Za-z0-9.]+', '_', label).strip('_')}.png"
