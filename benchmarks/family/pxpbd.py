"""PXPBD: what XPBD leaves of the residual, and a squeezed bar."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Figures, at, clamped, curves, placed, say, volume

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBNG, XPBD, BlockXPBD, Newton
from supple.model import Model
from supple.solvers.elementwise import ElementRun
from supple.solving import solve
from supple.stop import Stop


def corotated_pair(model: Model, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C, k V), both (elements, 2), of PXPBD eq. 5."""
    term: Any = model.terms[0]
    F = np.einsum("evi,evj->eij", x[term.vertices], term.gradients)
    s = np.linalg.svd(F, compute_uv=False)
    s[:, 2] *= np.sign(np.linalg.det(F))
    C = np.column_stack([np.sqrt(((s - 1) ** 2).sum(axis=1) + 1e-12), s.prod(axis=1) - 1])
    return C, term.volume[:, None] * [2 * term.material.mu, term.material.lam]


def secondary_residual(run: ElementRun) -> float:
    """|C + λ/(k V)| [PXPBD eq. 12]."""
    element = run._batches(0).element
    lam = np.empty((element.max() + 1, 2))
    lam[element[element >= 0]] = run.projections[0].memory[0].transpose(0, 2, 1)[element >= 0]
    C, k = corotated_pair(run.problem.model, run.problem.positions)
    return float(np.linalg.norm(C + lam / k))


def falling() -> Figures:
    """PXPBD Fig. 1 and 3: residuals within one representative step of a clamped block that falls."""
    figures: Figures = {
        "what": "|r| over |r before the step|; 4096 vertices, 16875 tets, E = 1000, nu = 0.3, density 10",
        "note": "the paper does not give the block's size; with its zeta = 0.5 a block of 1 m is unstable",
    }
    for size in (2.0, 1.0):
        material = supple.Corotated(young=1000, poisson=0.3)
        scene = clamped(supple.block(15, size=[size] * 3), material, 10, 0.01, gravity=(0, -9.8, 0))
        for frame in supple.simulate(scene, PBNG(acceleration="chebyshev"), tolerance=1e-6, frames=8):
            x, v = frame.positions, frame.velocities
        model = frame.model
        solvers = {
            "xpbd": XPBD(),
            "block_xpbd": BlockXPBD(),
            "bpxpbd, zeta = 0.5": BPXPBD(zeta=0.5),
            "bpxpbd": BPXPBD(),
            "fpxpbd": FPXPBD(),
            "fpxpbd, 3 Newton steps": FPXPBD(newton_steps=3),
            "gpbd": GPBD(),
            "pbng": PBNG(acceleration="none"),
        }
        lines, table = {}, {}
        for name, solver in solvers.items():
            report = solve(placed(model, 0.01, x, v), solver, Stop(None, 200, None), history=True)
            residual = np.array(report.history.residual) / report.history.residual[0]
            lines[name] = (solver.name, range(len(residual)), residual)
            table[name] = {
                **at(residual, (1, 5, 10, 20, 40, 100, 200)),
                "outcome": report.outcome.name.lower(),
            }
            say(f"falling, {size:g} m, {name}: {table[name]}")
        problem = placed(model, 0.01, x, v)
        run = XPBD().begin(problem)
        secondary = []
        for _ in range(100):
            run.advance(1)
            secondary.append(secondary_residual(run))
        table["xpbd, secondary residual"] = at(np.array(secondary) / secondary[0], (0, 4, 9, 19, 39, 99))
        ratios = {
            name: {
                k: table["xpbd"][k] / max(table[name][k], 1e-30) for k in ("40", "200") if k in table[name]
            }
            for name in ("bpxpbd, zeta = 0.5", "bpxpbd", "fpxpbd")
        }
        figures[f"block of {size:g} m"] = {"residual": table, "times below xpbd": ratios}
        lines["xpbd, secondary"] = ("pbd", range(1, 101), np.array(secondary) / secondary[0])
        curves(
            f"falling_{size:g}m",
            "XPBD stagnates, PXPBD does not",
            f"one backward Euler step of a falling block of {size:g} m, 16,875 tets [PXPBD Fig. 1, 3]",
            lines,
            "iteration",
            "residual, relative to the start",
        )
    return figures


def squeezed(frames: int, cells: Any) -> supple.Scene:
    """Both ends of a neo-Hookean bar are pulled apart to 130 %, then pushed together to 60 %."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01, frames=frames)
    material = supple.NeoHookean(young=1000, poisson=0.3)
    body = scene.add_solid(supple.bar(cells, (2.5, 1, 1)), material, density=10)
    times, fractions = (0, 0.003 * frames, 0.01 * frames), (0, 0.3, -0.4)
    for end, way in ((0.0, -1.25), (2.5, 1.25)):
        chosen = body.where(lambda X, end=end: np.abs(X[:, 0] - end) < 1e-9)
        scene.pin(chosen, motion=supple.Keyframes(supple.Translate((way, 0, 0)), times, fractions))
    return scene


def squeeze() -> Figures:
    """PXPBD section 5.4: XPBD with 100 iterations per step against FP-PXPBD with 10."""
    frames, cells = 60, (28, 11, 11)
    truth = [f.positions for f in supple.simulate(squeezed(frames, cells), Newton(), tolerance=1e-6)]
    say("squeeze: Newton is done")
    model = supple.build_model(squeezed(frames, cells))
    before = volume(model, model.rest)
    solvers = {
        "xpbd, 100 iterations": XPBD(iterations=100),
        "block_xpbd, 100 iterations": BlockXPBD(iterations=100),
        "fpxpbd, 10 iterations": FPXPBD(iterations=10),
        "bpxpbd, 10 iterations": BPXPBD(iterations=10),
        "gpbd, 10 iterations": GPBD(iterations=10),
    }
    table, lines = {"newton": {"volume at the end": volume(model, truth[-1]) / before}}, {}
    for name, solver in solvers.items():
        distance = []
        for frame, x in zip(supple.simulate(squeezed(frames, cells), solver), truth, strict=True):
            distance.append(float(np.sqrt(np.mean(np.sum((frame.positions - x) ** 2, axis=1)))))
        table[name] = {
            "rms distance from Newton [m]": at(distance, (17, 29, 44, 59)),
            "volume at the end": volume(model, frame.positions) / before,
        }
        lines[name] = (solver.name, range(1, frames + 1), distance)
        say(f"squeeze, {name}: {table[name]}")
    curves(
        "squeeze",
        "Ten iterations of FP-PXPBD beat a hundred of XPBD",
        f"a neo-Hookean bar of {len(model.tets):,} tets, stretched, then squeezed [PXPBD 5.4]",
        lines,
        "time step",
        "rms distance from Newton [m]",
    )
    return {
        "what": f"{model.vertices} vertices, {len(model.tets)} tets, E = 1000, nu = 0.3, dt = 0.01",
        **table,
    }
