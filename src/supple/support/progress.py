"""Progress callbacks of long calls."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Progress callback progress(done, total), called after each item, and before the first if items are slow."""

OpenProgress = Callable[[int, int | None], None]
"""Progress callback progress(done, total) of an iterable, whose total is None if it has no length."""
