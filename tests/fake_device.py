"""A fake CUDA device for tests: all of supple.kernels.cuda with a fake driver on the CPU.

Mirrors, launches, batches and substeps run the code of real devices, so that a missing upload or download
gives a wrong result here too.
"""

import pytest
from fake_driver import installed

from supple.kernels.simd.load_store import WARP


@pytest.fixture
def fake_device(monkeypatch):
    """Make device="cuda" use the fake driver."""
    for name in ("batches", "tied_groups"):  # one thread after the other cannot share a vertex
        monkeypatch.setattr(f"supple.ordering.{name}.best_width", lambda *args: WARP)
    monkeypatch.setattr("supple.ordering.dynamic_batches.MIN_SHARED_LANES", 1)
    with installed(monkeypatch) as card:
        yield card
