"""Equilibria that arrive, further cases: shapes, sizes, stiffnesses and starts beside those of arrive.py, and
every material of the list on a slender bar.

    python benchmarks/arrive_more.py                    all cases in float64 and float32, to 1e-4 and 1e-8
    python benchmarks/arrive_more.py --only tet coil    those whose names contain one of these
    python benchmarks/arrive_more.py --fresh            forgets what was measured
    python benchmarks/arrive_more.py --table            the table of what was measured, in Markdown

A solve is good that ends as converged, or, in float32, at the limit of its rounding, which it says. Figures
go to benchmarks/results/arrive_more.json after each of them, and what is there is not solved again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine, versions
from supple.materials import MATERIALS, examples_of

RESULTS = Path(__file__).parent / "results" / "arrive_more.json"

Case = tuple[supple.Scene, np.ndarray | None]
"""A scene, and where it starts if not at rest."""

GOOD = {"float64": {"converged"}, "float32": {"converged", "precision"}}


def of(name: str, young: Any, poisson: float = 0.4) -> Any:
    return MATERIALS[name](young=young, poisson=poisson)


def held(mesh: supple.TetMesh, material: Any, depth: float = 1e-9, density: float = 1000.0) -> supple.Scene:
    """A body under gravity that is pinned at its low end of x."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, material, density=density)
    least = np.asarray(mesh.points)[:, 0].min()
    scene.pin(body.where(lambda X: X[:, 0] <= least + depth))
    return scene


def mapped(cells: tuple[int, int, int], place: Callable[[np.ndarray], np.ndarray]) -> supple.TetMesh:
    """A block of cells whose unit coordinates are placed elsewhere."""
    mesh = supple.block(cells)
    return supple.TetMesh(place(np.asarray(mesh.points)), np.asarray(mesh.tets))


def thin_ring() -> Case:
    """A slit ring whose wall is a hundredth of its radius, held at one end of the slit."""

    def place(X: np.ndarray) -> np.ndarray:
        angle, radius = 1.95 * np.pi * X[:, 0], 0.5 + 0.005 * X[:, 1]
        return np.stack([radius * np.sin(angle), -radius * np.cos(angle), 0.05 * X[:, 2]], axis=1)

    mesh = mapped((80, 1, 3), place)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("stable_neo_hookean", 1e8, 0.3), density=1000)
    scene.pin(body.where(lambda X: (np.abs(X[:, 0]) < 1e-9) & (X[:, 1] < -0.4)))
    return scene, None


def coil() -> Case:
    """Four turns of a square wire, held at the top."""

    def place(X: np.ndarray) -> np.ndarray:
        angle = 8 * np.pi * X[:, 0]
        radius = 0.3 + 0.03 * (X[:, 1] - 0.5)
        height = -0.12 * angle / (2 * np.pi) + 0.03 * (X[:, 2] - 0.5)
        return np.stack([radius * np.cos(angle), height, radius * np.sin(angle)], axis=1)

    mesh = mapped((160, 2, 2), place)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("corotated", 1e7, 0.3), density=1000)
    scene.pin(body.where(lambda X: (X[:, 1] > -0.02) & (X[:, 0] > 0) & (np.abs(X[:, 2]) < 1e-9)))
    return scene, None


def far_ties() -> Case:
    """Blocks of meshes that do not match, tied by stiff springs, ten kilometres away."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    away = np.array([1e4, -2e3, 5e3])
    top = scene.add_solid(
        supple.block(4, origin=away + np.array([0, 1, 0])), of("corotated", 1e6, 0.3), density=1000
    )
    low = scene.add_solid(supple.block(3, origin=away), of("corotated", 1e5, 0.3), density=1000)
    scene.pin(top.where(lambda X: X[:, 1] > away[1] + 2 - 1e-6))
    scene.attach(low.where(lambda X: X[:, 1] > away[1] + 1 - 1e-6), top, stiffness=1e8)
    return scene, None


def chain() -> Case:
    """Six blocks, each hanging from the one above by stiff springs."""
    scene, above = supple.Scene(gravity=(0, -9.8, 0)), None
    for k in range(6):
        mesh = supple.block(2 + k % 2, (0.3, 0.3, 0.3), origin=(0, -0.3 * k, 0))
        body = scene.add_solid(mesh, of("stable_neo_hookean", 1e5, 0.45), density=1000)
        if above is None:
            scene.pin(body.where(lambda X: X[:, 1] > 0.3 - 1e-9))
        else:
            scene.attach(body.where(lambda X, y=0.3 - 0.3 * k: X[:, 1] > y - 1e-9), above, stiffness=1e8)
        above = body
    return scene, None


def wrung_thrice() -> Case:
    """A bar of 10:1:1 whose end is turned three times; it starts twisted evenly."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((40, 4, 4), (2, 0.2, 0.2)), of("stable_neo_hookean", 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    turn = supple.Rotate(axis=(1, 0, 0), angle=6 * np.pi, centre=(2, 0.1, 0.1))
    scene.pin(body.where(lambda X: X[:, 0] > 2 - 1e-9), motion=turn)
    twist = supple.Twist(axis=(1, 0, 0), angle=6 * np.pi, centre=(0, 0.1, 0.1))
    return scene, twist(np.array(body.points), np.inf)


def scrambled_bar(name: str) -> Case:
    """All vertices of a slender bar begin at random places."""
    mesh = supple.block((30, 2, 2), (1.5, 0.1, 0.1))
    scene = held(mesh, of(name, 1e6, 0.3))
    points = np.asarray(mesh.points)
    x = np.random.default_rng(3).uniform(points.min(axis=0), points.max(axis=0), points.shape)
    return scene, x


def one_tet(pinned: int) -> Case:
    """One tetrahedron, with so many corners held, under gravity or, where none is, stretched at first."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    scene = supple.Scene(gravity=(0, -9.8 if pinned else 0, 0))
    body = scene.add_solid(supple.TetMesh(points, [[0, 1, 2, 3]]), of("neo_hookean", 1e5), density=1000)
    if pinned:
        scene.pin(body.where(lambda X: np.isin(np.arange(4), np.arange(pinned))))
    return scene, None if pinned else 1.5 * points


def loose_parts() -> Case:
    """A mesh of three parts that nothing holds or connects, squeezed at first."""
    parts = [supple.block(2, (0.5, 0.5, 0.5), origin=(2.0 * k, 0, 0)) for k in range(3)]
    mesh = supple.merge_meshes(parts)
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(mesh, of("stable_neo_hookean", 1e4), density=100)
    return scene, np.asarray(mesh.points) * [1, 0.6, 1.2]


def rollers() -> Case:
    """A block that three sides hold across only, under gravity and a pull."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.block((4, 4, 4)), of("log_neo_hookean", 1e5), density=1000)
    for axis, name in enumerate("xyz"):
        scene.pin(body.where(lambda X, axis=axis: X[:, axis] < 1e-9), axes=name)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((0.5, 0, 0)), axes="x")
    return scene, None


def graded(lowest: float = 1e-5) -> Case:
    """A bar whose cells grow along it from so much [m] to a tenth of its length, and taper across."""

    def place(X: np.ndarray) -> np.ndarray:
        s = lowest ** (1 - X[:, 0])
        width = 0.2 * s[:, None]
        return np.concatenate([s[:, None], width * (X[:, 1:] - 0.5)], axis=1)

    mesh = mapped((40, 2, 2), place)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("corotated", 1e6, 0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9))
    return scene, None


def tapered_from_tip() -> Case:
    """The same of steel-like stiffness, held at its tip, which is a fifth of a millimetre thick."""
    mesh = graded(1e-3)[0].bodies[0].mesh
    return held(mesh, of("stable_neo_hookean", 1e11, 0.3), 1e-6), None


def slabs(lowest: float) -> Case:
    """A bar that bends far, of cells that grow from thin slabs where it is held to its free end."""
    mesh = mapped((30, 2, 2), lambda X: X * [1, 0.1, 0.1])
    points = np.array(mesh.points)
    points[:, 0] = (lowest ** (1 - points[:, 0]) - lowest) / (1 - lowest)
    return held(supple.TetMesh(points, np.asarray(mesh.tets)), of("corotated", 1e6, 0.3)), None


def contrast(factor: float) -> Case:
    """Soft and stiff lengths of a bar in turn."""
    mesh = supple.block((20, 2, 2), (2, 0.2, 0.2))
    middle = np.asarray(mesh.points)[np.asarray(mesh.tets)].mean(axis=1)[:, 0]
    return held(mesh, of("corotated", np.where(middle % 0.4 < 0.2, 1e4, 1e4 * factor))), None


def needles() -> Case:
    """Cells a thousand times as long as they are thick."""
    return held(supple.block((3, 3, 3), (30, 0.03, 0.03)), of("corotated", 1e10, 0.3)), None


def sized(size: float) -> Case:
    """A bar of 10:1:1 so long [m], whose stiffness bends it as much at every size."""
    mesh = supple.block((20, 2, 2), (size, 0.1 * size, 0.1 * size))
    return held(mesh, of("stable_neo_hookean", 1e6 * size, 0.3), 1e-6 * size), None


def far_bar() -> Case:
    """A thousand kilometres away."""
    mesh = supple.block((20, 2, 2), (1, 0.1, 0.1), origin=(1e6, 1e6, -1e6))
    return held(mesh, of("corotated", 1e6, 0.3), 1e-3), None


def soft_needle_point() -> Case:
    """A soft bar with a block at its end that is ten thousand times as heavy."""
    mesh = supple.block((20, 2, 2), (1, 0.1, 0.1))
    middle = np.asarray(mesh.points)[np.asarray(mesh.tets)].mean(axis=1)[:, 0]
    return held(mesh, of("neo_hookean", 1e6), density=np.where(middle > 0.95, 1e5, 10.0)), None


def thin_plate() -> Case:
    """200:200:1, held at one side."""
    return held(supple.block((24, 1, 24), (1, 0.005, 1)), of("stable_neo_hookean", 1e9, 0.3)), None


def pressed_plate() -> Case:
    """A flat plate whose sides come nearer, exactly in its plane: it must find out that it buckles."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((24, 1, 6), (1, 0.02, 0.25)), of("corotated", 1e6, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((-0.05, 0, 0)))
    return scene, None


def squeezed(name: str) -> Case:
    """A block between plates that leave it a fifth of its height."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(5), of(name, 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 1] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 1] > 1 - 1e-9), motion=supple.Translate((0, -0.8, 0)))
    points = np.array(body.points)
    return scene, points * [1, 0.2, 1]


def stretched_far() -> Case:
    """Ten times as long."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((10, 3, 3), (1, 0.3, 0.3)), of("log_neo_hookean", 1e5, 0.45))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((9, 0, 0)))
    return scene, None


def slender(name: str) -> Case:
    """A bar of 20:1:1 of any material; what declares a direction has it along the bar."""
    kind = MATERIALS[name]
    declared = {p.name: p for p in kind.parameters}
    given: dict[str, Any] = {"young": 1e6, "poisson": 0.3}
    stiffer = {p.name: examples_of(kind)[p.name] * 10 for p in kind.parameters if p.unit == "Pa"}
    material = kind.example(**stiffer | {k: v for k, v in given.items() if k in declared})
    return held(supple.block((20, 2, 2), (2, 0.2, 0.2)), material, density=200), None


CASES: dict[str, Callable[[], Case]] = {
    "thin ring": thin_ring,
    "coil": coil,
    "ties 1e8 far away": far_ties,
    "chain of ties 1e8": chain,
    "slender 0.4999": lambda: (
        held(supple.block((60, 2, 2), (3, 0.1, 0.1)), of("stable_neo_hookean", 1e7, 0.4999)),
        None,
    ),
    "slender 0.49999": lambda: (
        held(supple.block((20, 2, 2), (1, 0.1, 0.1)), of("stable_neo_hookean", 1e6, 0.49999)),
        None,
    ),
    "wrung three turns": wrung_thrice,
    "scrambled bar": lambda: scrambled_bar("corotated"),
    "scrambled bar log_neo_hookean": lambda: scrambled_bar("log_neo_hookean"),
    **{f"one tet, {k} held": lambda k=k: one_tet(k) for k in (0, 1, 2, 3)},
    "loose parts": loose_parts,
    "rollers": rollers,
    "graded 1e-3": lambda: graded(1e-3),
    "graded 1e-5": graded,
    "held at its thin tip": tapered_from_tip,
    "slabs 1e-3": lambda: slabs(1e-3),
    "slabs 1e-5": lambda: slabs(1e-5),
    "contrast 1e3": lambda: contrast(1e3),
    "contrast 1e6": lambda: contrast(1e6),
    "needles": needles,
    "a micrometre": lambda: sized(1e-6),
    "ten kilometres": lambda: sized(1e4),
    "far bar": far_bar,
    "heavy end": soft_needle_point,
    "thin plate": thin_plate,
    "pressed plate": pressed_plate,
    "squeezed corotated": lambda: squeezed("corotated"),
    "squeezed log_neo_hookean": lambda: squeezed("log_neo_hookean"),
    "stretched far": stretched_far,
    **{f"bar of {name}": lambda name=name: slender(name) for name in MATERIALS},
}


class TooLongError(Exception):
    """A solve has taken longer than it may."""


def solve(name: str, precision: str, tolerance: float, longest: float) -> dict[str, Any]:
    """What is to be told of one solve; its clock leaves out what kernels take to compile."""
    scene, start = CASES[name]()

    def watch(iteration: int, imbalance: float, seconds: float) -> None:
        if seconds > longest:
            raise TooLongError(f"{iteration} iterations, imbalance {imbalance:.1e}")

    options = {"precision": precision, "tolerance": tolerance, "start": start, "watch": watch}
    try:
        report = supple.equilibrium(scene, **options).report
    except TooLongError as error:
        return {"outcome": "too long", "error": str(error)}
    except Exception as error:
        return {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
    certificate = report.certificate
    return {
        "outcome": report.outcome.name.lower(),
        "vertices": report.vertices,
        "iterations": report.iterations,
        "seconds": report.seconds,
        "imbalance": report.imbalance,
        "energy": report.energy,
        "distance": certificate and certificate.worst.of_size,
        "stable": certificate and certificate.stable,
        "notes": report.notes,
    }


def measure(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    for name in CASES:
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        for precision in arguments.precision:
            for tolerance in (1e-4, 1e-8):
                key = f"{precision} {tolerance:g}"
                if key in figures["cases"].get(name, {}):
                    continue
                found = solve(name, precision, tolerance, arguments.longest)
                figures["cases"].setdefault(name, {})[key] = found
                save(figures)
                told = {
                    k: found[k]
                    for k in ("outcome", "iterations", "imbalance", "distance", "error")
                    if k in found
                }
                mark = "" if good(found, precision) else "  <<<"
                print(f"{name}, {key}: {told}{mark}", flush=True)


def good(found: dict[str, Any], precision: str) -> bool:
    return found["outcome"] in GOOD[precision]


def save(figures: dict[str, Any]) -> None:
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    part.replace(RESULTS)


def table(figures: dict[str, Any]) -> str:
    """Markdown: iterations, and the outcome where that is not convergence."""
    columns = [f"{p} {t}" for p in ("float64", "float32") for t in ("0.0001", "1e-08")]
    lines = [f"| case | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, found in figures["cases"].items():
        cells = []
        for column in columns:
            one = found.get(column)
            if one is None:
                cells.append("")
            elif one["outcome"] == "converged":
                cells.append(str(one["iterations"]))
            else:
                cells.append(f"{one['outcome']} {one.get('iterations', '')}".strip())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD")
    parser.add_argument("--precision", nargs="+", default=["float64", "float32"])
    parser.add_argument("--longest", type=float, default=60.0, help="seconds allowed to a solve")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--table", action="store_true", help="print the table and solve nothing")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"cases": {}}
    if RESULTS.is_file() and not arguments.fresh:
        figures |= json.loads(RESULTS.read_text(encoding="utf-8"))
    if not arguments.table:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        figures |= {"date": date, "machine": machine(), "versions": versions()}
        measure(arguments, figures)
    print(table(figures))


if __name__ == "__main__":
    main()
