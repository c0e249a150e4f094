"""Contact against known solutions, into results/contact_answers.json.

Each answer is a function, which says where it comes from, in contact_friction, contact_pressing or
contact_standing; `--only hertz,capstan` runs some of them and keeps what the file has of the others;
"machine" says where each was run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contact_friction import capstans, mindlin, slope
from contact_pressing import closing, hertz_all, patches, two_spheres
from contact_standing import arch, drop, stack

from supple.io.machine import machine

ANSWERS: dict[str, Callable[[], Any]] = {
    "slope": slope,
    "capstan": capstans,
    "hertz": hertz_all,
    "two_spheres": two_spheres,
    "mindlin": mindlin,
    "patch": patches,
    "closing": closing,
    "stack": stack,
    "arch": arch,
    "drop": drop,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ANSWERS))
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results" / "contact_answers.json")
    given = parser.parse_args()
    results = json.loads(given.to.read_text()) if given.to.exists() else {}
    for name in given.only.split(","):
        results[name] = ANSWERS[name]()
        results.setdefault("machine", {})[name] = machine()
        print(name, json.dumps(results[name]), file=sys.stderr, flush=True)
        given.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
