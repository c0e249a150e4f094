"""Access to contiguous arrays by flat index: single numbers, packs and padded vectors."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from supple.kernels.simd.load_store import RECORD, alignment, pointer_to
from supple.kernels.simd.pack import PackType, pack_of, vector_type

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)


def number_pointer(context, builder, array_type, array, i):
    """Pointer to number i of a contiguous array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [i], source_etype=context.get_data_type(array_type.dtype))


@intrinsic
def number_at(typingctx, array, i):
    """Load array.flat[i] of a contiguous array.

    LLVM vectorizes CPU loops over such numbers, in contrast to loops over x, y and z of padded vectors.
    """

    def codegen(context, builder, sig, args):
        return builder.load(number_pointer(context, builder, array, *args))

    return array.dtype(array, types.int64), codegen


@intrinsic
def store_number(typingctx, array, i, value):
    """array.flat[i] = value."""

    def codegen(context, builder, sig, args):
        builder.store(args[2], number_pointer(context, builder, array, *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), codegen


@intrinsic
def numbers_at(typingctx, array, item, i):
    """Load a pack of numbers, starting at array.flat[i].

    A GPU thread loads a padded vector; i must be the start of one.
    """
    pack = PackType(array.dtype, RECORD) if isinstance(item, types.BaseTuple) else pack_of(array)

    def codegen(context, builder, sig, args):
        pointer = number_pointer(context, builder, array, args[0], args[2])
        value = builder.load(pointer_to(builder, pointer, vector_type(pack)))
        value.align = alignment(builder, array.dtype)
        return value

    return pack(array, item, types.int64), codegen


@intrinsic
def store_numbers(typingctx, array, i, value):
    """array.flat[i : i + lanes] = value, a pack."""

    def codegen(context, builder, sig, args):
        pointer = number_pointer(context, builder, array, *args[:2])
        builder.store(
            args[2], pointer_to(builder, pointer, args[2].type), align=alignment(builder, array.dtype)
        )
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen


@intrinsic
def record_at(typingctx, records, i):
    """(x, y, z) of padded vector i, packs of one number."""
    pack = PackType(records.dtype, 1)

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(records.dtype)
        pointer = number_pointer(context, builder, records, args[0], builder.mul(args[1], _INT64(RECORD)))
        record = builder.load(pointer_to(builder, pointer, ir.VectorType(scalar, RECORD)))
        record.align = alignment(builder, records.dtype)
        axes = [
            builder.shuffle_vector(record, record, ir.Constant(ir.VectorType(_INDEX, 1), [axis]))
            for axis in range(3)
        ]
        return context.make_tuple(builder, sig.return_type, axes)

    return types.UniTuple(pack, 3)(records, types.int64), codegen


@intrinsic
def store_record(typingctx, records, i, x):
    """records[i] = x, a tuple of three packs of one number."""

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(records.dtype)
        pointer = number_pointer(context, builder, records, args[0], builder.mul(args[1], _INT64(RECORD)))
        record = ir.Constant(ir.VectorType(scalar, RECORD), [0.0] * RECORD)
        for axis, value in enumerate(cgutils.unpack_tuple(builder, args[2], 3)):
            number = builder.extract_element(value, _INDEX(0))
            record = builder.insert_element(record, number, _INDEX(axis))
        builder.store(
            record, pointer_to(builder, pointer, record.type), align=alignment(builder, records.dtype)
        )
        return context.get_dummy_value()

    return types.void(records, types.int64, x), codegen
