"""Gradients of supple compared with those of torch-fem: the same bar of log_neo_hookean, stretched and
rotated under gravity, L = Σ w · x with random weights, by μ and λ of every element and the force on every
vertex.

    python benchmarks/gradient_peers.py [--cells 6 2 2]     with an interpreter that has torch-fem

Writes benchmarks/results/gradient_peers.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine, versions

YOUNG, POISSON, DENSITY, GRAVITY = 1e4, 0.3, 100.0, 9.8


def turned(points: np.ndarray) -> np.ndarray:
    """Positions of the far end [m]."""
    motion = supple.Rotate(axis=(1, 0, 0), center=(1, 0.15, 0.15), angle=0.4)
    return (motion + supple.Translate((0.1, 0.02, 0)))(points, np.inf)


def with_supple(mesh: supple.TetMesh, w: np.ndarray) -> dict[str, Any]:
    scene = supple.Scene(gravity=(0, -GRAVITY, 0))
    kind = supple.materials.LogNeoHookean(young=YOUNG, poisson=POISSON)
    body = scene.add_solid(mesh, kind, density=DENSITY)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    end = body.where(lambda X: X[:, 0] >= 1)
    scene.pin(end, motion=lambda X, t: turned(X))
    for _ in range(2):  # the first compiles
        began = perf_counter()
        result = supple.equilibrium(scene, tolerance=1e-6)
        solved = perf_counter() - began
        began = perf_counter()
        gradient = supple.gradient(result, w)
        own = gradient.body(body)
        gradients = {"mu": own.per_element("mu"), "lam": own.per_element("lam"), "forces": gradient.forces}
        seconds = perf_counter() - began
    report = gradient.report
    return gradients | {
        "positions": gradient.positions,
        "solve": solved,
        "backward": seconds,
        "report": report,
    }


def with_torch_fem(mesh: supple.TetMesh, w: np.ndarray) -> dict[str, Any]:
    import torch
    from torchfem import Solid
    from torchfem.materials import Hyperelastic3D

    torch.set_default_dtype(torch.float64)
    points, tets = np.array(mesh.points), np.array(mesh.tets)
    mu, lam = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))

    def psi(F: Any, parameters: Any) -> Any:
        log_J = 0.5 * torch.logdet(F.transpose(-1, -2) @ F)
        mu, lam = parameters[0], parameters[1]
        return 0.5 * mu * ((F * F).sum() - 3) - mu * log_J + 0.5 * lam * log_J**2

    parameters = torch.tensor([[mu, lam]] * len(tets), requires_grad=True)
    forces = np.zeros_like(points)
    forces[:, 1] = -GRAVITY * mesh.masses(DENSITY)
    loads = torch.tensor(forces, requires_grad=True)
    ends = points[:, 0] <= 0, points[:, 0] >= 1
    solid = Solid(torch.tensor(points), torch.tensor(tets), Hyperelastic3D(psi, parameters))
    solid.forces = loads
    solid.constraints[torch.tensor(ends[0] | ends[1]), :] = True
    solid.displacements[torch.tensor(ends[1])] = torch.tensor(turned(points[ends[1]]) - points[ends[1]])
    began = perf_counter()
    u = solid.solve(
        increments=torch.linspace(0, 1, 5), rtol=1e-12, atol=1e-10, max_iter=30,
        differentiable_parameters=[parameters, loads],
    )[0]  # fmt: skip
    solved = perf_counter() - began
    began = perf_counter()
    (u.reshape(-1, 3) * torch.tensor(w)).sum().backward()
    seconds = perf_counter() - began
    by_parameters, by_forces = parameters.grad.numpy(), loads.grad.numpy().copy()
    by_forces[ends[0] | ends[1]] = 0  # which hold nothing
    return {
        "mu": by_parameters[:, 0],
        "lam": by_parameters[:, 1],
        "forces": by_forces,
        "positions": points + u.detach().numpy().reshape(-1, 3),
        "solve": solved,
        "backward": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs=3, default=(6, 2, 2))
    arguments = parser.parse_args()
    mesh = supple.block(cells=tuple(arguments.cells), size=(1, 0.3, 0.3))
    w = np.random.default_rng(0).normal(size=mesh.points.shape)
    own, other = with_supple(mesh, w), with_torch_fem(mesh, w)
    differences = {
        name: float(np.linalg.norm(own[name] - other[name]) / np.linalg.norm(other[name]))
        for name in ("positions", "mu", "lam", "forces")
    }
    results = {
        "machine": machine(),
        "versions": versions(),
        "vertices": mesh.n_vertices,
        "tetrahedra": mesh.n_cells,
        "relative_difference": differences,
        "supple": {"solve_seconds": own["solve"], "gradient_seconds": own["backward"]},
        "torch_fem": {"solve_seconds": other["solve"], "gradient_seconds": other["backward"]},
        "relative_residual": own["report"].relative_residual,
    }
    path = Path(__file__).parent / "results" / "gradient_peers.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
