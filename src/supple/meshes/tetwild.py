"""fTetWild in a process of its own: it says on stdout how far it is, can be interrupted, and may crash.

python tetwild.py SOURCE TARGET reads and writes NPZ files. It is run as a script, so it imports no supple.
"""

from __future__ import annotations

import sys


def main(source: str, target: str) -> None:
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
