"""Contact scene of PXPBD with bars twisted around each other.

Contact uses barriers, since grid contact does not reach an equilibrium.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import supple
from supple_papers.common import face
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows


@shows("pxpbd-fig10")
def twisted_bars(measurements: Measurements) -> str:
    barrier = measurements.part("four bars, barrier", partial(_twist_bars, measurements, "barrier"))
    free = measurements.part("without contact", partial(_twist_bars, measurements, "none"))
    return measurements.judge(
        f"four bars whose ends are turned by {barrier['angle [rad]']:.1f} rad wind around each other "
        f"and balance ({barrier['frames']} frames); their middle passes the axis by "
        f"{barrier['overlap'] * 1e3:.0f} mm, without contact by {free['overlap'] * 1e3:.0f} mm.",
        Claim("all frames converge", barrier["converged"]),
        Claim("no bar crosses the axis, beyond which others leave no space", barrier["overlap"] <= 0),
        Claim("without contact, bars cross the axis", free["overlap"] > 0),
    )


def _twist_bars(measurements: Measurements, contact: Any) -> Quantities:
    cells, frames, angle = ((24, 3, 3), 20, 2.2) if measurements.full else ((10, 2, 2), 8, 1.2)
    scene = supple.Scene(gravity=(0, 0, 0), dt=1 / frames, frames=frames, contact=contact)
    material = supple.StableNeoHookean(young=1e4, poisson=0.35)
    for y, z in ((0.05, 0.05), (-0.3, 0.05), (0.05, -0.3), (-0.3, -0.3)):
        body = scene.add_solid(supple.block(cells, (2.4, 0.25, 0.25), (0, y, z)), material, density=100)
        for end, way in ((0.0, -angle), (2.4, angle)):
            turn = supple.Rotate(axis=(1, 0, 0), center=(end, 0, 0), angle=way)
            scene.pin(face(body, 0, end), motion=turn)
    results = list(supple.simulate(scene, tolerance=1e-3, position_tolerance=None))
    last = results[-1]
    if contact != "none":
        measurements.picture(last, "four bars, their ends turned", field="body", camera=(20, 16))
    return {
        "angle [rad]": angle,
        "frames": frames,
        "converged": all(frame.report.ok for frame in results),
        "overlap": nearest_to_axis(scene, last),
    }


def nearest_to_axis(scene: supple.Scene, frame: Any) -> float:
    """Return the penetration of the axis by a bar [m], positive if one passes the axis.

    The other bars leave no room beyond the axis.
    """
    reach = []
    for body, (y, z) in zip(scene.bodies, ((1, 1), (-1, 1), (1, -1), (-1, -1)), strict=True):
        x = frame.positions_of(body)
        middle = np.abs(body.points[:, 0] - 1.2) < 0.15
        along = (x[middle, 1] * y + x[middle, 2] * z) / np.sqrt(2)
        reach.append(-float(along.min()))
    return max(reach)
