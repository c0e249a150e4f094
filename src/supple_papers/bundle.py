"""Bundle of ten spindle-shaped muscles in contact, bound by connective tissue [PBNG Fig. 15].

The paper's musculature is not public; this is a small substitute. As the tendons at the ends of the muscles
approach each other, the bellies are pressed together.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

import supple
from supple import PBNG, Hybrid, Newton
from supple_papers.internals import Surfaces, find_crossings
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

LENGTH, DIAMETER, GAP = 1.0, 0.12, 0.004
"""Length and diameter of a muscle, and gap between neighbors at their thickest point [m]."""

END_DISPLACEMENT = 0.2
"""Relative displacement of the muscle ends toward the axis of the bundle."""

TOLERANCE, EXACT = 1e-5, 1e-9
"""Relative residual of PBNG and hybrid, and of Newton.

At the first one, overlaps are accurate to well below 1 mm.
"""

MIN_OVERLAP = 1e-3
"""Overlap without contact [m] above which the contact method is tested at all."""


def cross_section() -> np.ndarray:
    """(10, 2) cross-section positions of the muscles in rows of three, four and three [m]."""
    rows = [(row, k - 0.5 * (count - 1)) for row, count in ((-1, 3), (0, 4), (1, 3)) for k in range(count)]
    return (DIAMETER + GAP) * np.array(rows) * (np.sqrt(3) / 2, 1)


def bundle(full: bool, contact: Any) -> supple.Scene:
    """Ten muscles; tissue ties neighbors over part of their length, and contact acts elsewhere."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=contact)
    shape = supple.ball(resolution=6 if full else 3)
    flesh = supple.Corotated(young=1e5, poisson=0.3)
    centers = cross_section()
    for y, z in centers:
        points = shape.points * (0.5 * LENGTH, 0.5 * DIAMETER, 0.5 * DIAMETER) + (0, y, z)
        body = scene.add_solid(supple.TetMesh(points, shape.tets), flesh, density=1000)
        for side in (-1, 1):
            end = np.flatnonzero(side * body.points[:, 0] > 0.4 * LENGTH)
            scene.pin(
                body.where(end), motion=supple.Translate((0, -END_DISPLACEMENT * y, -END_DISPLACEMENT * z))
            )
    for i, one in enumerate(scene.bodies):
        for j in range(i):
            way = centers[j] - centers[i]
            if np.linalg.norm(way) < 1.1 * (DIAMETER + GAP):
                is_near_side = (one.points[:, 1:] - centers[i]) @ way / np.linalg.norm(way) > 0.4 * DIAMETER
                is_tied = (
                    is_near_side & (one.points[:, 0] > 0.05 * LENGTH) & (one.points[:, 0] < 0.25 * LENGTH)
                )
                if is_tied.any():
                    tissue = one.where(np.flatnonzero(is_tied))
                    scene.attach(tissue, scene.bodies[j], stiffness=1e3, keep_offset=True)
    return scene


@cache
def solve_bundle(full: bool, contact: str, name: str) -> supple.Result:
    """Equilibrium from rest in four steps; Newton starts from the result of PBNG.

    PBNG resolves hundreds of changing contacts by sweeps, and Newton then removes the remaining residual.
    """
    scene = bundle(full, contact)
    if name == "newton":
        near = solve_bundle(full, contact, "pbng").positions
        return supple.equilibrium(
            scene, solver=Newton(), initial=near, tolerance=EXACT, position_tolerance=None
        )
    solver: Any = {"pbng": PBNG(), "hybrid": Hybrid()}[name]
    return supple.equilibrium(
        scene,
        solver=solver,
        load_steps=4,
        tolerance=TOLERANCE,
        position_tolerance=None,
        max_iterations=20_000,
    )


def depth(scene: supple.Scene, result: supple.Result) -> float:
    """Largest penetration of a vertex into another muscle [m]."""
    bodies = scene.bodies
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in bodies])
    owner = np.repeat(np.arange(len(bodies)), [len(body.points) for body in bodies])
    surfaces = Surfaces(triangles, owner, result.model.rest, 0.0, np.zeros(len(bodies), bool))
    return max((each.depth for each in find_crossings(surfaces, result.positions)), default=0.0)


def measure_convergence(measurements: Measurements, contact: str, name: str) -> Quantities:
    """Convergence of a solver, and its distance from Newton's result relative to the motion."""
    result = solve_bundle(measurements.full, contact, name)
    exact = solve_bundle(measurements.full, contact, "newton")
    moved = np.linalg.norm(exact.positions - exact.model.rest, axis=1).max()
    contact_report = result.report.contact
    if contact == "weak" and name == "newton":
        measurements.picture(result, "ten muscles, gathered at their ends", field="body", camera=(25, 12))
    return {
        "relative residual": result.report.relative_residual,
        "converged": result.report.ok,
        "iterations": result.report.iterations,
        "seconds": result.report.seconds,
        "contacts": contact_report.bodies.count if contact_report and contact_report.bodies else 0,
        "overlap [m]": depth(bundle(measurements.full, contact), result),
        "from Newton": float(np.linalg.norm(result.positions - exact.positions, axis=1).max() / moved),
    }


@shows("pbng-fig15")
def with_contact(measurements: Measurements) -> str:
    free = measurements.part(
        "without contact, newton", partial(measure_convergence, measurements, "none", "newton")
    )
    contact_rows = {
        name: measurements.part(
            f"contact = weak, {name}", partial(measure_convergence, measurements, "weak", name)
        )
        for name in ("newton", "pbng", "hybrid")
    }
    rows = contact_rows.values()
    away, deep = max(row["from Newton"] for row in rows), max(row["overlap [m]"] for row in rows)
    overlaps = free["overlap [m]"] > MIN_OVERLAP
    return measurements.judge(
        f"ten muscles with tissue between them pass {free['overlap [m]'] * 1e3:.1f} mm into each other "
        f"without contact, {deep * 1e3:.2g} mm with it, at {contact_rows['newton']['contacts']} "
        "contacts; PBNG and "
        f"the default end at a relative residual of {max(row['relative residual'] for row in rows):.1e} "
        "after "
        f"{contact_rows['pbng']['iterations']} sweeps, {away:.1e} of the motion from where Newton leads "
        "from there.",
        Claim("without contact, muscles interpenetrate", overlaps, "nothing presses them together."),
        Claim(
            "contact leaves at most a tenth of that penetration",
            overlaps and deep <= 0.1 * free["overlap [m]"],
        ),
        Claim(
            "PBNG and the default converge in contact, within 1 % of the motion from Newton's solution",
            overlaps and all(row["converged"] for row in rows) and away < 0.01,
        ),
    )
