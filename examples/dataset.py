"""Make a data set of equilibria: a block twisted by many angles, each solved to the same tolerance."""

from pathlib import Path

import numpy as np

import supple


def main(
    cells: int = 10,
    samples: int = 100,
    path: Path = Path("equilibria.npz"),
    seed: int = 0,
    device: str = "cpu",
) -> Path:
    mesh = supple.block(cells)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(mesh, supple.Corotated(young=1e5, poisson=0.4))
    left, right = body.where(lambda X: X[:, 0] <= 0), body.where(lambda X: X[:, 0] >= 1)
    scene.pin(left)
    scene.pin(right)

    angles = np.random.default_rng(seed).uniform(-1.5, 1.5, samples)
    turns = (supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=angle) for angle in angles)
    variations = (supple.Variation(pins={right: turn}) for turn in turns)

    positions = np.empty((samples, *mesh.points.shape), np.float32)
    for i, result in enumerate(supple.equilibria(scene, variations, tolerance=1e-4, device=device)):
        if not result.report.ok:
            raise RuntimeError(f"angle {angles[i]:.3f}: {result.report.outcome.value}")
        positions[i] = result.positions
    np.savez_compressed(path, angles=angles, positions=positions, rest=mesh.points, tets=mesh.tets)
    print(f"{samples} equilibria of {len(mesh.points):,} vertices in {path}")
    return path


if __name__ == "__main__":
    main()
