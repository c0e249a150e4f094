"""Equilibria that arrive: the default against Newton, an older supple and two peers, on slender, soft, stiff,
thin, organic and tangled bodies.

    python benchmarks/arrive.py                             all cases; --fresh starts over
    python benchmarks/arrive.py --only plate twist          those whose names contain one of these
    python benchmarks/arrive.py --before FOLDER             beside: Newton and the default of an older supple
    python benchmarks/arrive.py --peers PYTHON              beside: FElupe and torch-fem of that interpreter
    python benchmarks/arrive.py --table                     the table of what was measured, in Markdown

Every solve has a process to itself that stays from case to case, all kernels compiled; those of one case are
taken in turns. Figures go to benchmarks/results/arrive.json after each of them, and what is there is not
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

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "arrive.json"

SOLVES = {
    "default 1e-8": ("present", "default", 1e-8),
    "newton before": ("before", "newton", 1e-4),
    "default 1e-4": ("present", "default", 1e-4),
    "default before": ("before", "default", 1e-4),
    "newton 1e-8": ("present", "newton", 1e-8),
}
"""Who solves a case, with which solver, to which relative residual. The first one compiles what the third
needs."""

PEER_CASES = {"bar 9K": (20, 7, 1e8), "cube 9K": (1, 20, 1e6), "bar 40K": (20, 12, 1e8)}
"""Bodies that peers can solve: how slender they are, cells across, Young's modulus [Pa]."""

SHORTER = 0.4
"""Part of the limit that is allowed to sweeps alone: where they do not arrive soon, they do not for long."""

AT_REST = 1e-9
"""Energies [J] below which a body is at rest."""

SCALING = "bar 4K", "bar 40K", "bar 300K"
"""Solved by the default once more, each in a process of its own, for what they take per vertex."""


class Worker:
    """A process that imports the supple of a folder, or the present one."""

    def __init__(self, source: Path | None) -> None:
        paths = [str(HERE)] + ([] if source is None else [str(source.resolve())])
        known = os.environ.get("PYTHONPATH")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, *([known] if known else [])])}
        command = [sys.executable, str(HERE / "arrive_worker.py")]
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


def wanted(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Cases and solves, in turns."""
    for case in available():
        if case == SCALING[-1] or (arguments.only and not any(word in case for word in arguments.only)):
            continue
        for solve, (who, _, _) in SOLVES.items():
            if arguments.before or who == "present":
                yield case, solve


def measure(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    workers: dict[str, Worker] = {}
    left = [pair for pair in wanted(arguments) if pair[1] not in figures["cases"].get(pair[0], {})]
    print(f"{len(left)} solves, at most {format_duration(len(left) * arguments.longest)}", flush=True)
    began = time.monotonic()
    for done, (case, solve) in enumerate(left):
        who, solver, tolerance = SOLVES[solve]
        if who not in workers:
            workers[who] = Worker(arguments.before if who == "before" else None)
        limit = arguments.longest * (SHORTER if solve == "default before" else 1)
        found = workers[who].solve(case=case, solver=solver, tolerance=tolerance, limit=limit)
        figures["cases"].setdefault(case, {})[solve] = found | {"limit": limit}
        save(figures)
        ahead = (time.monotonic() - began) / (done + 1) * (len(left) - done - 1)
        cpu = f"{found['cpu']:.3g} s of CPU" if "cpu" in found else found["error"]
        print(f"{case}, {solve}: {found['outcome']}, {cpu}; about {format_duration(ahead)} left", flush=True)


def measure_scaling(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    """What a bar of more and more vertices takes."""
    for case in SCALING:
        if case not in figures["scaling"]:
            limit = 20 * arguments.longest
            found = Worker(None).solve(case=case, solver="default", tolerance=1e-4, limit=limit)
            figures["scaling"][case] = found | {"limit": limit}
            save(figures)
            print(f"{case}: {found}", flush=True)


def measure_peers(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    """FElupe's and torch-fem's Newton on bars of the same energy, and the default on the same bars."""
    for case, shape in PEER_CASES.items():
        for peer in ("supple", "felupe", "torch-fem"):
            if peer in figures["peers"].get(case, {}):
                continue
            interpreter = sys.executable if peer == "supple" else arguments.peers
            command = [interpreter, str(HERE / "arrive_peers.py"), peer, *map(str, shape)]
            try:
                output = subprocess.run(
                    command, capture_output=True, text=True, timeout=arguments.longest_peer, check=False
                ).stdout
                found = json.loads(output.splitlines()[-1]) if output else {"outcome": "error"}
            except subprocess.TimeoutExpired:
                found = {"outcome": "time_limit", "wall": arguments.longest_peer}
            figures["peers"].setdefault(case, {})[peer] = found
            save(figures)
            print(f"{case}, {peer}: {found}", flush=True)


def save(figures: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    part.replace(RESULTS)


def seconds(found: dict[str, Any] | None) -> str:
    """CPU seconds; with > where the limit ended the solve, – where there was none."""
    if found is None or "cpu" not in found:
        return "–"
    if found["outcome"] in ("converged", "rounding_limit"):
        return f"{found['cpu']:.2g}"
    return f"{'>' if found['outcome'].startswith('budget') else found['outcome'] + ' '}{found['cpu']:.2g}"


def elsewhere(found: dict[str, Any] | None, mine: dict[str, Any]) -> str:
    """A mark where a solve that says it has arrived is higher by a thousandth than the default."""
    if not found or found["outcome"] != "converged" or arrived(found, mine):
        return ""
    return " (higher)"


def arrived(found: dict[str, Any], mine: dict[str, Any]) -> bool:
    """Whether a solve ended well, and no higher than the default by a thousandth."""
    if found.get("outcome") != "converged":
        return False
    size = max(abs(mine["energy"]), abs(found["energy"]), AT_REST)
    return found["energy"] <= mine["energy"] + 1e-3 * size


def table(figures: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "| case | vertices | default 1e-4: iterations, distance | CPU s | to 1e-8 | Newton to 1e-8 "
        "| Newton before | default before | E against Newton's |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case, found in figures["cases"].items():
        mine, exact, newton = (found.get(name) for name in ("default 1e-4", "default 1e-8", "newton 1e-8"))
        if mine is None:
            continue
        distance = "" if mine.get("position_error") is None else f", {mine['position_error']:.0e}"
        said = f"{mine['iterations']}{distance}" if mine["outcome"] == "converged" else mine["outcome"]
        rest = [
            seconds(found.get(name)) + elsewhere(found.get(name), mine)
            for name in ("newton before", "default before")
        ]
        lines.append(
            f"| {case} | {mine.get('vertices', 0):,} | {said} | {seconds(mine)} | {seconds(exact)} "
            f"| {seconds(newton)} | {' | '.join(rest)} | {above(exact, newton)} |"
        )
    ratio = mean_ratio(figures)
    if ratio is not None:
        lines += ["", f"Geometric mean of the better of the two before, over the default: {ratio:.1f}."]
    return "\n".join([*lines, "", *scaling_table(figures), "", *peer_table(figures)])


def scaling_table(figures: dict[str, Any]) -> list[str]:
    """What a bar takes per vertex; linear iterations are in the notes."""
    lines = [
        "| bar 20:1:1 | steps | CPU ms per vertex | memory per vertex |",
        "|---|---|---|---|",
    ]
    for found in figures["scaling"].values():
        n = found["vertices"]
        per = f"{1e3 * found['cpu'] / n:.2g} | {found['memory'] / n / 1024:.0f} KiB"
        lines.append(f"| {n:,} vertices | {found['notes'][0]} | {per} |")
    return lines


def peer_table(figures: dict[str, Any]) -> list[str]:
    """CPU seconds of supple and its peers; > and wall seconds where a limit ended them."""
    lines = ["| log_neo_hookean | vertices | supple | FElupe | torch-fem |", "|---|---|---|---|---|"]
    for case, found in figures["peers"].items():
        told = [
            f"{f['cpu']:.2g}" if "cpu" in f else f">{f['wall']:.0f} (wall)" if "wall" in f else "–"
            for f in (found.get(peer, {}) for peer in ("supple", "felupe", "torch-fem"))
        ]
        lines.append(f"| {case} | {found['supple']['vertices']:,} | {' | '.join(told)} |")
    return lines


def above(exact: dict[str, Any] | None, newton: dict[str, Any] | None) -> str:
    """(E - Newton's E) / |Newton's E|, where both arrived."""
    if (
        not exact
        or not newton
        or not {exact["outcome"], newton["outcome"]} <= {"converged", "rounding_limit"}
    ):
        return "–"
    size = max(abs(newton["energy"]), abs(exact["energy"]))
    return "0" if size < AT_REST else f"{(exact['energy'] - newton['energy']) / size:+.0e}"


def mean_ratio(figures: dict[str, Any]) -> float | None:
    """Where neither arrived, the longer of what they spent counts, so that the true ratio is higher; where
    they failed, nothing."""
    logarithms = []
    for found in figures["cases"].values():
        mine = found.get("default 1e-4", {})
        before = [found[name] for name in ("newton before", "default before") if name in found]
        before = [other for other in before if other["outcome"] not in ("error", "failed")]
        if not before or mine.get("outcome") != "converged":
            continue
        there = [other["cpu"] for other in before if arrived(other, mine)]
        spent = min(there) if there else max(other["cpu"] for other in before)
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
    figures: dict[str, Any] = {"cases": {}, "scaling": {}, "peers": {}}
    if RESULTS.is_file() and not arguments.fresh:
        figures |= json.loads(RESULTS.read_text(encoding="utf-8"))
    if not arguments.table:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        figures |= {"date": date, "limit": arguments.longest, "machine": machine(), "versions": versions()}
        measure(arguments, figures)
        if not arguments.only:
            measure_scaling(arguments, figures)
        if arguments.peers:
            measure_peers(arguments, figures)
    print(table(figures))


if __name__ == "__main__":
    main()
