"""Main measurements of supple in one run: speed, convergence, robustness.

    python benchmarks/foundation.py                       all of it: some ten minutes on two cores
    python benchmarks/foundation.py --only sweeps bunny   some sections, kept with those measured before

Figures and the machine they were measured on go to benchmarks/results/foundation.json, residual plots to
docs/images; a table shows them compared with what is aimed for. Times mean little while other programs run.
Then `python benchmarks/figures_in_docs.py` brings the pages that quote them up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equilibria
import sweeps
from rich.console import Console
from rich.table import Table
from targets import rows

from supple.io.machine import machine, versions

RESULTS = Path(__file__).parent / "results" / "foundation.json"

SECTIONS = {
    "sweeps": sweeps.sweep_times,
    "large_block": sweeps.large_block,
    "busy_core": sweeps.next_to_a_busy_process,
    **equilibria.SECTIONS,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"sections": {}}
    for name in arguments.only:
        with console.status(name):
            sections = SECTIONS[name]()
        results["sections"][name] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "figures": sections,
        }
        results |= {"machine": machine(), "versions": versions() | optional_versions()}
        save(results)
    show(results, console)


def optional_versions() -> dict[str, str]:
    """Versions of the libraries that Newton's linear solvers use."""
    return {name: version(name) for name in ("scipy", "pyamg", "pypardiso")}


def save(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def show(results: dict[str, Any], console: Console) -> None:
    table = Table(
        "what",
        "aim",
        "measured",
        "",
        title=f"{results['machine']['cpu']}, {results['machine']['cores']} cores",
    )
    sections = {name: section["figures"] for name, section in results["sections"].items()}
    for what, aim, measured, is_reached in rows(sections):
        table.add_row(what, aim, measured, {True: "[green]met", False: "[red]missed", None: ""}[is_reached])
    console.print(table)


if __name__ == "__main__":
    main()
