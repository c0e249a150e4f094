"""Table lookup in kernels with an index per lane."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from supple.kernels.simd.pack import PackType

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)


def _loads(context: Any, builder: Any, table: Any, args: Any, index: PackType, count: int) -> list:
    """For each lane, load the `count` numbers from table[first + index] on."""
    array, first, index_pack = args
    struct = context.make_array(table)(context, builder, array)
    scalar = context.get_data_type(table.dtype)
    indices = builder.fptosi(index_pack, ir.VectorType(_INT64, index.lanes))
    parts = []
    for lane in range(index.lanes):
        address = builder.add(first, builder.extract_element(indices, _INDEX(lane)))
        pointer = builder.gep(struct.data, [address], source_etype=scalar)
        part = builder.load(builder.bitcast(pointer, ir.VectorType(scalar, count).as_pointer()))
        part.align = table.dtype.bitwidth // 8
        parts.append(part)
    return parts


def _shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(order)), order))


def _transpose(builder: Any, parts: list, lanes: int, count: int) -> list:
    """Transpose one vector per lane into `count` vectors of one number per lane."""
    while len(parts) > 1:
        width = 2 * parts[0].type.count
        parts = [
            _shuffle(builder, a, b, list(range(width))) for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return [
        _shuffle(builder, parts[0], parts[0], [count * lane + k for lane in range(lanes)])
        for k in range(count)
    ]


def _consecutive(count: int) -> Any:
    @intrinsic
    def load_consecutive(typingctx, table, first, index):
        if not isinstance(index, PackType) or table.dtype != index.dtype:
            return None

        def codegen(context, builder, sig, args):
            parts = _loads(context, builder, table, args, index, count)
            return context.make_tuple(
                builder, sig.return_type, _transpose(builder, parts, index.lanes, count)
            )

        return types.UniTuple(index, count)(table, types.int64, index), codegen

    return load_consecutive


load_two = _consecutive(2)
load_four = _consecutive(4)
"""Load two or four consecutive numbers table[first + index], ... per lane, as packs.

The table (n,) has the precision of the packs; `index` is a pack of whole numbers, without bounds check.
"""
