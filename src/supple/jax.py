"""Equilibria in JAX: positions through which gradients flow back, under jit, grad and vmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.gradients.layer import Layer, layer_of
from supple.scene import Scene, SceneFile
from supple.solvers import Solver

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("supple.jax needs JAX: pip install jax") from error


def equilibrium(
    scene: Scene | SceneFile,
    solver: Solver | str | None = None,
    *,
    start: np.ndarray | None = None,
    complaints: list[str] | None = None,
    **given: Any,
) -> jax.Array:
    """Positions (n, 3) [m] of the equilibrium of a scene, with some arrays in place of what it has, by the
    keywords of `supple.torch.equilibrium`.

    For jit, grad and vmap, which solves one after the other; gradients are of first order, by reverse mode.
    Computed in float64 on the host, and returned in JAX's default precision. A solve that finds no
    equilibrium, or no gradient, gives NaN, and appends a sentence that says why to `complaints`.
    """
    layer, values = layer_of(scene, solver, start, given)
    return _function(layer, complaints)(tuple(jnp.asarray(value, float) for value in values))


def _function(layer: Layer, complaints: list[str] | None) -> Any:
    """θ -> x with its derivative."""

    def guarded(shapes: Sequence[tuple[int, ...]], compute: Any) -> list[np.ndarray]:
        dtype = jnp.zeros(0).dtype
        try:
            return [np.asarray(found, dtype) for found in compute()]
        except Exception as error:  # callbacks must not raise, whatever it is
            if complaints is not None:
                complaints.append(str(error))
            return [np.full(shape, np.nan, dtype) for shape in shapes]

    def solve(values: Any) -> np.ndarray:
        arrays = [np.asarray(value, float) for value in values]
        return guarded([(layer.vertices, 3)], lambda: [layer.positions(arrays)])[0]

    def pull(values: Any, direct: Any) -> tuple[np.ndarray, ...]:
        arrays = [np.asarray(value, float) for value in values]
        shapes = [array.shape for array in arrays]
        return tuple(guarded(shapes, lambda: layer.pull(arrays, np.asarray(direct, float))))

    def call(values: Any) -> jax.Array:
        there = jax.ShapeDtypeStruct((layer.vertices, 3), jnp.zeros(0).dtype)
        return jax.pure_callback(solve, there, values, vmap_method="sequential")

    def forward(values: Any) -> tuple[jax.Array, Any]:
        return call(values), values

    def backward(values: Any, direct: Any) -> tuple[Any]:
        there = tuple(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values)
        return (jax.pure_callback(pull, there, values, direct, vmap_method="sequential"),)

    function = jax.custom_vjp(call)
    function.defvjp(forward, backward)
    return function
