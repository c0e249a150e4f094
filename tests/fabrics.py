"""A synthetic fabric in the format of HYLC's files, and paths of HYLC's fabrics."""

import os
from pathlib import Path

import numpy as np
import pytest

PAIRS = ("01", "02", "03", "04", "12", "13", "14", "23", "24")


def hylc_file(name):
    """Path of a file of HYLC's authors, whose license keeps it out of the package; skips tests without it."""
    folder = Path(__file__).parents[2] / "shared" / "hylc"
    folders = [Path(os.environ.get("SUPPLE_DATA", folder)) / "hylc" / name, folder / name]
    for candidate in (*folders, *(parent / "shared" / "hylc" / name for parent in folder.parents)):
        if candidate.is_file():
            return candidate
    pytest.skip(f"needs {name} of HYLC; set SUPPLE_DATA to the folder that has hylc/{name}")


def invented_fabric(curl=0.0):
    """A fabric twice as stiff along the first threads, with stiffening and all couplings."""
    t = np.linspace(-0.6, 0.9, 7)
    single = []
    for k, stiffness in enumerate((200.0, 20.0, 100.0, 3.0, 2.0)):
        slope = curl * (k == 3)
        p = 0.5 * stiffness * t**2 + stiffness * t**3 / 6 + slope * t
        single.append({"k": k, "t": list(t), "p": list(p), "m": list(stiffness * (t + t**2 / 2) + slope)})
    u, v = np.linspace(-0.5, 0.8, 5), np.linspace(-0.7, 0.7, 6)
    double = []
    for pair in PAIRS:
        U, V = np.meshgrid(u, v)
        c = 10.0 if pair in ("01", "02", "12") else 1.0
        p, mu, mv, muv = c * U**2 * V, 2 * c * U * V, c * U**2, 2 * c * U
        grids = {key: list(grid.ravel()) for key, grid in (("p", p), ("mu", mu), ("mv", mv), ("muv", muv))}
        double.append({"k0": int(pair[0]), "k1": int(pair[1]), "tu": list(u), "tv": list(v), **grids})
    return {
        "density": 0.3,
        "strain scale": [1.0, 0.75, 0.8, 150.0, 120.0],
        "strain shift": [1, 0, 1, 0, 0],
        "coeffs": {"const": 0.01, "1D": single, "2D": double},
    }
