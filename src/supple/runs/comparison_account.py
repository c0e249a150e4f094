"""comparison.json: settings, results and convergence curves of every solver; written and read."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from supple.compare import Comparison, Trial
from supple.compute import Compute
from supple.input_files import read_text
from supple.io import ResultsError
from supple.io.checksums import check_unchanged
from supple.io.results import REPORT_LIMIT
from supple.report import Report
from supple.runs.account import circumstances, report_of, restore_infinities, scene_facts
from supple.scene import SceneFile
from supple.solvers import SOLVERS
from supple.solvers.options import plain_options
from supple.stop import Stop


def new_account(
    file: SceneFile,
    comparison: Comparison,
    stop: Stop,
    compute: Compute,
    warmup: int,
    settled: bool,
) -> dict[str, Any]:
    return {
        "scene": scene_facts(file),
        "stop": asdict(stop),
        "precision": compute.precision,
        "device": compute.device,
        "warmup": {"frames": warmup, "ok": settled},
        "trials": [_entry(trial) for trial in comparison.trials],
        "plots": {},
        "note": None,
        **circumstances(),
    }


def _entry(trial: Trial) -> dict[str, Any]:
    """Figures and curves of a trial; a failed trial has label, solver, options and error only."""
    entry = {
        "label": trial.label,
        "solver": trial.solver.name,
        "options": plain_options(trial.solver),
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
    """File name of a trial's picture: picture_pbng_chebyshev.png"""
    return f"picture_{re.sub(r'[^A-Za-z0-9.]+', '_', label).strip('_')}.png"


def read_comparison(folder: Path) -> dict[str, Any]:
    """Read comparison.json from a results folder of `supple compare`.

    Raises:
        ResultsError: The file is not a comparison.
    """
    path = folder / "comparison.json"
    check_unchanged(path, "figures in it may be wrong. Compare again with --overwrite.")
    try:
        account = json.loads(read_text(path, REPORT_LIMIT))
        account["scene"], account["trials"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is not a comparison of supple; `supple compare` writes one.") from error
    ran = [entry for entry in account["trials"] if entry["error"] is None]
    restore_infinities(ran)
    for entry in ran:
        for values in entry["history"].values():
            values[:] = [math.inf if value is None else value for value in values]
    return account


def trial_of(entry: dict[str, Any]) -> Trial:
    """Trial from its JSON entry.

    Raises:
        ResultsError: This version does not know the solver or its options.
    """
    try:
        solver = SOLVERS[entry["solver"]](**entry["options"])
    except (KeyError, TypeError, ValueError):
        raise ResultsError(
            f"the trial {entry['label']!r} has a solver or options that this version of supple does not "
            "know; compare again."
        ) from None
    return Trial(solver, entry["label"], None, report_of(entry))
