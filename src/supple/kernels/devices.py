"""Device names and checks that do not initialize a device."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

DEVICES = ("cpu", "cuda")


class DeviceError(ValueError):
    """Raised if a device cannot be used; the message suggests a repair."""


def check_device(device: str) -> None:
    """Validate a device name, and the presence of numba-cuda for "cuda".

    Raises:
        DeviceError: Unknown device, or package missing.
    """
    if device not in DEVICES:
        raise DeviceError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if device == "cuda" and not find_spec("numba_cuda"):
        raise DeviceError("device='cuda' needs numba-cuda: pip install 'supple[cuda]'; or use device='cpu'")


def same(a: Any, b: Any) -> bool:
    """True if two launch arguments are the same object, equal numbers, or tuples of such."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, int | float | np.number) and bool(a == b)
