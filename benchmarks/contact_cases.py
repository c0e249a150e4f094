"""Well-known contact scenes, each in a small size for two cores and in the papers' size.

Two blocks pressed together, four bars twisted around each other [PXPBD Fig. 10], a twisted mat of cloth, a
ball pushed through a ring, an armadillo squeezed between plates, objects dropped into a box (40 of them [PBNG
section 11.2.2], 30 [PXPBD Fig. 1]), and cloth thrown over a bunny. All of them are motions, in steps of
10 ms. The armadillo and the bunny are files in SUPPLE_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from contact_meshes import halved

import supple

DATA = Path(os.environ.get("SUPPLE_DATA", Path(__file__).parents[2] / "shared" / "meshes"))
DT = 0.01


@dataclass(frozen=True)
class Size:
    """fine: refinement factor of the smallest meshes; count: number of dropped objects, None for the scene's;
    full: the papers' version, if it differs by more than refinement."""

    fine: float = 1
    count: int | None = None
    full: bool = False


@dataclass(frozen=True)
class Case:
    """A scene with its number of frames and the contact methods to run."""

    make: Callable[[Any, Size], supple.Scene]
    frames: int
    contacts: tuple[str, ...] = ("barrier", "weak", "grid")


def empty(contact: Any, gravity: float = 9.81, **options: Any) -> supple.Scene:
    return supple.Scene(gravity=(0, -gravity, 0), quasistatic=False, dt=DT, contact=contact, **options)


def rubber(young: float, poisson: float = 0.3) -> supple.StableNeoHookean:
    return supple.StableNeoHookean(young=young, poisson=poisson)


def blocks(contact: Any, size: Size) -> supple.Scene:
    """A narrow block pushed into a wide one by half its height."""
    scene, f = empty(contact, 0.0), size.fine
    low = scene.add_solid(
        supple.block((12 * f, 6 * f, 12 * f), (1.2, 0.6, 1.2)), rubber(1e4, 0.4), density=100
    )
    narrow = supple.block((5 * f, 5 * f, 5 * f), (0.5, 0.5, 0.5), (0.33, 0.62, 0.36))
    high = scene.add_solid(narrow, rubber(3e4, 0.4), density=100)
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    down = supple.Translate((0, -0.3, 0), duration=0.4)
    scene.pin(high.where(lambda X: X[:, 1] >= 1.12 - 1e-9), motion=down)
    return scene


def bars(contact: Any, size: Size) -> supple.Scene:
    """Four bars whose common ends are twisted by more than a turn."""
    scene, f = empty(contact, 0.0), size.fine
    for y in (0.05, -0.3):
        for z in (0.05, -0.3):
            mesh = supple.block((24 * f, 3 * f, 3 * f), (2.4, 0.25, 0.25), (0, y, z))
            body = scene.add_solid(mesh, rubber(1e4, 0.35), density=100)
            for x, angle in ((0.0, -3.5), (2.4, 3.5)):
                turn = supple.Rotate(axis=(1, 0, 0), center=(x, 0, 0), angle=angle, duration=1.0)
                scene.pin(body.where(np.flatnonzero(np.abs(body.points[:, 0] - x) < 1e-9)), motion=turn)
    return scene


def mat(contact: Any, size: Size) -> supple.Scene:
    """A sheet that rolls up onto itself as its ends are twisted by three turns."""
    scene, f = empty(contact, 0.0, damping=0.02), size.fine
    sheet = supple.sheet((40 * f, 20 * f), size=(1, 0.5), plane="xz")
    kind = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)
    cloth = scene.add_cloth(
        sheet, kind, supple.HingeBending(rigidity=1e-4), density=0.2, thickness=1e-3, name="mat"
    )
    for x, angle in ((0.0, -9.4), (1.0, 9.4)):
        turn = supple.Rotate(axis=(1, 0, 0), center=(x, 0, 0.25), angle=angle, duration=1.0)
        scene.pin(cloth.where(np.flatnonzero(np.abs(cloth.points[:, 0] - x) < 1e-9)), motion=turn)
    return scene


def ring(contact: Any, size: Size) -> supple.Scene:
    """A ball whose core is pushed through a narrower ring, pinned at its rim."""
    scene = empty(contact, 0.0)
    torus = scene.add_solid(
        supple.meshes.torus(1.0, 0.3, resolution=3 * size.fine), rubber(2e4), density=100, name="ring"
    )
    scene.pin(torus.where(np.flatnonzero(np.hypot(*torus.points[:, :2].T) > 1.2)))
    ball = supple.ball(0.8, resolution=5 * size.fine).translated((0, 0, 1.15))
    body = scene.add_solid(ball, rubber(1e4), density=100, name="ball")
    core = body.where(np.flatnonzero(np.linalg.norm(body.points - (0, 0, 1.15), axis=1) < 0.35))
    scene.pin(core, motion=supple.Translate((0, 0, -2.3), duration=2.0))
    return scene


def armadillo_mesh(fine: int) -> supple.TetMesh:
    """Mesh with edges of 9 cm, from a file of tetrahedra if present, else tetrahedralized; halved until fine
    enough."""
    filled = DATA / "armadillo_0.09.mesh"
    if filled.exists():
        mesh = supple.load_mesh(filled)
    else:
        mesh = supple.meshes.tetrahedralize(
            supple.meshes.load_surface(DATA / "armadillo.obj"), edge_length=0.09
        )
    for _ in range(int(np.log2(fine))):
        mesh = halved(mesh)
    return mesh


def armadillo(contact: Any, size: Size) -> supple.Scene:
    """The armadillo between two plates that close to half its height."""
    scene = empty(contact, 0.0)
    mesh = armadillo_mesh(size.fine)
    body = scene.add_solid(mesh, rubber(1e4), density=100, name="armadillo")
    low, high = body.points.min(axis=0), body.points.max(axis=0)
    height, middle = high[1] - low[1], 0.5 * (low + high)
    for end, sign in ((low[1], 1.0), (high[1], -1.0)):
        center = (middle[0], end - sign * 0.11, middle[2])
        plate = supple.Box(size=(4, 0.2, 4), center=center)
        motion = supple.Translate((0, sign * 0.25 * height, 0), duration=0.4)
        scene.add_obstacle(plate, motion, friction=0.3, name="floor" if sign > 0 else "plate")
    return scene


def bunny_mesh(length: float) -> supple.TetMesh:
    """The bunny about the origin, of a given length [m]."""
    bunny = supple.load_mesh(DATA / "bunny.mesh")
    points = bunny.points - bunny.points.mean(axis=0)
    return supple.TetMesh(length * points / np.ptp(points, axis=0).max(), bunny.tets)


def objects(size: Size, bunnies: bool) -> list[supple.TetMesh]:
    """Objects of about 0.5 m about the origin."""
    two, three, five = (round(cells * size.fine) for cells in (2, 3, 5))
    meshes = [
        supple.block(cells=three, size=(0.4, 0.4, 0.4)).translated((-0.2, -0.2, -0.2)),
        supple.ball(0.25, resolution=three),
        supple.meshes.torus(0.2, 0.08, resolution=two),
        supple.block(cells=(five, two, two), size=(0.6, 0.2, 0.2)).translated((-0.3, -0.1, -0.1)),
    ]
    return [*meshes, bunny_mesh(0.5)] if bunnies and size.full else meshes


def dropped(count: int, small: int, bunnies: bool, contact: Any, size: Size) -> supple.Scene:
    """Objects in rotated poses, stacked in layers, fall into a box."""
    rng, count = np.random.default_rng(0), size.count or (count if size.full else small)
    scene = empty(contact)
    side = 2 if count < 20 else 3
    width = 0.75 * side
    shape = supple.Box(size=(width, 40, width), center=(0, 20, 0), hollow=True)
    scene.add_obstacle(shape, friction=0.2, name="box")
    meshes = objects(size, bunnies)
    for k in range(count):
        mesh = meshes[k % len(meshes)].rotated(rng.normal(size=3), rng.uniform(0, 3))
        layer, slot = divmod(k, side * side)
        x, z = (np.array(divmod(slot, side)) - 0.5 * (side - 1)) * 0.74
        scene.add_solid(mesh.translated((x, 0.45 + 0.74 * layer, z)), rubber(2e4), density=100)
    return scene


def draped(contact: Any, size: Size) -> supple.Scene:
    """Cloth that falls on a fixed bunny."""
    scene, mesh = empty(contact), bunny_mesh(1.0)
    body = scene.add_solid(mesh, rubber(1e6), density=1000, name="bunny")
    scene.pin(body.where(np.arange(len(mesh.points))))
    cells, top = 24 * size.fine, float(mesh.points[:, 1].max()) + 0.02
    sheet = supple.sheet(cells, size=(1.6, 1.6), plane="xz", origin=(-0.8, top, -0.8))
    cloth = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)
    scene.add_cloth(
        sheet, cloth, supple.HingeBending(rigidity=1e-5), density=0.3, thickness=1e-3, name="cloth"
    )
    return scene


FULL = {
    "blocks": 4, "bars": 3, "mat": 4, "ring": 3, "armadillo": 4, "draped": 5, "dropped_30": 3,
    "dropped_40": 3,
}  # fmt: skip
"""Mesh refinement of the papers' sizes."""

CASES: dict[str, Case] = {
    "blocks": Case(blocks, 50),
    "bars": Case(bars, 110),
    "mat": Case(mat, 110, ("barrier", "weak")),
    "ring": Case(ring, 220, ("barrier", "weak")),
    "armadillo": Case(armadillo, 50),
    "draped": Case(draped, 60, ("barrier", "weak")),
    "dropped_30": Case(partial(dropped, 30, 6, True), 150),
    "dropped_40": Case(partial(dropped, 40, 8, False), 150),
}
