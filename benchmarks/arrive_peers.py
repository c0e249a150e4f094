"""A bar of 20:1:1, or a cube, of 2 m under gravity, log_neo_hookean, solved by supple or a peer with the same
ψ, tetrahedra and loads to a relative residual of 1e-4.

    python benchmarks/arrive_peers.py felupe 20 7 1e8      how slender, cells across, Young's modulus [Pa]

One line of JSON comes out. The relative residual of the peers is |net forces| over |weights|, that of supple
over the sums of force magnitudes. The clock of all begins with points and tetrahedra and ends with the
answer, kernels compiled before; of supple, the certificate of its distance is a part. solve: without what
comes before the first iteration.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

POISSON, DENSITY, GRAVITY, TOLERANCE, MOST_STEPS = 0.3, 1000.0, 9.8, 1e-4, 60


def bar(slender: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) [m] and tetrahedra (m, 4), six per cell, of a bar of some aspect ratio."""
    counts = np.array([slender * cells, cells, cells])
    grid = np.stack(np.meshgrid(*(np.arange(c + 1) for c in counts), indexing="ij"), axis=-1)
    number = np.arange(grid[..., 0].size).reshape(grid.shape[:3])
    points = grid.reshape(-1, 3) * (2 / counts[0])
    tets = []
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        corner = np.zeros(3, int)
        corners = [corner.copy()]
        for axis in order:
            corner[axis] = 1
            corners.append(corner.copy())
        sides = [
            number[tuple(slice(c, c + n) for c, n in zip(at, counts, strict=True))].ravel() for at in corners
        ]
        tets.append(np.stack(sides, axis=1))
    tets = np.concatenate(tets)
    edges = points[tets[:, 1:]] - points[tets[:, :1]]
    flip = np.linalg.det(edges) < 0
    tets[flip] = tets[flip][:, [0, 1, 3, 2]]
    return points, tets


def weights(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Weights (n,) [N] of the vertices."""
    edges = points[tets[:, 1:]] - points[tets[:, :1]]
    mass = DENSITY * np.abs(np.linalg.det(edges)) / 6 / 4
    return GRAVITY * np.bincount(tets.ravel(), np.repeat(mass, 4), len(points))


def lame(young: float) -> tuple[float, float]:
    return young / (2 * (1 + POISSON)), young * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))


class Clock:
    """Wall and CPU seconds since its creation."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    @property
    def intervals(self) -> dict[str, float]:
        wall, cpu = self._began
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def with_supple(points: np.ndarray, tets: np.ndarray, young: float) -> dict[str, Any]:
    import supple

    def solved() -> Any:
        scene = supple.Scene(gravity=(0, -GRAVITY, 0))
        material = supple.materials.LogNeoHookean(young=young, poisson=POISSON)
        body = scene.add_solid(supple.TetMesh(points, tets), material, density=DENSITY)
        scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
        return supple.equilibrium(scene)

    solved()  # compiles
    clock = Clock()
    result = solved()
    seconds = clock.intervals | {"solve": result.report.seconds + result.report.error_estimate.seconds}
    end = float(result.positions[points[:, 0] > 2 - 1e-9, 1].mean())
    return seconds | {"steps": result.report.iterations, "end": end}


def with_felupe(points: np.ndarray, tets: np.ndarray, young: float) -> dict[str, Any]:
    import felupe as fem

    clock, (mu, lam) = Clock(), lame(young)
    field = fem.FieldContainer([fem.Field(fem.RegionTetra(fem.Mesh(points, tets, "tetra")), dim=3)])
    bounds = {"wall": fem.Boundary(field[0], fx=0.0)}
    body = fem.SolidBody(fem.NeoHookeCompressible(mu=mu, lmbda=lam), field)
    force = np.zeros_like(points)
    force[:, 1] = -weights(points, tets)
    load = fem.PointLoad(field, np.arange(len(points)), force)
    free = points[:, 0] > 1e-9
    tolerance = TOLERANCE * np.linalg.norm(force[free]) / np.linalg.norm(force)
    began = time.perf_counter()
    result = fem.newtonraphson(
        items=[body, load],
        **partition(fem, field, bounds),
        tol=tolerance,
        maxiter=MOST_STEPS,
        verbose=0,
    )
    seconds = clock.intervals | {"solve": time.perf_counter() - began}
    end = float((points + field[0].values)[points[:, 0] > 2 - 1e-9, 1].mean())
    return seconds | {"steps": result.iterations, "end": end}


def partition(fem: Any, field: Any, bounds: dict[str, Any]) -> dict[str, Any]:
    dof0, dof1 = fem.dof.partition(field, bounds)
    return {"dof0": dof0, "dof1": dof1, "ext0": fem.dof.apply(field, bounds, dof0)}


def with_torch_fem(points: np.ndarray, tets: np.ndarray, young: float) -> dict[str, Any]:
    import torch
    from torchfem import Solid
    from torchfem.materials import Hyperelastic3D

    torch.set_default_dtype(torch.float64)
    clock, (mu, lam) = Clock(), lame(young)

    def psi(F: Any, parameters: Any) -> Any:
        log_J = 0.5 * torch.logdet(F.transpose(-1, -2) @ F)
        return (
            0.5 * parameters[0] * ((F * F).sum() - 3) - parameters[0] * log_J + 0.5 * parameters[1] * log_J**2
        )

    solid = Solid(torch.tensor(points), torch.tensor(tets), Hyperelastic3D(psi, [mu, lam]))
    solid.forces[:, 1] = -torch.tensor(weights(points, tets))
    solid.constraints[torch.tensor(points[:, 0] < 1e-9), :] = True
    began = time.perf_counter()
    solution = solid.solve(increments=torch.tensor([0.0, 1.0]), rtol=TOLERANCE, max_iter=MOST_STEPS)
    seconds = clock.intervals | {"solve": time.perf_counter() - began}
    u = solution[0]
    u = u[-1] if u.ndim == 3 else u
    end = float((torch.tensor(points) + u)[points[:, 0] > 2 - 1e-9, 1].mean())
    return seconds | {"end": end}


PEERS = {"supple": with_supple, "felupe": with_felupe, "torch-fem": with_torch_fem}


def main() -> None:
    peer, slender, cells, young = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    points, tets = bar(slender, cells)
    try:
        entry = {"outcome": "converged", **PEERS[peer](points, tets, young)}
    except Exception as error:  # each peer has its own ways to fail
        entry = {"outcome": "error", "error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(entry | {"vertices": len(points)}))


if __name__ == "__main__":
    main()
