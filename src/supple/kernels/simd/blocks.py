"""Block-sparse matrices in kernels: accumulation of 3×3 blocks, and block rows as short packs."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from supple.kernels.simd.load_store import _address_type, _field_pointer, _stream, alignment, pointer_to
from supple.kernels.simd.pack import FAST_FLAGS, PackType, vector_type
from supple.kernels.simd.scalars import number_pointer

BLOCK = 9
"""Numbers of a 3×3 matrix."""

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)

_GROUP = 8
"""Number of lanes transposed together."""


def _shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(order)), order))


def _transpose(builder: Any, rows: list) -> list:
    """Transpose eight vectors of eight: swap off-diagonal halves, then quarters, then eighths."""
    rows = list(rows)
    for d in (4, 2, 1):
        for i in (k for k in range(_GROUP) if not k & d):
            a, b = rows[i], rows[i + d]
            rows[i] = _shuffle(builder, a, b, [k if not k & d else _GROUP + k - d for k in range(_GROUP)])
            rows[i + d] = _shuffle(builder, a, b, [k + d if not k & d else _GROUP + k for k in range(_GROUP)])
    return rows


def _cast(builder: Any, value: Any, scalar: Any) -> Any:
    """Convert numbers or vectors to the precision of the matrix."""
    source_type = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    if source_type == scalar:
        return value
    target_type = ir.VectorType(scalar, value.type.count) if source_type is not value.type else scalar
    widen = isinstance(scalar, ir.DoubleType)
    return builder.fpext(value, target_type) if widen else builder.fptrunc(value, target_type)


@intrinsic
def add_blocks(typingctx, blocks, slots, row, pair, value):
    """blocks[slots[row, pair, :]] += value, one 3×3 matrix per lane, lane after lane.

    Args:
        blocks: 3×3 matrices in contiguous memory, in any precision.
        slots: Block index of each corner pair.
        row, pair: Row and corner pair of `slots`.
        value: Tuple of nine packs.
    """
    size = blocks.dtype.bitwidth // 8
    pack = value.dtype

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(blocks.dtype)
        first = _field_pointer(context, builder, slots, args[1], row, args[2], args[3])
        names = _stream(context, builder, slots, args[1], first, ir.VectorType(_INDEX, pack.lanes))
        base = context.make_array(blocks)(context, builder, args[0]).data
        entries = cgutils.unpack_tuple(builder, args[4], BLOCK)

        def add(pointer, amount):
            target = pointer_to(builder, pointer, amount.type)
            before = builder.load(target)
            before.align = size
            builder.store(builder.fadd(before, amount, flags=FAST_FLAGS), target, align=size)

        def at(lane, entry):
            name = builder.sext(builder.extract_element(names, _INDEX(lane)), _INT64)
            offset = builder.add(builder.mul(name, _INT64(BLOCK)), _INT64(entry))
            return builder.gep(base, [offset], source_etype=scalar)

        def number(lane, entry):
            return _cast(builder, builder.extract_element(entries[entry], _INDEX(lane)), scalar)

        if pack.lanes % _GROUP:
            for lane in range(pack.lanes):
                for entry in range(BLOCK):
                    add(at(lane, entry), number(lane, entry))
            return context.get_dummy_value()
        for group in range(0, pack.lanes, _GROUP):
            order = list(range(group, group + _GROUP))
            rows = [_shuffle(builder, entry, entry, order) for entry in entries[:_GROUP]]
            for lane, numbers in zip(order, _transpose(builder, rows), strict=True):
                add(at(lane, 0), _cast(builder, numbers, scalar))
                add(at(lane, _GROUP), number(lane, _GROUP))
        return context.get_dummy_value()

    return types.void(blocks, slots, _address_type(row), types.int64, value), codegen


def _loads(lanes: int) -> Any:
    """Intrinsic that loads `lanes` numbers of a contiguous array, starting at number i."""

    def load(typingctx, array, i):
        pack = PackType(array.dtype, lanes)

        def codegen(context, builder, sig, args):
            pointer = number_pointer(context, builder, array, *args)
            value = builder.load(pointer_to(builder, pointer, vector_type(pack)))
            value.align = array.dtype.bitwidth // 8
            return value

        return pack(array, types.int64), codegen

    return intrinsic(load)


four_at = _loads(4)
"""Four numbers: a padded vector, or a row of a 3×3 block and the next number."""

eight_at = _loads(8)
"""Eight numbers: a row of a 6×6 block and the next two numbers."""


def _vectors(lanes: int) -> Any:
    """Intrinsic that loads row i of an array with `lanes` columns."""

    def load(typingctx, array, i):
        pack = PackType(array.dtype, lanes)

        def codegen(context, builder, sig, args):
            pointer = number_pointer(context, builder, array, args[0], builder.mul(args[1], _INT64(lanes)))
            value = builder.load(pointer_to(builder, pointer, vector_type(pack)))
            value.align = alignment(builder, array.dtype)
            return value

        return pack(array, types.int64), codegen

    return intrinsic(load)


vector_of_four, vector_of_eight = _vectors(4), _vectors(8)
"""Load a row of an array (n, 4) or (n, 8) as a pack."""


def _numbers(count: int) -> Any:
    def numbers(typingctx, pack):
        def codegen(context, builder, sig, args):
            lanes = [builder.extract_element(args[0], _INDEX(k)) for k in range(count)]
            return context.make_tuple(builder, sig.return_type, lanes)

        return types.UniTuple(pack.dtype, count)(pack), codegen

    return intrinsic(numbers)


three_numbers, six_numbers = _numbers(3), _numbers(6)
"""First three or six numbers of a pack, as a tuple."""


def _sums(count: int) -> Any:
    def total(typingctx, pack):
        def codegen(context, builder, sig, args):
            lanes = [builder.extract_element(args[0], _INDEX(k)) for k in range(count)]
            while len(lanes) > 1:
                pairs = zip(lanes[::2], lanes[1::2], strict=False)
                odd = lanes[-1:] if len(lanes) % 2 else []
                lanes = [builder.fadd(a, b) for a, b in pairs] + odd
            return lanes[0]

        return pack.dtype(pack), codegen

    return intrinsic(total)


three_sum, six_sum = _sums(3), _sums(6)
"""Sum of the first three or six numbers of a pack."""


@intrinsic
def pack_of_three(typingctx, a, b, c):
    """Pack (a, b, c, 0)."""
    return _build_pack(a, 4, (a, b, c))


@intrinsic
def pack_of_six(typingctx, a, b, c, d, e, f):
    """Pack (a, b, c, d, e, f, 0, 0)."""
    return _build_pack(a, 8, (a, b, c, d, e, f))


def _build_pack(kind: Any, lanes: int, numbers: tuple) -> Any:
    pack = PackType(kind, lanes)

    def codegen(context, builder, sig, args):
        value = ir.Constant(vector_type(pack), [0.0] * lanes)
        for lane, number in enumerate(args):
            value = builder.insert_element(value, number, _INDEX(lane))
        return value

    return pack(*[kind] * len(numbers)), codegen


@intrinsic
def store_vector(typingctx, array, i, value):
    """array[i] = value: store a pack as a row, rounded to the precision of the array."""

    def codegen(context, builder, sig, args):
        first = builder.mul(args[1], _INT64(value.lanes))
        pointer = number_pointer(context, builder, array, args[0], first)
        numbers = _cast(builder, args[2], context.get_data_type(array.dtype))
        align = alignment(builder, array.dtype)
        builder.store(numbers, pointer_to(builder, pointer, numbers.type), align=align)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen
