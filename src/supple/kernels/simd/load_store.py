"""Loads and stores of batched data rows, and of padded vertex vectors gathered by index.

Batched data has the shape (rows, fields, lanes), contiguous: field f of all lanes of row r is consecutive in
memory. On the CPU, a row is addressed by its number, and one access returns a pack of all its lanes. On CUDA,
it is addressed by a `WorkItem` or `Lane`, which denotes one lane, and one access returns a pack of one
number. Vertex quantities (positions, velocities) are padded vectors of four numbers, x y z and one unused, so
that one lane is one aligned load.

A device may hold a batch of states. `WorkItem` and `Lane` contain the batch member of the thread: its vertex
vectors start at `offset`. Four-dimensional data has one block (rows, fields, lanes) per batch member, or one
block for all of them; a block of one row stands for all rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from supple.kernels.simd.pack import PackType, for_cuda, pack_of, vector_type

RECORD = 4
"""Numbers stored per vertex: a padded vector."""

WARP = 32
"""Threads of a warp, which exchange values directly; a warp processes one work item."""

_INT64, _INDEX = ir.IntType(64), ir.IntType(32)


class WorkItem(NamedTuple):
    """Work item of a CUDA thread.

    Attributes:
        number: Number of the item.
        lane: Lane of the thread, one of 32.
        width: Number of distinct lanes; the other threads share these with them.
        slot: Index of the batch member in the list of active members.
        member: Batch member.
        offset: First vertex vector of the batch member.
    """

    number: Any
    lane: Any
    width: Any
    slot: Any
    member: Any
    offset: Any


class Lane(NamedTuple):
    """One of 32 lanes of a row, with batch member and offset of its vertex vectors."""

    number: Any
    lane: Any
    member: Any
    offset: Any


def _field_value(builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Extract a field of a `WorkItem` or `Lane`."""
    return builder.extract_value(value, kind.instance_class._fields.index(name))


def _pack(data: Any, row: Any) -> PackType:
    """Pack type of one access: all lanes for a row number, one lane for a tuple."""
    return PackType(data.dtype, 1) if isinstance(row, types.BaseTuple) else pack_of(data)


def _address_type(row: Any) -> Any:
    return row if isinstance(row, types.BaseTuple) else types.int64


def _field_pointer(context, builder, array_type, array, row_type, row, field):
    """Pointer to data[row, field], at lane 0 or at the lane of a `WorkItem` or `Lane`."""
    struct = context.make_array(array_type)(context, builder, array)
    *blocks, rows, fields, lanes = cgutils.unpack_tuple(builder, struct.shape)
    lane = member = _INT64(0)
    if isinstance(row_type, types.BaseTuple):
        lane, member = (_field_value(builder, row_type, row, name) for name in ("lane", "member"))
        lanes = _INT64(WARP)
        row = _field_value(builder, row_type, row, "number")
    if blocks:
        row = builder.select(builder.icmp_signed("==", rows, _INT64(1)), _INT64(0), row)
        if isinstance(row_type, types.BaseTuple):
            is_batch = builder.icmp_signed(">", blocks[0], _INT64(1))
            row = builder.add(row, builder.select(is_batch, builder.mul(member, rows), _INT64(0)))
    first = builder.mul(builder.mul(row, fields), lanes)
    offset = builder.add(builder.add(first, lane), builder.mul(field, lanes))
    return builder.gep(struct.data, [offset], source_etype=context.get_data_type(array_type.dtype))


def pointer_to(builder, pointer, kind):
    """Cast a pointer to a pointer to `kind`."""
    return builder.bitcast(pointer, kind.as_pointer())


@intrinsic
def load(typingctx, data, row, field):
    """Load the pack data[row, field, :]."""
    pack = _pack(data, row)

    def codegen(context, builder, sig, args):
        pointer = _field_pointer(context, builder, data, args[0], row, args[1], args[2])
        value = builder.load(pointer_to(builder, pointer, vector_type(pack)))
        value.align = data.dtype.bitwidth // 8
        return value

    return pack(data, _address_type(row), types.int64), codegen


@intrinsic
def stream(typingctx, data, row, field):
    """Load read-only data that a sweep reads once.

    On a GPU it does not evict frequently read data, such as vertex vectors, from the caches.
    """
    pack = _pack(data, row)

    def codegen(context, builder, sig, args):
        pointer = _field_pointer(context, builder, data, args[0], row, args[1], args[2])
        return _stream(context, builder, data, args[0], pointer, vector_type(pack))

    return pack(data, _address_type(row), types.int64), codegen


L2_RESIDENT_BYTES = 32 << 20
"""Array size in bytes above which data does not remain in the L2 cache between sweeps and should be evicted
first; measured on an H200 with 50 MiB of L2 cache."""


def _stream(context, builder, array_type, array, pointer, kind):
    """Load a vector of read-only numbers."""
    size = array_type.dtype.bitwidth // 8
    if not for_cuda(builder) or not _has_cache_policies():
        value = builder.load(pointer_to(builder, pointer, kind))
        value.align = size
        return value

    def call(text, constraints, *args):
        signature = ir.FunctionType(_INT64 if not args else kind.element, [arg.type for arg in args])
        asm = ir.InlineAsm(signature, text, constraints)
        return builder.call(asm, args, attrs=["readnone", "nounwind"])  # one load for gather and scatter

    struct = context.make_array(array_type)(context, builder, array)
    large = builder.icmp_signed(">", builder.mul(struct.nitems, _INT64(size)), _INT64(L2_RESIDENT_BYTES))
    leave, stay = (
        call(f"createpolicy.fractional.L2::{priority}.b64 $0, 1.0;", "=l")
        for priority in ("evict_first", "evict_unchanged")
    )
    name, register = {"float": ("f32", "f"), "double": ("f64", "d"), "i32": ("s32", "r")}[str(kind.element)]
    text = f"ld.global.L1::no_allocate.L2::cache_hint.{name} $0, [$1], $2;"
    value = call(text, f"={register},l,l", pointer, builder.select(large, leave, stay))
    return builder.insert_element(ir.Constant(kind, ir.Undefined), value, _INDEX(0))


@cache
def _has_cache_policies() -> bool:
    """True if the current CUDA device supports cache policies (Ampere or later)."""
    from numba import cuda

    return cuda.get_current_device().compute_capability >= (8, 0)


@intrinsic
def store(typingctx, data, row, field, value):
    """data[row, field, :] = value."""

    def codegen(context, builder, sig, args):
        array, item, field, value = args
        pointer = _field_pointer(context, builder, data, array, row, item, field)
        builder.store(value, pointer_to(builder, pointer, value.type), align=data.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(data, _address_type(row), types.int64, value), codegen


def _record_pointers(context, builder, records_type, records, ids_type, ids, row_type, row, slot, lanes):
    """Yield one pointer per lane to the vertex vector ids[row, slot, :]."""
    first = _field_pointer(context, builder, ids_type, ids, row_type, row, slot)
    names = _stream(context, builder, ids_type, ids, first, ir.VectorType(_INDEX, lanes))
    base = context.make_array(records_type)(context, builder, records).data
    for lane in range(lanes):
        name = builder.sext(builder.extract_element(names, _INDEX(lane)), _INT64)
        if isinstance(row_type, types.BaseTuple):
            name = builder.add(name, _field_value(builder, row_type, row, "offset"))
        offset = builder.mul(name, _INT64(RECORD))
        yield builder.gep(base, [offset], source_etype=context.get_data_type(records_type.dtype))


def alignment(builder: Any, dtype: Any) -> int:
    """Alignment of vertex vectors in bytes; 16 on a GPU, so that one load instruction reads a vector."""
    return 16 if for_cuda(builder) else dtype.bitwidth // 8


@intrinsic
def gather(typingctx, records, ids, row, slot):
    """(x, y, z) packs of the vertex vectors (n, 4) with indices ids[row, slot, :]."""
    pack = _pack(records, row)

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(records.dtype)
        parts = []
        for pointer in _record_pointers(
            context, builder, records, args[0], ids, args[1], row, args[2], args[3], pack.lanes
        ):
            part = builder.load(pointer_to(builder, pointer, ir.VectorType(scalar, RECORD)))
            part.align = alignment(builder, records.dtype)
            parts.append(part)

        def shuffle(a, b, order):
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(order)), order))

        while len(parts) > 1:  # concatenate pairs until one long vector remains
            width = parts[0].type.count
            parts = [
                shuffle(a, b, list(range(2 * width))) for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        axes = [
            shuffle(parts[0], parts[0], [RECORD * lane + axis for lane in range(pack.lanes)])
            for axis in range(3)
        ]
        return context.make_tuple(builder, sig.return_type, axes)

    return types.UniTuple(pack, 3)(records, ids, _address_type(row), types.int64), codegen


@intrinsic
def scatter(typingctx, records, ids, row, slot, x):
    """records[ids[row, slot, :]] = x, a tuple of three packs."""

    def codegen(context, builder, sig, args):
        scalar = context.get_data_type(records.dtype)
        axes = cgutils.unpack_tuple(builder, args[4], 3)
        lanes = sig.args[4].dtype.lanes
        pointers = _record_pointers(
            context, builder, records, args[0], ids, args[1], row, args[2], args[3], lanes
        )
        for lane, pointer in enumerate(pointers):
            part = ir.Constant(ir.VectorType(scalar, RECORD), [0.0] * RECORD)
            for axis in range(3):
                value = builder.extract_element(axes[axis], _INDEX(lane))
                part = builder.insert_element(part, value, _INDEX(axis))
            builder.store(
                part, pointer_to(builder, pointer, part.type), align=alignment(builder, records.dtype)
            )
        return context.get_dummy_value()

    return types.void(records, ids, _address_type(row), types.int64, x), codegen


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
