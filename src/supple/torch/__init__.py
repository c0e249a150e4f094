"""Differentiable equilibria in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.gradients.layer import Layer, make_layer
from supple.scene import Scene, SceneFile
from supple.solvers import Solver

try:
    import torch
except ImportError as error:
    raise ImportError("supple.torch needs PyTorch: pip install torch") from error

__all__ = ["equilibria", "equilibrium"]


def equilibrium(
    scene: Scene | SceneFile,
    *,
    solver: Solver | str | None = None,
    initial: np.ndarray | None = None,
    **given: Any,
) -> torch.Tensor:
    """Solve for a scene's equilibrium as a differentiable PyTorch function of selected inputs.

    The solve is followed by Newton steps to about 1e-11, and differentiated once by one adjoint solve.
    Everything is computed in float64 on the host.

    Args:
        scene: Scene or scene file.
        solver: Solver or its name.
        initial: (n, 3) initial positions [m].
        **given: Inputs that replace or extend those of the scene: gravity (3,) [m/s²]; forces (n, 3) [N] in
            addition to the scene's; pins, a dictionary {name: positions (k, 3)} [m]; rest (n, 3), rest
            positions of all vertices [m]; pressures (p,) [Pa]; density [kg/m³]; and material parameters by
            name, such as young=..., as one number or one per cell. If several bodies have a parameter, a
            dictionary {body: ...} selects the body. Further keywords are options of `supple.equilibrium`.

    Returns:
        (n, 3) equilibrium positions [m], with dtype and device of the first floating-point tensor.

    Raises:
        ValueError: An input is invalid, or there is no equilibrium or no gradient.
    """
    layer, values = make_layer(scene, solver, initial, given)
    tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values]
    return _Equilibrium.apply(layer, *tensors)


def equilibria(
    scene: Scene | SceneFile,
    *,
    solver: Solver | str | None = None,
    initial: np.ndarray | None = None,
    **given: Any,
) -> torch.Tensor:
    """Solve for many equilibria of a scene as a differentiable function of batched inputs.

    Up to 64 equilibria are refined and differentiated at once, as bodies of one problem. On a CUDA device
    they are also solved at once if they differ only in loads, pins and material parameters.

    Args:
        scene: Scene or scene file.
        solver: Solver or its name.
        initial: (n, 3) initial positions [m].
        **given: Inputs of `equilibrium`, all with a leading batch axis. `tensor.expand(batch_size, ...)`
            repeats an input for all batch members.

    Returns:
        (batch, n, 3) equilibrium positions [m].

    Raises:
        ValueError: The batch axes differ, or a batch member has no equilibrium or no gradient; the first such
            error is raised.
    """
    layer, values = make_layer(scene, solver, initial, given)
    tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values]
    sizes = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
    if len(sizes) != 1 or 0 in sizes:
        shapes = ", ".join(f"{each}: {tuple(t.shape)}" for each, t in zip(layer.inputs, tensors, strict=True))
        raise ValueError(
            f"equilibria() needs a leading batch axis of the same length in all inputs; got {shapes}"
        )
    return _Equilibria.apply(layer, *tensors)


class _Equilibrium(torch.autograd.Function):  # type: ignore[misc]
    """Differentiable equilibrium."""

    @staticmethod
    def forward(layer: Layer, *values: torch.Tensor) -> torch.Tensor:
        return _like(values, layer.positions([_array(value) for value in values]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        layer, *values = inputs
        ctx.layer = layer
        ctx.save_for_backward(*values)

    @staticmethod
    def backward(ctx: Any, direct: torch.Tensor) -> tuple[Any, ...]:
        values = ctx.saved_tensors
        gradients = _Pullback.apply(ctx.layer, False, ctx.needs_input_grad[1:], direct, *values)
        return None, *gradients


class _Equilibria(_Equilibrium):
    """Differentiable batch of equilibria."""

    @staticmethod
    def forward(layer: Layer, *values: torch.Tensor) -> torch.Tensor:
        return _like(values, np.stack(_all(layer.positions_of_batch([_array(value) for value in values]))))

    @staticmethod
    def backward(ctx: Any, direct: torch.Tensor) -> tuple[Any, ...]:
        values = ctx.saved_tensors
        gradients = _Pullback.apply(ctx.layer, True, ctx.needs_input_grad[1:], direct, *values)
        return None, *gradients


class _Pullback(torch.autograd.Function):  # type: ignore[misc]
    """Map loss gradients with respect to positions to gradients with respect to layer inputs.

    As a separate function it raises an error when differentiated again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        layer: Layer,
        many: bool,
        needed: tuple[bool, ...],
        direct: torch.Tensor,
        *values: torch.Tensor,
    ) -> tuple[Any, ...]:
        arrays, by = [_array(value) for value in values], _array(direct)
        if many:
            gradients = list(map(np.stack, zip(*_all(layer.pullback_batch(arrays, by)), strict=True)))
        else:
            gradients = layer.pullback(arrays, by)
        return tuple(_select_gradients(gradients, values, needed))

    @staticmethod
    def backward(ctx: Any, *direct: torch.Tensor) -> tuple[Any, ...]:
        raise RuntimeError(
            "supple.torch supports first derivatives of equilibria only, and this call needs second "
            "derivatives, as Hessians and gradient penalties do. Use differences of gradients "
            "instead."
        )


def _all(results: list[Any]) -> list[Any]:
    """Return all results, or raise the first error."""
    for one in results:
        if isinstance(one, ValueError):
            raise one
    return results


def _like(values: tuple[torch.Tensor, ...], x: np.ndarray) -> torch.Tensor:
    """Convert positions to dtype and device of the first floating-point tensor."""
    like = next((value for value in values if value.is_floating_point()), torch.empty(0))
    return torch.as_tensor(x, dtype=like.dtype, device=like.device)


def _select_gradients(
    gradients: list[np.ndarray], values: tuple[torch.Tensor, ...], needed: tuple[bool, ...]
) -> Any:
    """Yield required gradients with dtype and device of their inputs; None for others."""
    return (
        torch.as_tensor(g, dtype=value.dtype, device=value.device) if is_needed else None
        for g, value, is_needed in zip(gradients, values, needed, strict=True)
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    """Copy a tensor to a float64 host array."""
    return tensor.detach().cpu().numpy().astype(float)
