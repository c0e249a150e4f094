"""A device for tests: all of supple.kernels.cuda, on a card that the CPU stands in for.

Mirrors, launches, batches and substeps are then the very code that drives a card, and whoever forgets to push
or pull an array gets a wrong result here too.
"""

import pytest
from fake_driver import installed

from supple.kernels.simd.load_store import WARP


@pytest.fixture
def fake_device(monkeypatch):
    """Lets device="cuda" mean this."""
    for name in ("batches", "tied_groups"):  # one thread after the other cannot share a vertex
        monkeypatch.setattr(f"supple.ordering.{name}.best_width", lambda *args: WARP)
    monkeypatch.setattr("supple.ordering.dynamic_batches.MIN_SHARED_LANES", 1)
    with installed(monkeypatch) as card:
        yield card
