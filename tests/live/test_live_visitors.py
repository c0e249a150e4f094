"""Access control of the live page, tested with a raw client that sends chosen headers."""

import http.client
import re
import socket

import pytest
from live_scenes import scene_file
from typer.testing import CliRunner

from supple.cli import app
from supple.live.server import access_rules, free_port, guard_server

LOCAL = "127.0.0.1"
FOREIGN = "http://evil.example"
PROXY = "https://box.example.org"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page that admits pages of PROXY."""
    pytest.importorskip("viser", reason="the live page needs viser: pip install 'supple[view]'")
    from supple.live.page import Page
    from supple.live.session import Session

    folder = tmp_path_factory.mktemp("visitors")
    session = Session(scene_file(folder))
    page = Page(session, LOCAL, free_port(LOCAL, 8500), folder, access_rules(LOCAL, [PROXY]))
    session.start()
    yield page
    page.close()
    session.close()


def get_page(page):
    return f"{LOCAL}:{page.server.get_port()}"


def knock(page, host, origin, query=None, **headers):
    """Status of opening a WebSocket, and the number of bytes received first; every host name resolves to this
    machine."""
    import viser
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    options = {"subprotocols": [f"viser-v{viser.__version__}"], "max_size": None, "proxy": None}
    try:
        with connect(
            f"ws://{host}/{page.query if query is None else query}",
            sock=socket.create_connection((LOCAL, page.server.get_port())),
            origin=origin,
            additional_headers=headers,
            **options,
        ) as channel:
            return 101, len(channel.recv(timeout=20))
    except InvalidStatus as refused:
        return refused.response.status_code, 0


def fetch(page, *headers, path=None):
    """Status and text of the page, requested with exactly these headers."""
    response = http_status(page, *headers, path=path)
    return response.status, response.read().decode()


def http_status(page, *headers, path=None):
    connection = http.client.HTTPConnection(LOCAL, page.server.get_port(), timeout=20)
    path = f"/{page.query}" if path is None else path
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def test_pages_opened_from_the_server_are_served(page):
    for host in (
        get_page(page),
        f"localhost:{page.server.get_port()}",
        "localhost:9999",
        f"[::1]:{page.server.get_port()}",
        f"me.localhost:{page.server.get_port()}",
    ):
        status, received = knock(page, host, f"http://{host}")
        assert (status, received > 100) == (101, True), host


def test_client_without_origin_is_served(page):
    assert knock(page, get_page(page), None)[0] == 101


def test_allowed_origin_is_served_with_either_host(page):
    assert knock(page, get_page(page), PROXY)[0] == 101
    assert knock(page, "box.example.org", PROXY)[0] == 101


@pytest.mark.parametrize(
    "origin",
    [
        FOREIGN,
        "null",
        "http://localhost:1",
        "http://evil.example@127.0.0.1",
        "http://box.example.org",
        "",
        "file://",
    ],
)
def test_foreign_pages_are_refused(page, origin):
    assert knock(page, get_page(page), origin) == (403, 0)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8500", "box"])
def test_foreign_host_names_are_refused(page, host):
    """With DNS rebinding, origin and host agree but are not ours."""
    assert knock(page, host, f"http://{host}") == (403, 0)
    status, text = fetch(page, ("Host", host))
    assert status == 403
    assert f"supple view --allow-origin http://{host}" in text


@pytest.mark.parametrize("host", ["a@localhost", "localhost:x", "[::1", "localhost/", ""])
def test_invalid_hosts_are_refused(page, host):
    assert fetch(page, ("Host", host))[0] == 403


def test_page_itself_is_refused_too(page):
    assert fetch(page, ("Host", get_page(page)))[0] == 200
    assert fetch(page, ("Host", get_page(page)), ("Origin", FOREIGN))[0] == 403
    assert fetch(page)[0] == 403
    assert fetch(page, ("Host", get_page(page)), ("Host", "evil.example"))[0] == 403


@pytest.mark.parametrize("query", ["", "?token=", "?token=guessed", "?token=%ff", "?other=1"])
def test_missing_token_is_refused(page, query):
    """Programs on this machine without an Origin need it too, for every file of the page."""
    assert knock(page, get_page(page), None, query) == (403, 0)
    assert knock(page, get_page(page), f"http://{get_page(page)}", query) == (403, 0)
    for path in ("/", "/index.html", "/assets/none.js", "/none"):
        status, text = fetch(page, ("Host", get_page(page)), path=f"{path}{query}")
        assert status == 403
        assert "Open the complete address printed by `supple view`" in text
        assert page.query.removeprefix("?token=") not in text


def test_token_is_kept_as_a_cookie(page):
    """viser's client opens its WebSocket without the query of the page."""
    cookie = http_status(page, ("Host", get_page(page))).getheader("Set-Cookie")
    token_pair, *attributes = cookie.split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert (
        knock(page, get_page(page), f"http://{get_page(page)}", "", Cookie=f"other=1; {token_pair}")[0] == 101
    )
    assert fetch(page, ("Host", get_page(page)), ("Cookie", token_pair), path="/")[0] == 200
    assert (
        http_status(page, ("Host", get_page(page)), ("Cookie", token_pair), path="/").getheader("Set-Cookie")
        is None
    )
    name, _, value = token_pair.partition("=")
    for wrong in (f"{name}=guessed", f"other={value}", value, f"{name}=\xff"):
        assert fetch(page, ("Host", get_page(page)), ("Cookie", wrong), path="/")[0] == 403
    assert knock(page, get_page(page), FOREIGN, "", Cookie=token_pair) == (403, 0)


def test_every_page_has_a_unique_token():
    tokens = {access_rules(LOCAL).token for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 32
    assert not any(token in repr(access_rules(LOCAL)) for token in tokens)


@pytest.mark.parametrize("path", ["/" + 3000 * "a", "/%00", "/../../etc/passwd", "/" + 40 * "a/"])
def test_missing_files_give_404(page, path):
    assert fetch(page, ("Host", get_page(page)), path=f"{path}{page.query}")[0] == 404


@pytest.mark.parametrize("sent", [b"\xc1", b"", "text", b"\x81\xa4type\xa4None"])
def test_unreadable_message_is_reported_in_one_line(page, caplog, capfd, sent):
    import viser
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    def receive_all(channel):
        while True:
            channel.recv(timeout=20)

    protocol = [f"viser-v{viser.__version__}"]
    address = f"ws://{get_page(page)}/{page.query}"
    with connect(address, subprotocols=protocol, max_size=None, proxy=None) as channel:
        channel.recv(timeout=20)
        channel.send(sent)
        with pytest.raises(ConnectionClosed):
            receive_all(channel)
    assert "a browser sent an invalid message" in caplog.text
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())
    assert knock(page, get_page(page), None)[0] == 101


@pytest.mark.parametrize("action", ["Close", "close", "__init__", "Snapshot", "", None, 3, ["Play"]])
def test_only_button_actions_can_be_called(page, caplog, action):
    """ "Close" would end the session for all visitors."""
    page._run(action)
    assert "which is not one of Play, Pause, Step, Reset" in caplog.text
    before = page._session.snapshot.version
    page._session.step()
    assert page._session.wait(before, 60).version > before


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_tab_has_the_title_of_the_scene(page, encoding):
    status, text = fetch(page, ("Host", get_page(page)), ("Accept-Encoding", encoding))
    assert status == 200
    assert re.findall("<title>(.*?)</title>", text) == ["Live block"]
    assert text.rstrip().endswith("</html>")


def test_unguarded_server_is_refused():
    """Another version of viser might bypass the guard."""
    with pytest.raises(RuntimeError, match="is not supported"), guard_server(access_rules(LOCAL), "title"):
        pass


def test_chosen_host_is_allowed():
    assert access_rules("Box").refusal(["box:8080"], ["http://box:8080"]) is None
    assert access_rules("").refusal([""], []) is not None


@pytest.mark.parametrize("origin", ["http://box:8080/", "HTTP://BOX:8080", "http://box:8080"])
def test_origins_are_normalized(origin):
    assert access_rules(LOCAL, [origin]).refusal(["localhost:8080"], ["http://box:8080"]) is None


def test_default_port_of_an_origin_is_optional():
    assert access_rules(LOCAL, ["https://box:443"]).refusal(["box"], ["https://box"]) is None


@pytest.mark.parametrize(
    "origin", ["*", "null", "box:8080", "https://", "http://box/page", "http://box:port"]
)
def test_invalid_origins_are_refused(tmp_path, origin):
    file = scene_file(tmp_path)
    result = CliRunner().invoke(app, ["view", str(file.path), "--allow-origin", origin])
    assert result.exit_code == 2
    assert "an allowed origin must be http:// or https://" in " ".join(result.output.split())
