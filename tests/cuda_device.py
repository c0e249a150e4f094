"""Detection of a CUDA device for tests that need one."""

import pytest

from supple.kernels.devices import check_device


def cuda_device_name() -> str | None:
    """Name of the CUDA device, or None without one."""
    try:
        check_device("cuda")
        from supple.kernels.cuda import require_device

        return require_device()
    except ValueError:
        return None


needs_cuda_device = pytest.mark.skipif(cuda_device_name() is None, reason="no CUDA device or no numba-cuda")
