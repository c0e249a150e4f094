"""Figures and tables of GPBD."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import supple
from supple import GPBD, PBNG
from supple.materials import MATERIALS
from supple_papers import fabrics, gpbd_impact
from supple_papers.common import (
    begin_time_step,
    cube_of_six,
    elastic_energy,
    face,
    jacobians,
    march,
    ms_per_sweep,
    problem_on,
)
from supple_papers.internals import Problem
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

PARTS = fabrics, gpbd_impact
"""Modules that register further experiments on import."""

MOTION_STEPS = 300
"""Number of steps in which the ends of the cubes move; the paper does not give it."""

TABLE_5: dict[str, tuple[int, dict[float, tuple[Any, Any]]]] = {
    "twist": (15, {0.45: ((2, 1), (2, 2)), 0.49: ((2, 1), (2, 2)), 0.495: ((2, 2), (2, 2)),
                   0.499: ((2, 2), (2, 5)), 0.4995: ((2, 3), (2, 5))}),
    "stretch": (15, {0.45: ((3, 2), (3, 3)), 0.49: ((2, 3), (3, 5)), 0.495: ((2, 3), (3, 5)),
                     0.499: ((3, 5), (3, 5)), 0.4995: (None, (3, 5))}),
    "compress": (20, {0.45: ((2, 3), (2, 5)), 0.49: ((2, 3), (2, 7)), 0.495: ((2, 3), (2, 10)),
                      0.499: ((2, 5), (8, 10)), 0.4995: ((2, 8), (20, 10))}),
}  # fmt: skip
"""Parameters of GPBD Table 5: cells along an edge, and iteration counts for each Poisson's ratio.

The counts are (GPBD iterations, largest number of Newton steps) for neo-Hookean without and with the
logarithmic barrier; None marks a case that is unstable in the paper.
"""

FORMS: dict[str, dict[str, Any]] = {
    "gauss_seidel": {"sweep": "gauss_seidel"},
    "jacobi, mass": {"sweep": "jacobi", "jacobi_weights": "mass"},
    "jacobi, vertex": {"sweep": "jacobi", "jacobi_weights": "vertex"},
    "jacobi, element": {"sweep": "jacobi", "jacobi_weights": "element"},
}

CRITERIA = (
    "Stated before the runs: a row is 'dissipating' if positions stay finite in all steps, elastic and "
    "kinetic energy together are less at the end than when the ends came to rest, and no element with a "
    "barrier is inverted then; it is 'strict' if that energy also never rose by more than a tenth from "
    "then on, seen at every 20th step. (A first version asked it of the elastic energy alone, which swings "
    "in a body that loses nothing: it failed rows of every form whose whole energy never rose, and was "
    "replaced before these runs.)"
)

LOST_ROW = (
    "one row is not: the compressed cube with barrier at ν = 0.4995. As its ends come to rest, adjacent "
    "elements invert, some permanently. Neither more sweeps nor float64 nor slower ends help: local problems"
    " contain the barrier of one element only (docs/design/constraint_family.md)."
)

PASSING_INVERSIONS = (
    "three rows are not, compressed cubes with barrier: some elements are temporarily inverted, with "
    "infinite energy. At the end, no element is inverted at ν = 0.45 and 0.495, ten at 0.4995."
)

HEAVIER_BODIES = (
    "two or three Jacobi sweeps are far from convergence. Bodies behave as if heavier, and their energy, "
    "computed with true mass, oscillates, more so near ν = 0.5. At the paper's size, elements with barrier "
    "also stay inverted (docs/design/constraint_family.md)."
)


def cube(material: Any, motion: str | None, cells: int, dt: float) -> supple.Scene:
    """Cube of density 1000 kg/m³ with moving ends, or free without a motion.

    The ends are stretched by 1 m, compressed by 0.5 m or twisted by π in total.
    """
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=dt)
    body = scene.add_solid(cube_of_six(cells), material, density=1000)
    for end, sign in ((0.0, -1.0), (1.0, 1.0)):
        moves = {
            "stretch": supple.Translate((0.5 * sign, 0, 0), duration=MOTION_STEPS * dt),
            "compress": supple.Translate((-0.25 * sign, 0, 0), duration=MOTION_STEPS * dt),
            "twist": supple.Rotate((1, 0, 0), (0, 0.5, 0.5), sign * np.pi / 2, duration=MOTION_STEPS * dt),
        }
        if motion is not None:
            scene.pin(face(body, 0, end), motion=moves[motion])
    return scene


def stress_test(
    measurements: Measurements, motion: str, cells: int, material: Any, solver: GPBD, sweeps: int, steps: int
) -> Quantities:
    """Simulate one row of Table 5 and evaluate both criteria."""
    scene = cube(material, motion, cells, 0.001)
    model = supple.scene.build_model(scene)
    elastic, energies, x = elastic_energy(model), [], model.rest
    options: Any = {"precision": "float32", "device": measurements.device}
    solver = replace(solver, iterations=sweeps)
    for frame in supple.simulate(scene, solver=solver, dt=0.02, substeps=20, frames=steps // 20, **options):
        finite = frame.report.outcome is not supple.Outcome.FAILED and bool(
            np.isfinite(frame.positions).all()
        )
        if not finite:
            break
        x, v = frame.positions, np.asarray(frame.velocities)
        if 20 * frame.index >= MOTION_STEPS:
            energies.append(elastic(x) + 0.5 * float(np.sum(model.mass[:, None] * v**2)))
    inverted = int(np.sum(~(jacobians(model, x) > 0)))
    is_known = np.isfinite(energies).all() and bool(energies)
    growth = max(energies) / energies[0] if is_known else np.inf
    valid = inverted == 0 or not material.barrier
    dissipating = finite and valid and bool(energies) and energies[-1] < energies[0]
    return {
        "dissipating": bool(dissipating),
        "strict": bool(dissipating and is_known and growth <= 1.1),
        "growth": growth,
        "inverted at the end": inverted,
    }


def rows_of_table_5(measurements: Measurements) -> dict[str, tuple[str, int, Any, tuple[int, int]]]:
    """Return the rows of Table 5: all 29 at the paper's size, or three Poisson's ratios on small cubes."""
    rows = {}
    for motion, (cells, ratios) in TABLE_5.items():
        for nu, counts in ratios.items():
            for name, count in zip(("neo_hookean", "log_neo_hookean"), counts, strict=True):
                if count is not None and (measurements.full or nu in (0.45, 0.495, 0.4995)):
                    material = MATERIALS[name](young=1e5, poisson=nu)
                    rows[f"{motion}, {name}, {nu:g}"] = (
                        motion,
                        cells if measurements.full else 5,
                        material,
                        count,
                    )
    return rows


@shows("gpbd-table5")
def table_5(measurements: Measurements) -> str:
    measurements.part("criteria", lambda: CRITERIA)
    steps = 2000 if measurements.full else 700
    counts = {form: [0, 0] for form in FORMS}
    rows = rows_of_table_5(measurements)
    for label, (motion, cells, material, (sweeps, newton)) in rows.items():
        for form, options in FORMS.items():
            solver = GPBD(newton_steps=newton, **options)
            test = partial(stress_test, measurements, motion, cells, material, solver, sweeps, steps)
            row = measurements.part(f"{label}, {form}", test)
            counts[form][0] += row["dissipating"]
            counts[form][1] += row["strict"]
    said = "; ".join(f"{form} {loose} and {strict}" for form, (loose, strict) in counts.items())
    best = max(loose for form, (loose, _) in counts.items() if form != "gauss_seidel")
    return measurements.judge(
        f"of {len(rows)} rows these are dissipating and strict: {said}.",
        Claim(
            "all rows are dissipating with Gauss-Seidel sweeps",
            counts["gauss_seidel"][0] == len(rows),
            LOST_ROW,
        ),
        Claim(
            "all rows are strict with Gauss-Seidel sweeps",
            counts["gauss_seidel"][1] == len(rows),
            PASSING_INVERSIONS,
        ),
        Claim(
            "with at least one form of Jacobi sweeps, all rows are dissipating",
            best == len(rows),
            HEAVIER_BODIES,
        ),
    )


@shows("gpbd-fig7")
def recovery(measurements: Measurements) -> str:
    cases = {
        (start, form): measurements.part(
            f"{start}, {form}", partial(recover_cube, measurements, start, newton, FORMS[form])
        )
        for start, newton in (("flattened", 6), ("randomised", 8))
        for form in ("gauss_seidel", "jacobi, mass")
    }
    uninverted = {case: row["inverted at the end"] == 0 for case, row in cases.items()}
    return measurements.judge(
        f"{sum(uninverted.values())} of {len(uninverted)} cubes, with the barrier and nu = 0.4995, end "
        "uninverted.",
        *(
            Claim(f"{start}, {form}: no inverted element is left", holds)
            for (start, form), holds in uninverted.items()
        ),
    )


def recover_cube(measurements: Measurements, start: str, newton: int, options: dict[str, Any]) -> Quantities:
    cells, steps = (20, 2000) if measurements.full else (5, 400)
    scene = cube(supple.materials.LogNeoHookean(young=1e5, poisson=0.4995), None, cells, 0.01)
    model = supple.scene.build_model(scene)
    x = model.rest * [1, 0, 1]
    if start == "randomised":
        x = np.random.default_rng(0).uniform(0, 1, model.rest.shape)
    first = int(np.sum(jacobians(model, x) <= 0))
    solver = GPBD(newton_steps=newton, **options)
    *_, (reached, _) = march(scene, Problem(model, "float32"), solver, x, steps, 2)
    J = jacobians(model, reached)
    return {"inverted": first, "inverted at the end": int(np.sum(~(J > 0))), "largest volume": J.max()}


@shows("gpbd-fig8")
def vertex_block_descent(measurements: Measurements) -> str:
    cases: dict[str, tuple[Any, int]] = {
        "vbd": (PBNG(acceleration=None, tied_groups=False, hessian="exact", iterations=64), 1),
        "pbng": (PBNG(acceleration=None, tied_groups=False, iterations=64), 1),
        "gpbd": (GPBD(newton_steps=3, iterations=3), 20),
    }
    distances = {
        (motion, nu, name): measurements.part(
            f"{motion}, nu = {nu:g}, {name}", partial(distance_from_newton, measurements, motion, nu, *case)
        )["distance"]
        for motion in ("stretch", "twist", "compress")
        for nu in (0.45, 0.4995)
        for name, case in cases.items()
    }

    def worst(name: str, nu: float) -> float:
        away = [distances[motion, nu, name] for motion in ("stretch", "twist", "compress")]
        return max(np.inf if distance is None else distance for distance in away)

    said = "; ".join(f"{name} {worst(name, 0.45):.2g} and {worst(name, 0.4995):.2g}" for name in cases)
    low, high = (worst("vbd", nu) for nu in (0.45, 0.4995))
    return measurements.judge(
        "when the ends come to rest, 0.3 s later, the worst of three motions is off by, over how far "
        "it goes, at nu = "
        f"0.45 and 0.4995: {said}. VBD and PBNG have 64 iterations in frames of 20 ms, GPBD three in "
        "each of 20 steps; "
        "each is compared with Newton in the same steps.",
        Claim("VBD is within 5 % at nu = 0.45", low < 0.05),
        Claim("VBD is more than 10 % off at 0.4995", high > 0.1),
        Claim("GPBD is nearer than VBD at 0.4995", worst("gpbd", 0.4995) < high),
    )


def distance_from_newton(
    measurements: Measurements, motion: str, poisson: float, solver: Any, substeps: int
) -> Quantities:
    """Largest distance from Newton's result after a motion, relative to the largest displacement."""
    cells = 15 if measurements.full else 5
    scene = cube(supple.StableNeoHookean(young=1e5, poisson=poisson), motion, cells, 0.001)
    steps: Any = {"dt": 0.02, "frames": 15, "substeps": substeps}
    *_, last = supple.simulate(scene, solver=solver, **steps)
    *_, truth = supple.simulate(scene, solver=supple.Newton(), tolerance=1e-6, **steps)
    moved = np.linalg.norm(truth.positions - truth.model.rest, axis=1).max()
    return {"distance": np.linalg.norm(last.positions - truth.positions, axis=1).max() / moved}


@shows("gpbd-table4")
def sweep_times(measurements: Measurements) -> str:
    cells = 25 if measurements.full else 10
    scene = cube(supple.StableNeoHookean(young=1e5, poisson=0.3), None, cells, 0.01)
    cases: dict[str, Any] = {
        "vbd": PBNG(acceleration=None, hessian="exact"),
        "pbng": PBNG(acceleration=None),
        "gpbd gauss_seidel": GPBD(),
        "gpbd jacobi": GPBD(sweep="jacobi"),
    }

    def sweep_time(solver: Any) -> float:
        problem = problem_on(measurements, scene)
        begin_time_step(problem, 0.01, problem.model.rest, 0.0, 0.0)
        return ms_per_sweep(problem, solver)

    ms = {
        name: measurements.part(f"{name}, ms per sweep", partial(sweep_time, s)) for name, s in cases.items()
    }
    vbd, gs, jacobi = ms["vbd"], ms["gpbd gauss_seidel"], ms["gpbd jacobi"]
    why = (
        "colors cost next to nothing on CPU cores; on the paper's GPU, Gauss-Seidel has some 60 element "
        "colors and VBD 8 vertex colors. On CPU cores arithmetic dominates, and is similar in both."
        if measurements.device == "cpu"
        else "the reason is not known."
    )
    return measurements.judge(
        f"a sweep takes {vbd:.3g} ms with VBD, {gs:.3g} ms with Gauss-Seidel and {jacobi:.3g} ms with "
        "Jacobi, "
        f"{gs / vbd:.1f} and {jacobi / vbd:.2f} times as long as with VBD (paper: 5.6 and 0.90).",
        Claim("a Gauss-Seidel sweep takes more than twice as long as a VBD sweep", gs > 2 * vbd, why),
        Claim("a Jacobi sweep takes at most as long as a VBD sweep, within a tenth", jacobi < 1.1 * vbd, why),
    )
