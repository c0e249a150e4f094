"""Lowest modes of equilibria against all eigenvalues of their Hessians, and against buckling."""

from dataclasses import replace

import numpy as np
import pytest
from problems import material

import supple
from supple.linear.assembly.hessian import Assembly
from supple.postprocess import modes
from supple.postprocess.evaluate import evaluate_model
from supple.solve.batch_solve import make_problem

MEMBRANE = supple.materials.PlaneStressStVK(young=1e5, poisson=0.3)


def draped(cells=4):
    """Cloth with wrinkles, held at two corners."""
    scene = supple.Scene()
    cloth = scene.add_cloth(
        supple.sheet(cells, (1, 1), plane="xz"), MEMBRANE, supple.HingeBending(1e-4), density=0.2
    )
    scene.pin(cloth.where(lambda X: (X[:, 2] <= 0) & ((X[:, 0] <= 0) | (X[:, 0] >= 1))))
    return scene


def sliding():
    """A block with one side on rollers."""
    scene = supple.Scene(gravity=(0, -1, 0))
    body = scene.add_solid(supple.block(3), material("corotated"), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0), axes="x")
    scene.pin(body.where([0]))
    return scene


def spectrum(result):
    """All eigenvalues (k,) of the free part of the Hessian."""
    problem = make_problem(result.model, True, supple.Backend())
    problem.positions = result.positions
    assembly = Assembly(problem)
    free = assembly.unconstrained(np.eye(assembly.size))
    H = free @ assembly.hessian("exact").toarray() @ free
    values, vectors = np.linalg.eigh(H)
    return np.sort(values[np.linalg.norm(free @ vectors, axis=0) > 0.5])


@pytest.mark.parametrize("few", [0, modes.MAX_DENSE_SIZE], ids=["iterated", "all"])
@pytest.mark.parametrize("make", [draped, sliding])
def test_lowest_modes_are_the_smallest_eigenvalues(make, few, monkeypatch):
    monkeypatch.setattr(modes, "MAX_DENSE_SIZE", few)
    result = supple.equilibrium(make(), tolerance=1e-6)
    lowest = result.lowest_modes(3)
    expected = spectrum(result)
    np.testing.assert_allclose(
        [mode.eigenvalue for mode in lowest], expected[:3], rtol=1e-5, atol=1e-8 * expected[-1]
    )
    for mode in lowest:
        assert np.linalg.norm(mode.vector) == pytest.approx(1)
        assert not mode.vector[result.model.pinned][:, 1].any() or make is sliding
    assert result.report.error_estimate.stable == (lowest[0].eigenvalue > -1e-9 * expected[-1])


def test_compressed_strip_buckles():
    """The flat strip has a transverse direction of negative curvature; the equilibrium is bent."""
    scene = supple.Scene(gravity=(0, 0, 0))
    cloth = scene.add_cloth(supple.sheet((8, 1), (1, 0.125)), MEMBRANE, supple.HingeBending(1e-3))
    scene.pin(cloth.where(lambda X: X[:, 0] <= 0.13))
    scene.pin(cloth.where(lambda X: X[:, 0] >= 0.87), motion=supple.Translate((-0.1, 0, 0)))
    bent = supple.equilibrium(scene, tolerance=1e-6)
    x, y, _ = cloth.points.T
    pressed = np.interp(x, [0, 0.125, 0.875, 1], [0, 0.125, 0.775, 0.9])
    flat = replace(bent, positions=np.stack([pressed, y, 0 * y], axis=1))
    (mode,) = flat.lowest_modes()
    assert mode.eigenvalue < 0
    assert np.abs(mode.vector[:, 2]).max() > 10 * np.abs(mode.vector[:, :2]).max()
    assert bent.lowest_modes()[0].eigenvalue > 0
    assert np.abs(bent.positions[:, 2]).max() > 0.1


@pytest.mark.parametrize("constrained", [True, False])
def test_soft_modes_are_accurate_next_to_stiff_parts(constrained, monkeypatch):
    """The stiff part is ten million times stiffer; a free body has six zero modes."""
    scene = supple.Scene(gravity=(0, 0, 0))
    for young in (1e9, 1e2):
        elastic = supple.StableNeoHookean(young=young, poisson=0.3)
        body = scene.add_solid(supple.block((6, 1, 1), (6, 1, 1)), elastic, density=10)
        if constrained or young > 1e3:
            scene.pin(body.where(lambda X: X[:, 0] <= 0))
    result = supple.equilibrium(scene, tolerance=1e-6)
    count = 3 if constrained else 8
    expected = [mode.eigenvalue for mode in result.lowest_modes(count)]
    monkeypatch.setattr(modes, "MAX_DENSE_SIZE", 0)
    eigenvalues = [mode.eigenvalue for mode in result.lowest_modes(count)]
    np.testing.assert_allclose(eigenvalues, expected, rtol=1e-4, atol=1e-6)
    assert min(expected[-2:]) > 1e-4
    assert max(expected) < 100


def test_unconverged_modes_are_reported(monkeypatch):
    monkeypatch.setattr(modes, "MAX_DENSE_SIZE", 0)
    monkeypatch.setattr(modes, "MAX_ITERATIONS", 1)
    result = supple.equilibrium(sliding(), max_iterations=1)
    with pytest.raises(RuntimeError, match=r"not converge in 1 iterations .* N/m\)\. .* request more"):
        result.lowest_modes(2)


def differences(result, h=1e-6):
    """Eigenvalues (k,) of the central differences of forces."""
    free = np.flatnonzero(result.model.free)
    H = []
    for i in free:
        for axis in np.eye(3):
            forces = []
            for sign in (1, -1):
                moved = result.positions.copy()
                moved[i] += sign * h * axis
                force = evaluate_model(result.model, moved, result.step).internal_force
                forces.append(force[free].ravel())
            H.append((forces[1] - forces[0]) / (2 * h))
    return np.linalg.eigvalsh(0.5 * (np.array(H) + np.transpose(H)))


@pytest.mark.parametrize("flows", ["plastic", "hencky", "maxwell"])
def test_inelastic_flow_is_part_of_the_hessian(flows):
    scene, branches = supple.Scene(gravity=(0, 0, 0)), ()
    if flows == "plastic":
        made_of = supple.materials.PlasticStVK(young=1e4, poisson=0.3, yield_strain=0.02, creep=30)
    elif flows == "hencky":
        made_of = supple.materials.PlasticHencky(young=1e4, poisson=0.3, yield_stress=200)
    else:
        made_of, branches = supple.StableNeoHookean(young=1e4, poisson=0.3), supple.Maxwell(1e4, 0.2, 0.2)
    body = scene.add_solid(supple.block((2, 1, 1), (2, 1, 1)), made_of, density=50, viscosity=branches)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(body.where(lambda X: X[:, 0] >= 2), motion=supple.Translate((0.6, 0, 0), duration=0.2))
    frames = 2 if flows == "hencky" else 3  # at rest again it is at yield, where the tangent has a kink
    *_, frame = supple.simulate(scene, dt=0.1, frames=frames, quasistatic=True, tolerance=1e-8)
    modes = [mode.eigenvalue for mode in frame.lowest_modes(4)]
    np.testing.assert_allclose(modes, differences(frame)[:4], rtol=1e-5)
    forgetful = replace(frame, step=replace(frame.step, history={}))
    assert forgetful.lowest_modes()[0].eigenvalue != pytest.approx(modes[0], rel=0.01), "it has flown"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "all"])
def test_wrong_counts_are_refused(wrong):
    result = supple.equilibrium(sliding(), max_iterations=1)
    with pytest.raises(ValueError, match="count must be a whole number"):
        result.lowest_modes(wrong)
