"""Known solutions of pressing: Hertz' law, uniform pressure across two meshes, a closing gap."""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

import numpy as np
from contact_meshes import ROUND, growing, hold_sector, sector

import supple
from supple.contact.weak_contact import contact_forces_on_vertices

YOUNG, POISSON = 1e6, 0.3
STAR = YOUNG / (1 - POISSON**2)


def hertz(cells: int, depth: float = 2.5e-5, radius: float = 1.0, wide: float = 100.0) -> dict:
    """A rigid ball pressed into a half-space by d: F = 4/3 E* √R d^{3/2}, a = √(R d). The radius of contact
    is that of Hertz's pressure with the second moment of the forces, ⟨r²⟩ = 2/5 a². A sector of a cylinder,
    `wide` times as large as a, whose bottom is pinned, which makes it stiffer by about 0.6/wide; so many
    cells along 1.5 a.

    The law leaves out that the surface moves inwards where it is pressed, by u/r = -½ (1 - 2ν) (1 + ν) p₀/E
    in the middle, which flattens the ball as it sees it and makes F larger by about that part: 0.9 % at
    a = R/20, 0.09 % at a = R/200, for ν = 0.3."""
    began, a = perf_counter(), float(np.sqrt(radius * depth))
    size = wide * a
    line = growing(1.5 * a, cells, 1 + 3 / cells, size)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(sector(line, line), supple.materials.LinearElastic(young=YOUNG, poisson=POISSON))
    hold_sector(scene, body, size, -size)
    ball = supple.Sphere(radius=radius, center=(0, radius, 0))
    scene.add_obstacle(ball, supple.Translate((0, -depth, 0)), name="ball")
    result = supple.equilibrium(scene, tolerance=1e-6, position_tolerance=None)
    contacts = result.evaluate().obstacle_contacts
    normal = contacts.force[:, 1]
    positions = result.positions[contacts.vertices]
    shares = normal / normal.sum()
    contact_radius = float(np.sqrt(2.5 * (shares * (positions[:, 0] ** 2 + positions[:, 2] ** 2)).sum()))
    expected = 4 / 3 * STAR * np.sqrt(radius) * depth**1.5
    return {
        "cells": cells,
        "depth": depth,
        "vertices": result.model.vertices,
        "edge": 1.5 / cells,
        "force": -ROUND * float(normal.sum()) / expected,
        "radius": contact_radius / a,
        "contacts": int((normal < 0).sum()),
        "block": 1 + 0.6 / wide,
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
        "wall": perf_counter() - began,
    }


def limit(rows: list[dict], name: str) -> float:
    """Limit of a figure, extrapolated in 1/cells from the last two runs."""
    coarse, fine = rows[-2:]
    change = fine["cells"] * fine[name] - coarse["cells"] * coarse[name]
    return change / (fine["cells"] - coarse["cells"])


def hertz_all(cells: tuple[int, ...] = (12, 20, 30)) -> dict:
    rows = []
    for count in cells:
        rows.append(hertz(count))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    deeper = hertz(cells[-1], 5e-5)
    return {
        "runs": rows,
        "force": limit(rows, "force"),
        "radius": limit(rows, "radius"),
        "exponent": 1.5 + float(np.log(deeper["force"] / rows[-1]["force"]) / np.log(2)),
    }


def two_spheres(cells: int = 12, approach: float = 5e-5, wide: float = 100.0) -> dict:
    """Two equal balls pressed together by h, of meshes that do not match: a = √(R h/2) and F = 4/3 E* √R*
    h^{3/2} with E* = E/(2 (1 - ν²)) and R* = R/2; and F = 4/3 E* a³/R*, which does not know how large the
    bodies are (code_aster V6.04.222). Caps `wide` times as large as a."""
    began, radius = perf_counter(), 1.0
    a = float(np.sqrt(radius * approach / 2))
    size = wide * a
    thick = 0.02 * approach
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("weak", thickness=thick))
    elastic = supple.materials.LinearElastic(young=YOUNG, poisson=POISSON)

    def cap(r: np.ndarray) -> np.ndarray:
        return np.sqrt(radius**2 - r**2) - radius

    for name, count in (("low", cells), ("high", cells + cells // 3)):
        line = growing(1.5 * a, count, 1 + 3 / count, size)
        mesh = sector(line, line, cap)
        if name == "high":
            points = mesh.points * (1, -1, 1) + (0, thick, 0)
            mesh = supple.TetMesh(points, mesh.tets[:, [0, 2, 1, 3]])
        body = scene.add_solid(mesh, elastic, name=name)
        outer_plane = size + thick if name == "high" else -size
        motion = supple.Translate((0, -approach, 0)) if name == "high" else None
        hold_sector(scene, body, size, outer_plane, motion)
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-4, position_tolerance=None)
    return _two_spheres(result, a, radius, approach, wide) | {"cells": cells, "wall": perf_counter() - began}


def _two_spheres(result: Any, a: float, radius: float, approach: float, wide: float) -> dict:
    """Force and contact radius, from the forces on vertices of the lower sphere."""
    own = result.model.body_vertices[0][1]
    term = result.model.terms[-1]
    force = contact_forces_on_vertices(term, result.positions, result.model.rest)[own, 1]
    x = result.positions[own]
    contact_radius = float(np.sqrt(2.5 * (force / force.sum() * (x[:, 0] ** 2 + x[:, 2] ** 2)).sum()))
    total, star = -ROUND * float(force.sum()), STAR / 2
    return {
        "force": total / (4 / 3 * star * np.sqrt(radius / 2) * approach**1.5),
        "radius": contact_radius / a,
        "force_of_radius": total / (4 / 3 * star * contact_radius**3 / (radius / 2)),
        "block": 1 + 0.6 / wide,
        "vertices": result.model.vertices,
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
    }


def patch(method: str = "weak", thickness: float | None = None) -> dict:
    """Two blocks of different cells, pressed together without friction, ν = 0: the stress is E u/H
    everywhere, and their surfaces meet half-way [El-Abbasi and Bathe 2001].

    A barrier pushes equally at all vertices and crossings of edges that are equally near, whatever area they
    stand for, and so gaps differ until forces do not, by a part of the thickness h: strains differ by that
    over an edge."""
    began = perf_counter()
    contact: Any = supple.Contact(method, thickness=thickness)  # type: ignore[arg-type]
    scene = supple.Scene(gravity=(0, 0, 0), contact=contact)
    elastic = supple.materials.LinearElastic(young=YOUNG, poisson=0.0)
    low = scene.add_solid(supple.block(cells=(3, 3, 3), size=(1, 1, 1)), elastic, name="low")
    gap = 0.01 / 3  # the thickness, 1 % of an edge or so
    high = scene.add_solid(
        supple.block(cells=(4, 4, 4), size=(1, 1, 1)).translated((0, 1 + gap, 0)), elastic, name="high"
    )
    pressing_depth = 0.05
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -pressing_depth, 0)), name="top")
    result = supple.equilibrium(scene, tolerance=1e-6, position_tolerance=None)
    evaluation = result.evaluate()
    stress = evaluation.cauchy[:, 1, 1]
    force = float(evaluation.reactions["top"].force[1])
    return {
        "method": method,
        "thickness": thickness,
        "force": force / (-YOUNG * pressing_depth / 2),
        "stress": [float(stress.min() / stress.mean()), float(stress.max() / stress.mean())],
        "outcome": result.report.outcome.name.lower(),
        "iterations": result.report.iterations,
        "wall": perf_counter() - began,
    }


def patches() -> list[dict]:
    barriers = [patch("barrier", thickness) for thickness in (None, 0.005, 0.001)]
    return [patch("weak"), *barriers]


def closing(nu: float = 0.3) -> list[dict]:
    """A soft block that closes a gap of 6 % and is pressed further, weak contact: every solver converges to
    Newton's equilibrium."""
    rows, reference = [], None
    for name in ("newton", "pbng", "hybrid"):
        scene, soft = supple.Scene(gravity=(0, 0, 0), contact="weak"), supple.Corotated(young=1e5, poisson=nu)
        low = scene.add_solid(supple.block(2), soft, name="low")
        high = scene.add_solid(supple.block(3).translated((0, 1.06, 0)), soft, name="high")
        scene.pin(low.where(lambda X: X[:, 1] <= 0))
        scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -0.16, 0)))
        began = perf_counter()
        result = supple.equilibrium(scene, solver=name, tolerance=1e-6, position_tolerance=None)
        reference = result.positions if reference is None else reference
        rows.append(
            {
                "solver": name,
                "outcome": result.report.outcome.name.lower(),
                "iterations": result.report.iterations,
                "relative_residual": result.report.relative_residual,
                "from_newton": float(np.abs(result.positions - reference).max()),
                "wall": perf_counter() - began,
            }
        )
    return rows
