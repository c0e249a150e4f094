"""Convergence to equilibria: the default solver against Newton, an older supple and two peers, on slender,
soft, stiff, thin, organic and scrambled bodies.

    python benchmarks/arrive.py                             all cases; --fresh starts over
    python benchmarks/arrive.py --only plate twist          those whose names contain one of these
    python benchmarks/arrive.py --before FOLDER             also Newton and the default of an older supple
    python benchmarks/arrive.py --peers PYTHON              also FElupe and torch-fem of that interpreter
    python benchmarks/arrive.py --table                     the table of what was measured, in Markdown

Every solve has a process to itself that stays from case to case, all kernels compiled; those of one case are
taken in turns. Results go to benchmarks/results/arrive.json after each of them, and what is there is not
solved again, so that a run may be interrupted. SUPPLE_DATA is the folder with octopus-low.mesh, bunny.mesh
and armadillo.obj; without it their cases are left out. Where other programs run, compare CPU seconds: those
of the process, with set-up and certificate, on all its threads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arrive_cases import available

from supple.io.machine import machine, versions
from supple.support.text import format_duration

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "arrive.json"

SOLVES = {
    "default 1e-8": ("present", "default", 1e-8),
    "newton before": ("before", "newton", 1e-4),
    "default 1e-4": ("present", "default", 1e-4),
    "default before": ("before", "default", 1e-4),
    "newton 1e-8": ("present", "newton", 1e-8),
}
"""Solves of a case: version, solver and relative residual. The first one compiles kernels of the third."""

PEER_CASES = {"bar 9K": (20, 7, 1e8), "cube 9K": (1, 20, 1e6), "bar 40K": (20, 12, 1e8)}
"""Bodies that peers can solve: aspect ratio, cells across, Young's modulus [Pa]."""

SHORTER = 0.4
"""Part of the limit for sweeps alone, which converge early or not for long."""

AT_REST = 1e-9
"""Energies [J] below which a body is at rest."""

SCALING = "bar 4K", "bar 40K", "bar 300K"
"""Cases solved again by the default, each in a separate process, for the cost per vertex."""


class Worker:
    """A process that imports supple from a folder, or the present one."""

    def __init__(self, source: Path | None) -> None:
        paths = [str(FOLDER)] + ([] if source is None else [str(source.resolve())])
        known = os.environ.get("PYTHONPATH")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, *([known] if known else [])])}
        command = [sys.executable, str(FOLDER / "arrive_worker.py")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def solve(self, **request: Any) -> dict[str, Any]:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        print(json.dumps(request), file=to, flush=True)
        line = back.readline()
        return json.loads(line) if line else {"outcome": "error", "error": "the process ended"}


def selected_cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Pairs of cases and solves, interleaved."""
    for case in available():
        if case == SCALING[-1] or (arguments.only and not any(word in case for word in arguments.only)):
            continue
        for solve, (who, _, _) in SOLVES.items():
            if arguments.before or who == "present":
                yield case, solve


def measure(arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    workers: dict[str, Worker] = {}
    left = [pair for pair in selected_cases(arguments) if pair[1] not in results["cases"].get(pair[0], {})]
    print(f"{len(left)} solves, at most {format_duration(len(left) * arguments.longest)}", flush=True)
    began = time.monotonic()
    for done, (case, solve) in enumerate(left):
        who, solver, tolerance = SOLVES[solve]
        if who not in workers:
            workers[who] = Worker(arguments.before if who == "before" else None)
        limit = arguments.longest * (SHORTER if solve == "default before" else 1)
        entry = workers[who].solve(case=case, solver=solver, tolerance=tolerance, limit=limit)
        results["cases"].setdefault(case, {})[solve] = entry | {"limit": limit}
        save(results)
        ahead = (time.monotonic() - began) / (done + 1) * (len(left) - done - 1)
        cpu = f"{entry['cpu']:.3g} s of CPU" if "cpu" in entry else entry["error"]
        print(f"{case}, {solve}: {entry['outcome']}, {cpu}; about {format_duration(ahead)} left", flush=True)


def measure_scaling(arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    """Cost of a bar with increasing numbers of vertices."""
    for case in SCALING:
        if case not in results["scaling"]:
            limit = 20 * arguments.longest
            entry = Worker(None).solve(case=case, solver="default", tolerance=1e-4, limit=limit)
            results["scaling"][case] = entry | {"limit": limit}
            save(results)
            print(f"{case}: {entry}", flush=True)


def measure_peers(arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    """Newton of FElupe and torch-fem on bars of the same energy, and the default on the same bars."""
    for case, shape in PEER_CASES.items():
        for peer in ("supple", "felupe", "torch-fem"):
            if peer in results["peers"].get(case, {}):
                continue
            interpreter = sys.executable if peer == "supple" else arguments.peers
            command = [interpreter, str(FOLDER / "arrive_peers.py"), peer, *map(str, shape)]
            try:
                output = subprocess.run(
                    command, capture_output=True, text=True, timeout=arguments.longest_peer, check=False
                ).stdout
                entry = json.loads(output.splitlines()[-1]) if output else {"outcome": "error"}
            except subprocess.TimeoutExpired:
                entry = {"outcome": "time_limit", "wall": arguments.longest_peer}
            results["peers"].setdefault(case, {})[peer] = entry
            save(results)
            print(f"{case}, {peer}: {entry}", flush=True)


def save(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.replace(RESULTS)


def seconds(entry: dict[str, Any] | None) -> str:
    """CPU seconds; with > if the limit ended the solve, – if there was none."""
    if entry is None or "cpu" not in entry:
        return "–"
    if entry["outcome"] in ("converged", "rounding_limit"):
        return f"{entry['cpu']:.2g}"
    return f"{'>' if entry['outcome'].startswith('budget') else entry['outcome'] + ' '}{entry['cpu']:.2g}"


def elsewhere(entry: dict[str, Any] | None, mine: dict[str, Any]) -> str:
    """A mark for a converged solve whose energy is higher than the default's by a thousandth."""
    if not entry or entry["outcome"] != "converged" or arrived(entry, mine):
        return ""
    return " (higher)"


def arrived(entry: dict[str, Any], mine: dict[str, Any]) -> bool:
    """True if a solve converged to an energy at most a thousandth above the default's."""
    if entry.get("outcome") != "converged":
        return False
    size = max(abs(mine["energy"]), abs(entry["energy"]), AT_REST)
    return entry["energy"] <= mine["energy"] + 1e-3 * size


def table(results: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "| case | vertices | default 1e-4: iterations, distance | CPU s | to 1e-8 | Newton to 1e-8 "
        "| Newton before | default before | E against Newton's |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case, entry in results["cases"].items():
        mine, exact, newton = (entry.get(name) for name in ("default 1e-4", "default 1e-8", "newton 1e-8"))
        if mine is None:
            continue
        distance = "" if mine.get("position_error") is None else f", {mine['position_error']:.0e}"
        said = f"{mine['iterations']}{distance}" if mine["outcome"] == "converged" else mine["outcome"]
        rest = [
            seconds(entry.get(name)) + elsewhere(entry.get(name), mine)
            for name in ("newton before", "default before")
        ]
        lines.append(
            f"| {case} | {mine.get('vertices', 0):,} | {said} | {seconds(mine)} | {seconds(exact)} "
            f"| {seconds(newton)} | {' | '.join(rest)} | {above(exact, newton)} |"
        )
    ratio = mean_ratio(results)
    if ratio is not None:
        lines += ["", f"Geometric mean of the better of the two before, over the default: {ratio:.1f}."]
    return "\n".join([*lines, "", *scaling_table(results), "", *peer_table(results)])


def scaling_table(results: dict[str, Any]) -> list[str]:
    """Cost of a bar per vertex; linear iterations are in the notes."""
    lines = [
        "| bar 20:1:1 | steps | CPU ms per vertex | memory per vertex |",
        "|---|---|---|---|",
    ]
    for entry in results["scaling"].values():
        n = entry["vertices"]
        per = f"{1e3 * entry['cpu'] / n:.2g} | {entry['memory'] / n / 1024:.0f} KiB"
        lines.append(f"| {n:,} vertices | {entry['notes'][0]} | {per} |")
    return lines


def peer_table(results: dict[str, Any]) -> list[str]:
    """CPU seconds of supple and its peers; > and wall seconds if a limit ended them."""
    lines = ["| log_neo_hookean | vertices | supple | FElupe | torch-fem |", "|---|---|---|---|---|"]
    for case, entry in results["peers"].items():
        cells = [
            f"{f['cpu']:.2g}" if "cpu" in f else f">{f['wall']:.0f} (wall)" if "wall" in f else "–"
            for f in (entry.get(peer, {}) for peer in ("supple", "felupe", "torch-fem"))
        ]
        lines.append(f"| {case} | {entry['supple']['vertices']:,} | {' | '.join(cells)} |")
    return lines


def above(exact: dict[str, Any] | None, newton: dict[str, Any] | None) -> str:
    """(E - Newton's E) / |Newton's E|, if both converged."""
    if (
        not exact
        or not newton
        or not {exact["outcome"], newton["outcome"]} <= {"converged", "rounding_limit"}
    ):
        return "–"
    size = max(abs(newton["energy"]), abs(exact["energy"]))
    return "0" if size < AT_REST else f"{(exact['energy'] - newton['energy']) / size:+.0e}"


def mean_ratio(results: dict[str, Any]) -> float | None:
    """Mean ratio of times. If neither converged, the longer time counts, so that the true ratio is higher;
    failures are excluded."""
    logarithms = []
    for entry in results["cases"].values():
        mine = entry.get("default 1e-4", {})
        before = [entry[name] for name in ("newton before", "default before") if name in entry]
        before = [other for other in before if other["outcome"] not in ("error", "failed")]
        if not before or mine.get("outcome") != "converged":
            continue
        other_seconds = [other["cpu"] for other in before if arrived(other, mine)]
        spent = min(other_seconds) if other_seconds else max(other["cpu"] for other in before)
        logarithms.append(math.log(spent / mine["cpu"]))
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="the src folder of an older supple")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has felupe and torch-fem")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds allowed to a solve")
    parser.add_argument("--longest-peer", type=float, default=300.0, help="seconds allowed to a peer")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--table", action="store_true", help="print the table and solve nothing")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"cases": {}, "scaling": {}, "peers": {}}
    if RESULTS.is_file() and not arguments.fresh:
        results |= json.loads(RESULTS.read_text(encoding="utf-8"))
    if not arguments.table:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        results |= {"date": date, "limit": arguments.longest, "machine": machine(), "versions": versions()}
        measure(arguments, results)
        if not arguments.only:
            measure_scaling(arguments, results)
        if arguments.peers:
            measure_peers(arguments, results)
    print(table(results))


if __name__ == "__main__":
    main()
