"""Newton steps on a fake device equal those of the CPU."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from problems import cantilever, face, material, membrane, tied_blocks

import supple
from supple import Hybrid, Newton, Outcome
from supple.solve.batch_solve import make_problem
from supple.solvers.newton_methods.newton_pcg import NewtonPCG

pytestmark = pytest.mark.usefixtures("fake_device")


def rolling():
    """A block on an oblique plane, and with an edge on a rail."""
    scene = cantilever(material("corotated"), gravity=5)
    body = scene.bodies[0]
    scene.pin(body.where(face(1, 0)), normal=(1, 2, -3))
    scene.pin(body.where(lambda X: (X[:, 1] >= 1) & (X[:, 2] <= 0)), along=(3, 1, 1))
    return scene


SCENES = {
    "block": lambda: cantilever(material("neo_hookean"), gravity=20),
    "rolling": rolling,
    "tied": lambda: tied_blocks(material("corotated"), material("corotated"), stiffness=1e8),
    "membrane": membrane,
}


CASES = [(Hybrid(max_predicted_sweeps=0), name) for name in SCENES] + [
    (Newton(), name) for name in ("block", "rolling")
]


@pytest.mark.parametrize(("solver", "name"), CASES, ids=str)
def test_device_steps_equal_those_of_the_cpu(solver, name):
    scene = SCENES[name]()
    on_host, on_device = (
        supple.equilibrium(scene, solver=solver, tolerance=1e-8, device=device) for device in ("cpu", "cuda")
    )
    assert on_host.report.outcome is on_device.report.outcome is Outcome.CONVERGED
    assert on_device.report.iterations == on_host.report.iterations
    np.testing.assert_allclose(on_device.positions, on_host.positions, atol=1e-9)
    certified = [result.report.error_estimate for result in (on_host, on_device)]
    assert certified[0].stable == certified[1].stable
    assert certified[1].worst.position_error_m <= 1e-8


def test_states_in_float32_are_certified_and_returned():
    scene = SCENES["block"]()
    exact = supple.equilibrium(scene, solver=Hybrid(max_predicted_sweeps=0), tolerance=1e-10)
    result = supple.equilibrium(
        scene, solver=Hybrid(max_predicted_sweeps=0), tolerance=1e-4, device="cuda", precision="float32"
    )
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.error_estimate.stable
    off = np.abs(result.positions - exact.positions).max()
    assert result.report.error_estimate.worst.position_error_m == pytest.approx(off, rel=1.0, abs=1e-5)


def test_newton_steps_transfer_no_vectors(fake_device):  # noqa: F811
    """A Newton step transfers sums and samples, but no vectors and matrices."""
    scene = cantilever(material("corotated"), cells=4)
    problem = make_problem(scene, True, supple.Backend("cuda"))
    problem.begin_step(np.inf)
    newton = NewtonPCG(Hybrid(), problem, 1e-8)
    newton.step()
    problem.device.wait()
    before = fake_device.moved
    newton.step()
    moved = fake_device.moved - before
    assert newton.linear.iterations > 1
    assert moved < 0.2 * newton.linear.assembly.matrix("exact").blocks.nbytes
