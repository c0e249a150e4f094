"""Positions as arrays of PyTorch and CuPy."""

import numpy as np
import pytest

import supple


def solved() -> supple.Result:
    scene = supple.Scene()
    body = scene.add_solid(supple.block(1), supple.Corotated(young=1e4, poisson=0.3), 10)
    scene.pin(body.where(lambda X: X[:, 1] >= 1))
    return supple.equilibrium(scene)


def test_torch_gets_equal_numbers():
    pytest.importorskip("torch")
    result = solved()
    tensor = result.positions_as("torch")
    assert tuple(tensor.shape) == result.positions.shape
    assert np.array_equal(tensor.numpy(), result.positions)


def test_unknown_and_missing_libraries_are_refused(monkeypatch):
    result = solved()
    with pytest.raises(ValueError, match="like must be 'torch' or 'cupy', got 'jax'"):
        result.positions_as("jax")
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ValueError, match="pip install cupy"):
        result.positions_as("cupy")
