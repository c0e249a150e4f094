"""x^(-1/3) for numbers and packs."""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import overload

from supple.kernels.simd.math import positive_only, vector_inverse_cube_root
from supple.kernels.simd.pack import PackType, for_cuda, register, scalar_call


def inverse_cube_root(x: Any) -> Any:
    """x^(-1/3) for x > 0, otherwise NaN."""
    return x ** (-1.0 / 3.0) if x > 0.0 else math.nan


@overload(inverse_cube_root, jit_options={"forceinline": True})
def _inverse_cube_root(x):
    if isinstance(x, types.Float):
        return lambda x: x ** (-1.0 / 3.0) if x > 0.0 else math.nan
    return None


def _pack_inverse_cube_root(builder: Any, pack: PackType, x: Any) -> Any:
    if for_cuda(builder):
        suffix = "f" if pack.dtype == types.float32 else ""
        return positive_only(builder, x, scalar_call(builder, f"__nv_rcbrt{suffix}", x))
    return vector_inverse_cube_root(builder, x)


register(inverse_cube_root, 1, _pack_inverse_cube_root)
