"""Contact against answers that are known, into results/contact_answers.json.

Each answer is a function below, which says where it comes from; `--only hertz,capstan` runs some of them and
keeps what the file has of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from contact_meshes import ROUND, growing, hold_sector, sector, voussoir

import supple
from supple.weak_contact import met_force

G = 9.81
YOUNG, POISSON = 1e6, 0.3
CRITICAL = 26.565
"""Degrees, whose tangent is 0.5 but for 2e-6."""


def slope_scene(mu: float, degrees: float, between: bool) -> supple.Scene:
    """A block of 1 × 0.5 × 1 m on a plane, or on another body that is held; gravity is tilted."""
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
    """From rest, in balance but for what friction does not carry: how far the block creeps after the first
    second, or how fast it gets faster, against g (sin - μ cos)."""
    began, scene = perf_counter(), slope_scene(mu, degrees, between)
    frames, steep = round(seconds / scene.dt), np.tan(np.radians(degrees))
    settled = scene if mu >= steep * (1 - 1e-5) else slope_scene(steep + 0.2, degrees, between)
    start = supple.equilibrium(settled, supple.PBNG(), tolerance=1e-8, distance=None).state
    start = supple.State(start.displacements, start.velocities, start.history if settled is scene else {})
    motion = supple.simulate(scene, supple.PBNG(), frames=frames, tolerance=1e-7, start=start)
    there = np.array([frame.of(scene.bodies[-1])[:, 0].mean() for frame in motion])
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
        "acceleration": float(2 * np.polyfit(times[later], there[later], 2)[0]),
        "creep": float(np.ptp(there[later])),
        "wall": perf_counter() - began,
    }


def slope() -> dict:
    """Coulomb: what is steeper than tan⁻¹ μ slides with g (sin - μ cos), all else stays for ever."""
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
        wrapped, supple.PlaneStressStVK(young=1e7, poisson=0.0), density=0.1, thickness=1e-3, rest=flat
    )
    first = strip.where(np.flatnonzero(s < s.min() + 1e-9))
    last = strip.where(np.flatnonzero(s > s.max() - 1e-9))
    pull = along[np.argmax(s)]
    scene.add_force(first, (*(-load * along[np.argmin(s)]), 0.0))
    scene.pin(last, supple.Translate((*(0.4 * pull), 0.0)), name="end")
    shape = supple.Cylinder(start=(0, 0, -1), end=(0, 0, 1), radius=radius)
    scene.add_obstacle(shape, friction=mu)
    result = supple.equilibrium(scene, supple.PBNG(), tolerance=1e-6, distance=None, steps=4)
    force = float(result.evaluate().reactions["end"].force[:2] @ pull)
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
    """(cells + 1,) from 0 to a size: half of the cells are equal up to `inner`, the others grow evenly."""
    near = cells // 2
    first, far = inner / near, cells - near
    low, high = 1.0, 20.0
    for _ in range(100):  # the ratio of one to the next, by halves
        ratio = (low + high) / 2
        total = inner + first * float(np.sum(ratio ** np.arange(1, far + 1)))
        low, high = (ratio, high) if total < size else (low, ratio)
    steps = np.concatenate([np.full(near, first), first * ratio ** np.arange(1, far + 1)])
    return np.concatenate([[0.0], np.cumsum(steps)])


def half_space(cells: int, inner: float, size: float, both: bool = False) -> supple.TetMesh:
    """A quarter of a block (half of it: both) with its top at y = 0, whose cells are small and equal near the
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
    body = scene.add_solid(mesh, supple.LinearElastic(young=YOUNG, poisson=POISSON))
    scene.pin(body.where(lambda X: X[:, 1] <= -size * (1 - 1e-9)))
    if not both:
        scene.pin(body.where(lambda X: X[:, 0] <= 0), axes="x")
    scene.pin(body.where(lambda X: X[:, 2] <= 0), axes="z")
    return scene, body


STAR = YOUNG / (1 - POISSON**2)


def hertz(cells: int, depth: float = 0.0025, radius: float = 1.0, wide: float = 100.0) -> dict:
    """A rigid ball pressed into a half-space by d: F = 4/3 E* √R d^{3/2}, a = √(R d). The radius of contact
    is that of Hertz's pressure with the second moment of the forces, ⟨r²⟩ = 2/5 a². A sector of a cylinder,
    `wide` times as large as a, whose bottom is held, which makes it stiffer by about 0.6/wide; so many cells
    along 1.5 a."""
    began, a = perf_counter(), float(np.sqrt(radius * depth))
    size = wide * a
    line = growing(1.5 * a, cells, 1 + 3 / cells, size)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(sector(line, line), supple.LinearElastic(young=YOUNG, poisson=POISSON))
    hold_sector(scene, body, size, -size)
    ball = supple.Sphere(radius=radius, centre=(0, radius, 0))
    scene.add_obstacle(ball, supple.Translate((0, -depth, 0)), name="ball")
    result = supple.equilibrium(scene, tolerance=1e-6, distance=None)
    touches = result.evaluate().touches
    normal = touches.force[:, 1]
    places = result.positions[touches.vertices]
    shares = normal / normal.sum()
    found = float(np.sqrt(2.5 * (shares * (places[:, 0] ** 2 + places[:, 2] ** 2)).sum()))
    expected = 4 / 3 * STAR * np.sqrt(radius) * depth**1.5
    return {
        "cells": cells,
        "depth": depth,
        "vertices": result.model.vertices,
        "edge": 1.5 / cells,
        "force": -ROUND * float(normal.sum()) / expected,
        "radius": found / a,
        "contacts": int((normal < 0).sum()),
        "block": 1 + 0.6 / wide,
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
        "wall": perf_counter() - began,
    }


def limit(rows: list[dict], name: str) -> float:
    """What a figure tends to, without what falls as 1/cells, from the last two runs."""
    coarse, fine = rows[-2:]
    change = fine["cells"] * fine[name] - coarse["cells"] * coarse[name]
    return change / (fine["cells"] - coarse["cells"])


def hertz_all(cells: tuple[int, ...] = (12, 20, 30)) -> dict:
    rows = []
    for count in cells:
        rows.append(hertz(count))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    deeper = hertz(cells[-1], 0.005)
    return {
        "runs": rows,
        "force": limit(rows, "force"),
        "radius": limit(rows, "radius"),
        "exponent": 1.5 + float(np.log(deeper["force"] / rows[-1]["force"]) / np.log(2)),
    }


def two_spheres(cells: int = 12, approach: float = 0.005, wide: float = 10.0) -> dict:
    """Two equal balls pressed together by h, of meshes that do not match: a = √(R h/2) and F = 4/3 E* √R*
    h^{3/2} with E* = E/(2 (1 - ν²)) and R* = R/2; and F = 4/3 E* a³/R*, which does not know how large the
    bodies are (code_aster V6.04.222). Caps `wide` times as large as a."""
    began, radius = perf_counter(), 1.0
    a = float(np.sqrt(radius * approach / 2))
    size = wide * a
    thick = 0.02 * approach
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("weak", thickness=thick))
    elastic = supple.LinearElastic(young=YOUNG, poisson=POISSON)

    def cap(r: np.ndarray) -> np.ndarray:
        return np.sqrt(radius**2 - r**2) - radius

    for name, count in (("low", cells), ("high", cells + cells // 3)):
        line = growing(1.5 * a, count, 1 + 3 / count, size)
        mesh = sector(line, line, cap)
        if name == "high":
            points = mesh.points * (1, -1, 1) + (0, thick, 0)
            mesh = supple.TetMesh(points, mesh.tets[:, [0, 2, 1, 3]])
        body = scene.add_solid(mesh, elastic, name=name)
        far = size + thick if name == "high" else -size
        motion = supple.Translate((0, -approach, 0)) if name == "high" else None
        hold_sector(scene, body, size, far, motion)
    result = supple.equilibrium(scene, tolerance=1e-4, distance=None)
    return _two_spheres(result, a, radius, approach, wide) | {"cells": cells, "wall": perf_counter() - began}


def _two_spheres(result: Any, a: float, radius: float, approach: float, wide: float) -> dict:
    """Force and radius of contact, from what acts on the vertices of the lower one."""
    own = result.model.body_vertices[0][1]
    term = result.model.terms[-1]
    force = met_force(term, result.positions, result.model.rest)[own, 1]
    x = result.positions[own]
    found = float(np.sqrt(2.5 * (force / force.sum() * (x[:, 0] ** 2 + x[:, 2] ** 2)).sum()))
    total, star = -ROUND * float(force.sum()), STAR / 2
    return {
        "force": total / (4 / 3 * star * np.sqrt(radius / 2) * approach**1.5),
        "radius": found / a,
        "force_of_radius": total / (4 / 3 * star * found**3 / (radius / 2)),
        "block": 1 + 0.6 / wide,
        "vertices": result.model.vertices,
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
    }


def mindlin(cells: int = 14, depth: float = 0.01, mu: float = 0.3) -> dict:
    """Pressed, then dragged along without sliding: what sticks has a radius of c = a (1 - Q/(μ P))^{1/3}
    [Cattaneo 1938, Mindlin 1949]."""
    began, radius = perf_counter(), 1.0
    a = float(np.sqrt(radius * depth))
    size = 20 * a
    scene, _ = pressed(half_space(cells, 1.5 * a, size, True), True, size)
    ball = supple.Sphere(radius=radius, centre=(0, radius, 0))
    shift = 0.5 * mu * depth * 1.5
    motion = supple.Translate((0, -depth, 0)) + supple.Translate((shift, 0, 0), start=1.0)
    scene.add_obstacle(ball, motion, friction=mu, name="ball")
    frames = list(supple.simulate(scene, supple.PBNG(), dt=1.0, frames=2, tolerance=1e-5))
    result = frames[-1]
    touches = result.evaluate().touches
    normal = -touches.force[:, 1]
    across = np.hypot(touches.force[:, 0], touches.force[:, 2])
    places = result.positions[touches.vertices] - [shift, 0, 0]
    r = np.hypot(places[:, 0], places[:, 2])
    sticks = across < mu * normal * (1 - 1e-3)
    P, Q = 2 * float(normal.sum()), 2 * float(touches.force[:, 0].sum())
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


def patch(method: str = "weak") -> dict:
    """Two blocks of different cells, pressed together without friction, ν = 0: the stress is E u/H
    everywhere, and their surfaces meet half-way [El-Abbasi and Bathe 2001]."""
    began = perf_counter()
    scene = supple.Scene(gravity=(0, 0, 0), contact=method)
    elastic = supple.LinearElastic(young=YOUNG, poisson=0.0)
    low = scene.add_solid(supple.block(cells=(3, 3, 3), size=(1, 1, 1)), elastic, name="low")
    gap = 0.01 / 3  # the thickness, 1 % of an edge or so
    high = scene.add_solid(
        supple.block(cells=(4, 4, 4), size=(1, 1, 1)).translated((0, 1 + gap, 0)), elastic, name="high"
    )
    push = 0.05
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -push, 0)), name="top")
    result = supple.equilibrium(scene, tolerance=1e-6, distance=None)
    found = result.evaluate()
    stress = found.cauchy[:, 1, 1]
    force = float(found.reactions["top"].force[1])
    return {
        "method": method,
        "force": force / (-YOUNG * push / 2),
        "stress": [float(stress.min() / stress.mean()), float(stress.max() / stress.mean())],
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
        "wall": perf_counter() - began,
    }


def patches() -> list[dict]:
    return [patch("weak"), patch("barrier")]


def closing(nu: float = 0.3) -> list[dict]:
    """A soft block that closes a gap of 6 % and is pressed on, weak contact: every solver arrives, and where
    Newton does."""
    rows, reference = [], None
    for name in ("newton", "pbng", "descent"):
        scene, soft = supple.Scene(gravity=(0, 0, 0), contact="weak"), supple.Corotated(young=1e5, poisson=nu)
        low = scene.add_solid(supple.block(2), soft, name="low")
        high = scene.add_solid(supple.block(3).translated((0, 1.06, 0)), soft, name="high")
        scene.pin(low.where(lambda X: X[:, 1] <= 0))
        scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -0.16, 0)))
        began = perf_counter()
        result = supple.equilibrium(scene, name, tolerance=1e-6, distance=None)
        reference = result.positions if reference is None else reference
        rows.append(
            {
                "solver": name,
                "outcome": result.report.outcome.name.lower(),
                "iterations": result.report.iterations,
                "imbalance": result.report.imbalance,
                "from_newton": float(np.abs(result.positions - reference).max()),
                "wall": perf_counter() - began,
            }
        )
    return rows


def stack(count: int = 3) -> dict:
    """Blocks on each other on a floor, not quite above each other: the floor carries all of them, and once
    they have stopped to sway nothing moves."""
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
    frames = list(supple.simulate(scene, supple.PBNG(), frames=400, tolerance=1e-6))
    last, before = frames[-1], frames[-100]
    floor = last.report.contact.obstacles[0].force[1]
    return {
        "blocks": count,
        "carried": -floor / (count * 1000 * G),
        "moved": float(np.abs(last.positions - before.positions).max()),
        "depth": last.report.met.depth,
    }


def arch(stones: int = 7, seconds: float = 2.0) -> dict:
    """Stones of a half circle on a floor, held by nothing but friction: it stands where its thickness is more
    than 0.107 of its radius [Couplet 1730, Milankovitch 1907]."""
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
    frames = list(supple.simulate(scene, supple.PBNG(), frames=round(seconds / 0.01), tolerance=1e-5))
    last, before = frames[-1], frames[-len(frames) // 4]
    weight = sum(float(body.masses.sum()) for body in scene.bodies) * G
    return {
        "stones": stones,
        "carried": -last.report.contact.obstacles[0].force[1] / weight,
        "moved": float(np.abs(last.positions - before.positions).max()),
        "settled": float(np.abs(last.positions - last.model.rest).max()),
        "depth": last.report.met.depth,
    }


def drop() -> dict:
    """A ball falls onto a floor: Σ impulses of the floor = change of momentum, step by step."""
    scene = supple.Scene(gravity=(0, -G, 0), quasistatic=False, dt=0.005)
    ball = supple.ball(radius=0.5, resolution=4).translated((0, 0.6, 0))
    scene.add_solid(ball, supple.NeoHookean(young=2e4, poisson=0.3), density=100, velocity=(0.5, -2, 0))
    scene.add_obstacle(supple.Plane(), friction=0.3, name="floor")
    mass = supple.build_model(scene).mass
    momentum, worst, lost = mass @ np.tile([0.5, -2, 0], (len(mass), 1)), 0.0, 0.0
    for frame in supple.simulate(scene, supple.PBNG(), frames=100, tolerance=1e-8):
        now = mass @ frame.velocities
        force = np.array(frame.report.contact.bodies["solid0"]) + mass.sum() * np.array([0, -G, 0])
        worst = max(worst, float(np.abs(now - momentum - 0.005 * force).max()))
        lost = max(lost, float(np.abs(now - momentum).max()))
        momentum = now
    return {"worst": worst / (2 * mass.sum()), "largest_change": lost / (2 * mass.sum())}


ANSWERS: dict[str, Callable[[], Any]] = {
    "slope": slope,
    "capstan": capstans,
    "hertz": hertz_all,
    "two_spheres": two_spheres,
    "mindlin": mindlin,
    "patch": patches,
    "closing": closing,
    "stack": stack,
    "arch": arch,
    "drop": drop,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ANSWERS))
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results" / "contact_answers.json")
    given = parser.parse_args()
    found = json.loads(given.to.read_text()) if given.to.exists() else {}
    for name in given.only.split(","):
        found[name] = ANSWERS[name]()
        print(name, json.dumps(found[name]), file=sys.stderr, flush=True)
        given.to.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
