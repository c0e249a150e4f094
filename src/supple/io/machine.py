"""Hardware and software information for reports."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from supple.kernels.devices import DEVICES, check_device

OPTIONAL_PACKAGES = (
    "scipy",
    "pyvista",
    "numba-cuda",
    "viser",
    "torch",
    "jax",
    "ray",
    "zarr",
    "usd-core",
    "pytetwild",
)
"""Packages that `show_versions` lists where they are installed."""


def machine() -> dict[str, Any]:
    """Return processor, number of cores and operating system."""
    return {"cpu": _cpu(), "cores": os.cpu_count() or 1, "system": platform.platform()}


def versions() -> dict[str, str]:
    """Return the versions of supple, its main dependencies and Python."""
    packages = {name: version(name) for name in ("supple", "numpy", "numba")}
    return packages | {"python": platform.python_version()}


def show_versions() -> None:
    """Print what a bug report needs: versions, processor, devices and optional packages.

    Example:
        >>> supple.show_versions()  # doctest: +SKIP
        supple    0.1.0
        python    3.11.7
        ...
    """
    facts = versions() | {name: str(value) for name, value in machine().items()}
    facts |= {name: installed for name in OPTIONAL_PACKAGES if (installed := _installed_version(name))}
    facts |= {f"device {name}": _device_state(name) for name in DEVICES}
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _installed_version(package: str) -> str | None:
    """Version of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device_state(device: str) -> str:
    """ "available", or the reason why a device cannot be used."""
    try:
        check_device(device)
    except ValueError as error:
        return str(error)
    return "available"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
