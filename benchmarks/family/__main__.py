"""What the constraint-based methods do on the scenes of their papers: figures and plots.

    python benchmarks/family                     # everything: some two hours on two cores
    python benchmarks/family falling beam speed  # some of it; the other figures stay as they are
    python benchmarks/family --list

Figures go to benchmarks/results/family.json, each section with its date, machine, versions and a hash of the
sources it was measured with, and plots to docs/images. Only `speed` depends on the machine being quiet. Most
of the time goes into `recovery`, `twist`, `stretch` and `compress`, which go on where they were interrupted.
The tetrahedral armadillo is made once from armadillo.obj with pytetwild and fast-simplification (pip install
pytetwild fast-simplification; ten minutes) and cached; without them, and without data in ../shared/meshes or
$SUPPLE_DATA, meshes that are missing are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import bnh
import gpbd
import methods
import pbcm
import pbng
import pxpbd
from common import RESULTS, Figures, say, sources

from supple.io.machine import machine, versions

SECTIONS: dict[str, Callable[[], Figures]] = {
    section.__name__: section
    for section in (
        pxpbd.falling,
        pxpbd.squeeze,
        bnh.coupling,
        bnh.scramble,
        bnh.clusters,
        pbng.hanging,
        pbng.gravity,
        pbcm.poisson,
        methods.accuracy,
        gpbd.recovery,
        gpbd.twist,
        gpbd.stretch,
        gpbd.compress,
        methods.speed,
    )
}


def measure(name: str) -> None:
    """Run a section and put its figures beside those of the others."""
    began, hashed = time.perf_counter(), sources()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    figures = SECTIONS[name]()
    section = {
        "about": (SECTIONS[name].__doc__ or "").strip(),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "sources": hashed,
        "machine": machine(),
        "load average before": load,
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 1),
        "figures": figures,
    }
    record: Figures = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    record[name] = section
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    ordered = {key: record[key] for key in SECTIONS if key in record}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    say(f"{name}: done in {section['seconds']} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*SECTIONS, []], help="which; all unless given")
    parser.add_argument("--list", action="store_true", help="say what there is")
    arguments = parser.parse_args()
    if arguments.list:
        for name, function in SECTIONS.items():
            print(f"{name:10} {(function.__doc__ or '').splitlines()[0]}")
        return
    for name in arguments.names or SECTIONS:
        measure(name)


if __name__ == "__main__":
    main()
