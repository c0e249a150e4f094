"""Equilibria in PyTorch: positions through which gradients flow back."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.gradients.layer import Layer, layer_of
from supple.scene import Scene, SceneFile
from supple.solvers import Solver

try:
    import torch
except ImportError as error:
    raise ImportError("supple.torch needs PyTorch: pip install torch") from error


def equilibrium(
    scene: Scene | SceneFile,
    solver: Solver | str | None = None,
    *,
    start: np.ndarray | None = None,
    **given: Any,
) -> torch.Tensor:
    """Positions (n, 3) [m] of the equilibrium of a scene, with some tensors in place of what it has.

    gravity (3,); forces (n, 3) [N] beside the scene's; pins: {name: positions (k, 3)}; rest (n, 3) positions
    of all vertices; pressures (p,); density and every parameter of a material by its name, as young=..., one
    number or one for each cell; where several bodies have it, {body: ...}. Further keywords are options of
    `supple.equilibrium`. The solve is followed by Newton steps to about 1e-11, and differentiated by one
    adjoint solve, once; all is computed in float64 on the host's side and returned like the first tensor.
    """
    layer, values = layer_of(scene, solver, start, given)
    tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values]
    return _Equilibrium.apply(layer, *tensors)


def equilibria(
    scene: Scene | SceneFile,
    solver: Solver | str | None = None,
    *,
    start: np.ndarray | None = None,
    **given: Any,
) -> torch.Tensor:
    """Positions (copies, n, 3) [m] of many equilibria of a scene, by the keywords of `equilibrium`: every
    tensor has a leading axis of copies; what is the same for all is `tensor.expand(copies, ...)`.

    Up to 64 are polished and differentiated at once, as bodies of one problem, and solved at once on a CUDA
    device where the copies differ in loads, pins and parameters of materials. Raises what is wrong with the
    first one that has no equilibrium or no gradient.
    """
    layer, values = layer_of(scene, solver, start, given)
    tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values]
    sizes = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
    if len(sizes) != 1 or 0 in sizes:
        shapes = ", ".join(f"{each}: {tuple(t.shape)}" for each, t in zip(layer.inputs, tensors, strict=True))
        raise ValueError(f"equilibria() takes tensors that all have a leading axis of copies; got {shapes}")
    return _Equilibria.apply(layer, *tensors)


class _Equilibrium(torch.autograd.Function):  # type: ignore[misc]
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
        found = _Pull.apply(ctx.layer, False, ctx.needs_input_grad[1:], direct, *values)
        return None, *found


class _Equilibria(_Equilibrium):
    @staticmethod
    def forward(layer: Layer, *values: torch.Tensor) -> torch.Tensor:
        return _like(values, np.stack(_all(layer.positions_of_many([_array(value) for value in values]))))

    @staticmethod
    def backward(ctx: Any, direct: torch.Tensor) -> tuple[Any, ...]:
        values = ctx.saved_tensors
        found = _Pull.apply(ctx.layer, True, ctx.needs_input_grad[1:], direct, *values)
        return None, *found


class _Pull(torch.autograd.Function):  # type: ignore[misc]
    """Gradients of a loss by the inputs of a layer, from those by positions: a function of its own, so that a
    derivative of it is refused with a sentence."""

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
            found = list(map(np.stack, zip(*_all(layer.pull_many(arrays, by)), strict=True)))
        else:
            found = layer.pull(arrays, by)
        return tuple(_needed(found, values, needed))

    @staticmethod
    def backward(ctx: Any, *direct: torch.Tensor) -> tuple[Any, ...]:
        raise RuntimeError(
            "supple.torch has first derivatives of equilibria only: its gradients cannot be differentiated "
            "again, as Hessians and penalties on gradients would need. Take differences of gradients instead."
        )


def _all(found: list[Any]) -> list[Any]:
    """What was found, if nothing is wrong with any."""
    for one in found:
        if isinstance(one, ValueError):
            raise one
    return found


def _like(values: tuple[torch.Tensor, ...], x: np.ndarray) -> torch.Tensor:
    """Like the first tensor that has fractions."""
    like = next((value for value in values if value.is_floating_point()), torch.empty(0))
    return torch.as_tensor(x, dtype=like.dtype, device=like.device)


def _needed(found: list[np.ndarray], values: tuple[torch.Tensor, ...], needed: tuple[bool, ...]) -> Any:
    """The gradients that somebody needs, like the tensors that they are of; None for others."""
    return (
        torch.as_tensor(g, dtype=value.dtype, device=value.device) if wanted else None
        for g, value, wanted in zip(found, values, needed, strict=True)
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(float)
