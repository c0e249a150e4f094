"""SIMD register (pack) as a Numba type: physics written on scalars runs in many lanes simultaneously.

`Pack(float32, 16)` is an LLVM vector `<16 x float>` in compiled code. It supports + - * /, comparisons,
`where`, `abs`, `min`, `max`, `math.sqrt`, `math.log` and `math.exp`. A plain number in an expression with a
pack is rounded to the precision of the pack and broadcast to every lane, so literals never widen float32.
LLVM maps packs to AVX-512, AVX2, SSE or NEON. A pack of one lane is the scalar with weak literals used by
CUDA threads.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, models, overload, register_model

from supple.kernels.simd.math import positive_only, vector_exp, vector_inverse_cube_root, vector_log

PACK_BYTES = 64
"""Size of a pack in bytes: one AVX-512 register, two AVX2 registers or four NEON registers."""

# LLVM's `fast` without nnan and ninf: non-finite steps must stay detectable.
FAST_FLAGS = ("reassoc", "nsz", "arcp", "contract")


def lanes_of(dtype: Any) -> int:
    """Number of lanes of a full pack: 16 for float32, 8 for float64."""
    return PACK_BYTES // np.dtype(dtype).itemsize


class PackType(types.Type):
    """Numba type of a pack with `lanes` floats of type `dtype`."""

    def __init__(self, dtype: types.Float, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Pack({dtype}, {lanes})")


class MaskType(types.Type):
    """Numba type of `lanes` truth values, the result of a comparison of packs."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"Mask({lanes})")


_FLOATS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}


def pack_of(array: Any) -> PackType:
    """Full pack type for an array's element type."""
    return PackType(array.dtype, PACK_BYTES // (array.dtype.bitwidth // 8))


@register_model(PackType)
class PackModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: PackType) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(_FLOATS[fe_type.dtype], fe_type.lanes))


@register_model(MaskType)
class MaskModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: MaskType) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(ir.IntType(1), fe_type.lanes))


def vector_type(pack: PackType) -> ir.VectorType:
    return ir.VectorType(_FLOATS[pack.dtype], pack.lanes)


def splat(builder: Any, scalar: Any, lanes: int) -> Any:
    """LLVM vector with `scalar` in every lane."""
    index = ir.IntType(32)
    vector = ir.VectorType(scalar.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, index(0))
    mask = ir.Constant(ir.VectorType(index, lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)


@lower_cast(types.Number, PackType)
@lower_cast(types.IntegerLiteral, PackType)
def scalar_to_pack(context, builder, source, pack, value):
    return splat(builder, context.cast(builder, value, source, pack.dtype), pack.lanes)


@lower_cast(types.Boolean, MaskType)
def bool_to_mask(context, builder, source, mask, value):
    return splat(builder, builder.trunc(value, ir.IntType(1)) if value.type.width > 1 else value, mask.lanes)


def common_pack(arguments: tuple[types.Type, ...]) -> PackType | None:
    """Pack type of an operation on packs and numbers, None without packs."""
    packs = {a for a in arguments if isinstance(a, PackType)}
    if len(packs) != 1 or not all(isinstance(a, PackType | types.Number) for a in arguments):
        return None
    return packs.pop()


def register(function: Callable, arity: int, build: Callable, to_mask: bool = False) -> None:
    """Register `function` on packs for typing, and for lowering with `build`. Numbers are cast to packs."""

    class PackTemplate(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            pack = common_pack(args) if len(args) == arity else None
            if pack is None:
                return None
            return signature(MaskType(pack.lanes) if to_mask else pack, *([pack] * arity))

    infer_global(function)(PackTemplate)

    def lower(context, builder, sig, args):
        return build(builder, sig.args[0], *args)

    lower_builtin(function, *([PackType] * arity))(lower)


def _llvm_call(name: str) -> Callable:
    def build(builder: Any, pack: PackType, *args: Any) -> Any:
        vector = args[0].type
        if for_cuda(builder) and name in ("log", "exp", "fabs"):
            suffix = "f" if pack.dtype == types.float32 else ""
            return scalar_call(builder, f"__nv_{name}{suffix}", *args)
        if name in ("log", "exp"):
            return (vector_log if name == "log" else vector_exp)(builder, *args)
        if for_cuda(builder) and name == "sqrt" and pack.dtype == types.float32:
            return scalar_call(builder, "llvm.nvvm.sqrt.approx.ftz.f", *args)
        suffix = f"v{pack.lanes}f{pack.dtype.bitwidth}"
        function_type = ir.FunctionType(vector, [vector] * len(args))
        function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{suffix}")
        return builder.call(function, args, fastmath=FAST_FLAGS)

    return build


def for_cuda(builder: Any) -> bool:
    return "nvptx" in (builder.module.triple or "")


def scalar_call(builder: Any, name: str, *values: Any) -> Any:
    """Call a scalar CUDA function on packs of one lane."""
    vector, index = values[0].type, ir.IntType(32)(0)
    scalar = vector.element
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(scalar, [scalar] * len(values)), name
    )
    result = builder.call(function, [builder.extract_element(value, index) for value in values])
    return builder.insert_element(ir.Constant(vector, ir.Undefined), result, index)


def _divide(builder: Any, pack: PackType, x: Any, y: Any) -> Any:
    if for_cuda(builder) and pack.dtype == types.float32:
        return scalar_call(builder, "llvm.nvvm.div.approx.ftz.f", x, y)
    return builder.fdiv(x, y, flags=FAST_FLAGS)


register(operator.add, 2, lambda b, pack, x, y: b.fadd(x, y, flags=FAST_FLAGS))
register(operator.sub, 2, lambda b, pack, x, y: b.fsub(x, y, flags=FAST_FLAGS))
register(operator.mul, 2, lambda b, pack, x, y: b.fmul(x, y, flags=FAST_FLAGS))
register(operator.truediv, 2, _divide)
register(operator.neg, 1, lambda b, pack, x: b.fsub(ir.Constant(x.type, [-0.0] * pack.lanes), x))
for _function, _name in ((math.sqrt, "sqrt"), (math.log, "log"), (math.exp, "exp"), (abs, "fabs")):
    register(_function, 1, _llvm_call(_name))
register(max, 2, _llvm_call("maxnum"))
register(min, 2, _llvm_call("minnum"))
for _comparison, _symbol in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
):
    register(
        _comparison,
        2,
        lambda b, pack, x, y, symbol=_symbol: b.fcmp_ordered(symbol, x, y),
        to_mask=True,
    )


class _MaskAnd(AbstractTemplate):
    key = operator.and_

    def generic(self, args, kws):
        if len(args) == 2 and isinstance(args[0], MaskType) and args[0] == args[1]:
            return signature(args[0], *args)
        return None


infer_global(operator.and_)(_MaskAnd)


@lower_builtin(operator.and_, MaskType, MaskType)
def _lower_mask_and(context, builder, sig, args):
    return builder.and_(*args)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition holds, otherwise `b`; lane by lane for packs, with both sides evaluated.

    Args:
        condition: Condition; a pack of conditions selects lane by lane.
        a: Value where the condition holds.
        b: Value elsewhere.

    Returns:
        The selected value.
    """
    return a if condition else b


@intrinsic
def _select_lanes(typingctx, condition, yes, no):
    pack = common_pack((yes, no))
    if not isinstance(condition, MaskType) or pack is None:
        return None

    def codegen(context, builder, sig, args):
        return builder.select(*args)

    return pack(condition, pack, pack), codegen


@overload(where, jit_options={"forceinline": True})
def _select(condition, a, b):
    if isinstance(condition, MaskType):
        return lambda condition, a, b: _select_lanes(condition, a, b)
    return lambda condition, a, b: a if condition else b


@intrinsic
def pack_like(typingctx, number, example):
    """Broadcast a number to the pack type of an example."""

    def codegen(context, builder, sig, args):
        return scalar_to_pack(context, builder, number, example, args[0])

    return example(number, example), codegen


@intrinsic
def lane_sum(typingctx, value):
    """Sum of a pack's lanes in float64, in a fixed order."""

    def codegen(context, builder, sig, args):
        double, index = ir.DoubleType(), ir.IntType(32)
        total = double(0.0)
        for lane in range(value.lanes):
            x = builder.extract_element(args[0], index(lane))
            total = builder.fadd(total, x if x.type == double else builder.fpext(x, double))
        return total

    return types.float64(value), codegen


def all_lanes(condition: Any) -> bool:
    """True if a condition holds in every lane."""
    return bool(condition)


@intrinsic
def _all_lanes(typingctx, mask):
    def codegen(context, builder, sig, args):
        bits = builder.bitcast(args[0], ir.IntType(mask.lanes))
        return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << mask.lanes) - 1))

    return types.boolean(mask), codegen


@overload(all_lanes, jit_options={"forceinline": True})
def _overload_all_lanes(condition):
    if isinstance(condition, MaskType):
        return lambda condition: _all_lanes(condition)
    return lambda condition: condition


def rounding(example: Any) -> float:
    """Relative rounding error ε of the example's type: 1.2e-7 in float32, 2.2e-16 in float64."""
    return float(np.finfo(np.float32 if isinstance(example, np.float32) else np.float64).eps)


@overload(rounding, jit_options={"forceinline": True})
def _overload_rounding(example):
    number = example.dtype if isinstance(example, PackType) else example
    eps = float(np.finfo(np.float32 if number == types.float32 else np.float64).eps)
    return lambda example: eps


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
