"""Where the page is served."""

from __future__ import annotations

import errno
import ipaddress
import socket

TRIES = 100
"""Ports in a row that are tried: more pages than anybody has open."""


def free_port(host: str, port: int) -> int:
    """The port, or the next one that is free; ValueError where this machine cannot serve there."""
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
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
