"""Extensions of viser: access control, rejection of malformed messages, and a title for the browser tab.

viser starts its HTTP and WebSocket server by `websockets.asyncio.server.serve(..., process_request=...)`
while a ViserServer is constructed. During construction `serve` is replaced by a version that checks every
request first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from typing import Any
from unittest.mock import patch

from supple.live.visitors import Visitors

log = logging.getLogger("supple")

TITLE = b"<title>Viser</title>"

UNREADABLE = 1007
"""WebSocket close status for an unreadable message [RFC 6455, section 7.4.1]."""


@contextmanager
def guarded(welcome: Visitors, title: str) -> Iterator[None]:
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
        answer = _answer(process_request, welcome, title)
        return plain(_without_tracebacks(handler), *args, process_request=answer, **options)

    with patch.object(servers, "serve", serve):
        yield
    if not passed:
        raise RuntimeError("this version of viser starts its server in a way that supple cannot guard")


def _answer(process_request: Callable[..., Any], welcome: Visitors, title: str) -> Callable[..., Any]:
    def answer(connection: Any, request: Any) -> Any:
        headers = request.headers
        refusal = welcome.refusal(headers.get_all("Host"), headers.get_all("Origin"))
        if refusal is None and not welcome.knows_token(request.path, headers.get_all("Cookie")):
            refusal = (
                "This page needs the token of its address. Open the whole address that `supple view` has "
                "printed, with ?token=..."
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
            _entitle(response, title)
            if welcome.names_token(request.path):
                response.headers["Set-Cookie"] = f"{welcome.cookie}; HttpOnly; SameSite=Strict; Path=/"
        return response

    return answer


def _without_tracebacks(handler: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """WebSocket handler that closes the connection on an unreadable message and logs a single line."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(_log_unhandled)
        try:
            await handler(connection)
        except Exception as error:
            log.warning("a browser sent what cannot be read (%s); its connection was closed", _named(error))
            await connection.close(UNREADABLE, "this message cannot be read")

    return handle


def _log_unhandled(_: Any, context: dict[str, Any]) -> None:
    """Log message task errors in one line."""
    error = context.get("exception")
    log.warning("a message of a browser failed (%s)", _named(error) if error else context["message"])


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _entitle(response: Any, title: str) -> None:
    response.body = response.body.replace(TITLE, f"<title>{escape(title)}</title>".encode(), 1)
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))
