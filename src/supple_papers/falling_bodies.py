"""Small scenes of bodies falling on each other, on cloth, into boxes and through funnels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import supple
from supple import PBD, PBNG
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

SOFT = supple.Corotated(young=2e4, poisson=0.3)

STEP, FALL = 0.004, 150
"""Time step [s] and number of steps of a fall into a box; bodies of 0.3 m reach up to 6 m/s."""


def objects(count: int, resolution: int = 2) -> list[supple.TetMesh]:
    """Balls, blocks and tori of 0.3 m, stacked vertically."""
    shapes = [
        supple.ball(0.15, resolution),
        supple.block(resolution + 1, (0.25, 0.25, 0.25), (-0.125, -0.125, -0.125)),
        supple.meshes.torus(0.12, 0.05, 1),
    ]
    rng = np.random.default_rng(0)
    solids = []
    for k in range(count):
        shape = shapes[k % 3]
        shift = [*(0.1 * rng.uniform(-1, 1, 2)), 0.0]
        center = np.array([shift[0], 0.2 + 0.34 * k, shift[1]])
        solids.append(supple.TetMesh(shape.points + center, shape.tets))
    return solids


def simulate_fall(
    measurements: Measurements, scene: supple.Scene, solver: Any, frames: int, caption: str
) -> Quantities:
    """Simulate a fall; return the largest overlaps between bodies and with the floor at y = 0."""
    deepest, below, inverted, seconds = 0.0, 0.0, 0, 0.0
    for frame in supple.simulate(scene, solver=solver, frames=frames):
        contact = frame.report.contact
        if contact is not None and contact.bodies is not None:
            deepest = max(deepest, contact.bodies.max_penetration)
        below = max(below, -float(frame.positions[:, 1].min()))
        inverted = max(inverted, frame.report.inverted)
        seconds += frame.report.seconds
    flaws = f"bodies overlap by up to {deepest * 1e3:.0f} mm, {frame.report.inverted} elements are inverted"
    measurements.picture(frame, f"{caption}: {flaws}", field="body")
    return {
        "bodies": len(scene.bodies),
        "vertices": frame.model.vertices,
        "finite": bool(np.isfinite(frame.positions).all()),
        "deepest overlap [m]": deepest,
        "deepest below the floor [m]": max(below, 0.0),
        "most inverted elements": inverted,
        "inverted at the end": frame.report.inverted,
        "fastest at the end [m/s]": np.abs(np.asarray(frame.velocities)).max(),
        "ms per frame": 1e3 * seconds / frames,
    }


def box_scene(count: int, **options: Any) -> supple.Scene:
    """Bodies above the floor of a box 0.6 m wide."""
    scene = supple.Scene(quasistatic=False, dt=STEP, damping=0.004, contact="weak", **options)
    for mesh in objects(count):
        scene.add_solid(mesh, SOFT, density=200)
    scene.add_obstacle(supple.Plane(), friction=0.3)
    for normal in ((1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1)):
        scene.add_obstacle(supple.Plane(normal, (-0.3 * normal[0], 0.0, -0.3 * normal[2])))
    return scene


@shows("pbng-fig14")
def into_a_box(measurements: Measurements) -> str:
    count = 40 if measurements.full else 6
    scene = box_scene(count)
    fall = measurements.part(
        f"{count} bodies in a box, steps of {STEP * 1e3:g} ms",
        partial(
            simulate_fall,
            measurements,
            scene,
            PBNG(iterations=20),
            FALL,
            f"{count} bodies in a box, after 0.6 s",
        ),
    )
    deepest, below = fall["deepest overlap [m]"], fall["deepest below the floor [m]"]
    return measurements.judge(
        f"{count} bodies (paper: 40) fall into a box; bodies of 0.3 m overlap by {deepest * 1e3:.1f} mm and "
        f"pass the floor by {below * 1e3:.2g} mm at most, {fall['ms per frame']:.0f} ms per "
        f"step of {fall['vertices']:,} vertices.",
        Claim("positions stay finite", fall["finite"]),
        Claim(
            "bodies pass each other by at most a tenth of their size, and the floor by at most 1 mm",
            deepest < 0.03 and below < 1e-3,
        ),
        Claim("no element is inverted at the end", fall["inverted at the end"] == 0),
    )


@shows("pbng-fig16")
def on_a_cloth(measurements: Measurements) -> str:
    heights = measurements.part(
        "on the cloth, then without two of its corners", partial(release_corners, measurements)
    )
    before, after = heights["lowest body while held [m]"], heights["lowest body afterwards [m]"]
    return measurements.judge(
        f"{heights['bodies']} bodies (paper: 20 armadillos) are caught by a cloth, the lowest at "
        f"{before:.2f} m; when two corners are let go they slide off, the lowest to {after:.2f} m. Pins "
        "do not "
        "let go by themselves: the motion goes on in a second scene.",
        Claim("positions stay finite", heights["finite"]),
        Claim("the cloth catches the bodies: none falls below 0.35 m", before > -0.35),
        Claim("after release, the lowest falls by at least another 0.1 m", after < before - 0.1),
    )


def cloth_scene(corners: int, count: int, cells: int) -> supple.Scene:
    """Balls above a cloth of 1 m, pinned at `corners` of its corners."""
    scene = supple.Scene(quasistatic=False, dt=0.01, damping=0.01, contact="weak")
    membrane = supple.materials.PlaneStressStVK(young=5e5, poisson=0.3)
    cloth = scene.add_cloth(
        supple.sheet(cells, (1, 1), plane="xz", origin=(-0.5, 0, -0.5)), membrane, density=0.5, thickness=1e-3
    )
    corner_positions = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)][:corners]
    nearest = [
        int(np.argmin(np.linalg.norm(cloth.points[:, [0, 2]] - position, axis=1)))
        for position in corner_positions
    ]
    scene.pin(cloth.where(nearest))
    ball = supple.ball(0.12, 2)
    for k in range(count):
        position = (0.15 * (-1) ** k, 0.16 + 0.28 * (k // 2), 0.1 * (-1) ** (k // 2))
        scene.add_solid(supple.TetMesh(ball.points + position, ball.tets), SOFT, density=100)
    return scene


def release_corners(measurements: Measurements) -> Quantities:
    count, cells, frames = (20, 40, 100) if measurements.full else (2, 10, 40)
    pinned, free = (cloth_scene(corners, count, cells) for corners in (4, 2))
    *_, before = supple.simulate(pinned, solver=PBNG(iterations=20), frames=frames)
    *_, after = supple.simulate(
        free,
        solver=PBNG(iterations=20),
        frames=frames,
        initial=before.positions,
        velocities=before.velocities,
    )
    measurements.picture(before, "caught", field="body", camera=(20, 12))
    measurements.picture(after, "after two corners were let go", field="body", camera=(20, 12))
    lowest = [
        min(frame.positions_of(body)[:, 1].mean() for body in scene.bodies[1:])
        for frame, scene in ((before, pinned), (after, free))
    ]
    return {
        "bodies": count,
        "finite": bool(np.isfinite(after.positions).all()),
        "lowest body while held [m]": lowest[0],
        "lowest body afterwards [m]": lowest[1],
    }


def funnel(top: float = 0.5, neck: float = 0.14, height: float = 0.6, around: int = 24) -> supple.TriMesh:
    """Closed surface of a funnel above y = 0.2 m."""
    turn = np.arange(around) / around * 2 * np.pi
    rings = [(top, height), (neck, 0.0), (neck + 0.1, 0.0), (top + 0.1, height)]
    points = [
        np.column_stack([r * np.cos(turn), np.full(around, 0.2 + y), r * np.sin(turn)]) for r, y in rings
    ]
    number = np.arange(4 * around).reshape(4, around)
    triangles = []
    for k in range(4):
        a, b = number[k], number[(k + 1) % 4]
        triangles += [
            np.column_stack([a, np.roll(a, -1), b]),
            np.column_stack([np.roll(a, -1), np.roll(b, -1), b]),
        ]
    return supple.TriMesh(np.concatenate(points), np.concatenate(triangles)[:, ::-1])


@shows("pbcm-fig1")
def funnel_and_cloth(measurements: Measurements) -> str:
    count = 20 if measurements.full else 4
    funnel_fall = measurements.part(
        f"{count} bodies in a funnel", partial(through_funnel, measurements, count)
    )
    cloth = measurements.part("a heavy ball on woven cloth", partial(ball_on_cloth, measurements))
    return measurements.judge(
        f"{count} balls (paper: 100 armadillos) go into a funnel in PBD, stay finite with at most "
        f"{funnel_fall['most inverted elements']} inverted elements, and {funnel_fall['through']} have "
        "passed it after "
        f"0.8 s; a ball of 6 kg sinks {cloth['depth [m]'] * 1e3:.0f} mm into a weave that is held at its "
        "sides. The paper's statues are not public.",
        Claim("bodies in the funnel stay finite", funnel_fall["finite"]),
        Claim("no elements of bodies in the funnel are inverted", funnel_fall["most inverted elements"] == 0),
        Claim("some bodies pass the funnel", funnel_fall["through"] > 0),
        Claim("the cloth stays finite and holds the ball", cloth["finite"] and 0 < cloth["depth [m]"] < 0.5),
    )


def through_funnel(measurements: Measurements, count: int) -> Quantities:
    scene = supple.Scene(quasistatic=False, dt=0.005, damping=0.005, contact="weak")
    ball = supple.ball(0.12, 2)
    rng = np.random.default_rng(1)
    for k in range(count):
        center = (0.15 * rng.uniform(-1, 1), 1.0 + 0.27 * k, 0.15 * rng.uniform(-1, 1))
        scene.add_solid(
            supple.TetMesh(ball.points + center, ball.tets), supple.StVK(young=1e5, poisson=0.3), density=200
        )
    scene.add_obstacle(funnel())
    inverted = 0
    for frame in supple.simulate(scene, solver=PBD(iterations=5, damping=0.002), frames=160):
        inverted = max(inverted, frame.report.inverted)
    measurements.picture(frame, f"{count} balls in a funnel, PBD, after 0.8 s", field="body")
    heights = [float(frame.positions_of(body)[:, 1].mean()) for body in scene.bodies]
    return {
        "finite": bool(np.isfinite(frame.positions).all()),
        "most inverted elements": inverted,
        "lowest [m]": min(heights),
        "through": sum(height < 0.2 for height in heights),
    }


def ball_on_cloth(measurements: Measurements) -> Quantities:
    n = 40 if measurements.full else 12
    scene = supple.Scene(quasistatic=False, dt=0.005, damping=0.02)
    weave = supple.materials.WovenStVK(
        young_weft=1e6, young_warp=2e5, shear_modulus=1e5, poisson_weft=0.25, poisson_warp=0.05
    )
    cloth = scene.add_cloth(supple.sheet(n, (1, 1), plane="xz"), weave, density=0.3, thickness=1e-3)
    X = cloth.points
    scene.pin(cloth.where(lambda X: (np.abs(X[:, 0] - 0.5) > 0.499) | (np.abs(X[:, 2] - 0.5) > 0.499)))
    scene.add_obstacle(supple.Sphere(0.15, (0.5, 0.2, 0.5)), mass=6.0)
    *_, last = supple.simulate(scene, solver=PBD(iterations=5, damping=0.01), frames=150)
    measurements.picture(last, "a ball of 6 kg on a weave, PBD", field="weft_strain", camera=(24, 24))
    return {
        "finite": bool(np.isfinite(last.positions).all()),
        "depth [m]": float(X[:, 1].max() - last.positions[:, 1].min()),
    }
