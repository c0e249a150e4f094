"""PBCM section 6: Poisson's ratio in PBD."""

from __future__ import annotations

import numpy as np
from common import Figures, say

import supple
from supple import PBD, PBNG
from supple.materials import MATERIALS


def poisson() -> Figures:
    """PBCM section 6: width of the middle of a bar pulled to 120 %, PBD against the finite element answer."""
    table: Figures = {}
    for name in ("stvk", "log_neo_hookean"):
        for nu in (0.0, 0.15, 0.3, 0.45):
            scene = pulled(MATERIALS[name](young=1e4, poisson=nu))
            truth = supple.equilibrium(scene, PBNG(acceleration="chebyshev"), tolerance=1e-5)
            row = table[f"{name}, nu = {nu:g}"] = {"fem": width(truth)}
            for stiffness in (1.0, 0.1):
                *_, last = supple.simulate(scene, PBD(iterations=20, damping=0.1, stiffness=stiffness))
                row[f"pbd, stiffness {stiffness:g}"] = width(last)
                row[f"pbd, stiffness {stiffness:g}, speed left [m/s]"] = float(np.abs(last.velocities).max())
            say(f"poisson, {name}, {nu}: {row}")
    return {
        "what": "width [m] of a bar 1 m wide; PBD with 20 iterations per step of 5 ms",
        "note": "solids settle up to about nu = 1/3, see solvers/pbd.py; the paper shows cloth",
        **table,
    }


def pulled(material: supple.materials.Isotropic) -> supple.Scene:
    """A bar of 6 x 1 x 1 m whose end is pulled by 1.2 m in 0.5 s."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.005, frames=400)
    body = scene.add_solid(supple.bar((24, 4, 4), (6, 1, 1)), material, density=100)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(body.where(lambda X: X[:, 0] >= 6), motion=supple.Translate((1.2, 0, 0), duration=0.5))
    return scene


def width(found: supple.Result) -> float:
    """Mean width of the middle of the bar [m]."""
    middle = np.abs(found.model.rest[:, 0] - 3) < 1e-9
    return float(np.mean(np.ptp(found.positions[middle, 1:], axis=0)))
