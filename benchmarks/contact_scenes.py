"""Large scenes of contact: what intersects, how deep, and what finding contacts costs, into
results/contact_scenes.json.

A ball pushed through a ring, an armadillo squeezed between plates, objects dropped into a box (40 of them
[PBNG section 11.2.2], 30 [PXPBD Fig. 1]), and cloth thrown over a bunny, with a barrier, in weak contact and,
where all are solids, on a grid. After every frame ipctk says whether surfaces intersect. `finding` is the
part of a step's time that detection, exchange of stencils and recolouring take; a step has 20 sweeps of PBNG.
Small sizes for two cores; --full for the papers'. The armadillo and the bunny are files in SUPPLE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from intersecting import intersects

import supple
from supple.contact.crossing import crossings
from supple.contact.pairs import Surfaces
from supple.grid_stepping import GridStepping
from supple.io.machine import machine
from supple.kernels import compilation
from supple.problem import Problem
from supple.problem.following import Following
from supple.stepping import Stepping

RESULTS = Path(__file__).parent / "results" / "contact_scenes.json"
DATA = Path(os.environ.get("SUPPLE_DATA", Path(__file__).parents[2] / "shared" / "meshes"))
DT = 0.01
SWEEPS = 20


@dataclass(frozen=True)
class Case:
    """A scene with so many frames, and the contacts that can be tried on it."""

    make: Callable[[Any, bool], supple.Scene]
    frames: int
    contacts: tuple[str, ...] = ("barrier", "weak", "grid")


def empty(contact: Any, gravity: float = 9.81, **options: Any) -> supple.Scene:
    return supple.Scene(gravity=(0, -gravity, 0), quasistatic=False, dt=DT, contact=contact, **options)


def rubber(young: float) -> supple.StableNeoHookean:
    return supple.StableNeoHookean(young=young, poisson=0.3)


def ring(contact: Any, full: bool) -> supple.Scene:
    """A ball whose core is pushed through a ring that is narrower, and held at its rim."""
    scene = empty(contact, 0.0)
    fine = 3 if full else 1
    torus = scene.add_solid(
        supple.torus(1.0, 0.3, resolution=3 * fine), rubber(2e4), density=100, name="ring"
    )
    scene.pin(torus.where(np.flatnonzero(np.hypot(*torus.points[:, :2].T) > 1.2)))
    ball = supple.ball(0.8, resolution=5 * fine).translated((0, 0, 1.15))
    body = scene.add_solid(ball, rubber(1e4), density=100, name="ball")
    core = body.where(np.flatnonzero(np.linalg.norm(body.points - (0, 0, 1.15), axis=1) < 0.35))
    scene.pin(core, motion=supple.Translate((0, 0, -2.3), duration=0.6))
    return scene


def armadillo(contact: Any, full: bool) -> supple.Scene:
    """Between two plates that come together to half its height."""
    scene = empty(contact, 0.0)
    surface = supple.load_surface(DATA / "armadillo.obj")
    mesh = supple.tetrahedralise(surface, edge_length=0.03 if full else 0.09)
    body = scene.add_solid(mesh, rubber(1e4), density=100, name="armadillo")
    low, high = body.points.min(axis=0), body.points.max(axis=0)
    height, middle = high[1] - low[1], 0.5 * (low + high)
    for end, sign in ((low[1], 1.0), (high[1], -1.0)):
        centre = (middle[0], end - sign * 0.11, middle[2])
        plate = supple.Box(size=(4, 0.2, 4), centre=centre)
        motion = supple.Translate((0, sign * 0.25 * height, 0), duration=0.4)
        scene.add_obstacle(plate, motion, friction=0.3, name="floor" if sign > 0 else "plate")
    return scene


def objects(full: bool, bunnies: bool) -> list[supple.TetMesh]:
    """Of about the same size, 0.5 m, about the origin."""
    fine = 3 if full else 1
    found = [
        supple.block(cells=3 * fine, size=(0.4, 0.4, 0.4)).translated((-0.2, -0.2, -0.2)),
        supple.ball(0.25, resolution=3 * fine),
        supple.torus(0.2, 0.08, resolution=2 * fine),
        supple.bar(cells=(5 * fine, 2 * fine, 2 * fine), size=(0.6, 0.2, 0.2)).translated((-0.3, -0.1, -0.1)),
    ]
    if bunnies and full:
        bunny = supple.load_mesh(DATA / "bunny.mesh")
        points = bunny.points - bunny.points.mean(axis=0)
        found.append(supple.TetMesh(0.5 * points / np.ptp(points, axis=0).max(), bunny.tets))
    return found


def dropped(count: int, bunnies: bool, contact: Any, full: bool) -> supple.Scene:
    """Objects in turned positions, in layers above each other, fall into a box."""
    rng = np.random.default_rng(0)
    scene = empty(contact)
    side = 2 if count < 20 else 3
    width = 0.75 * side
    shape = supple.Box(size=(width, 40, width), centre=(0, 20, 0), hollow=True)
    scene.add_obstacle(shape, friction=0.2, name="box")
    meshes = objects(full, bunnies)
    for k in range(count):
        mesh = meshes[k % len(meshes)].rotated(rng.normal(size=3), rng.uniform(0, 3))
        layer, place = divmod(k, side * side)
        x, z = (np.array(divmod(place, side)) - 0.5 * (side - 1)) * 0.74
        scene.add_solid(mesh.translated((x, 0.45 + 0.74 * layer, z)), rubber(2e4), density=100)
    return scene


def draped(contact: Any, full: bool) -> supple.Scene:
    """Cloth that falls on a bunny, which does not move."""
    scene = empty(contact)
    bunny = supple.load_mesh(DATA / "bunny.mesh")
    points = (bunny.points - bunny.points.mean(axis=0)) / np.ptp(bunny.points, axis=0).max()
    body = scene.add_solid(supple.TetMesh(points, bunny.tets), rubber(1e6), density=1000, name="bunny")
    scene.pin(body.where(np.arange(len(points))))
    cells = 120 if full else 24
    top = float(points[:, 1].max()) + 0.02
    sheet = supple.sheet(cells, size=(1.6, 1.6), plane="xz", origin=(-0.8, top, -0.8))
    cloth = supple.PlaneStressStVK(young=1e5, poisson=0.3)
    scene.add_cloth(
        sheet, cloth, supple.HingeBending(stiffness=1e-5), density=0.3, thickness=1e-3, name="cloth"
    )
    return scene


def cases(full: bool) -> dict[str, Case]:
    count, thirty = (40, 30) if full else (8, 6)
    return {
        "ring": Case(ring, 80, ("barrier", "weak")),
        "armadillo": Case(armadillo, 50),
        "dropped_40": Case(lambda c, f: dropped(count, False, c, f), 150 if full else 40),
        "dropped_30": Case(lambda c, f: dropped(thirty, True, c, f), 150 if full else 40),
        "draped": Case(draped, 60 if full else 30, ("barrier", "weak")),
    }


def depth_of(scene: supple.Scene, positions: np.ndarray) -> float:
    """How deep a vertex is inside of a body [m], where surfaces cross."""
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    body = np.repeat(np.arange(len(scene.bodies)), [len(body.points) for body in scene.bodies])
    flat = np.array([body.kind != "solid" for body in scene.bodies])
    rest = np.concatenate([body.points for body in scene.bodies])
    return max(
        (each.depth for each in crossings(Surfaces(triangles, body, rest, 0.0, flat), positions)), default=0.0
    )


@contextmanager
def stopwatch() -> Iterator[dict[str, float]]:
    """Seconds that are spent in finding contacts, of which exchanging stencils and recolouring is a part,
    and in frames, without compilation."""
    spent = {"finding": 0.0, "exchanging": 0.0, "frames": 0.0}
    depth = 0

    def timed(function: Any, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal depth
            began = perf_counter() - compiled.seconds
            depth += name == "finding"
            try:
                return function(*given, **named)
            finally:
                depth -= name == "finding"
                if name != "finding" or depth == 0:
                    spent[name] += perf_counter() - compiled.seconds - began

        return call

    watched: list[tuple[Any, str, str]] = [
        (Following, "make_room", "finding"),
        (Following, "_look", "finding"),
        (Following, "keep_apart", "finding"),
        (Problem, "refresh", "exchanging"),
        (Stepping, "advance", "frames"),
        (GridStepping, "advance", "frames"),
    ]
    kept = [getattr(owner, method) for owner, method, _ in watched]
    for (owner, method, name), function in zip(watched, kept, strict=True):
        setattr(owner, method, timed(function, name))
    try:
        with compilation() as compiled:
            yield spent
    finally:
        for (owner, method, _), function in zip(watched, kept, strict=True):
            setattr(owner, method, function)


def measure(name: str, case: Case, contact: str, options: argparse.Namespace) -> dict[str, Any]:
    scene = case.make(contact, options.full)
    frames = options.frames or case.frames
    solver: Any = (
        supple.BPXPBD(zeta=0.5, iterations=SWEEPS) if contact == "grid" else supple.PBNG(iterations=SWEEPS)
    )
    setup, crossed, deepest, most, outside = 0.0, [], 0.0, 0, 0.0
    with stopwatch() as spent:
        moving = supple.simulate(
            scene, solver, frames=frames, device=options.device, precision=options.precision
        )
        for frame in moving:
            report = frame.report
            setup += report.setup_seconds
            if intersects(scene, frame.positions):
                crossed.append(frame.index)
                deepest = max(deepest, depth_of(scene, frame.positions))
            if report.met is not None:
                deepest, most = max(deepest, report.met.depth), max(most, report.met.contacts)
            if report.contact is not None:
                outside = max(outside, report.contact.depth)
            if not np.isfinite(frame.positions).all():
                break
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
        supple.picture(frame, options.pictures / f"{name}_{contact}.png", field="body")
    return {
        "scene": name,
        "contact": contact,
        "solver": solver.name,
        "bodies": len(scene.bodies),
        "vertices": len(frame.positions),
        "elements": frame.model.elements,
        "frames": frame.index,
        "seconds": spent["frames"],
        "setup_seconds": setup,
        "finding": spent["finding"] / spent["frames"],
        "exchanging": spent["exchanging"] / spent["frames"],
        "most_contacts": most,
        "deepest": deepest,
        "deepest_in_obstacles": outside,
        "frames_that_intersect": crossed,
        "lowest": float(frame.positions[:, 1].min()),
        "inverted": frame.report.inverted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help="all of them unless given")
    parser.add_argument("--contact", nargs="*", choices=["barrier", "weak", "grid"])
    parser.add_argument("--full", action="store_true", help="at the papers' sizes")
    parser.add_argument("--frames", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the last frames")
    options = parser.parse_args()
    known = cases(options.full)
    RESULTS.parent.mkdir(exist_ok=True)
    size = f"{'full' if options.full else 'small'}, {options.device}, {options.precision}"
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.scenes or known:
        for contact in options.contact or known[name].contacts:
            if contact not in known[name].contacts:
                continue
            try:
                found = measure(name, known[name], contact, options)
            except (ValueError, OSError) as error:
                found = {"scene": name, "contact": contact, "refused": str(error)}
            stored.setdefault(size, {"machine": machine()})[f"{name}, {contact}"] = found
            RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
            print(json.dumps(found))


if __name__ == "__main__":
    main()
