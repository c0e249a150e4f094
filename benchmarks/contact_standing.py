"""Known solutions of stability: a stack, an arch, and the impulse of a dropped ball."""

from __future__ import annotations

import numpy as np
from contact_meshes import voussoir

import supple

G = 9.81


def stack(count: int = 3) -> dict:
    """Slightly offset stacked blocks on a floor: the floor carries all of them, and the stack comes to
    rest."""
    scene = supple.Scene(
        gravity=(0, -G, 0),
        quasistatic=False,
        dt=0.01,
        damping=0.07,
        contact=supple.Contact("weak", friction=0.5),
    )
    elastic = supple.Corotated(young=1e6, poisson=0.3)
    for k in range(count):
        mesh = supple.block(cells=(2, 2, 2), size=(1, 1, 1)).translated((0.1 * (k % 2), 1.003 * k, 0.05 * k))
        scene.add_solid(mesh, elastic, density=1000, name=f"block {k}")
    scene.add_obstacle(supple.Plane(), friction=0.5, name="floor")
    frames = list(supple.simulate(scene, solver=supple.PBNG(), frames=400, tolerance=1e-6))
    last, before = frames[-1], frames[-100]
    floor = last.report.contact.obstacles.each[0].force[1]
    return {
        "blocks": count,
        "carried": -floor / (count * 1000 * G),
        "moved": float(np.abs(last.positions - before.positions).max()),
        "depth": last.report.contact.bodies.max_penetration,
    }


def arch(stones: int = 7, seconds: float = 2.0) -> dict:
    """Stones of a half circle on a floor, supported by friction only: stable for a thickness above 0.107 of
    the radius [Couplet 1730, Milankovitch 1907]."""
    radius, thick, gap = 1.0, 0.3, 0.004
    contact = supple.Contact("weak", friction=0.7, thickness=gap)
    scene = supple.Scene(gravity=(0, -G, 0), quasistatic=False, dt=0.01, damping=0.07, contact=contact)
    elastic = supple.Corotated(young=1e7, poisson=0.2)
    joint = gap / radius
    each = (np.pi - (stones - 1) * joint) / stones
    for k in range(stones):
        begin = k * (each + joint)
        stone = voussoir(begin, begin + each, radius, thick, 0.3, 2)
        scene.add_solid(stone, elastic, density=1000, name=f"stone {k}")
    scene.add_obstacle(supple.Plane(), friction=0.7, name="floor")
    frames = list(supple.simulate(scene, solver=supple.PBNG(), frames=round(seconds / 0.01), tolerance=1e-5))
    last, before = frames[-1], frames[-len(frames) // 4]
    weight = sum(float(body.masses.sum()) for body in scene.bodies) * G
    return {
        "stones": stones,
        "carried": -last.report.contact.obstacles.each[0].force[1] / weight,
        "moved": float(np.abs(last.positions - before.positions).max()),
        "settled": float(np.abs(last.positions - last.model.rest).max()),
        "depth": last.report.contact.bodies.max_penetration,
    }


def drop() -> dict:
    """A ball falls onto a floor: Σ impulses of the floor = change of momentum, step by step."""
    scene = supple.Scene(gravity=(0, -G, 0), quasistatic=False, dt=0.005)
    ball = supple.ball(radius=0.5, resolution=4).translated((0, 0.6, 0))
    scene.add_solid(ball, supple.NeoHookean(young=2e4, poisson=0.3), density=100, velocity=(0.5, -2, 0))
    scene.add_obstacle(supple.Plane(), friction=0.3, name="floor")
    mass = supple.scene.build_model(scene).mass
    momentum, worst, lost = mass @ np.tile([0.5, -2, 0], (len(mass), 1)), 0.0, 0.0
    for frame in supple.simulate(scene, solver=supple.PBNG(), frames=100, tolerance=1e-8):
        now = mass @ frame.velocities
        force = np.array(frame.report.contact.obstacles.forces["solid0"]) + mass.sum() * np.array([0, -G, 0])
        worst = max(worst, float(np.abs(now - momentum - 0.005 * force).max()))
        lost = max(lost, float(np.abs(now - momentum).max()))
        momentum = now
    return {"worst": worst / (2 * mass.sum()), "largest_change": lost / (2 * mass.sum())}
