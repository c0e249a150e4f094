"""Whether the distance of GPBD from backward Euler with muscles comes from the method or from the
implementation.

    python benchmarks/gpbd_span.py

GPBD's Algorithm 1 in NumPy, every local problem of eq. 19 solved to rounding, compared with ours and
Newton's, in one step of a bar of muscle that falls and is fully activated in that step. The paper takes
increments Δd from W Sᵀ Δλ and does not ask that d itself stays in the space of W Sᵀ, which turns with the
element (section 3.2): "whole" asks for that, by d = W Sᵀ λ in place of d + W Sᵀ Δλ, and is otherwise the same
code. Writes benchmarks/results/gpbd_span.json: distances from Newton's positions, as a part of the motion in
the step.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.config.stop_criteria import StopCriteria
from supple.io.machine import machine
from supple.model.model import Model
from supple.solve.batch_solve import solve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "solvers"))
from family import placed, predicted, swept
from problems import face

RESULTS = Path(__file__).parent / "results" / "gpbd_span.json"
STEP, SWEEPS, LOCAL_STEPS = 0.005, 120, 30
YOUNG, POISSON, STRENGTH = 1.2e4, 0.4, 6e4
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
FIBER = np.array([1.0, 0.0, 0.0])
SYMMETRIC = [np.outer(a, b) + np.outer(b, a) for k, a in enumerate(np.eye(3)) for b in np.eye(3)[k:]]


def bar(activation: float, dt: float, gravity: float = -9.8) -> supple.Scene:
    """The bar of tests/muscle_bars.py, pinned at both ends."""
    scene = supple.Scene(gravity=(0, gravity, 0), quasistatic=False, dt=dt)
    kind = supple.materials.Muscle(
        young=YOUNG, poisson=POISSON, strength=STRENGTH, fiber=FIBER, activation=activation
    )
    body = scene.add_solid(supple.block((8, 2, 2), size=(0.4, 0.1, 0.1)), kind, density=1060)
    for side in (0, 0.4):
        scene.pin(body.where(face(0, side)))
    return scene


def fallen() -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities after 0.1 s without activation."""
    *_, last = supple.simulate(bar(0.0, 0.005), solver="newton", tolerance=1e-8, frames=20)
    return last.positions, last.velocities


def energy(F: np.ndarray) -> tuple[float, np.ndarray, float]:
    """ψ, P and an upper bound [Pa] of the stiffness without λ cof ⊗ cof, of Blemker's muscle at full
    activation."""
    U, s, Vt = np.linalg.svd(F)
    if np.linalg.det(U @ Vt) < 0:
        U[:, 2], s[2] = -U[:, 2], -s[2]
    J, R, d = np.prod(s), U @ Vt, F @ FIBER
    cof = U @ np.diag([s[1] * s[2], s[0] * s[2], s[0] * s[1]]) @ Vt
    x = np.linalg.norm(d)
    value, slope = fiber_energy(x)
    psi = MU * np.sum((F - R) ** 2) + 0.5 * LAMBDA * (J - 1) ** 2 + STRENGTH * value
    P = 2 * MU * (F - R) + LAMBDA * (J - 1) * cof + STRENGTH * slope / x * np.outer(d, FIBER)
    return psi, P, 2 * MU + abs(LAMBDA * (J - 1)) * x + 4 * STRENGTH


def fiber_energy(x: float) -> tuple[float, float]:
    """fₚ + fₐ and its slope [PXPBD eq. 7, 8]."""
    beyond, y = max(x - 1, 0.0), x - 1
    passive, slope = 0.05 * (np.expm1(6.6 * beyond) / 6.6 - beyond), 0.05 * np.expm1(6.6 * beyond)
    middle = 0.4 - 4 / 3 * 0.4**3
    if x < 0.6:
        low = max(x - 0.4, 0.0)
        return passive + 3 * low**3, slope + 9 * low**2
    if x < 1.4:
        return passive + 0.024 + middle + y - 4 / 3 * y**3, slope + 1 - 4 * y**2
    high = min(x - 1.6, 0.0)
    return passive + 0.048 + 2 * middle + 3 * high**3, slope + 9 * high**2


def local_step(
    x: np.ndarray, d: np.ndarray, W: np.ndarray, g: np.ndarray, V: float, full: bool
) -> np.ndarray:
    """Δd (4, 3) of an element at x: that of eq. 19, or with d from the space of W Sᵀ."""
    F, free = x.T @ g, W > 0
    span = np.array([W[:, None] * (g @ (F @ B).T) for B in SYMMETRIC])
    base, offset = (x - d, 0 * d) if full else (x, d)
    flat, inertia = span[:, free].reshape(6, -1), np.repeat(1 / W[free], 3)
    lam = np.linalg.lstsq(flat.T, (d - offset)[free].ravel(), rcond=None)[0]

    def energy_and_derivatives(lam: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The objective of eq. 19, its gradient and a bound of its Hessian."""
        step = np.tensordot(lam, span, 1)
        total, new = (offset + step)[free].ravel(), (base + step).T @ g
        psi, P, a = energy(new)
        cof = np.linalg.det(new) * np.linalg.inv(new).T
        bend = np.array([(s.T @ g).ravel() for s in span])
        H = flat * inertia @ flat.T + V * a * bend @ bend.T
        H += V * LAMBDA * np.outer(bend @ cof.ravel(), bend @ cof.ravel())
        slope = flat @ (inertia * total) + V * bend @ P.ravel()
        return 0.5 * total @ (inertia * total) + V * psi, slope, H

    q, slope, H = energy_and_derivatives(lam)
    for _ in range(LOCAL_STEPS):
        step = -np.linalg.lstsq(H, slope, rcond=1e-12)[0]
        while (trial := energy_and_derivatives(lam + step))[0] > q and np.abs(step).max() > 1e-14 * np.abs(
            lam
        ).max():
            step = 0.5 * step
        if not trial[0] < q:
            break
        lam = lam + step
        q, slope, H = trial
    return offset + np.tensordot(lam, span, 1) - d


def sweeps(model: Model, x: np.ndarray, W: np.ndarray, order: np.ndarray, full: bool) -> Iterator[np.ndarray]:
    """Positions after each sweep of Algorithm 1 from x̃."""
    term = model.terms[0]
    d, x = np.zeros((len(term.vertices), 4, 3)), x.copy()
    while True:
        for e in order:
            ids = term.vertices[e]
            step = local_step(x[ids], d[e], W[ids], term.gradients[e], term.volume[e], full)
            d[e] += step
            x[ids] += step
        yield x


def compared(dt: float, start: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    scene = bar(1.0, dt)
    truth = placed(scene, *start)
    assert solve(truth, supple.Newton(), StopCriteria(1e-11, 50, None)).ok
    ours = placed(scene, *start)
    run = swept(ours, supple.GPBD(newton_steps=LOCAL_STEPS), SWEEPS)
    moved = np.linalg.norm(truth.positions - start[0], axis=1).max()

    def off(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.linalg.norm(x - y, axis=1).max() / moved)

    element = run._batches(0).element
    order, W = element[element >= 0], run.weights[:-1]
    results: dict[str, Any] = {"dt": dt, "motion [m]": float(moved), "sweeps": SWEEPS}
    results["ours from Newton"] = off(ours.positions, truth.positions)
    for name, full in (("paper", False), ("whole", True)):
        reimplemented = sweeps(truth.model, predicted(ours, run), W, order, full)
        for _ in range(SWEEPS):
            x = next(reimplemented)
        results[f"{name} from Newton"] = off(x, truth.positions)
        results[f"{name} from ours"] = off(x, ours.positions)
    return results


def main() -> None:
    results = {"machine": machine(), **compared(STEP, fallen())}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
