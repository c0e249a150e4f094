"""Drive soft arms from a loop of your own: a controller pushes their tips to chosen heights."""

import numpy as np

import supple


def main(cells: tuple[int, int, int] = (16, 4, 4), steps: int = 150, copies: int = 3) -> np.ndarray:
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, substeps=2, damping=0.02)
    material = supple.Corotated(young=2e6, poisson=0.4)
    arm = scene.add_solid(supple.block(cells, size=(1, 0.1, 0.1)), material, density=100)
    scene.pin(arm.where(lambda X: X[:, 0] <= 0))
    tip = arm.where(lambda X: X[:, 0] >= 1).vertices

    goals = np.linspace(-0.05, 0.15, copies)  # heights [m], one for each arm
    sim = supple.Stepper(scene, dt=0.02, batch_size=copies)
    held, forces = np.zeros(copies), np.zeros_like(sim.positions)
    for _ in range(steps):
        missing = goals - sim.positions[:, tip, 1].mean(axis=1)
        speed = sim.velocities[:, tip, 1].mean(axis=1)
        held += 5 * missing  # [N]
        forces[:, tip, 1] = ((held + 50 * missing - 5 * speed) / len(tip))[:, None]
        frames = sim.step(forces=forces)
    heights = frames.positions[:, tip, 1].mean(axis=1)
    for goal, height, force in zip(goals, heights, held, strict=True):
        print(f"{frames.time:.2f} s: tip at {height:+.3f} m of {goal:+.3f} m, held by {force:+.1f} N")
    return heights - goals


if __name__ == "__main__":
    main()
