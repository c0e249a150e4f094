"""A stand-in for supple.kernels.cuda: kernels run lane by lane on the CPU, on their own copies of all arrays.

What drives a device (mirrors, batches, substeps) is then the very code that drives a card, and whoever
forgets to push or pull an array gets a wrong result here too.
"""

import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from supple.kernels.access import WARP
from supple.kernels.lanewise import run_lanewise


class Shape(NamedTuple):
    registers: int
    threads: int


class Arrivals:
    pass


class Mirror:
    def __init__(self) -> None:
        self._copies: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def of(self, array: np.ndarray) -> np.ndarray:
        known = self._copies.get(id(array))
        if known is None or known[0] is not array:
            known = self._copies[id(array)] = array, array.copy()
        return known[1]

    def __contains__(self, array: np.ndarray) -> bool:
        return id(array) in self._copies

    def forget_launches(self) -> None:
        pass

    def upload(self, value: Any) -> None:
        self.on_device(value)

    def clear(self, array: np.ndarray) -> None:
        self.of(array)[...] = 0

    def on_device(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.of(value)
        if isinstance(value, tuple):
            items = [self.on_device(item) for item in value]
            return type(value)._make(items) if hasattr(value, "_fields") else tuple(items)
        return value

    def pull(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            array[...] = self.of(array)

    def push(self, array: np.ndarray) -> None:
        if id(array) in self._copies:
            self.of(array)[...] = array

    def assign(self, target: np.ndarray, source: np.ndarray, first: int, last: int) -> None:
        self.of(target)[first:last] = self.of(source)[first:last]

    def duplicate(self, array: np.ndarray, first: int, last: int) -> np.ndarray:
        return self.of(array)[first:last].copy()


launched: list[str] = []
"""The names of the kernels that were launched."""


def launch(mirror, arrivals, kernel, phases, shape, widest, copies, active, records, *args) -> None:
    launched.append(kernel.__name__)
    run_lanewise(kernel, phases, active, records, *(mirror.on_device(arg) for arg in args))


@pytest.fixture
def fake_device(monkeypatch):
    """Lets device="cuda" mean this."""
    fake = ModuleType("supple.kernels.cuda")
    names = ("Shape", "Arrivals", "Mirror", "launch", "launched")
    for name in names:
        setattr(fake, name, globals()[name])
    launched.clear()
    fake.FAT = fake.WIDE = Shape(0, WARP)
    fake.require_device = lambda: "the CPU, lane by lane"
    fake.multiprocessors = lambda: 1
    fake.free_memory = lambda: 1 << 30
    fake.synchronise = fake.release_memory = lambda: None
    monkeypatch.setattr("supple.kernels.device.find_spec", lambda name: True)
    drivers = ("supple.problem.cuda",)
    for name in drivers:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "supple.kernels.cuda", fake)
    for name in ("batches", "links"):  # one thread after the other cannot share a vertex
        monkeypatch.setattr(f"supple.ordering.{name}.best_width", lambda *args: WARP)
    yield fake
    for name in drivers:
        sys.modules.pop(name, None)
