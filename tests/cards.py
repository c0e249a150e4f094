"""Whether there is a CUDA device for tests that need one."""

import pytest

from supple.kernels.devices import check_device


def card() -> str | None:
    """Its name, None where there is none."""
    try:
        check_device("cuda")
        from supple.kernels.cuda import require_device

        return require_device()
    except ValueError:
        return None


on_a_card = pytest.mark.skipif(card() is None, reason="no CUDA device or no numba-cuda")
