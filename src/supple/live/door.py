"""What viser does not offer: refusing visitors, and a title for the browser's tab.

viser starts its HTTP and WebSocket server by `websockets.asyncio.server.serve(..., process_request=...)`
while a ViserServer is made. For that moment `serve` is replaced by one that looks at every request first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from typing import Any
from unittest.mock import patch

from supple.live.visitors import Visitors

TITLE = b"<title>Viser</title>"


@contextmanager
def guarded(welcome: Visitors, title: str) -> Iterator[None]:
    """ViserServers made in this block answer only those who are welcome, with a title for their tab.

    RuntimeError where viser went past the door, as it may in another version.
    """
    import websockets.asyncio.server as servers

    plain, passed = servers.serve, []

    def serve(*args: Any, process_request: Callable[..., Any], **options: Any) -> Any:
        passed.append(True)
        return plain(*args, process_request=_answer(process_request, welcome, title), **options)

    with patch.object(servers, "serve", serve):
        yield
    if not passed:
        raise RuntimeError("this version of viser starts its server in a way that supple cannot guard")


def _answer(process_request: Callable[..., Any], welcome: Visitors, title: str) -> Callable[..., Any]:
    def answer(connection: Any, request: Any) -> Any:
        headers = request.headers
        refusal = welcome.refusal(headers.get_all("Host"), headers.get_all("Origin"))
        if refusal is not None:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{refusal}\n")
        is_page = request.path.partition("?")[0] in ("/", "/index.html")
        if is_page and "Accept-Encoding" in headers:
            del headers["Accept-Encoding"]  # so that the title can be read; the page is small as it is
        response = process_request(connection, request)
        if is_page and response is not None:
            _entitle(response, title)
        return response

    return answer


def _entitle(response: Any, title: str) -> None:
    response.body = response.body.replace(TITLE, f"<title>{escape(title)}</title>".encode(), 1)
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))
