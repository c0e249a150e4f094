"""Differentiable equilibria in JAX, for jit, grad and vmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.gradients.layer import Layer, make_layer
from supple.scene import Scene, SceneFile
from supple.solvers import Solver

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("supple.jax needs JAX: pip install jax") from error

__all__ = ["equilibrium"]


def equilibrium(
    scene: Scene | SceneFile,
    *,
    solver: Solver | str | None = None,
    initial: np.ndarray | None = None,
    errors: list[str] | None = None,
    **given: Any,
) -> jax.Array:
    """Solve for a scene's equilibrium as a differentiable JAX function of selected inputs.

    It works under jit, grad and vmap. Under vmap, the whole batch is solved in one call, and up to 64 batch
    members are differentiated together. Gradients are first-order, in reverse mode only. Everything is
    computed in float64 on the host, and returned in JAX's default precision.

    Args:
        scene: Scene or scene file.
        solver: Solver or its name.
        initial: (n, 3) initial positions [m].
        errors: List to which a sentence is appended for every failed solve or gradient.
        **given: Inputs that replace those of the scene, and options, as in `supple.torch.equilibrium`.

    Returns:
        (n, 3) equilibrium positions [m]. If there is no equilibrium or no gradient, they are NaN.
    """
    layer, values = make_layer(scene, solver, initial, given)
    arrays = tuple(jnp.asarray(value, float) for value in values)
    return _function(layer, [array.shape for array in arrays], errors)(arrays)


def _flat(values: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Merge vmap's batch axes into one leading axis; return arrays and the shape of these axes."""
    arrays = [np.asarray(value, float) for value in values]
    lead = arrays[0].shape[: arrays[0].ndim - len(shapes[0])]
    return [array.reshape(-1, *shape) for array, shape in zip(arrays, shapes, strict=True)], lead


def _function(layer: Layer, shapes: Sequence[tuple[int, ...]], errors: list[str] | None) -> Any:
    """Create the differentiable function θ → x for input values of these shapes."""

    dtype = jnp.zeros(0).dtype

    def unwrap(result: Any) -> Any:
        """Return a result; record errors and return None for them, since callbacks must not raise."""
        if isinstance(result, Exception) and errors is not None:
            errors.append(str(result))
        return None if isinstance(result, Exception) else result

    def attempt(compute: Any, count: int) -> list[Any]:
        """Compute results, with errors in place of exceptions."""
        try:
            return [unwrap(result) for result in compute()]
        except Exception as error:  # of any kind: callbacks must not raise
            return [unwrap(error)] * count

    def stack(results: list[Any], lead: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        """Stack arrays; missing ones become NaN."""
        every = [np.full(shape, np.nan) if array is None else array for array in results]
        return np.reshape(every, (*lead, *shape)).astype(dtype)

    def solve(values: Any) -> np.ndarray:
        arrays, lead = _flat(values, shapes)
        if lead:
            results = attempt(lambda: layer.positions_of_batch(arrays), len(arrays[0]))
        else:
            results = attempt(lambda: [layer.positions([array[0] for array in arrays])], 1)
        return stack(results, lead, (layer.vertices, 3))

    def pullback(values: Any, direct: Any) -> tuple[np.ndarray, ...]:
        arrays, lead = _flat(values, shapes)
        by = np.asarray(direct, float).reshape(-1, layer.vertices, 3)
        if lead:
            results = attempt(lambda: layer.pullback_batch(arrays, by), len(by))
        else:
            results = attempt(lambda: [layer.pullback([array[0] for array in arrays], by[0])], 1)
        return tuple(stack([g and g[k] for g in results], lead, shape) for k, shape in enumerate(shapes))

    def call(values: Any) -> jax.Array:
        shape = jax.ShapeDtypeStruct((layer.vertices, 3), dtype)
        return jax.pure_callback(solve, shape, values, vmap_method="broadcast_all")

    def forward(values: Any) -> tuple[jax.Array, Any]:
        return _once(call)(values), values

    def slopes(values: Any, direct: Any) -> Any:
        shapes = tuple(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values)
        return jax.pure_callback(pullback, shapes, values, direct, vmap_method="broadcast_all")

    def backward(values: Any, direct: Any) -> tuple[Any]:
        return (_once(slopes)(values, direct),)

    function = jax.custom_vjp(call)
    function.defvjp(forward, backward)
    return function


def _once(function: Any) -> Any:
    """Wrap a gradient function so that differentiating it again raises an error."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp  # type: ignore[untyped-decorator]
    def refuse(primals: Any, tangents: Any) -> Any:
        raise ValueError(
            "supple.jax supports first derivatives of equilibria in reverse mode only, and this "
            "call needs second derivatives, as Hessians and gradient penalties do. Use differences "
            "of gradients instead."
        )

    return wrapped
