"""Figures of PXPBD with bodies embedded in a grid [PXPBD section 5.5]."""

from __future__ import annotations

from functools import cache, partial
from time import perf_counter

import numpy as np

import supple
from supple import BPXPBD, XPBD, Newton
from supple.solvers import Solver
from supple_papers.internals import Forces, color_elements, make_grid_model
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

COUNTS = (10, 40, 100)


@cache
def objects_in_a_box(full: bool) -> supple.Scene:
    """Boxes, balls and tori in random orientations, stacked in a box; E = 1000 Pa, ν = 0.3, ρ = 10 kg/m³."""
    fine, count = (3, 30) if full else (1, 6)
    shapes = [
        supple.block(cells=3 * fine, size=(0.4, 0.4, 0.4)).translated((-0.2, -0.2, -0.2)),
        supple.ball(0.25, resolution=3 * fine),
        supple.meshes.torus(0.2, 0.08, resolution=2 * fine),
    ]
    rng = np.random.default_rng(1)
    scene = supple.Scene(quasistatic=False, dt=1 / 30, contact="grid")
    side = 3 if full else 1
    box = supple.Box(size=(0.75 * side, 60, 0.75 * side), center=(0, 30, 0), hollow=True)
    scene.add_obstacle(box, name="box")
    material = supple.Corotated(young=1000, poisson=0.3)
    for k in range(count):
        layer, column = divmod(k, side * side)
        x, z = (np.array(divmod(column, side)) - 0.5 * (side - 1)) * 0.74
        mesh = shapes[k % 3].rotated(rng.normal(size=3), rng.uniform(0, 3))
        scene.add_solid(mesh.translated((x, 0.4 + 0.62 * layer, z)), material, density=10)
    return scene


@cache
def land_objects(full: bool) -> supple.Frame:
    """Frame after the objects have come into contact."""
    *_, frame = supple.simulate(objects_in_a_box(full), solver=BPXPBD(zeta=0.5, iterations=20), frames=15)
    return frame


def one_step(measurements: Measurements, solver: Solver, iterations: int) -> Quantities:
    """Relative residual of the next step after several iteration counts, and time per iteration [ms]."""
    scene, frame = objects_in_a_box(measurements.full), land_objects(measurements.full)
    (after,) = supple.simulate(
        scene,
        solver=solver,
        dt=1e-3,
        frames=1,
        initial=frame.state,
        record_history=True,
        max_iterations=iterations,
        tolerance=1e-12 if solver.solves_systems else None,
    )
    history = after.report.history
    assert history is not None
    residual = np.array(history.residual) / history.residual[0]
    left = {str(k): float(residual[min(k, len(residual) - 1)]) for k in COUNTS}
    fast = np.flatnonzero(residual < 1e-3)
    reached = {"ms to 1e-3": 1e3 * history.seconds[fast[0]]} if len(fast) else {}
    ms = 1e3 * after.report.seconds / max(after.report.iterations, 1)
    return {**left, **reached, "ms": ms, "set-up [ms]": 1e3 * after.report.setup_seconds}


@shows("pxpbd-fig9")
def residuals_on_a_grid(measurements: Measurements) -> str:
    cases = {"xpbd": XPBD(), "bpxpbd, zeta 0.5": BPXPBD(zeta=0.5), "newton": Newton()}
    rows = {
        name: measurements.part(
            name, partial(one_step, measurements, s, 20 if name == "newton" else max(COUNTS))
        )
        for name, s in cases.items()
    }
    xpbd, blended, newton = (row[str(max(COUNTS))] for row in rows.values())
    times = [rows[name].get("ms to 1e-3") for name in ("bpxpbd, zeta 0.5", "newton")]
    said = " and ".join("never" if t is None else f"after {t:.3g} ms" for t in times)
    return measurements.judge(
        f"after {max(COUNTS)} iterations XPBD has {xpbd:.2g} of the residual left, B-PXPBD "
        f"{blended:.1e}, Newton {newton:.1e}; B-PXPBD and Newton are at 1e-3 {said}, without the set-up.",
        Claim("B-PXPBD leaves less than a hundredth of XPBD's residual", blended < 1e-2 * xpbd),
        Claim("Newton leaves less than a hundredth of XPBD's residual", newton < 1e-2 * xpbd),
        Claim("B-PXPBD reaches 1e-3 sooner than Newton", None not in times and times[0] < times[1]),
    )


@shows("pxpbd-fig6")
def colors_on_a_grid(measurements: Measurements) -> str:
    counts = measurements.part("colors", partial(count_colors, measurements))
    return measurements.judge(
        f"{counts['on the grid']} colors where elements of the mesh have {counts['on the mesh']}, found in "
        f"{counts['ms']:.3g} ms.",
        Claim("elements of equal color share no node", counts.get("nodes shared within a color", 0) == 0),
    )


def count_colors(measurements: Measurements) -> Quantities:
    frame = land_objects(measurements.full)
    model = frame.model
    assert model.grid is not None
    state = frame.positions, frame.velocities, np.zeros((model.vertices, 3, 3))
    forces = Forces(model.force, np.empty((0, 3)), {})
    nodes = make_grid_model(model, model.grid.spacing, state, forces, 1e-3, "float64").model  # type: ignore[arg-type]
    stencils = nodes.terms[0].vertices
    began = perf_counter()
    colors = color_elements(stencils, nodes.vertices)
    ms = 1e3 * (perf_counter() - began)
    shared = 0
    for color in range(colors.max() + 1):
        used = [np.unique(stencil) for stencil in stencils[colors == color]]
        shared += sum(map(len, used)) - len(np.unique(np.concatenate(used)))
    own = color_elements(model.terms[0].vertices, model.vertices)
    counts = {"on the grid": int(colors.max()) + 1, "on the mesh": int(own.max()) + 1}
    return {**counts, "nodes shared within a color": shared, "ms": ms}
