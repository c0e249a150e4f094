"""Springs that come and go: a block is pressed on another one and pulled off. Vertices that come close stick
together, and springs that are pulled too far tear."""

import numpy as np
from scipy.spatial import cKDTree

import supple

REACH, TEAR = 0.05, 0.15
"""Springs form below one distance [m] and break beyond the other."""


def main(cells: int = 4, steps: int = 60) -> list[int]:
    scene = supple.Scene(quasistatic=False, damping=0.05)
    material = supple.Corotated(young=2e3, poisson=0.3)
    below = scene.add_solid(supple.block(cells, size=(1, 0.5, 1)), material, density=10)
    over = supple.block(cells, size=(1, 0.5, 1), origin=(0.03, 0.6, 0.02))
    above = scene.add_solid(over, material, density=10)
    scene.pin(below.where(lambda X: X[:, 1] <= 0))
    down = supple.Translate((0, -0.1, 0), duration=0.3)
    up = supple.Translate((0, 0.5, 0), duration=0.5, start_time=0.3)
    scene.pin(above.where(lambda X: X[:, 1] >= 1.1), motion=down + up)
    top = below.where(lambda X: X[:, 1] >= 0.5).vertices
    bottom = above.where(lambda X: X[:, 1] <= 0.6).vertices

    sim = supple.Stepper(scene, dt=1 / steps, springs=len(top))
    held: dict[int, int] = {}  # for each vertex above, the vertex below to which it sticks
    counts = []
    for _ in range(steps):
        x = sim.positions
        held = {a: b for a, b in held.items() if np.linalg.norm(x[a] - x[b]) < TEAR}
        distance, nearest = cKDTree(x[top]).query(x[bottom])
        for a, d, b in zip(bottom, distance, nearest, strict=True):
            if d < REACH:
                held.setdefault(int(a), int(top[b]))
        sim.set_springs(list(held.items()), stiffness=100.0, rest_length=REACH / 2)
        sim.step()
        counts.append(len(held))
    print(f"at most {max(counts)} springs, {counts[-1]} at the end")
    return counts


if __name__ == "__main__":
    main()
