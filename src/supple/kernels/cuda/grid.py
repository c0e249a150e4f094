"""The threads of a CUDA device as a team: who does which item, how they wait, how those of a warp add up."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import cuda, types
from numba.extending import intrinsic

from supple.kernels.access import WARP, Place
from supple.kernels.compile import physics
from supple.kernels.pack import PackType
from supple.kernels.sharing import SHARERS
from supple.kernels.team import enter, leave, proceed, records, records_at_once, skip


class Grid(NamedTuple):
    """All threads of a cooperative launch. A warp does one item at a time, a thread one of its 32 lanes.
    records: how many the state has; arrivals (1,): how often a block has arrived at the end of a phase, of
    all launches, modulo 2³²; before: that number when this launch starts."""

    records: Any
    arrivals: Any
    before: Any


class Copies(NamedTuple):
    """All threads of a cooperative launch for several copies of the state, otherwise as in `Grid`. active
    (k,): those to work on, which the rows of a two-dimensional grid divide among them; records: how many each
    has."""

    records: Any
    arrivals: Any
    before: Any
    active: Any


@physics
def _warp():
    """The number of this warp in its row of the grid."""
    return types.int64((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) >> 5)


@physics
def _warps():
    return types.int64((cuda.gridDim.x * cuda.blockDim.x) >> 5)


@physics
def _lane():
    return types.int64(cuda.threadIdx.x & (WARP - 1))


@enter.of(Grid)
def _enter(team, phase, first, last):
    return Place(first + _warp(), _lane(), types.int64(WARP), 0, 0, 0)


@proceed.of(Grid)
def _proceed(team, phase, place, first, last):
    return Place(place.number + _warps(), place.lane, types.int64(WARP), 0, 0, 0)


@enter.of(Copies)
def _enter_copies(team, phase, first, last):
    copy = types.int64(team.active[cuda.blockIdx.y])
    row = types.int64(cuda.blockIdx.y)
    return Place(first + _warp(), _lane(), types.int64(WARP), row, copy, copy * team.records)


@proceed.of(Copies)
def _proceed_copies(team, phase, place, first, last):
    number = place.number + _warps()
    slot, copy = place.slot, place.copy
    if number >= last and slot + cuda.gridDim.y < len(team.active):
        slot += cuda.gridDim.y
        copy = types.int64(team.active[slot])
        number = first + _warp()
    return Place(number, place.lane, types.int64(WARP), slot, copy, copy * team.records)


@intrinsic
def _arrive(typingctx, counter, times):
    """Add to a counter, after which all that this block has written before can be seen."""

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
def _arrived(typingctx, counter):
    """The counter now; what blocks wrote before they added to it can be seen."""

    def codegen(context, builder, sig, args):
        pointer = context.make_array(counter)(context, builder, args[0]).data
        kind = ir.FunctionType(ir.IntType(32), [pointer.type])
        asm = ir.InlineAsm(kind, "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}", side_effect=True)
        return builder.call(asm, [pointer])

    return types.uint32(counter), codegen


@records.of(Copies)
@records.of(Grid)
def _records(team, array):
    return team.records


@records_at_once.of(Copies)
@records_at_once.of(Grid)
def _records_at_once(team):
    return WARP


@leave.of(Copies)
@leave.of(Grid)
def _leave(team, phase, first, last):
    """Wait for all blocks. Cheaper than cooperative groups' sync of the grid."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        blocks = cuda.gridDim.x * cuda.gridDim.y
        target = types.uint32(team.before + (phase + 1) * blocks)
        _arrive(team.arrivals, types.uint32(1))
        while types.int32(types.uint32(_arrived(team.arrivals) - target)) < 0:
            pass
    cuda.syncthreads()


@skip.of(Copies)
@skip.of(Grid)
def _skip(team, phase, phases):
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and phase < phases:
        _arrive(team.arrivals, types.uint32(phases - phase))


@intrinsic
def _number_of(typingctx, pack):
    """The one number of a pack."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], ir.IntType(32)(0))

    return pack.dtype(pack), codegen


@intrinsic
def _pack_with(typingctx, number):
    """A pack of one number."""

    def codegen(context, builder, sig, args):
        vector = ir.Constant(ir.VectorType(args[0].type, 1), ir.Undefined)
        return builder.insert_element(vector, args[0], ir.IntType(32)(0))

    return PackType(number, 1)(number), codegen


@physics
def _exchange(value, offset):
    """A pack plus that of the thread `offset` further on."""
    number = _number_of(value)
    return _pack_with(number + cuda.shfl_xor_sync(0xFFFFFFFF, number, offset))


@physics
def sum_one(place, v):
    """The sum of a pack over the threads that share a lane."""
    offset = WARP // 2
    while offset >= place.width:
        v = (_exchange(v[0], offset),)
        offset >>= 1
    return v


@physics
def sum_nine(place, v):
    """The sums of nine packs, whose exchanges overlap."""
    offset = WARP // 2
    while offset >= place.width:
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


@physics
def sum_over_warp(value):
    """The sum of a number over all threads of a warp, the same in each."""
    offset = WARP // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset >>= 1
    return value


@physics
def sum_over_sharers(value):
    """The sum of a number over neighbouring threads that share a row, the same in each."""
    offset = SHARERS // 2
    while offset > 0:
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
        offset >>= 1
    return value


@physics
def most_over_warp(value):
    """The largest of a number over all threads of a warp, the same in each."""
    offset = WARP // 2
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return value


@physics
def least_over_parts(place, pack):
    """The least of a pack over the threads that share a lane."""
    value = _number_of(pack)
    offset = WARP // 2
    while offset >= place.width:
        value = min(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, offset))
        offset >>= 1
    return _pack_with(value)


@physics
def wait_for_warp():
    """Return once all threads of the warp are here and see what each has written."""
    cuda.syncwarp()
