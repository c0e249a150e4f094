"""Tables in kernels: numbers found by an index that differs from lane to lane."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from supple.kernels.pack import PackType

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)


@intrinsic
def lookup(typingctx, table, first, index):
    """The pack of table[first + index]: table (n,) of the pack's precision; index: a pack of whole numbers,
    which are not checked."""
    if not isinstance(index, PackType) or table.dtype != index.dtype:
        return None

    def codegen(context, builder, sig, args):
        struct = context.make_array(table)(context, builder, args[0])
        whole = builder.fptosi(args[2], ir.VectorType(_INT64, index.lanes))
        scalar = context.get_data_type(table.dtype)
        value = ir.Constant(args[2].type, ir.Undefined)
        for lane in range(index.lanes):
            place = builder.add(args[1], builder.extract_element(whole, _INDEX(lane)))
            pointer = builder.gep(struct.data, [place], source_etype=scalar)
            value = builder.insert_element(value, builder.load(pointer), _INDEX(lane))
        return value

    return index(table, types.int64, index), codegen
