"""What can be said of devices without touching one."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

DEVICES = ("cpu", "cuda")


class DeviceError(ValueError):
    """A device cannot be used; the message says what to do."""


def check_device(device: str) -> None:
    """Refuse unknown devices, and CUDA without the package for it."""
    if device not in DEVICES:
        raise DeviceError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if device == "cuda" and not find_spec("numba_cuda"):
        raise DeviceError("device='cuda' needs numba-cuda: pip install 'supple[cuda]'; or use device='cpu'")


def same(a: Any, b: Any) -> bool:
    """Whether two arguments of launches are one object, equal numbers, or tuples of such."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, int | float | np.number) and bool(a == b)
