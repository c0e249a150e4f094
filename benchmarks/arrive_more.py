"""Convergence to equilibria, more cases: shapes, sizes, stiffnesses and starts in addition to those of
arrive.py, and every material of the list on a slender bar.

    python benchmarks/arrive_more.py                    all cases in float64 and float32, to 1e-4 and 1e-8
    python benchmarks/arrive_more.py --only tet coil    those whose names contain one of these
    python benchmarks/arrive_more.py --fresh            forgets what was measured
    python benchmarks/arrive_more.py --table            the table of what was measured, in Markdown

A solve is good that ends as converged, or at the limit of its rounding, which it says, within the distance of
the equilibrium; and so is what a sentence refuses, as forces beyond a precision. Results go to
benchmarks/results/arrive_more.json after each of them, and what is there is not solved again.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arrive_more_cases import CASES

import supple
from supple.io.machine import machine, versions

RESULTS = Path(__file__).parent / "results" / "arrive_more.json"

GOOD = {"converged", "rounding_limit", "refused"}


class TooLongError(Exception):
    """A solve has exceeded its time limit."""


def solve(name: str, precision: str, tolerance: float, longest: float) -> dict[str, Any]:
    """Report of one solve; its time excludes compilation of kernels."""
    scene, start = CASES[name]()

    def check_seconds(info: Any) -> None:
        if info.seconds > longest:
            raise TooLongError(f"{info.iteration} iterations, relative residual {info.relative_residual:.1e}")

    options = {"precision": precision, "tolerance": tolerance, "initial": start, "callback": check_seconds}
    try:
        report = supple.equilibrium(scene, **options).report
    except ValueError as error:
        return {"outcome": "refused", "error": str(error)}
    except TooLongError as error:
        return {"outcome": "too long", "error": str(error)}
    except Exception as error:
        return {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
    error_estimate = report.error_estimate
    return {
        "outcome": report.outcome.name.lower(),
        "vertices": report.vertices,
        "iterations": report.iterations,
        "seconds": report.seconds,
        "relative_residual": report.relative_residual,
        "energy": report.energy,
        "position_error": error_estimate and error_estimate.position_error,
        "stable": error_estimate and error_estimate.stable,
        "notes": report.notes,
    }


def measure(arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    for name in CASES:
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        for precision in arguments.precision:
            for tolerance in (1e-4, 1e-8):
                key = f"{precision} {tolerance:g}"
                if key in results["cases"].get(name, {}):
                    continue
                entry = solve(name, precision, tolerance, arguments.longest)
                results["cases"].setdefault(name, {})[key] = entry
                save(results)
                summary = {
                    k: entry[k]
                    for k in ("outcome", "iterations", "relative_residual", "position_error", "error")
                    if k in entry
                }
                mark = "" if good(entry) else "  <<<"
                print(f"{name}, {key}: {summary}{mark}", flush=True)


def good(entry: dict[str, Any]) -> bool:
    distance = entry.get("position_error")
    return entry["outcome"] in GOOD and (distance is None or distance <= 1e-4)


def save(results: dict[str, Any]) -> None:
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.replace(RESULTS)


def table(results: dict[str, Any]) -> str:
    """Markdown: iterations, and the outcome of unconverged solves, with the distance."""
    columns = [f"{p} {t}" for p in ("float64", "float32") for t in ("0.0001", "1e-08")]
    heads = [column.replace("0.0001", "1e-4").replace("1e-08", "1e-8") for column in columns]
    lines = [f"| case | vertices | {' | '.join(heads)} |", "|---" * (len(columns) + 2) + "|"]
    for name, entry in results["cases"].items():
        vertices = max((one.get("vertices", 0) for one in entry.values()), default=0)
        cells = [_cell(entry.get(column)) for column in columns]
        lines.append(f"| {name} | {vertices:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    if one["outcome"] == "converged":
        return str(one["iterations"])
    if "iterations" not in one:
        return str(one["outcome"])
    return f"{one['iterations']}, {one['outcome']} ({one['position_error'] or 0:.0e})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD")
    parser.add_argument("--precision", nargs="+", default=["float64", "float32"])
    parser.add_argument("--longest", type=float, default=60.0, help="seconds allowed to a solve")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--note", help="what is to be known of the run, such as what else ran beside it")
    parser.add_argument("--table", action="store_true", help="print the table and solve nothing")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"cases": {}}
    if RESULTS.is_file() and not arguments.fresh:
        results |= json.loads(RESULTS.read_text(encoding="utf-8"))
    if not arguments.table:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        results |= {"date": date, "machine": machine(), "versions": versions()}
        results |= {"note": arguments.note} if arguments.note else {}
        measure(arguments, results)
    print(table(results))


if __name__ == "__main__":
    main()
