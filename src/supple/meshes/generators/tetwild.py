"""Script that runs fTetWild in a separate process, which can be interrupted and may crash.

python tetwild.py SOURCE TARGET reads and writes NPZ files and prints progress. As a script, it does not
import supple.
"""

from __future__ import annotations

import sys


def main(source: str, target: str) -> None:
    """Tetrahedralize the surface in `source` and write the result to `target`."""
    import numpy as np
    import pytetwild

    with np.load(source) as given:
        points, tets = pytetwild.tetrahedralize(
            given["points"],
            given["triangles"],
            edge_length_abs=float(given["edge_length"]),
            epsilon=float(given["envelope"]),
            vtk_ordering=True,
            quiet=False,
        )
    np.savez(target, points=points, tets=tets)


if __name__ == "__main__":
    main(*sys.argv[1:])
