"""The dent that a ball leaves in a plastic body [PBCM Fig. 9]."""

import pytest
from problems import face

import supple


def depth_left(yield_strain, solver):
    """Depth of the remaining dent [m], and the largest plastic strain."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.02, damping=0.2)
    kind = supple.materials.PlasticStVK(young=1e4, poisson=0.3, yield_strain=yield_strain, creep=50.0)
    body = scene.add_solid(supple.block((4, 2, 4), size=(1, 0.5, 1)), kind, density=10)
    scene.pin(body.where(face(1, 0)))
    motion = supple.Keyframes.path([0, 0.2, 0.4], [(0, 0, 0), (0, -0.12, 0), (0, 0.2, 0)])
    scene.add_obstacle(supple.Sphere(radius=0.4, center=(0.5, 0.901, 0.5)), motion)
    *_, last = supple.simulate(scene, solver=solver, frames=30, tolerance=1e-3, max_iterations=300)
    return float(
        0.5 - last.positions[body.where(face(1, 0.5)).indices, 1].min()
    ), last.evaluate().plastic_strain.max()


@pytest.mark.parametrize("solver", ["pbng"])
def test_dents_stay_only_with_plastic_flow(solver):
    dent, strain = depth_left(0.03, solver)
    assert 0.03 < dent < 0.12
    assert strain > 0.05
    none, still = depth_left(10.0, solver)
    assert none < 0.01
    assert still == 0
