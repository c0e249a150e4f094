"""Known solutions with friction: a slope, a rope around a drum, and the sticking zone of a pressed ball."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import supple

G = 9.81
YOUNG, POISSON = 1e6, 0.3
CRITICAL = 26.565
"""Critical angle [degrees], with a tangent of 0.5 up to 2e-6."""


def slope_scene(mu: float, degrees: float, between: bool) -> supple.Scene:
    """A block of 1 × 0.5 × 1 m on a plane or on a pinned body; gravity is tilted."""
    angle = np.radians(degrees)
    contact = supple.Contact("weak", friction=mu) if between else "none"
    gravity = (G * float(np.sin(angle)), -G * float(np.cos(angle)), 0.0)
    scene = supple.Scene(gravity=gravity, quasistatic=False, dt=0.02, contact=contact)
    elastic = supple.Corotated(young=YOUNG, poisson=POISSON)
    if between:
        base = supple.block(cells=(3, 1, 2), size=(3, 0.5, 2)).translated((-0.5, -0.5, -0.5))
        body = scene.add_solid(base, elastic, density=1000, name="base")
        scene.pin(body.where(lambda X: X[:, 1] < 1))
    block = supple.block(cells=(2, 1, 2), size=(1, 0.5, 1)).translated((0, 0.0083 if between else 0, 0))
    scene.add_solid(block, elastic, density=1000, name="block")
    if not between:
        scene.add_obstacle(supple.Plane(), friction=mu)
    return scene


def slide(mu: float, degrees: float, seconds: float, between: bool = False) -> dict:
    """From a start at rest, in equilibrium without friction: creep after the first second, or acceleration
    against g (sin - μ cos)."""
    began, scene = perf_counter(), slope_scene(mu, degrees, between)
    frames, steep = round(seconds / scene.dt), np.tan(np.radians(degrees))
    static_scene = scene if mu >= steep * (1 - 1e-5) else slope_scene(steep + 0.2, degrees, between)
    start = supple.equilibrium(
        static_scene, solver=supple.PBNG(), tolerance=1e-8, position_tolerance=None
    ).state
    start = supple.State(
        start.displacements, start.velocities, start.history if static_scene is scene else {}
    )
    motion = supple.simulate(scene, solver=supple.PBNG(), frames=frames, tolerance=1e-7, initial=start)
    displacement = np.array([frame.positions_of(scene.bodies[-1])[:, 0].mean() for frame in motion])
    times = scene.dt * np.arange(1, frames + 1)
    angle = np.radians(degrees)
    expected = max(0.0, G * (np.sin(angle) - mu * np.cos(angle)))
    later = times > min(1.0, seconds / 4)
    return {
        "mu": mu,
        "degrees": degrees,
        "seconds": seconds,
        "on": "another body" if between else "a plane",
        "expected": expected,
        "acceleration": float(2 * np.polyfit(times[later], displacement[later], 2)[0]),
        "creep": float(np.ptp(displacement[later])),
        "wall": perf_counter() - began,
    }


def slope() -> dict:
    """Coulomb: above tan⁻¹ μ the block slides with g (sin - μ cos), below it sticks forever."""
    return {
        "critical": [slide(0.5, CRITICAL, 60), slide(0.49, CRITICAL, 4)],
        "grid": [
            slide(mu, degrees, 2)
            for mu in (0.2, 0.5, 0.8)
            for degrees in np.degrees(np.arctan(mu)) + np.array([-1.0, -0.1, 0.1, 1.0])
        ],
        "bodies": [
            slide(0.6, CRITICAL, 10, True),
            slide(0.45, CRITICAL, 1.0, True),
            slide(0.2, CRITICAL, 1.0, True),
        ],
    }


def capstan(mu: float = 0.3, segments: int = 48, turn: float = np.pi) -> dict:
    """A strip over a cylinder, pulled at one end, with a load at the other: T₂/T₁ = exp(μ φ)."""
    began, radius, tail, load = perf_counter(), 0.5, 0.5, 10.0
    arc = radius * turn
    edge = arc / segments
    ends = round(tail / edge)
    length = arc + 2 * ends * edge
    flat = supple.sheet((segments + 2 * ends, 1), (length, 2 * edge), plane="xz")
    s = flat.points[:, 0] - ends * edge
    angle = np.pi / 2 + turn / 2 - np.clip(s, 0, arc) / radius
    beyond = s - np.clip(s, 0, arc)
    along = np.column_stack([np.sin(angle), -np.cos(angle)])
    bent = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + beyond[:, None] * along
    wrapped = supple.TriMesh(np.column_stack([bent, flat.points[:, 2]]), flat.triangles)
    scene = supple.Scene(gravity=(0, 0, 0))
    strip = scene.add_cloth(
        wrapped,
        supple.materials.PlaneStressStVK(young=1e7, poisson=0.0),
        density=0.1,
        thickness=1e-3,
        rest=flat,
    )
    first = strip.where(np.flatnonzero(s < s.min() + 1e-9))
    last = strip.where(np.flatnonzero(s > s.max() - 1e-9))
    tension = along[np.argmax(s)]
    scene.add_force(first, (*(-load * along[np.argmin(s)]), 0.0))
    scene.pin(last, supple.Translate((*(0.4 * tension), 0.0)), name="end")
    shape = supple.Cylinder(point0=(0, 0, -1), point1=(0, 0, 1), radius=radius)
    scene.add_obstacle(shape, friction=mu)
    result = supple.equilibrium(
        scene, solver=supple.PBNG(), tolerance=1e-6, position_tolerance=None, load_steps=4
    )
    force = float(result.evaluate().reactions["end"].force[:2] @ tension)
    expected = float(np.exp(mu * turn))
    return {
        "mu": mu,
        "turn": turn,
        "segments": segments,
        "ratio": force / load,
        "expected": expected,
        "error": force / load / expected - 1,
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
        "wall": perf_counter() - began,
    }


def capstans() -> list[dict]:
    return [capstan(mu, 48, turn) for mu in (0.1, 0.3, 0.5) for turn in (np.pi / 2, np.pi)]


def refined(cells: int, inner: float, size: float) -> np.ndarray:
    """(cells + 1,) coordinates from 0 to a size: half of the cells are equal up to `inner`, the others grow
    geometrically."""
    near = cells // 2
    first, outer_cells = inner / near, cells - near
    low, high = 1.0, 20.0
    for _ in range(100):  # the ratio of one to the next, by halves
        ratio = (low + high) / 2
        total = inner + first * float(np.sum(ratio ** np.arange(1, outer_cells + 1)))
        low, high = (ratio, high) if total < size else (low, ratio)
    steps = np.concatenate([np.full(near, first), first * ratio ** np.arange(1, outer_cells + 1)])
    return np.concatenate([[0.0], np.cumsum(steps)])


def half_space(cells: int, inner: float, size: float, both: bool = False) -> supple.TetMesh:
    """A quarter of a block (or half of it) with its top at y = 0, whose cells are small and equal near the
    origin."""
    line = refined(cells, inner, size)
    mirrored = np.concatenate([-line[:0:-1], line]) if both else line
    along = mirrored, -line[::-1], line
    block = supple.block(cells=tuple(len(axis) - 1 for axis in along), size=(1, 1, 1))
    at = [np.rint(block.points[:, k] * (len(axis) - 1)).astype(int) for k, axis in enumerate(along)]
    points = np.column_stack([axis[i] for axis, i in zip(along, at, strict=True)])
    return supple.TetMesh(points, block.tets)


def pressed(mesh: supple.TetMesh, both: bool, size: float) -> tuple[supple.Scene, Any]:
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, supple.materials.LinearElastic(young=YOUNG, poisson=POISSON))
    scene.pin(body.where(lambda X: X[:, 1] <= -size * (1 - 1e-9)))
    if not both:
        scene.pin(body.where(lambda X: X[:, 0] <= 0), axes="x")
    scene.pin(body.where(lambda X: X[:, 2] <= 0), axes="z")
    return scene, body


def mindlin(cells: int = 14, depth: float = 0.01, mu: float = 0.3) -> dict:
    """Pressed, then sheared without sliding: the sticking radius is c = a (1 - Q/(μ P))^{1/3} [Cattaneo 1938,
    Mindlin 1949]."""
    began, radius = perf_counter(), 1.0
    a = float(np.sqrt(radius * depth))
    size = 20 * a
    scene, _ = pressed(half_space(cells, 1.5 * a, size, True), True, size)
    ball = supple.Sphere(radius=radius, center=(0, radius, 0))
    shift = 0.5 * mu * depth * 1.5
    motion = supple.Translate((0, -depth, 0)) + supple.Translate((shift, 0, 0), start_time=1.0)
    scene.add_obstacle(ball, motion, friction=mu, name="ball")
    frames = list(supple.simulate(scene, solver=supple.PBNG(), dt=1.0, frames=2, tolerance=1e-5))
    result = frames[-1]
    contacts = result.evaluate().obstacle_contacts
    normal = -contacts.force[:, 1]
    across = np.hypot(contacts.force[:, 0], contacts.force[:, 2])
    positions = result.positions[contacts.vertices] - [shift, 0, 0]
    r = np.hypot(positions[:, 0], positions[:, 2])
    sticks = across < mu * normal * (1 - 1e-3)
    P, Q = 2 * float(normal.sum()), 2 * float(contacts.force[:, 0].sum())
    contact = float(np.sqrt(2.5 * (normal / normal.sum() * r**2).sum()))
    return {
        "cells": cells,
        "load": Q / (mu * P),
        "radius": contact / a,
        "sticks": float(np.sqrt(sticks.sum() / len(r))),  # cells are equal there
        "expected": float(max(0.0, 1 - Q / (mu * P)) ** (1 / 3)),
        "outcome": result.report.outcome.name.lower(),
        "wall": perf_counter() - began,
    }
