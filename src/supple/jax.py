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

    For jit, grad and vmap, which hands over all at once, so that up to 64 are differentiated together;
    gradients are of first order, by reverse mode.
    Computed in float64 on the host, and returned in JAX's default precision. A solve that finds no
    equilibrium, or no gradient, gives NaN, and appends a sentence that says why to `complaints`.
    """
    layer, values = layer_of(scene, solver, start, given)
    arrays = tuple(jnp.asarray(value, float) for value in values)
    return _function(layer, [array.shape for array in arrays], complaints)(arrays)


def _flat(values: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Arrays with one leading axis, from such with those that vmap has added, and how long these are."""
    arrays = [np.asarray(value, float) for value in values]
    lead = arrays[0].shape[: arrays[0].ndim - len(shapes[0])]
    return [array.reshape(-1, *shape) for array, shape in zip(arrays, shapes, strict=True)], lead


def _function(layer: Layer, shapes: Sequence[tuple[int, ...]], complaints: list[str] | None) -> Any:
    """θ -> x with its derivative, for values of these shapes."""

    dtype = jnp.zeros(0).dtype

    def told(found: Any) -> Any:
        """What was found, or None where that is a complaint: callbacks must not raise."""
        if isinstance(found, Exception) and complaints is not None:
            complaints.append(str(found))
        return None if isinstance(found, Exception) else found

    def attempt(compute: Any, count: int) -> list[Any]:
        try:
            return [told(found) for found in compute()]
        except Exception as error:  # whatever it is
            return [told(error)] * count

    def filled(found: list[Any], lead: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        """Arrays of a shape as one, with NaN for what is missing."""
        every = [np.full(shape, np.nan) if array is None else array for array in found]
        return np.reshape(every, (*lead, *shape)).astype(dtype)

    def solve(values: Any) -> np.ndarray:
        arrays, lead = _flat(values, shapes)
        if lead:
            found = attempt(lambda: layer.positions_of_many(arrays), len(arrays[0]))
        else:
            found = attempt(lambda: [layer.positions([array[0] for array in arrays])], 1)
        return filled(found, lead, (layer.vertices, 3))

    def pull(values: Any, direct: Any) -> tuple[np.ndarray, ...]:
        arrays, lead = _flat(values, shapes)
        by = np.asarray(direct, float).reshape(-1, layer.vertices, 3)
        if lead:
            found = attempt(lambda: layer.pull_many(arrays, by), len(by))
        else:
            found = attempt(lambda: [layer.pull([array[0] for array in arrays], by[0])], 1)
        return tuple(filled([g and g[k] for g in found], lead, shape) for k, shape in enumerate(shapes))

    def call(values: Any) -> jax.Array:
        there = jax.ShapeDtypeStruct((layer.vertices, 3), dtype)
        return jax.pure_callback(solve, there, values, vmap_method="broadcast_all")

    def forward(values: Any) -> tuple[jax.Array, Any]:
        return _once(call)(values), values

    def slopes(values: Any, direct: Any) -> Any:
        there = tuple(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values)
        return jax.pure_callback(pull, there, values, direct, vmap_method="broadcast_all")

    def backward(values: Any, direct: Any) -> tuple[Any]:
        return (_once(slopes)(values, direct),)

    function = jax.custom_vjp(call)
    function.defvjp(forward, backward)
    return function


def _once(function: Any) -> Any:
    """A part of a gradient, which refuses to be differentiated again."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp  # type: ignore[untyped-decorator]
    def refuse(primals: Any, tangents: Any) -> Any:
        raise ValueError(
            "supple.jax has first derivatives of equilibria only, by reverse mode: its gradients cannot be "
            "differentiated again, as Hessians and penalties on gradients would need. Take differences of "
            "gradients instead."
        )

    return wrapped
