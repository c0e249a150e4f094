"""CUDA thread team: assignment of work items to warps, grid barriers and warp reductions."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import cuda, types
from numba.extending import intrinsic

from supple.kernels.compile.dispatch import device_function
from supple.kernels.parallel.parallel_for import ROW_THREADS
from supple.kernels.parallel.thread_team import (
    end_phase,
    first_item,
    next_item,
    records,
    records_at_once,
    skip_phases,
)
from supple.kernels.simd.load_store import WARP, WorkItem
from supple.kernels.simd.pack import PackType


class Grid(NamedTuple):
    """Threads of a cooperative launch: one warp per work item, one thread per lane.

    Attributes:
        records: Number of vertex vectors.
        arrivals: (1,) number of block arrivals at the end of phases over all launches, modulo 2³².
        before: Value of `arrivals` at the start of this launch.
    """

    records: Any
    arrivals: Any
    before: Any


class BatchGrid(NamedTuple):
    """Threads of a cooperative launch for a batch; rows of a two-dimensional grid share the batch members.

    Attributes:
        records: Number of vertex vectors per batch member.
        arrivals, before: As in `Grid`.
        active: (k,) active batch members.
    """

    records: Any
    arrivals: Any
    before: Any
    active: Any


@device_function
def _warp():
    """Warp number within the grid row."""
    return types.int64((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) >> 5)


@device_function
def _warps():
    return types.int64((cuda.gridDim.x * cuda.blockDim.x) >> 5)


@device_function
def _lane():
    return types.int64(cuda.threadIdx.x & (WARP - 1))


@first_item.of(Grid)
def _first_item(team, phase, first, last):
    return WorkItem(first + _warp(), _lane(), types.int64(WARP), 0, 0, 0)


@next_item.of(Grid)
def _next_item(team, phase, item, first, last):
    return WorkItem(item.number + _warps(), item.lane, types.int64(WARP), 0, 0, 0)


@first_item.of(BatchGrid)
def _first_batch_item(team, phase, first, last):
    member = types.int64(team.active[cuda.blockIdx.y])
    row = types.int64(cuda.blockIdx.y)
    return WorkItem(first + _warp(), _lane(), types.int64(WARP), row, member, member * team.records)


@next_item.of(BatchGrid)
def _next_batch_item(team, phase, item, first, last):
    number = item.number + _warps()
    slot, member = item.slot, item.member
    if number >= last and slot + cuda.gridDim.y < len(team.active):
        slot += cuda.gridDim.y
        member = types.int64(team.active[slot])
        number = first + _warp()
    return WorkItem(number, item.lane, types.int64(WARP), slot, member, member * team.records)


@intrinsic
def _arrive(typingctx, counter, times):
    """Add to a counter and make all earlier writes of this block visible."""

    def codegen(context, builder, sig, args):
        pointer = context.make_array(counter)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(32)])
        asm = ir.InlineAsm(
            kind, "red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}", side_effect=True
        )
        builder.call(asm, [pointer, args[1]])
        return context.get_dummy_value()

    return types.void(counter, types.uint32), codegen


@intrinsic
def _read_arrivals(typingctx, counter):
    """Read the counter; writes of blocks before their arrival become visible."""

    def codegen(context, builder, sig, args):
        pointer = context.make_array(counter)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.IntType(32), [pointer.type])
        asm = ir.InlineAsm(kind, "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", side_effect=True)
        return builder.call(asm, [pointer])

    return types.uint32(counter), codegen


@records.of(BatchGrid)
@records.of(Grid)
def _records(team, array):
    return team.records


@records_at_once.of(BatchGrid)
@records_at_once.of(Grid)
def _records_at_once(team):
    return WARP


@end_phase.of(BatchGrid)
@end_phase.of(Grid)
def _end_phase(team, phase, first, last):
    """Grid barrier, cheaper than the grid synchronization of cooperative groups."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        blocks = cuda.gridDim.x * cuda.gridDim.y
        target = types.uint32(team.before + (phase + 1) * blocks)
        _arrive(team.arrivals, types.uint32(1))
        while types.int32(types.uint32(_read_arrivals(team.arrivals) - target)) < 0:
            pass
    cuda.syncthreads()


@skip_phases.of(BatchGrid)
@skip_phases.of(Grid)
def _skip_phases(team, phase, phases):
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and phase < phases:
        _arrive(team.arrivals, types.uint32(phases - phase))


@intrinsic
def _number_of(typingctx, pack):
    """Extract the number of a one-lane pack."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], ir.IntType(32)(0))

    return pack.dtype(pack), codegen


@intrinsic
def _pack_with(typingctx, number):
    """Pack of one number."""

    def codegen(context, builder, sig, args):
        vector = ir.Constant(ir.VectorType(args[0].type, 1), ir.Undefined)
        return builder.insert_element(vector, args[0], ir.IntType(32)(0))

    return PackType(number, 1)(number), codegen


@device_function
def _exchange(value, offset):
    """Add the pack of the thread at the given lane offset."""
    number = _number_of(value)
    return _pack_with(number + cuda.shfl_xor_sync(0xFFFFFFFF, number, offset))


@device_function
def sum_one(item, v):
    """Sum a pack over the threads sharing a lane."""
    offset = WARP // 2
    while offset >= item.width:
        v = (_exchange(v[0], offset),)
        offset >>= 1
    return v


@device_function
def sum_nine(item, v):
    """Sum nine packs over the threads sharing a lane, with overlapping exchanges."""
    offset = WARP // 2
    while offset >= item.width:
        v = (
            _exchange(v[0], offset),
            _exchange(v[1], offset),
            _exchange(v[2], offset),
            _exchange(v[3], offset),
            _exchange(v[4], offset),
            _exchange(v[5], offset),
            _exchange(v[6], offset),
            _exchange(v[7], offset),
            _exchange(v[8], offset),
        )
        offset >>= 1
    return v


@device_function
def sum_over_warp(value):
    """Warp sum of a number, returned to every thread."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset >>= 1
    return value


@device_function
def sum_over_row_threads(value):
    """Sum a number over the neighboring threads of a row; every thread gets the result."""
    offset = ROW_THREADS // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset >>= 1
    return value


@device_function
def max_over_warp(value):
    """Warp maximum of a number, returned to every thread."""
    offset = WARP // 2
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return value


@device_function
def shared_lane_min_of_pack(item, pack):
    """Minimum of a pack over the threads sharing a lane."""
    value = _number_of(pack)
    offset = WARP // 2
    while offset >= item.width:
        value = min(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return _pack_with(value)


@device_function
def warp_barrier():
    """Warp barrier; makes writes visible to all threads."""
    cuda.syncwarp()
