"""Cloth compared with closed forms, and the cost of a sweep: python benchmarks/cloth.py

Strips under their own weight compared with the heavy elastica (ASTM D1388), a catenary and the length at
which they give way sideways, sheets rolled to cylinders compared with plate theory; operations and bytes of
the stencils of cloth and of tetrahedra, and sweeps of PBNG over them, in float32, on one thread and on a CUDA
device where there is one. Writes benchmarks/results/cloth.json; with names of parts, such as sweeps, only
these are measured again; `card` measures sweeps on a CUDA device.
"""

from __future__ import annotations

import json
import math
import sys
from datetime import date
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

sys.path += [str(Path(__file__).parents[1] / "tests" / name) for name in ("", "terms")]
from cloth_shapes import ELASTICA, cantilever, cloth, equilateral, tip
from operations import operations_per_update
from problems import model_of, sheet
from scipy.optimize import brentq
from test_buckling import CRITICAL, least_curvature

import supple
from supple.config.backend import Backend
from supple.io.machine import machine
from supple.model.model import Model
from supple.problem import Problem
from supple.scene import build_model
from supple.solve.batch_solve import make_problem
from supple.terms import bending_terms

RESULTS = Path(__file__).parent / "results" / "cloth.json"
CELLS, ROWS = 64, 28
SWEEPS = 50
BENDINGS = {"hinge": supple.HingeBending, "isometric": supple.IsometricBending}


def weave(stretching: float) -> supple.materials.WovenStVK:
    """A weave with E h [N/m] of the isotropic strip along it, half across, and soft in shear."""
    weft = stretching / 1e-2
    return supple.materials.WovenStVK(
        young_weft=weft, young_warp=0.5 * weft, shear_modulus=0.1 * weft, poisson_weft=0.2, poisson_warp=0.1
    )


def elastica() -> list[dict[str, Any]]:
    """Angle of the chord against the heavy elastica, for each weight."""
    return [
        strip(name, weight, bending)
        for name, bending in BENDINGS.items()
        for weight in ELASTICA
        if name != "isometric" or weight in (8, 100)
    ]


def weaves() -> list[dict[str, Any]]:
    """Strips twice as stiff along as across, and soft in shear, against the elastica."""
    return [strip("weave", weight, supple.HingeBending) for weight in ELASTICA]


def strip(name: str, weight: int, bending: Any) -> dict[str, Any]:
    stretching = 4e7 if weight == 1 else 1e7  # what is bent less must be harder to bend across itself
    membrane = weave(stretching) if name == "weave" else None
    return hung(name, weight, cantilever(weight, CELLS, ROWS, bending, stretching, membrane))


def right_triangles() -> list[dict[str, Any]]:
    """Strips of halved squares along their sides, along the diagonals and across them, under Γ = 8."""
    return [
        hung(f"{pattern} diagonals, {degrees} degrees", 8, of_right_triangles(8, pattern, degrees))
        for pattern, degrees in (("alternating", 0), ("parallel", 0), ("parallel", -45), ("parallel", 45))
    ]


def hung(name: str, weight: int, model: Model) -> dict[str, Any]:
    """Equilibrium of a hanging strip."""
    result = supple.equilibrium(model)
    angle, expected = (
        math.degrees(math.atan2(*end)) for end in (tip(model, result.positions), ELASTICA[weight])
    )
    entry = {
        "bending": name,
        "weight": weight,
        "angle": round(angle, 3),
        "expected": round(expected, 3),
        "error": round(angle / expected - 1, 5),
        "outcome": result.report.outcome.name,
    }
    print(entry, flush=True)
    return entry


def of_right_triangles(weight: float, pattern: str, degrees: float) -> Model:
    """The cantilever of halved squares at an angle [degrees] from their sides; parallel diagonals are
    transverse in a strip of 45 degrees, and longitudinal in one of -45. Columns of vertices are `step` apart
    along it; two of them are pinned, and the first hinge bends half a step on both sides of it, so that the
    strip begins between them."""
    cell = 1 / (CELLS - 0.5)
    if not degrees:
        step = cell
        mesh = supple.sheet(
            (CELLS, CELLS // 4), (1 + cell / 2, CELLS // 4 * cell), pattern, origin=(-cell / 2, 0, 0)
        )
        points, triangles = mesh.points, mesh.triangles
    else:
        points, triangles, step = cut_out(pattern, degrees)
    pinned = np.flatnonzero(points[:, 0] <= 0.5 * step + 1e-9)
    membrane = supple.materials.PlaneStressStVK(young=1e9, poisson=0.0)
    bending, down = supple.HingeBending(1.0), np.array([0, 0, -weight])
    return cloth(points, triangles, membrane, bending, pinned, down)


def cut_out(pattern: str, degrees: float) -> tuple[np.ndarray, np.ndarray, float]:
    """A strip from -step/2 to 1 of a large rotated sheet, with the borders of its triangles."""
    step = 1 / (CELLS - 0.5)
    cell, many = step * math.sqrt(2), 2 * CELLS
    mesh = supple.sheet(many, (many * cell, many * cell), pattern)
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turned = (mesh.points - mesh.points.mean(axis=0)) @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
    turned[:, 0] -= (
        turned[:, 0].min() + (many - CELLS // 2 + 0.5) * step
    )  # columns: -1/2, 1/2, 3/2, ... steps
    low, high = np.array([-0.5 * step, -8.5 * step]) - 1e-6, np.array([1.0, 8.5 * step]) + 1e-6
    inside = ((turned[:, :2] >= low) & (turned[:, :2] <= high)).all(axis=1)
    triangles = mesh.triangles[inside[mesh.triangles].all(axis=1)]
    used, new = np.unique(triangles, return_inverse=True)
    return turned[used], new.reshape(-1, 3), step


STRETCHED = {"basket1": 0.02, "honey1": 0.06, "rib1": 0.07, "satin1": 0.02, "stock1": 0.035}
"""Displacement of each of two bars [m], as in HYLC's tests."""


def fabrics() -> list[dict[str, Any]]:
    """Equilibria of HYLC's fabrics between bars that separate in four frames, as in GPBD Fig. 5; they need
    $SUPPLE_DATA."""
    results = []
    for name, away in STRETCHED.items():
        scene = supple.Scene(dt=0.25)
        cloth = scene.add_cloth(supple.sheet(16, (0.3, 0.3), plane="zx"), supple.load_fabric(name), rest="uv")
        x, _, z = cloth.points.T
        for low, way in ((0.037, -away), (0.241, away)):
            bar = (z >= low) & (z <= low + 0.022) & (x >= 0.049) & (x <= 0.251)
            scene.pin(cloth.where(np.flatnonzero(bar)), motion=supple.Translate((0, 0, way)))
        frames = list(supple.simulate(scene, frames=4))
        reports = [frame.report for frame in frames]
        results.append(
            {
                "fabric": name,
                "stretch": round(2 * away / 0.1875, 2),
                "outcomes": [report.outcome.name for report in reports],
                "relative_residual": max(float(f"{report.relative_residual:.2g}") for report in reports),
                "iterations": sum(report.iterations for report in reports),
                "largest_angle": round(float(np.max(frames[-1].evaluate().bending_angle)), 1),
            }
        )
        print(results[-1], flush=True)
    return results


def catenary() -> dict[str, Any]:
    """Sag of a heavy strip without bending stiffness, a fifth longer than the distance of its ends."""
    span, length = 1.0, 1.2
    mesh = supple.sheet((40, 1), (span, 0.02), plane="xz", pattern="parallel")
    scene = supple.Scene()
    strip = scene.add_cloth(
        mesh,
        supple.materials.PlaneStressStVK(young=1e7, poisson=0.0),
        rest=mesh.points * [length / span, 1, 1],
        density=0.2,
    )
    scene.pin(strip.where(lambda X: (X[:, 0] <= 0) | (X[:, 0] >= span)))
    result = supple.equilibrium(scene, tolerance=1e-5)
    a = brentq(lambda a: 2 * a * math.sinh(span / (2 * a)) - length, 0.1, 10)
    sag, expected = -result.positions[:, 1].min(), a * (math.cosh(span / (2 * a)) - 1)
    entry = {"sag": round(float(sag), 5), "expected": round(expected, 5)}
    entry |= {"error": round(float(sag / expected - 1), 5), "outcome": result.report.outcome.name}
    print(entry, flush=True)
    return entry


def buckling() -> dict[str, Any]:
    """Weight at which a strip on edge buckles laterally; its length scales with the cube root."""
    weight = brentq(lambda w: least_curvature(CRITICAL * w), 0.8, 1.3, xtol=1e-3)
    entry = {"weight": round(weight, 4), "length": round(weight ** (1 / 3), 4)}
    print(entry, flush=True)
    return entry


def cylinders() -> list[dict[str, Any]]:
    """Energy of rolled sheets relative to a plate, for directions across the mesh."""
    results = []
    meshes = {"equilateral": equilateral(48, 56), "right triangles": sheet(48)}
    for mesh, (points, triangles) in meshes.items():
        area = float(np.ptp(points[:, 0]) * np.ptp(points[:, 1]))
        for degrees in (0, 17, 45, 135):
            c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            flat = points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
            rolled = np.stack(
                [2 * np.sin(flat[:, 0] / 2), flat[:, 1], 2 - 2 * np.cos(flat[:, 0] / 2)], axis=1
            )
            for name, kind in BENDINGS.items():
                problem = Problem(model_of(flat, *bending_terms(kind(1.0), flat, triangles, flat)), "float64")
                problem.positions = rolled
                energy = float(problem.diagnostics.stored_energies().sum())
                ratio = round(energy / (area / 8), 4)
                results.append({"mesh": mesh, "degrees": degrees, "bending": name, "ratio": ratio})
                print(results[-1], flush=True)
    return results


def sweep(model: Model, device: str) -> dict[str, Any]:
    """Milliseconds of a sweep, and nanoseconds of each update with a stencil."""
    problem = make_problem(model, True, Backend(device, "float32", 1))
    clock = thread_time if device == "cpu" else perf_counter
    problem.set_inertia(0.01, model.rest)
    problem.begin_step(np.inf)
    run = supple.PBNG("none").begin(problem)
    run.advance(2)
    times = []
    for _ in range(8):
        problem.device.wait()
        begin = clock()
        run.advance(SWEEPS)
        problem.device.wait()
        times.append((clock() - begin) / SWEEPS)
    stencils = sum(len(term.vertices) for term in model.terms)
    incidences = sum(term.vertices.size for term in model.terms)
    return {
        "vertices": model.vertices,
        "stencils": stencils,
        "ms": round(1e3 * min(times), 4),
        "ns_per_visit": round(1e9 * min(times) / incidences, 2),
        "ns_per_stencil": round(1e9 * min(times) / stencils, 2),
    }


def swept() -> dict[str, Model]:
    """A cloth of 128 × 128 cells, as membrane and with hinges, and a block of as many tetrahedra."""
    points, triangles = sheet(128)
    pinned = np.flatnonzero(points[:, 0] == 0)
    membrane, down = supple.Corotated(young=1e5, poisson=0.3), np.array([0, 0, -10.0])
    scene = supple.Scene(gravity=(0, -1, 0))
    body = scene.add_solid(supple.block(25), membrane, density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    return {
        "tetrahedra": build_model(scene),
        "membrane": cloth(points, triangles, membrane, None, pinned, down),
        "membrane and hinges": cloth(points, triangles, membrane, supple.HingeBending(1e-3), pinned, down),
    }


def sweeps(device: str = "cpu") -> dict[str, Any]:
    results = {}
    for name, model in swept().items():
        results[name] = sweep(model, device)
        print(name, results[name], flush=True)
    return results


def operations() -> dict[str, Any]:
    """Operations of a vertex update and of a stencil; for the sweep over cloth with hinges, the mean of its
    stencils."""
    models = swept()
    results = operations_per_update(models["tetrahedra"]) | operations_per_update(
        models["membrane and hinges"]
    )
    terms = models["membrane and hinges"].terms
    counts = {term.name: len(term.vertices) for term in terms}
    for what in ("flops_per_stencil", "bytes_per_stencil"):
        mean = sum(count * results[name][what] for name, count in counts.items()) / sum(counts.values())
        results.setdefault("mean of cloth", {})[what] = round(mean)
    for name, row in results.items():
        print(name, row, flush=True)
    return results


def main() -> None:
    parts: dict[str, Any] = {
        "sweeps": sweeps,
        "operations": operations,
        "cylinders": cylinders,
        "catenary": catenary,
        "buckling": buckling,
        "elastica": elastica,
        "weaves": weaves,
        "right_triangles": right_triangles,
        "fabrics": fabrics,
    }
    if sys.argv[1:] == ["card"]:
        from supple.kernels.cuda import require_device

        parts = {"card": lambda: {"device": require_device(), **sweeps("cuda")}}
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for name in sys.argv[1:] or parts:
        results |= {name: parts[name](), "machine": machine(), "date": str(date.today())}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
