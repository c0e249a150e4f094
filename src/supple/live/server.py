"""Server of a live page: network address, access rules, and extensions of viser.

viser starts its HTTP and WebSocket server by `websockets.asyncio.server.serve(..., process_request=...)`
while a ViserServer is constructed. During construction `serve` is replaced by a version that checks every
request first.

Access needs a token, which excludes web pages of other origins and other users of the machine.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import ipaddress
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from supple.kernels.devices import check_device
from supple.live.session import Session
from supple.live.settings import file_settings
from supple.scene import SceneFile

MAX_PORTS = 100
"""Number of consecutive ports to try."""


def free_port(host: str, port: int) -> int:
    """Find a free port, starting at the given one.

    Raises:
        ValueError: The host cannot be served from this machine, or no port is free.
    """
    if not 1 <= port <= 65535:
        raise ValueError(f"port must lie between 1 and 65535, got {port}")
    for candidate in range(port, min(port + MAX_PORTS, 65536)):
        try:
            with socket.create_server((host, candidate), family=_family(host)):
                return candidate
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ValueError(
                    f"cannot serve at {host}, port {candidate}: {error.strerror or error}"
                ) from None
    raise ValueError(f"no port from {port} to {port + MAX_PORTS - 1} is free at {host}; choose another")


def is_local(host: str) -> bool:
    """True for loopback addresses, which only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@dataclass(frozen=True)
class AccessRules:
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
        tokens = [value for name, _, value in pairs if name == self._cookie_name]
        return self.names_token(path) or any(map(self._is_token, tokens))

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="surrogateescape"), self.token.encode())

    def refusal(self, hosts: list[str], origins: list[str]) -> str | None:
        """Reason to refuse a request based on Host and Origin headers; None for permitted requests.

        Browsers send the page that opens a WebSocket as its Origin. Requests without an Origin are permitted,
        since programs other than browsers could claim any origin.
        """
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if not self._is_known_host(_name(host)):
            return (
                f"This page is not served at {host or 'an unnamed host'}. Open it by the address that "
                f"`supple view` printed, or allow it: supple view --allow-origin http://{host or 'HOST:PORT'}"
            )
        if not origins or (len(origins) == 1 and self._is_allowed_origin(origins[0].lower(), host)):
            return None
        origin = ", ".join(origins)
        return f"Pages of {origin} may not use this one, unless: supple view --allow-origin {origin}"

    def _is_known_host(self, name: str) -> bool:
        return is_local(name) or name.endswith(".localhost") or _is_address(name) or name in self.hosts

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        return origin in self.origins or origin in (f"http://{host}", f"https://{host}")


def access_rules(host: str, origins: Iterable[str] = ()) -> AccessRules:
    """Access rules of a page served at a host.

    Args:
        host: Host name or address.
        origins: Other permitted origins, such as https://example.org:8443.

    Raises:
        ValueError: An origin is invalid.
    """
    allowed = [_normalize_origin(origin) for origin in origins]
    names = {host.lower(), *(_name(urlsplit(origin).netloc) for origin in allowed)}
    return AccessRules(frozenset(names - {""}), frozenset(allowed))


def _normalize_origin(origin: str) -> str:
    """Normalize an origin to the form sent by browsers."""
    parts = urlsplit(origin.strip().lower())
    if parts.scheme not in ("http", "https") or not _name(parts.netloc) or parts.path not in ("", "/"):
        raise ValueError(
            "an allowed origin must be http:// or https:// with a host and an optional port, such "
            f"as http://box.example.org:8080; got {origin!r}"
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


REQUIRED_PACKAGES = ("viser", "tomli_w")


@contextmanager
def serve_page(
    file: SceneFile,
    host: str = "127.0.0.1",
    port: int = 8080,
    folder: Path = Path(),
    play: bool = False,
    allowed: Iterable[str] = (),
    device: str = "cpu",
) -> Iterator[str]:
    """Serve a live page within the context; yields its address with access token.

    Args:
        file: The scene file.
        host: Host name or address to serve at.
        port: Port to serve at.
        folder: Folder for files saved by users.
        play: Start playing immediately.
        allowed: Origins, such as https://example.org, whose pages may access this one.
        device: "cpu" or "cuda".

    Raises:
        ValueError: viser or tomli_w is not installed.
        DeviceError: The device is not available.
    """
    missing = [name for name in REQUIRED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"the live page needs {' and '.join(missing)}: pip install 'supple[view]'")
    from supple.live.page import Page

    access = access_rules(host, allowed)
    _check_device_available(device)
    session = Session(file, replace(file_settings(file), device=device))
    page = Page(session, host, port, folder, access)
    session.start()
    if play:
        session.play()
    try:
        yield f"http://{_url_host(host)}:{page.server.get_port()}/{page.query}"
    finally:
        page.close()
        session.close()


def _check_device_available(device: str) -> None:
    """Check that the device is available.

    Raises:
        DeviceError: It is not.
    """
    check_device(device)
    if device == "cuda":
        from supple.kernels.cuda import require_device

        require_device()


def _url_host(host: str) -> str:
    """Host in the form used in a local URL."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


log = logging.getLogger("supple")

VISER_TITLE = b"<title>Viser</title>"

UNREADABLE_STATUS = 1007
"""WebSocket close status for an unreadable message [RFC 6455, section 7.4.1]."""


@contextmanager
def guard_server(access: AccessRules, title: str) -> Iterator[None]:
    """Restrict ViserServers created within the context to permitted visitors, and set their tab title.

    Raises:
        RuntimeError: viser did not use the replaced function, as another version might.
    """
    import websockets.asyncio.server as servers

    plain, passed = servers.serve, []

    def serve(
        handler: Callable[..., Any], *args: Any, process_request: Callable[..., Any], **options: Any
    ) -> Any:
        passed.append(True)
        handle_request = _request_handler(process_request, access, title)
        return plain(_without_tracebacks(handler), *args, process_request=handle_request, **options)

    with patch.object(servers, "serve", serve):
        yield
    if not passed:
        raise RuntimeError(
            "this version of viser is not supported: supple cannot restrict access to its server; "
            "install another version"
        )


def _request_handler(
    process_request: Callable[..., Any], access: AccessRules, title: str
) -> Callable[..., Any]:
    def handle_request(connection: Any, request: Any) -> Any:
        headers = request.headers
        refusal = access.refusal(headers.get_all("Host"), headers.get_all("Origin"))
        if refusal is None and not access.knows_token(request.path, headers.get_all("Cookie")):
            refusal = (
                "This page needs a token. Open the complete address printed by `supple view`, with ?token=..."
            )
        if refusal is not None:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{refusal}\n")
        is_page = request.path.partition("?")[0] in ("/", "/index.html")
        if is_page and "Accept-Encoding" in headers:
            del headers["Accept-Encoding"]  # uncompressed, so that the title can be replaced
        try:
            response = process_request(connection, request)
        except (OSError, ValueError):  # invalid paths: too long, or with a zero byte
            return connection.respond(HTTPStatus.NOT_FOUND, "There is no such page.\n")
        if response is not None:
            response.headers["Referrer-Policy"] = "no-referrer"
        if is_page and response is not None:
            _set_title(response, title)
            if access.names_token(request.path):
                response.headers["Set-Cookie"] = f"{access.cookie}; HttpOnly; SameSite=Strict; Path=/"
        return response

    return handle_request


def _without_tracebacks(handler: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """WebSocket handler that closes the connection on an unreadable message and logs a single line."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_log_unhandled)
        try:
            await handler(connection)
        except Exception as error:
            log.warning(
                "a browser sent an invalid message (%s); its connection was closed", _describe_error(error)
            )
            await connection.close(UNREADABLE_STATUS, "invalid message")

    return handle


def _log_unhandled(_: Any, context: dict[str, Any]) -> None:
    """Log message task errors in one line."""
    error = context.get("exception")
    log.warning("a message of a browser failed (%s)", _describe_error(error) if error else context["message"])


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _set_title(response: Any, title: str) -> None:
    response.body = response.body.replace(VISER_TITLE, f"<title>{escape(title)}</title>".encode(), 1)
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))
