"""Fuzz testing of bad input: randomly mutated gallery scenes, and wrong calls.

    python benchmarks/storm.py [--scenes 1300] [--calls 400] [--seed 0] [--minutes 15]

Some minutes on two cores that are idle; with --minutes no scene begins after these. Counts and findings go
to benchmarks/results/storm.json; exit code 1 where there are findings; tests/fuzz.py defines a finding.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from supple.io import machine, versions

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "storm.json"
sys.path.insert(0, str(ROOT / "tests"))

from fuzz import Tally  # noqa: E402
from fuzz_calls import run_wrong_calls  # noqa: E402
from fuzz_scenes import run_mutated_scenes  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=1300)
    parser.add_argument("--calls", type=int, default=400, help="0 for all that there are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    began = perf_counter()
    with TemporaryDirectory() as folder:
        scenes = run_mutated_scenes(arguments.scenes, Path(folder), arguments.seed, minutes=arguments.minutes)
        calls = run_wrong_calls(arguments.calls or None, Path(folder), arguments.seed)
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "seed": arguments.seed}
    results |= {"scenes": summary(scenes), "calls": summary(calls)}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2, ensure_ascii=False))
    print(f"{perf_counter() - began:.0f} s")
    raise SystemExit(1 if scenes.findings or calls.findings else 0)


def summary(tally: Tally) -> dict[str, Any]:
    return {"cases": sum(tally.counts.values()), **tally.counts, "findings": tally.findings}


if __name__ == "__main__":
    main()
