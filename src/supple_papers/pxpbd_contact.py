"""Contact scenes of PXPBD on a grid: bodies falling into a box, and muscles [PXPBD section 5.5, Fig. 11, 12].

The paper's dragons and musculature are not public; boxes, balls, tori and two muscles replace them.
"""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

import supple
from supple import BPXPBD
from supple_papers.common import jacobians, penetration_depth
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.pxpbd_grid import objects_in_a_box
from supple_papers.registry import shows

SOLVER = BPXPBD(zeta=0.5, iterations=20)
STRENGTH = 3e5
"""Strength of the muscles [Pa], Blemker's value."""
MIN_OVERLAP = 1e-3
"""Overlap without contact [m] above which the contact method is tested at all."""


@shows("pxpbd-fig12")
def drop_objects(measurements: Measurements) -> str:
    drop = measurements.part("objects in a box, on a grid", partial(_simulate_drop, measurements))
    deepest, below = drop["deepest overlap [m]"], drop["deepest below the floor [m]"]
    return measurements.judge(
        f"{drop['bodies']} objects (paper: dragons, and 30 objects in Fig. 1) fall into a box on a "
        "grid with cells "
        f"of {drop['cell [m]'] * 1e3:.0f} mm; vertices pass into other objects by "
        f"{deepest * 1e3:.1f} mm and "
        f"below the floor by {below * 1e3:.2g} mm at most, {drop['ms per frame']:.0f} ms per frame of "
        f"{drop['vertices']:,} vertices.",
        Claim(
            "positions stay finite, and pass the floor by at most 1 mm",
            drop["finite"] and below < 1e-3,
        ),
        Claim(
            "bodies do not overlap: vertices penetrate other bodies by at most 1 mm",
            deepest < 1e-3,
            "a grid has no surfaces: shared nodes separate bodies in one cell, so surfaces closer than a "
            "cell are not distinguished.",
        ),
        Claim(
            "vertices penetrate other objects by at most a cell",
            deepest < drop["cell [m]"],
            "a grid sees vertices only. Its spacing is the mean edge length, 56 mm, and the block's edges "
            "are 133 mm: the ball passes between vertices. Use similar meshes, or a larger `spacing`.",
        ),
        Claim(
            "no element is inverted at the end",
            drop["inverted at the end"] == 0,
            "shared nodes compress elements entered by other bodies.",
        ),
    )


def _simulate_drop(measurements: Measurements) -> Quantities:
    scene = objects_in_a_box(measurements.full)
    frames = 60 if measurements.full else 24
    deepest = below = seconds = 0.0
    for frame in supple.simulate(scene, solver=SOLVER, frames=frames):
        seconds += frame.report.seconds + frame.report.setup_seconds
        below = max(below, -float(frame.positions[:, 1].min()))
        if frame.index % 6 == 0:
            deepest = max(deepest, _deepest(frame, scene.bodies))
    caption = (
        f"{len(scene.bodies)} objects on a grid after {frames / 30:.1f} s: vertices pass into "
        f"other objects by up to {deepest * 1e3:.0f} mm"
    )
    measurements.picture(frame, caption, field="body")
    assert frame.model.grid is not None
    return {
        "bodies": len(scene.bodies),
        "vertices": frame.model.vertices,
        "finite": bool(np.isfinite(frame.positions).all()),
        "cell [m]": frame.model.grid.spacing,
        "deepest overlap [m]": deepest,
        "deepest below the floor [m]": max(below, 0.0),
        "inverted at the end": int(np.sum(~(jacobians(frame.model, frame.positions) > 0))),
        "ms per frame": 1e3 * seconds / frames,
    }


def _deepest(frame: supple.Frame, bodies: Any) -> float:
    return max(penetration_depth(frame, a, b) for a, b in permutations(bodies, 2))


@shows("pxpbd-fig11")
def muscles(measurements: Measurements) -> str:
    free = measurements.part("two muscles, without contact", partial(_bend_muscles, measurements, "none"))
    grid = measurements.part("two muscles, on a grid", partial(_bend_muscles, measurements, "grid"))
    deep, through = grid["deepest overlap [m]"], free["deepest overlap [m]"]
    return measurements.judge(
        "two muscles whose ends are drawn together as a knee bends (the paper's "
        "musculature is not "
        f"public) pass into each other by {through * 1e3:.1f} mm without contact and by "
        f"{deep * 1e3:.2g} mm on a "
        "grid.",
        Claim("positions stay finite, without inverted elements", grid["finite"] and grid["inverted"] == 0),
        Claim("without contact, muscles interpenetrate", through > MIN_OVERLAP),
        Claim(
            "the grid leaves at most a tenth of that penetration",
            through > MIN_OVERLAP and deep <= 0.1 * through,
        ),
    )


def _bend_muscles(measurements: Measurements, contact: Any) -> Quantities:
    """Two activated muscles between thigh and shin whose ends approach each other by 0.16 m.

    Their density is low, so that their middles follow the motion within 0.6 s.
    """
    frames = 18
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=1 / 30, contact=contact)
    shape = supple.ball(resolution=6 if measurements.full else 3)
    kind = supple.materials.Muscle(young=2e4, poisson=0.4, strength=STRENGTH, fiber=(1, 0, 0), activation=1.0)
    for side in (-1.0, 1.0):
        points = shape.points * (0.6, 0.13, 0.13) + (-0.15, 0.36, 0.18 * side)
        body = scene.add_solid(supple.TetMesh(points, shape.tets), kind, density=100)
        scene.vary(body, "activation", supple.loads.Ramp(times=(0, frames / 30), fractions=(0, 1)))
        approach = supple.Translate((0, 0, -0.08 * side), duration=frames / 30)
        turn = supple.Rotate(axis=(0, 0, 1), center=(0, 0, 0), angle=-0.35, duration=frames / 30)
        scene.pin(body.where(lambda X: X[:, 0] < -0.55), motion=approach)
        scene.pin(body.where(lambda X: X[:, 0] > 0.25), motion=turn + approach)
    left, right = scene.bodies
    *_, frame = supple.simulate(scene, solver=BPXPBD(iterations=100), frames=frames)
    how = "without contact" if contact == "none" else "on a grid"
    measurements.picture(frame, f"two muscles, {how}", field="body", camera=(8, 60), size=(420, 280))
    return {
        "deepest overlap [m]": max(
            penetration_depth(frame, left, right), penetration_depth(frame, right, left)
        ),
        "finite": bool(np.isfinite(frame.positions).all()),
        "inverted": int(np.sum(~(jacobians(frame.model, frame.positions) > 0))),
    }
