"""Equilibria in PyTorch: positions through which gradients flow back."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.gradients.layer import Layer, layer_of
from supple.scene import Scene, SceneFile
from supple.solvers import Solver

try:
    import torch
    from torch.autograd.function import once_differentiable
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


class _Equilibrium(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(layer: Layer, *values: torch.Tensor) -> torch.Tensor:
        x = layer.positions([_array(value) for value in values])
        like = next((value for value in values if value.is_floating_point()), torch.empty(0))
        return torch.as_tensor(x, dtype=like.dtype, device=like.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        layer, *values = inputs
        ctx.layer = layer
        ctx.save_for_backward(*values)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, direct: torch.Tensor) -> tuple[Any, ...]:
        values = ctx.saved_tensors
        found = ctx.layer.pull([_array(value) for value in values], _array(direct))
        return None, *(
            torch.as_tensor(g, dtype=value.dtype, device=value.device) if needed else None
            for g, value, needed in zip(found, values, ctx.needs_input_grad[1:], strict=True)
        )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(float)
