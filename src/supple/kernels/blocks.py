"""Adding small matrices, one in each lane of packs, to the blocks of a sparse matrix."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from supple.kernels.access import _as, _field_pointer, _handle, _stream
from supple.kernels.pack import FAST_FLAGS

BLOCK = 9
"""Numbers of a 3×3 matrix."""

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)

_GROUP = 8
"""Lanes that are transposed together."""


def _shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(order)), order))


def _transposed(builder: Any, rows: list) -> list:
    """Eight vectors of eight as a matrix whose halves, quarters and eighths change places."""
    rows = list(rows)
    for d in (4, 2, 1):
        for i in (k for k in range(_GROUP) if not k & d):
            a, b = rows[i], rows[i + d]
            rows[i] = _shuffled(builder, a, b, [k if not k & d else _GROUP + k - d for k in range(_GROUP)])
            rows[i + d] = _shuffled(
                builder, a, b, [k + d if not k & d else _GROUP + k for k in range(_GROUP)]
            )
    return rows


def _cast(builder: Any, value: Any, scalar: Any) -> Any:
    """A number or vector in the precision of the matrix."""
    own = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    if own == scalar:
        return value
    wanted = ir.VectorType(scalar, value.type.count) if own is not value.type else scalar
    widen = isinstance(scalar, ir.DoubleType)
    return builder.fpext(value, wanted) if widen else builder.fptrunc(value, wanted)


@intrinsic
def add_blocks(typingctx, blocks, slots, row, pair, value):
    """blocks[slots[row, pair, :]] += value, a tuple of nine packs: one 3×3 matrix per lane, lane after lane.
    Blocks are the numbers of 3×3 matrices one after the other, in any precision."""
    size = blocks.dtype.bitwidth // 8
    pack = value.dtype

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(blocks.dtype)
        first = _field_pointer(context, builder, slots, args[1], row, args[2], args[3])
        names = _stream(context, builder, slots, args[1], first, ir.VectorType(_INDEX, pack.lanes))
        base = context.make_array(blocks)(context, builder, args[0]).data
        entries = cgutils.unpack_tuple(builder, args[4], BLOCK)

        def add(pointer, amount):
            target = _as(builder, pointer, amount.type)
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
            rows = [_shuffled(builder, entry, entry, order) for entry in entries[:_GROUP]]
            for lane, numbers in zip(order, _transposed(builder, rows), strict=True):
                add(at(lane, 0), _cast(builder, numbers, scalar))
                add(at(lane, _GROUP), number(lane, _GROUP))
        return context.get_dummy_value()

    return types.void(blocks, slots, _handle(row), types.int64, value), codegen
