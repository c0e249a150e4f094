"""PBNG sections 6 and 11.3: XPBD and PBD in pseudo-time against equilibria."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from common import SCENES, Figures, at, curves, say

import supple
from supple import FPXPBD, PBD, PBNG, XPBD
from supple.model import Model
from supple.problem import Problem
from supple.terms import WeakConstraints


def hanging() -> Figures:
    """PBNG Fig. 17: XPBD in pseudo-time on two blocks bound by springs of 1e8 N/m."""
    scene = supple.load_scene(SCENES / "hanging_blocks.toml").scene
    solvers = {
        "pbng": PBNG(acceleration="none"),
        "pbng, chebyshev": PBNG(acceleration="chebyshev"),
        "xpbd, 1 sweep per step": XPBD(sweeps_per_step=1),
        "xpbd, 10 sweeps": XPBD(sweeps_per_step=10),
        "xpbd flipped, 1 sweep": XPBD(sweeps_per_step=1, weak_first=True),
        "xpbd flipped, 10 sweeps": XPBD(sweeps_per_step=10, weak_first=True),
        "fpxpbd, 1 sweep per step": FPXPBD(),
        "fpxpbd, steps of 0.03 s": FPXPBD(pseudo_dt=0.03),
    }
    table, lines = {}, {}
    for name, solver in solvers.items():
        found = supple.equilibrium(scene, solver, tolerance=None, max_iterations=1000, history=True)
        (term,) = (t for t in found.model.terms if isinstance(t, WeakConstraints))
        C = np.einsum("ek,eki->ei", term.weights, found.positions[term.vertices]) - term.target
        imbalance = found.report.history.imbalance
        table[name] = {
            "imbalance": at(imbalance, (0, 1, 10, 100, 300, 500, 1000)),
            "largest gap [m]": float(np.linalg.norm(C, axis=1).max()),
            "largest stretch": float(largest_stretch(found.model, found.positions)),
        }
        # at the ends of pseudo-time steps; within, it oscillates
        every = getattr(solver, "sweeps_per_step", 1)
        lines[name] = (solver.name, range(0, len(imbalance), every), imbalance[::every])
        say(f"hanging, {name}: {table[name]}")
    curves(
        "hanging",
        "Stiff attachments stall XPBD in pseudo-time",
        "two soft blocks of 5,000 tets each, bound by springs of 1e8 N/m [PBNG Fig. 17]",
        lines,
        "sweep",
        "imbalance",
    )
    return {"what": "scenes/hanging_blocks.toml, pseudo-time steps of 0.01 s, 1000 sweeps in all", **table}


def largest_stretch(model: Model, x: np.ndarray) -> float:
    rest, now = model.rest[model.tets], x[model.tets]
    F = np.linalg.solve(rest[:, 1:] - rest[:, :1], now[:, 1:] - now[:, :1])
    return float(np.linalg.svd(F, compute_uv=False).max())


def gravity() -> Figures:
    """PBNG Fig. 18: the sag of a bar under PBD and XPBD at rest, as sweeps per pseudo-time step are added."""
    scene = supple.load_scene(SCENES / "bar_gravity.toml").scene
    model = supple.build_model(scene)
    tip = model.rest[:, 0] >= model.rest[:, 0].max() - 1e-9

    def sag(x: np.ndarray) -> float:
        return -float(np.mean((x - model.rest)[tip, 1]))

    def at_rest(solver: Any) -> Figures:
        problem = Problem(model, "float64")
        problem.begin_step(np.inf)
        run, steps = solver.begin(problem), 0
        while not run.rest.at_rest() and steps < 10_000:
            run.advance(100 * solver.sweeps_per_step)
            steps += 100
        return {"sag [m]": sag(problem.positions), "steps": steps, "at rest": run.rest.at_rest()}

    truth = supple.equilibrium(scene, PBNG(acceleration="chebyshev"), tolerance=1e-6)
    table: Figures = {"pbng [m]": sag(truth.positions)}
    counts = (1, 2, 5, 10, 20, 50)
    solvers = {
        "pbd": PBD(),
        "hard constraints": XPBD(compliant=False),
        "xpbd": XPBD(),
        "xpbd, dynamics": XPBD(pseudo_time="dynamics"),
    }
    lines = {"equilibrium (pbng)": ("pbng", counts, [table["pbng [m]"]] * len(counts))}
    for name, solver in solvers.items():
        rows = {str(k): at_rest(replace(solver, sweeps_per_step=k)) for k in counts}
        table[f"{name}, sweeps per step"] = rows
        lines[name] = (solver.name, counts, [row["sag [m]"] for row in rows.values()])
        say(f"gravity, {name}: {rows}")
    curves(
        "gravity",
        "PBD loses gravity as sweeps are added, XPBD comes nearer",
        "sag of the end of a bar at rest in pseudo-time, steps of 0.01 s [PBNG Fig. 18]",
        lines,
        "sweeps per step",
        "sag [m]",
        log_x=True,
    )
    return {"what": "scenes/bar_gravity.toml, sag of its end where pseudo-time rests", **table}
