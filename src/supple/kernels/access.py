"""Reading and writing packs: rows of batched data, and vertex records gathered by index.

Batched data has the shape (rows, fields, lanes), contiguous: field f of the lanes of row r lie side by
side. Vertex records (positions, velocities) are rows of four numbers, x y z and one unused, so that one
lane is one aligned load.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from supple.kernels.pack import pack_of, vector_type

RECORD = 4
"""Numbers stored per vertex."""


def _row_pointer(context, builder, array_type, array, row, field, lanes):
    """Pointer to lane 0 of data[row, field], for contiguous data of shape (rows, fields, lanes)."""
    struct = context.make_array(array_type)(context, builder, array)
    fields = cgutils.unpack_tuple(builder, struct.shape)[1]
    offset = builder.mul(builder.add(builder.mul(row, fields), field), ir.IntType(64)(lanes))
    return builder.gep(struct.data, [offset], source_etype=context.get_data_type(array_type.dtype))


@intrinsic
def load(typingctx, data, row, field):
    """The pack data[row, field, :]."""
    pack = pack_of(data)

    def codegen(context, builder, sig, args):
        pointer = _row_pointer(context, builder, data, *args, pack.lanes)
        value = builder.load(pointer, typ=vector_type(pack))
        value.align = data.dtype.bitwidth // 8
        return value

    return pack(data, types.int64, types.int64), codegen


@intrinsic
def store(typingctx, data, row, field, value):
    """data[row, field, :] = value."""

    def codegen(context, builder, sig, args):
        array, row, field, value = args
        pointer = _row_pointer(context, builder, data, array, row, field, sig.args[3].lanes)
        builder.store(
            value, builder.bitcast(pointer, value.type.as_pointer()), align=data.dtype.bitwidth // 8
        )
        return context.get_dummy_value()

    return types.void(data, types.int64, types.int64, value), codegen


def _record_pointers(context, builder, records_type, records, ids_type, ids, row, slot, lanes):
    """One pointer per lane to the records named by ids[row, slot, :]."""
    index = ir.IntType(32)
    first = _row_pointer(context, builder, ids_type, ids, row, slot, lanes)
    names = builder.load(first, typ=ir.VectorType(index, lanes))
    names.align = 4
    base = context.make_array(records_type)(context, builder, records).data
    for lane in range(lanes):
        name = builder.sext(builder.extract_element(names, index(lane)), ir.IntType(64))
        offset = builder.mul(name, ir.IntType(64)(RECORD))
        yield builder.gep(base, [offset], source_etype=context.get_data_type(records_type.dtype))


@intrinsic
def gather(typingctx, records, ids, row, slot):
    """(x, y, z) packs of the records (n, 4) named by ids[row, slot, :]."""
    pack = pack_of(records)

    def codegen(context, builder, sig, args):
        scalar, index = context.get_data_type(records.dtype), ir.IntType(32)
        parts = []
        for pointer in _record_pointers(
            context, builder, records, args[0], ids, args[1], args[2], args[3], pack.lanes
        ):
            part = builder.load(pointer, typ=ir.VectorType(scalar, RECORD))
            part.align = records.dtype.bitwidth // 8
            parts.append(part)

        def shuffle(a, b, order):
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(index, len(order)), order))

        while len(parts) > 1:  # concatenate pairs until all records stand in one long vector
            width = parts[0].type.count
            parts = [
                shuffle(a, b, list(range(2 * width))) for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        axes = [
            shuffle(parts[0], parts[0], [RECORD * lane + axis for lane in range(pack.lanes)])
            for axis in range(3)
        ]
        return context.make_tuple(builder, sig.return_type, axes)

    return types.UniTuple(pack, 3)(records, ids, types.int64, types.int64), codegen


@intrinsic
def scatter(typingctx, records, ids, row, slot, x):
    """records[ids[row, slot, :]] = x, a tuple of three packs."""

    def codegen(context, builder, sig, args):
        scalar, index = context.get_data_type(records.dtype), ir.IntType(32)
        axes = cgutils.unpack_tuple(builder, args[4], 3)
        lanes = sig.args[4].dtype.lanes
        pointers = _record_pointers(context, builder, records, args[0], ids, args[1], args[2], args[3], lanes)
        for lane, pointer in enumerate(pointers):
            part = ir.Constant(ir.VectorType(scalar, RECORD), [0.0] * RECORD)
            for axis in range(3):
                value = builder.extract_element(axes[axis], index(lane))
                part = builder.insert_element(part, value, index(axis))
            builder.store(
                part, builder.bitcast(pointer, part.type.as_pointer()), align=records.dtype.bitwidth // 8
            )
        return context.get_dummy_value()

    return types.void(records, ids, types.int64, types.int64, x), codegen
