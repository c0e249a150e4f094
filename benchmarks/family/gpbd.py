"""GPBD Table 5: cubes stretched, compressed, twisted, flattened and randomised, with the paper's counts."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from common import Figures, elastic_energy, jacobians, once, volume

import supple
from supple import FPXPBD, GPBD
from supple.materials import MATERIALS
from supple.papers.gpbd import MOVING, TABLE_5, cube
from supple.papers.measuring import march
from supple.problem import Problem
from supple.solvers.elementwise import ElementOptions

STEPS = 2000
"""Time steps in all, as in the paper."""

SWEEPS = ("gauss_seidel", "jacobi")
"""The paper presents the method in the first form, and says that it runs the second."""


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
