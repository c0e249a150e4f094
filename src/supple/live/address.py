"""Network address of the page."""

from __future__ import annotations

import errno
import ipaddress
import socket

TRIES = 100
"""Number of consecutive ports to try."""


def free_port(host: str, port: int) -> int:
    """Find a free port, starting at the given one.

    Raises:
        ValueError: The host cannot be served from this machine, or no port is free.
    """
    if not 1 <= port <= 65535:
        raise ValueError(f"a port lies between 1 and 65535, got {port}")
    for candidate in range(port, min(port + TRIES, 65536)):
        try:
            with socket.create_server((host, candidate), family=_family(host)):
                return candidate
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ValueError(
                    f"cannot serve at {host}, port {candidate}: {error.strerror or error}"
                ) from None
    raise ValueError(f"no port from {port} to {port + TRIES - 1} is free at {host}; choose another")


def is_local(host: str) -> bool:
    """True for loopback addresses, which only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
