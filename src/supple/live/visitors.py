"""Token-based access control for the page.

It excludes web pages of other origins and other users of the machine.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from supple.live.address import is_local


@dataclass(frozen=True)
class Visitors:
    """Access rules of a page.

    Attributes:
        hosts: Permitted host names, in addition to local names and plain IP addresses, which are not subject
            to DNS rebinding.
        origins: Other origins whose pages may access this one.
        token: Random token in the address given to the user; browsers keep it as a cookie.
    """

    hosts: frozenset[str]
    origins: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def query(self) -> str:
        """Query of the page address, with the token."""
        return f"?token={self.token}"

    @property
    def cookie(self) -> str:
        """Cookie with the token.

        Its name is unique per page, since browsers share cookies among all ports of a host.
        """
        return f"{self._cookie_name}={self.token}"

    @property
    def _cookie_name(self) -> str:
        return f"supple_{sha256(self.token.encode()).hexdigest()[:12]}"

    def names_token(self, path: str) -> bool:
        """True if the query of a request path contains the token."""
        return self._is_token(parse_qs(path.partition("?")[2]).get("token", [""])[-1])

    def knows_token(self, path: str, cookies: list[str]) -> bool:
        """True if query or cookies of a request contain the token."""
        pairs = (pair.strip().partition("=") for header in cookies for pair in header.split(";"))
        kept = [value for name, _, value in pairs if name == self._cookie_name]
        return self.names_token(path) or any(map(self._is_token, kept))

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="surrogateescape"), self.token.encode())

    def refusal(self, hosts: list[str], origins: list[str]) -> str | None:
        """Reason to refuse a request based on Host and Origin headers; None for permitted requests.

        Browsers send the page that opens a WebSocket as its Origin. Requests without an Origin are permitted,
        since programs other than browsers could claim any origin.
        """
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if not self._at_home(_name(host)):
            return (
                f"This page is not served at {host or 'an unnamed host'}. Open it by the address that "
                f"`supple view` printed, or allow it: supple view --allow-origin http://{host or 'HOST:PORT'}"
            )
        if not origins or (len(origins) == 1 and self._welcome(origins[0].lower(), host)):
            return None
        origin = ", ".join(origins)
        return f"Pages of {origin} may not use this one, unless: supple view --allow-origin {origin}"

    def _at_home(self, name: str) -> bool:
        return is_local(name) or name.endswith(".localhost") or _is_address(name) or name in self.hosts

    def _welcome(self, origin: str, host: str) -> bool:
        return origin in self.origins or origin in (f"http://{host}", f"https://{host}")


def visitors(host: str, origins: Iterable[str] = ()) -> Visitors:
    """Access rules of a page served at a host.

    Args:
        host: Host name or address.
        origins: Other permitted origins, such as https://example.org:8443.

    Raises:
        ValueError: An origin is invalid.
    """
    allowed = [_checked(origin) for origin in origins]
    names = {host.lower(), *(_name(urlsplit(origin).netloc) for origin in allowed)}
    return Visitors(frozenset(names - {""}), frozenset(allowed))


def _checked(origin: str) -> str:
    """Normalize an origin to the form sent by browsers."""
    parts = urlsplit(origin.strip().lower())
    if parts.scheme not in ("http", "https") or not _name(parts.netloc) or parts.path not in ("", "/"):
        raise ValueError(
            f"an allowed origin is http:// or https:// with a host and perhaps a port, such as "
            f"http://box.example.org:8080; got {origin!r}"
        )
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}"


def _name(netloc: str) -> str:
    """Host part of host:port, without the brackets of IPv6; empty if invalid."""
    try:
        parts = urlsplit(f"//{netloc}")
        return "" if parts.netloc != netloc or "@" in netloc or parts.port == 0 else parts.hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
