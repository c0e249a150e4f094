"""Stresses of FElupe by its automatic differentiation: tests/materials/felupe.json.

    pip install felupe tensortrax; python benchmarks/felupe_stresses.py

FElupe is no dependency of supple; its numbers are kept. Each material is FElupe's isochoric part plus
κ/2 (J - 1)². Ogden: its μ are ours times α/2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import felupe
import numpy as np
from felupe.constitution.tensortrax import Hyperelastic
from felupe.constitution.tensortrax.models import hyperelastic as models

TARGET = Path(__file__).parents[1] / "tests" / "materials" / "felupe.json"
BULK = 2e3

MATERIALS: dict[str, tuple[Any, dict[str, float], dict[str, Any]]] = {
    "mooney_rivlin": (models.mooney_rivlin, {"c10": 300.0, "c01": 100.0}, {"C10": 300.0, "C01": 100.0}),
    "yeoh": (
        models.yeoh,
        {"c10": 400.0, "c20": -5.0, "c30": 2.0},
        {"C10": 400.0, "C20": -5.0, "C30": 2.0},
    ),
    "arruda_boyce": (
        models.arruda_boyce,
        {"shear_modulus": 400.0, "locking": 3.2},
        {"C1": 400.0, "limit": 3.2},
    ),
    "ogden": (
        models.ogden,
        {"mu1": 400.0, "alpha1": 1.3, "mu2": 4.0, "alpha2": 5.0, "mu3": -10.0, "alpha3": -2.0},
        {"mu": [260.0, 10.0, 10.0], "alpha": [1.3, 5.0, -2.0]},
    ),
}


def main() -> None:
    random = np.random.default_rng(1)
    F = np.eye(3) + 0.25 * random.uniform(-1, 1, size=(8, 3, 3))
    stacked = F.transpose(1, 2, 0)[..., None]
    J = np.linalg.det(F)
    volumetric = BULK * (J - 1)[:, None, None] * J[:, None, None] * np.linalg.inv(F).transpose(0, 2, 1)
    rows = {}
    for name, (model, ours, theirs) in MATERIALS.items():
        P = Hyperelastic(model, **theirs).gradient([stacked, None])[0][..., 0].transpose(2, 0, 1) + volumetric
        rows[name] = {"parameters": ours | {"bulk_modulus": BULK}, "P": P.tolist()}
    stored = {"felupe": felupe.__version__, "F": F.tolist(), "materials": rows}
    TARGET.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
