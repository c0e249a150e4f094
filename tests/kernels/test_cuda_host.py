"""Host side of CUDA on a fake driver: memory, launches, cached kernels and error messages."""

import gc
from collections import Counter
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from fake_driver import CUresult
from problems import cantilever, material

import supple
from supple.kernels.devices import DeviceError, check_device
from supple.kernels.simd.load_store import WARP
from supple.problem.vertex_kernels import Displace, apply_to_vectors

pytestmark = pytest.mark.usefixtures("fake_device")


def pulled(mirror, array):
    """Contents of an array on the device, without changes to the host array."""
    before = array.copy()
    mirror.download(array)
    device_array = array.copy()
    array[...] = before
    return device_array


def new_mirror():
    from supple.kernels.cuda import Mirror

    return Mirror()


class Pair(NamedTuple):
    a: Any
    b: Any


def test_arrays_are_allocated_once_and_copied_on_request(fake_device):  # noqa: F811
    mirror, array = new_mirror(), np.arange(12.0).reshape(3, 4)
    assert array not in mirror
    mirror.upload(array)  # of what is not there nothing moves
    mirror.download(array)
    assert fake_device.moved == 0
    mirror.upload_all((array, Pair(array, 3)))
    assert array in mirror
    assert fake_device.moved == array.nbytes
    array[...] = -1
    np.testing.assert_array_equal(pulled(mirror, array), np.arange(12.0).reshape(3, 4))
    mirror.upload(array)
    np.testing.assert_array_equal(pulled(mirror, array), -1)


def test_cleared_arrays_are_not_copied(fake_device):  # noqa: F811
    mirror, array = new_mirror(), np.ones((5, 2), np.float32)
    mirror.clear(array)
    assert fake_device.moved == 0
    np.testing.assert_array_equal(pulled(mirror, array), 0)
    mirror.upload(array)
    mirror.clear(array)
    np.testing.assert_array_equal(pulled(mirror, array), 0)


def test_strided_arrays_are_copied_completely():
    mirror, array = new_mirror(), np.arange(24.0).reshape(4, 6)[:, ::2]
    mirror.upload_all((array,))
    copy = mirror.duplicate(np.ascontiguousarray(array), 0, 4)
    assert copy.shape == (4, 3)
    assert mirror._entry(array)[0].nbytes == array.size * 8


def test_rows_are_assigned_and_duplicated_on_the_device(fake_device):  # noqa: F811
    mirror, target, source = new_mirror(), np.zeros((6, 4)), np.arange(24.0).reshape(6, 4)
    mirror.upload_all((target, source))
    moved = fake_device.moved
    mirror.assign(target, source, 2, 5)
    copy = mirror.duplicate(source, 1, 3)
    assert fake_device.moved == moved
    expected = np.zeros((6, 4))
    expected[2:5] = source[2:5]
    np.testing.assert_array_equal(pulled(mirror, target), expected)
    assert copy.shape == (2, 4)
    described = copy.__cuda_array_interface__
    assert (described["shape"], described["typestr"], described["version"]) == ((2, 4), "<f8", 3)
    device_array = fake_device.allocations[described["data"][0]].view(float)
    np.testing.assert_array_equal(device_array, source[1:3].ravel())


def test_device_memory_is_freed_with_its_array(fake_device):  # noqa: F811
    from supple.kernels.cuda import free_memory, release_memory

    mirror, array, empty = new_mirror(), np.ones(1000), np.empty((0, 4))
    mirror.upload_all((array, empty))
    before = free_memory()
    assert len(fake_device.allocations) == 1  # nothing is allocated for nothing
    mirror.clear_launches()
    del array
    gc.collect()
    assert not fake_device.allocations
    assert free_memory() == before + 8000
    assert fake_device.reserved == 8000  # the pool keeps it for later allocations
    release_memory()
    assert fake_device.reserved == 0


def test_numbers_and_tuples_are_flattened_to_kernel_arguments():
    mirror, array = new_mirror(), np.zeros((2, 3), np.int32)
    fields: list = []
    types: list = []
    mirror.flatten(Pair(array, (4, 2.5)), fields, types)
    pointer = mirror._entry(array)[0].pointer
    assert fields == [0, 0, 6, 4, pointer, 2, 3, 12, 4, 4, 2.5]
    assert types == [Pair, array.dtype, 2, tuple, int, float, None, None]
    other: list = []
    mirror.flatten(Pair((array, 4), 2.5), [], other)
    assert other != types  # brackets in other places are other types


def test_tuple_cache_has_a_limit():
    from supple.kernels.cuda.device_memory import MAX_CACHED_TUPLES

    mirror, tuples = new_mirror(), [(k, float(k)) for k in range(3 * MAX_CACHED_TUPLES)]
    for pair in tuples:
        fields: list = []
        mirror.flatten(pair, fields, [])
        assert fields == list(pair)
    assert len(mirror._tuples) <= MAX_CACHED_TUPLES


def displace(mirror, arrivals, u, drift, batch_size=1, active=(0,), widest=None):
    from supple.kernels.cuda import LOW_LATENCY, launch

    records = len(u) // batch_size
    operations = (Displace(u, drift, 0),)
    state = batch_size, np.array(active, np.int32), records
    launch(mirror, arrivals, apply_to_vectors, 1, LOW_LATENCY, widest, *state, (records,), operations)


def records_of(n, batch_size=1):
    u = np.zeros((batch_size * n, 4))
    drift = np.zeros((n, 4))
    drift[:, :3] = np.arange(3 * n).reshape(n, 3)
    return u, drift


def test_kernel_runs_on_the_device_and_compiles_once(fake_device):  # noqa: F811
    from supple.kernels.cuda import Arrivals

    mirror, arrivals, (u, drift) = new_mirror(), Arrivals(), records_of(50)
    for times in (1, 2, 3):
        displace(mirror, arrivals, u, drift)
        np.testing.assert_array_equal(u, 0)  # until it is pulled
        np.testing.assert_array_equal(pulled(mirror, u), times * drift)
    assert fake_device.compiled == ["apply_to_vectors"]
    assert fake_device.launched == 3 * ["apply_to_vectors"]
    single = u.astype(np.float32), drift.astype(np.float32)
    displace(mirror, arrivals, *single)
    np.testing.assert_array_equal(pulled(mirror, single[0]), single[1])
    assert fake_device.compiled == 2 * ["apply_to_vectors"]


def test_arrival_counters_survive_the_overflow_of_32_bits():
    """Blocks compare with the count of the host; both start again at 2³²."""
    from supple.kernels.cuda import Arrivals

    mirror, arrivals, (u, drift) = new_mirror(), Arrivals(), records_of(5)
    arrivals.counter[0], arrivals.total = 2**32 - 2, 2**32 - 2
    for _ in range(3):
        displace(mirror, arrivals, u, drift)
    assert arrivals.total > 2**32
    np.testing.assert_array_equal(pulled(mirror, u), 3 * drift)


@pytest.mark.parametrize("batch_size", [2, 9])
def test_only_active_members_are_processed(batch_size, fake_device):  # noqa: F811
    """Their number may exceed the rows that fit on the device."""
    from supple.kernels.cuda import Arrivals

    mirror, (u, drift) = new_mirror(), records_of(7, batch_size)
    active = [k for k in range(batch_size) if k != 1]
    displace(mirror, Arrivals(), u, drift, batch_size, active)
    moved = pulled(mirror, u).reshape(batch_size, 7, 4)
    for copy in range(batch_size):
        np.testing.assert_array_equal(moved[copy], drift if copy in active else 0 * drift)
    columns, rows, _ = fake_device.grids[-1]
    assert rows == min(len(active), fake_device.blocks)
    assert columns * rows <= fake_device.blocks


@pytest.mark.parametrize("widest", [None, 1, 5, 6, 13, 48, 1000])
def test_few_items_are_spread_over_the_device(widest, fake_device):  # noqa: F811
    from supple.kernels.cuda import LOW_LATENCY, Arrivals

    displace(new_mirror(), Arrivals(), *records_of(3), widest=widest)
    columns, rows, threads = fake_device.grids[-1]
    assert rows == 1
    assert 1 <= columns <= fake_device.blocks
    assert threads <= LOW_LATENCY.threads
    if widest is not None:
        warps = columns * threads // WARP
        assert warps >= min(widest, fake_device.blocks * LOW_LATENCY.threads // WARP)
        assert warps < widest + columns


def test_kernels_are_cached_on_disk_for_other_processes(fake_device, tmp_path, monkeypatch):  # noqa: F811
    import supple.kernels.cuda.launcher as launching
    from supple.kernels.cuda import Arrivals

    def launch_as_a_new_process():
        launching._launchers.clear()
        launching._dispatcher.cache_clear()
        u, drift = records_of(4)
        mirror = new_mirror()
        displace(mirror, Arrivals(), u, drift)
        np.testing.assert_array_equal(pulled(mirror, u), drift)
        return len(fake_device.compiled), len(fake_device.bound)

    launch_as_a_new_process()  # the stand-in's own kernel, which is not what is kept here
    fake_device.compiled.clear()
    monkeypatch.setattr(launching, "can_cache", lambda: True)
    for module in ("supple.kernels.compile.disk_cache", "supple.kernels.cuda.launcher"):
        monkeypatch.setattr(f"{module}.cache_directory", lambda: tmp_path)
    assert launch_as_a_new_process() == (1, 0)
    (file,) = tmp_path.glob("apply_to_vectors.*.nbc")
    assert launch_as_a_new_process() == (1, 1)
    file.write_bytes(b"damaged")
    assert launch_as_a_new_process() == (2, 1)
    assert launch_as_a_new_process() == (2, 2)


def test_missing_device_is_refused(fake_device):  # noqa: F811
    fake_device.present = False
    with pytest.raises(DeviceError, match=r"none was found \(Error at driver init: libcuda.so cannot"):
        supple.equilibrium(cantilever(material("corotated"), cells=1), device="cuda")


def test_missing_numba_cuda_is_refused(monkeypatch):
    monkeypatch.setattr("supple.kernels.devices.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="needs numba-cuda: pip install"):
        check_device("cuda")


def test_missing_memory_pools_are_refused(fake_device):  # noqa: F811
    fake_device.pools = False
    with pytest.raises(DeviceError, match="no memory pools"):
        new_mirror().upload_all((np.ones(3),))


def test_too_little_device_memory_is_refused(fake_device):  # noqa: F811
    fake_device.total = 3 << 20
    with pytest.raises(DeviceError, match=r"no room for another 4 MiB \(3 MiB are free\); use precision"):
        new_mirror().upload_all((np.ones(1 << 19),))
    fake_device.total = 10_000
    with pytest.raises(DeviceError, match="no room for another"):
        supple.equilibrium(cantilever(material("corotated"), cells=3), device="cuda")


def test_unresponsive_device_is_reported(fake_device):  # noqa: F811
    from supple.kernels.cuda import Arrivals, synchronize

    mirror, (u, drift) = new_mirror(), records_of(3)
    displace(mirror, Arrivals(), u, drift)
    fake_device.failing = CUresult.CUDA_ERROR_LAUNCH_FAILED
    sentence = r"the CUDA device failed \(CUDA_ERROR_LAUNCH_FAILED\), and the results of this solve are lost"
    for act in (synchronize, lambda: mirror.download(u), lambda: displace(mirror, Arrivals(), u, drift)):
        with pytest.raises(DeviceError, match=sentence):
            act()
    fake_device.failing = None


def test_device_has_a_name():
    from supple.kernels.cuda import multiprocessors, require_device

    assert require_device() == "a fake card"
    assert multiprocessors() == 2


@pytest.mark.parametrize("items", [0, 1, 5, 37])
@pytest.mark.parametrize(("batch_size", "rows"), [(1, 1), (3, 3), (5, 2)])
def test_grid_threads_process_every_item_once(items, batch_size, rows, monkeypatch):
    """Every lane of every item of every batch member, for any grid size."""
    from supple.kernels.cuda import thread_grid as grid
    from supple.kernels.parallel.thread_team import first_item, next_item

    first, columns = 2, 2
    active = np.array([2 * k + 1 for k in range(batch_size)], np.int32)
    team = grid.Grid(10, None, 0) if batch_size == 1 else grid.BatchGrid(10, None, 0, active)
    done: Counter = Counter()
    for warp, lane, row in product(range(columns), range(WARP), range(rows)):
        monkeypatch.setattr(grid, "_warp", lambda warp=warp: warp)
        monkeypatch.setattr(grid, "_warps", lambda: columns)
        monkeypatch.setattr(grid, "_lane", lambda lane=lane: lane)
        monkeypatch.setattr(grid.cuda, "blockIdx", SimpleNamespace(x=0, y=row))
        monkeypatch.setattr(grid.cuda, "gridDim", SimpleNamespace(x=0, y=rows))
        item = first_item(team, 0, first, first + items)
        while item.number < first + items:
            assert item.offset == 10 * item.member
            done[int(item.number), int(item.lane), int(item.member)] += 1
            item = next_item(team, 0, item, first, first + items)
    expected = {0} if batch_size == 1 else {int(copy) for copy in active}
    assert set(done) == set(product(range(first, first + items), range(WARP), expected))
    assert set(done.values()) <= {1}
