"""Hardware and software information for reports."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return processor, number of cores and operating system."""
    return {"cpu": _cpu(), "cores": os.cpu_count() or 1, "system": platform.platform()}


def versions() -> dict[str, str]:
    """Return the versions of supple, its main dependencies and Python."""
    packages = {name: version(name) for name in ("supple", "numpy", "numba")}
    return packages | {"python": platform.python_version()}


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
