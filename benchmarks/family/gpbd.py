"""GPBD Table 5: cubes stretched, compressed, twisted, flattened and randomised, with the paper's counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from common import Figures, elastic_energy, jacobians, once, place, volume

import supple
from supple import FPXPBD, GPBD
from supple.materials import MATERIALS
from supple.problem import Problem
from supple.solvers.elementwise import ElementOptions

STEPS, MOVING = 2000, 300
"""Time steps in all, as in the paper, and while the ends move, which it does not say."""

TABLE_5 = {
    "twist": (15, {0.45: ((2, 1), (2, 2)), 0.49: ((2, 1), (2, 2)), 0.495: ((2, 2), (2, 2)),
                   0.499: ((2, 2), (2, 5)), 0.4995: ((2, 3), (2, 5))}),
    "stretch": (15, {0.45: ((3, 2), (3, 3)), 0.49: ((2, 3), (3, 5)), 0.495: ((2, 3), (3, 5)),
                     0.499: ((3, 5), (3, 5)), 0.4995: (None, (3, 5))}),
    "compress": (20, {0.45: ((2, 3), (2, 5)), 0.49: ((2, 3), (2, 7)), 0.495: ((2, 3), (2, 10)),
                      0.499: ((2, 5), (8, 10)), 0.4995: ((2, 8), (20, 10))}),
}  # fmt: skip
"""Cells along an edge, and for each Poisson's ratio (GPBD iterations, most Newton steps) of neo-Hookean
without and with the logarithmic barrier; None where the paper found it unstable."""

SWEEPS = ("gauss_seidel", "jacobi")
"""The paper presents the method in the first form, and says that it runs the second."""


def cube_of_six(cells: int) -> supple.TetMesh:
    """The unit cube with six tetrahedra in each cell, as the paper's: 20,250 of 15³ and 48,000 of 20³."""
    line = np.arange(cells + 1)
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    strides = np.array([(cells + 1) ** 2, cells + 1, 1])
    paths = [np.cumsum([0, *way]) for way in permutations(strides)]
    first = points[(points < cells).all(axis=1)] @ strides
    return supple.TetMesh(points / cells, (first[:, None, None] + paths).reshape(-1, 4), repair=True)


def cube(material: Any, motion: str | None, cells: int, dt: float) -> supple.Scene:
    """A cube of density 1000: its ends are moved 1 m apart, 0.5 m together, or turned by π in all."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=dt)
    body = scene.add_solid(cube_of_six(cells), material, density=1000)
    for end, sign in ((0.0, -1.0), (1.0, 1.0)):
        moves = {
            "stretch": supple.Translate((0.5 * sign, 0, 0), duration=MOVING * dt),
            "compress": supple.Translate((-0.25 * sign, 0, 0), duration=MOVING * dt),
            "twist": supple.Rotate((1, 0, 0), (0, 0.5, 0.5), sign * np.pi / 2, duration=MOVING * dt),
        }
        if motion is not None:
            chosen = body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9)
            scene.pin(chosen, motion=moves[motion])
    return scene


def march(
    scene: supple.Scene, problem: Problem, solver: ElementOptions, x: np.ndarray, steps: int, sweeps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions and velocities after each step from x at rest; `simulate` without its reports."""
    v = np.zeros_like(x)
    for k in range(1, steps + 1):
        place(problem, scene.dt, x, v, k * scene.dt)
        solver.begin(problem).advance(sweeps)
        v = (problem.positions - x) / scene.dt
        x = problem.positions
        yield x, v


def stress_test(
    motion: str, cells: int, material: Any, solver: ElementOptions, sweeps: int, steps: int = STEPS
) -> Figures:
    scene = cube(material, motion, cells, 0.001)
    model = supple.build_model(scene)
    problem, elastic = Problem(model, "float32"), elastic_energy(model)
    energies, inverted, began = [], [0], time.perf_counter()
    for step, (x, v) in enumerate(march(scene, problem, solver, model.rest, steps, sweeps), 1):
        if not np.isfinite(x).all():
            break
        if step % 20 == 0:
            inverted.append(int(np.sum(jacobians(model, x) <= 0)))
        if step >= MOVING and step % 20 == 0:
            energies.append(elastic(x) + 0.5 * float(np.sum(model.mass[:, None] * v**2)))
    J, energies = jacobians(model, x), energies or [np.inf]
    growth, left = rounded(np.nanmax(energies) / energies[0]), rounded(energies[-1] / energies[0])
    infinite = int(np.sum(~np.isfinite(energies)))  # at inverted elements with a barrier
    return {
        "iterations": sweeps,
        "Newton steps": getattr(solver, "newton_steps", 1),
        "steps": step,
        "stable": bool(step == steps and not infinite and growth <= 1.1 and left < 1),
        "most energy after the ends rest": growth,
        "energy left": left,
        "looks at which energy was infinite": infinite,
        "inverted at the end": int(np.sum(~(J > 0))),
        "most inverted": max(inverted),
        "imbalance at the end": rounded(problem.balance().imbalance),
        "fastest vertex at the end [m/s]": rounded(np.abs(v).max()),
        "volumes of elements at the end": [round(float(J.min()), 3), round(float(J.max()), 3)],
        "volume of the cube at the end": round(volume(model, x), 4),
        "seconds": round(time.perf_counter() - began, 1),
    }


def rounded(value: float) -> float | None:
    """A figure for JSON, which knows no infinity."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def stress(motion: str) -> Figures:
    """The rows of one motion, with and without barrier, in both forms of the method."""
    cells, rows = TABLE_5[motion]
    table: Figures = {}
    for nu, counts in rows.items():
        for name, count in zip(("neo_hookean", "log_neo_hookean"), counts, strict=True):
            for sweep in SWEEPS if count is not None else ():
                material = MATERIALS[name](young=1e5, poisson=nu)
                solver = GPBD(newton_steps=count[1], sweep=sweep)
                label = f"{motion}, {name}, nu = {nu:g}, {sweep}"
                test = partial(stress_test, motion, cells, material, solver, count[0])
                table[label] = once(f"stress, {label}", test)
    stable = [row["stable"] for row in table.values()]
    return {
        "what": f"unit cubes, E = 1e5, density 1000, {STEPS} steps of 0.001 s, the ends moving for {MOVING}",
        "stable": "all finite; elastic and kinetic energy together, which nothing feeds once the ends rest, "
        "rise by at most a tenth from there on, and are lower at the end; seen at every 20th step",
        "rows stable": f"{sum(stable)} of {len(stable)}",
        "backward Euler solved well, neo_hookean, nu = 0.45": once(
            f"exact, {motion}", partial(nearly_exact, motion, cells)
        ),
        **table,
    }


def nearly_exact(motion: str, cells: int) -> Figures:
    """What backward Euler itself does without a barrier: whether inverted elements are the method's fault."""
    return stress_test(motion, cells, supple.NeoHookean(young=1e5, poisson=0.45), FPXPBD(), 20, 600)


def stretch() -> Figures:
    """GPBD Table 5: cubes of 15³ cells stretched to twice their length with the paper's iterations."""
    return stress("stretch")


def twist() -> Figures:
    """GPBD Table 5: cubes of 15³ cells twisted by π with the paper's iterations."""
    return stress("twist")


def compress() -> Figures:
    """GPBD Table 5: cubes of 20³ cells compressed to a half with the paper's iterations."""
    return stress("compress")


def recovery_test(start: str, newton: int, sweep: Any) -> Figures:
    scene = cube(supple.LogNeoHookean(young=1e5, poisson=0.4995), None, 20, 0.01)
    model = supple.build_model(scene)
    random = np.random.default_rng(0)
    x = model.rest * [1, 0, 1] if start == "flattened" else random.uniform(0, 1, model.rest.shape)
    inverted = {0: int(np.sum(jacobians(model, x) <= 0))}
    solver = GPBD(newton_steps=newton, sweep=sweep)
    steps = march(scene, Problem(model, "float32"), solver, x, STEPS, 2)
    for step, (now, v) in enumerate(steps, 1):
        if step in (1, 10, 50, 100, 200, 500, 1000, STEPS):
            J, speed = jacobians(model, now), float(np.abs(v).max())
            inverted[step] = int(np.sum(~(J > 0)))
    return {
        "recovered": inverted[STEPS] == 0 and bool(np.abs(J - 1).max() < 0.1),
        "inverted after step": inverted,
        "volumes of elements at the end": [float(J.min()), float(J.max())],
        "fastest vertex at the end [m/s]": speed,
    }


def recovery() -> Figures:
    """GPBD Table 5, first rows: flattened and randomised cubes with the logarithmic barrier, dt = 0.01."""
    table: Figures = {}
    for start, newton in (("flattened", 6), ("randomised", 8)):
        for sweep in SWEEPS:
            label = f"{start}, nu = 0.4995, {sweep}"
            table[label] = once(f"recovery, {label}", partial(recovery_test, start, newton, sweep))
    return {
        "what": "48,000 tets, E = 1e5, density 1000, 2000 steps, 2 iterations of up to 6 (flattened) or 8 "
        "Newton steps; the paper has Jacobi",
        **table,
    }
