"""Equilibria that arrive: the default against Newton and PBNG on slender, soft, stiff, thin, tangled bodies.

    python benchmarks/arrive.py                          all cases, some minutes on two cores
    python benchmarks/arrive.py --only slender twisted   those whose names contain one of these
    python benchmarks/arrive.py --tolerance 1e-8

SUPPLE_DATA is the folder with octopus-low.mesh and bunny.mesh; without it their cases are left out. Figures
go to benchmarks/results/arrive.json. Times mean little while other programs run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import supple
from supple.io.machine import machine, versions
from supple.materials import MATERIALS

RESULTS = Path(__file__).parent / "results" / "arrive.json"

SOLVERS = {"descent": supple.Descent(), "newton": supple.Newton(), "pbng": supple.PBNG()}

Case = tuple[supple.Scene, Callable[[supple.Scene], np.ndarray] | None]
"""A scene, and where it starts if not at rest."""


def held(mesh: supple.TetMesh, material: Any, low: int, depth: float, density: float = 1000) -> supple.Scene:
    """A body under gravity that is pinned up to some depth [m] at its low end of an axis."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, material, density=density)
    least = np.asarray(mesh.points)[:, low].min()
    scene.pin(body.where(lambda X: X[:, low] <= least + depth))
    return scene


def of(name: str, young: float, poisson: float = 0.4) -> Any:
    return MATERIALS[name](young=young, poisson=poisson)


def bar(cells: int, young: float, name: str = "corotated", poisson: float = 0.4) -> Case:
    """20:1:1, two metres long, clamped at one end."""
    mesh = supple.block((20 * cells, cells, cells), (2, 0.1, 0.1))
    return held(mesh, of(name, young, poisson), 0, 1e-9), None


def plate(young: float) -> Case:
    """50:50:1, clamped along one side."""
    return held(supple.block((25, 1, 25), (1, 0.02, 1)), of("corotated", young, 0.3), 0, 1e-9), None


def organic(file: str, young: float, name: str = "corotated", poisson: float = 0.4) -> Case:
    """A mesh from SUPPLE_DATA of size 1, held at its feet."""
    mesh = supple.load_mesh(Path(os.environ["SUPPLE_DATA"]) / file)
    points = np.asarray(mesh.points) / np.ptp(mesh.points, axis=0).max()
    return held(supple.TetMesh(points, np.asarray(mesh.tets)), of(name, young, poisson), 1, 0.05), None


def wrung(angle: float, name: str = "corotated") -> Case:
    """A bar of 5:1:1 whose end is turned about its axis [rad]."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((30, 6, 6), (1, 0.2, 0.2)), of(name, 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    turn = supple.Rotate(axis=(1, 0, 0), centre=(1, 0.1, 0.1), angle=angle)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=turn)
    return scene, None


def column() -> Case:
    """Pressed together by 10 % and pushed aside by a millionth of its height, it buckles."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((3, 30, 3), (0.1, 1, 0.1)), of("corotated", 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 1] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 1] > 1 - 1e-9), motion=supple.Translate((0, -0.1, 0)))

    def pushed(scene: supple.Scene) -> np.ndarray:
        x = np.concatenate([body.points for body in scene.bodies])
        x[:, 0] += 1e-6 * np.sin(np.pi * x[:, 1])
        return x

    return scene, pushed


def hanging(stiffness: float) -> Case:
    """Blocks of meshes that do not match, one hanging from the other by stiff springs."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    top = scene.add_solid(supple.block((6, 6, 6), origin=(0, 1, 0)), of("corotated", 1e6, 0.3), density=1000)
    low = scene.add_solid(supple.block((5, 5, 5)), of("corotated", 1e5, 0.3), density=1000)
    scene.pin(top.where(lambda X: X[:, 1] > 2 - 1e-9))
    scene.attach(low.where(lambda X: X[:, 1] > 1 - 1e-9), top, stiffness=stiffness)
    return scene, None


def tangled(flat: bool, name: str = "corotated") -> Case:
    """A block whose vertices start at random places, or all in one plane."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((8, 8, 8)), of(name, 1e3, 0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))

    def start(scene: supple.Scene) -> np.ndarray:
        x = np.array(body.points)
        return x * [1, 0, 1] if flat else np.random.default_rng(1).uniform(0, 1, x.shape)

    return scene, start


def shipped(name: str) -> Case:
    """A scene of the gallery."""
    return supple.load_scene(Path(__file__).parent.parent / "scenes" / f"{name}.toml").scene, None


CASES: dict[str, Callable[[], Case]] = {
    "slender soft": lambda: bar(4, 1e5),
    "slender": lambda: bar(5, 1e6),
    "slender stiff": lambda: bar(4, 1e8),
    "slender 0.49": lambda: bar(4, 1e6, poisson=0.49),
    "slender 0.4995": lambda: bar(4, 1e6, "stable_neo_hookean", 0.4995),
    **{f"slender {name}": lambda name=name: bar(4, 1e6, name, 0.3) for name in MATERIALS},
    "plate soft": lambda: plate(1e6),
    "plate stiff": lambda: plate(1e8),
    "octopus 2e4": lambda: organic("octopus-low.mesh", 2e4),
    "octopus 2e5": lambda: organic("octopus-low.mesh", 2e5),
    "octopus 2e5 0.4995": lambda: organic("octopus-low.mesh", 2e5, poisson=0.4995),
    "octopus 2e6": lambda: organic("octopus-low.mesh", 2e6),
    "bunny 2e5": lambda: organic("bunny.mesh", 2e5),
    "wrung two turns": lambda: wrung(4 * np.pi),
    "wrung half a turn": lambda: wrung(np.pi, "stable_neo_hookean"),
    "column": column,
    "hanging 1e4": lambda: hanging(1e4),
    "hanging 1e8": lambda: hanging(1e8),
    "scrambled": lambda: tangled(False),
    "flattened": lambda: tangled(True, "stable_neo_hookean"),
    "sandwich": lambda: shipped("sandwich"),
    "muscle": lambda: shipped("muscle"),
    "twisted": lambda: shipped("twist"),
}


def measured(case: Case, solver: Any, stop: supple.Stop) -> dict[str, Any]:
    """The figures of a solve, of the second one: the first has compiled and warmed up."""
    scene, start = case
    options = {"stop": stop, "start": None if start is None else start(scene)}
    supple.equilibrium(scene, solver, stop=supple.Stop(max_iterations=1), start=options["start"])
    report = supple.equilibrium(scene, solver, **options).report
    certificate = report.certificate
    return {
        "outcome": report.outcome.name.lower(),
        "vertices": report.vertices,
        "iterations": report.iterations,
        "seconds": report.seconds,
        "energy": report.energy,
        "imbalance": report.imbalance,
        "distance": certificate and certificate.worst.of_size,
        "stable": certificate and certificate.stable,
        "certificate_seconds": certificate and certificate.seconds,
        "notes": report.notes,
    }


def chosen(words: list[str] | None) -> Iterator[str]:
    for name in CASES:
        needs_data = name.startswith(("octopus", "bunny"))
        if (not words or any(word in name for word in words)) and (
            not needs_data or "SUPPLE_DATA" in os.environ
        ):
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--longest", type=float, default=60.0, help="seconds allowed to a solve")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    stop = supple.Stop(arguments.tolerance, time_budget=arguments.longest, distance=1e-4)
    figures: dict[str, dict[str, Any]] = {}
    for name in chosen(arguments.only):
        case = CASES[name]()
        figures[name] = {solver: measured(case, SOLVERS[solver], stop) for solver in arguments.solvers}
        for solver, found in figures[name].items():
            console.print(f"{name}, {solver}: {found['outcome']}, {found['seconds']:.3g} s", highlight=False)
    RESULTS.parent.mkdir(exist_ok=True)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    told = {"date": date, "tolerance": arguments.tolerance, "machine": machine(), "versions": versions()}
    RESULTS.write_text(json.dumps(told | {"cases": figures}, indent=1) + "\n", encoding="utf-8")
    show(figures, console)


def show(figures: dict[str, dict[str, Any]], console: Console) -> None:
    table = Table("case", "solver", "outcome", "iterations", "seconds", "energy [J]", "imbalance", "distance")
    for name, by_solver in figures.items():
        for solver, f in by_solver.items():
            distance = "" if f["distance"] is None else f"{f['distance']:.1e}"
            row = f"{f['iterations']:,}", f"{f['seconds']:.3g}", f"{f['energy']:.9g}", f"{f['imbalance']:.1e}"
            table.add_row(name, solver, f["outcome"], *row, distance)
    console.print(table)
    ratios = [
        min(f["seconds"] for solver, f in case.items() if solver != "descent") / case["descent"]["seconds"]
        for case in figures.values()
        if len(case) > 1 and "descent" in case
    ]
    if ratios:
        console.print(
            f"geometric mean against the better of the others: {np.exp(np.mean(np.log(ratios))):.2f}"
        )


if __name__ == "__main__":
    main()
