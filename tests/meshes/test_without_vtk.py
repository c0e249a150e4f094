"""Solves with ties and obstacles on a headless machine without VTK."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in ("pyvista", "vtk", "vtkmodules"):
    sys.modules[name] = None
import numpy as np
import supple

scene = supple.Scene()
low = scene.add_solid(supple.block(2), supple.Corotated(young=1e4, poisson=0.3), density=100, name="low")
high = scene.add_solid(
    supple.block(2, origin=(0.1, 1, 0.1)), supple.Corotated(young=1e4, poisson=0.3), density=100, name="high"
)
scene.pin(low.where(lambda X: X[:, 1] <= 0))
"""

CASES = {
    "ties between bodies": """
scene.attach(high.where(lambda X: X[:, 1] <= 1), low, stiffness=1e4)
print(supple.equilibrium(scene).report.short_outcome)
""",
    "ties at points": """
scene.attach(high, low, at=[(0.5, 1, 0.5), (0.9, 1, 0.9), (0.2, 1, 0.9)], stiffness=1e4, keep_offset=True)
print(supple.equilibrium(scene).report.short_outcome)
""",
    "ties of cloth": """
flag = scene.add_cloth(
    supple.sheet(4, (1, 1), plane="zx", origin=(0, 2.01, 0)),
    supple.materials.PlaneStressStVK(young=1e5, poisson=0.3), thickness=1e-3,
)
scene.attach(high.where(lambda X: X[:, 1] <= 1), low, stiffness=1e4)
scene.attach(flag, high, stiffness=100.0, keep_offset=True)
print(supple.equilibrium(scene).report.short_outcome)
""",
    "obstacles": """
scene.attach(high.where(lambda X: X[:, 1] <= 1), low, stiffness=1e4)
down = supple.Translate((0, -0.1, 0))
scene.add_obstacle(supple.Sphere(radius=0.3, center=(0.6, 2.31, 0.6)), motion=down)
result = supple.equilibrium(scene)
print(result.report.short_outcome if result.report.contact.obstacles.count else "untouched")
""",
    "surfaces as obstacles": """
scene.attach(high.where(lambda X: X[:, 1] <= 1), low, stiffness=1e4)
ball = supple.SurfaceShape(supple.meshes.sphere(0.3, 6, (0.6, 2.31, 0.6)))
scene.add_obstacle(ball, motion=supple.Translate((0, -0.1, 0)))
result = supple.equilibrium(scene)
print(result.report.short_outcome if result.report.contact.obstacles.count else "untouched")
""",
    "embedding": """
skin = supple.embed(supple.meshes.sphere(0.4, 6, (0.5, 0.5, 0.5)), low.mesh)
print("converged", np.abs(skin.deform(low.mesh.points) - skin.surface.points).max() < 1e-12)
""",
}


@pytest.mark.parametrize("name", CASES)
def test_solves_work_without_vtk(name):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + CASES[name]], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "converged" in done.stdout
