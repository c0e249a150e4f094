"""Derivatives of equilibria in PyTorch."""

import numpy as np
import pytest
from differences import Loss
from problems import face, material

import supple

torch = pytest.importorskip("torch")


def bar():
    scene = supple.Scene(gravity=(0, -3, 1))
    body = scene.add_solid(supple.block((2, 1, 1), size=(1, 0.5, 0.4)), material("neo_hookean"), density=20)
    scene.pin(body.where(face(0, 0)), name="wall")
    return scene, body


def tensor(values):
    return torch.tensor(np.asarray(values, float), requires_grad=True)


def test_gradcheck():
    scene, body = bar()

    def positions(gravity, young, wall):
        return supple.torch.equilibrium(scene, gravity=gravity, young=young, pins={"wall": wall})

    wall = body.where(face(0, 0)).points
    young = np.linspace(0.9e3, 1.1e3, body.mesh.n_cells) / 1e3
    given = tensor((0, -3, 1)), tensor(young), tensor(wall)
    assert torch.autograd.gradcheck(lambda g, E, p: positions(g, 1e3 * E, p), given, fast_mode=True)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("power", [1, 2])
def test_second_derivatives_are_refused(many, power):
    """Losses that are linear in positions are included, whose gradients need no graph."""
    scene, _ = bar()
    solve = supple.torch.equilibria if many else supple.torch.equilibrium
    young = tensor([1e3, 2e3] if many else 1e3)
    loss = (solve(scene, young=young, tolerance=1e-6) ** power).sum()
    (slope,) = torch.autograd.grad(loss, young, create_graph=True)
    (plain,) = torch.autograd.grad((solve(scene, young=young, tolerance=1e-6) ** power).sum(), young)
    assert torch.equal(slope.detach(), plain)
    with pytest.raises(RuntimeError, match=r"first derivatives of equilibria only.*differences of gradients"):
        torch.autograd.grad(slope.sum(), young)


def test_backward_equals_gradient():
    scene, body = bar()
    gravity, density, rest = tensor((0, -3, 1)), tensor(20.0), tensor(body.points)
    x = supple.torch.equilibrium(scene, gravity=gravity, density=density, rest=rest, tolerance=1e-6)
    loss = Loss(len(body.points))
    (torch.as_tensor(loss.w) * x + 0.5 * x * x).sum().backward()
    result = supple.gradient(supple.equilibrium(scene, tolerance=1e-6), loss.gradient)
    np.testing.assert_allclose(x.detach().numpy(), result.positions, atol=1e-10)
    np.testing.assert_allclose(gravity.grad.numpy(), result.gravity, rtol=1e-7)
    np.testing.assert_allclose(rest.grad.numpy(), result.rest, rtol=1e-6, atol=1e-9)
    assert density.grad.item() == pytest.approx(result.body(body).density, rel=1e-7)


@pytest.mark.parametrize("inputs", [("gravity", "young", "pins"), ("density", "rest", "gravity")])
def test_equilibria_equal_single_equilibria(inputs):
    scene, body = bar()
    rng, batch_size = np.random.default_rng(0), 3
    wall = body.where(face(0, 0)).points
    base = {
        "gravity": np.array([0.0, -3.0, 1.0]),
        "young": np.linspace(0.9e3, 1.1e3, body.mesh.n_cells),
        "pins": wall,
        "density": np.array(20.0),
        "rest": body.points,
    }
    given = {
        name: tensor(np.stack([base[name] * (1 + 0.02 * rng.normal()) for _ in range(batch_size)]))
        for name in inputs
    }

    def named(values):
        return {name: {"wall": value} if name == "pins" else value for name, value in values.items()}

    loss = torch.as_tensor(rng.normal(size=(batch_size, len(body.points), 3)))
    x = supple.torch.equilibria(scene, **named(given))
    assert x.shape == loss.shape
    (loss * x + 0.5 * x * x).sum().backward()
    for k in range(batch_size):
        own = {name: tensor(value[k].detach().numpy()) for name, value in given.items()}
        single = supple.torch.equilibrium(scene, **named(own))
        (loss[k] * single + 0.5 * single * single).sum().backward()
        np.testing.assert_allclose(x[k].detach(), single.detach(), atol=1e-10)
        for name, value in own.items():
            expected = value.grad.numpy()
            atol = 1e-7 * np.abs(expected).max()
            np.testing.assert_allclose(given[name].grad[k], expected, rtol=1e-6, atol=atol)


def test_errors_of_equilibria_are_raised():
    scene, _ = bar()
    with pytest.raises(
        ValueError,
        match=r"leading batch axis of the same length in all inputs; got gravity: \(3,\), young of",
    ):
        supple.torch.equilibria(scene, gravity=tensor((0, -3, 1)), young=tensor(1e3))
    with pytest.raises(ValueError, match="young must be positive"):
        supple.torch.equilibria(scene, young=tensor((1e3, -1.0)))


def test_float32_tensors_and_tensors_without_gradients():
    scene, _ = bar()
    gravity = torch.tensor([0.0, -3.0, 1.0])
    young = torch.tensor(1e3, requires_grad=True)
    x = supple.torch.equilibrium(scene, gravity=gravity, young=young)
    assert x.dtype == torch.float32
    x.sum().backward()
    assert young.grad.dtype == torch.float32
    assert gravity.grad is None


def test_optimizer_finds_the_modulus():
    scene, _ = bar()
    seen = torch.as_tensor(supple.equilibrium(scene, tolerance=1e-8).positions)
    log = torch.tensor(np.log(2e3), requires_grad=True)
    optimizer = torch.optim.LBFGS([log], lr=1, line_search_fn="strong_wolfe", tolerance_grad=1e-12)

    def misfit():
        optimizer.zero_grad()
        loss = 1e4 * ((supple.torch.equilibrium(scene, young=log.exp()) - seen) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(misfit)
    assert log.exp().item() == pytest.approx(1e3, rel=1e-4)


def test_bad_input():
    scene, body = bar()
    with pytest.raises(ValueError, match="no input 'yung'"):
        supple.torch.equilibrium(scene, yung=tensor(1.0))
    with pytest.raises(ValueError, match="no input given"):
        supple.torch.equilibrium(scene)
    with pytest.raises(ValueError, match="available for: "):
        supple.torch.equilibrium(scene, pins={"ceiling": tensor(body.points)})
    with pytest.raises(ValueError, match="young must be positive"):
        supple.torch.equilibrium(scene, young=tensor(-1.0))
    with pytest.raises(supple.meshes.MeshError):
        supple.torch.equilibrium(scene, rest=tensor(-body.points))
