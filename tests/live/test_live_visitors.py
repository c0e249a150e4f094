"""Who may use the page: a raw client claims to be a browser that comes from somewhere."""

import http.client
import re
import socket

import pytest
from live_scenes import scene_file
from typer.testing import CliRunner

from supple.cli import app
from supple.live.address import free_port
from supple.live.door import guarded
from supple.live.visitors import visitors

LOCAL = "127.0.0.1"
FOREIGN = "http://evil.example"
PROXY = "https://box.example.org"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """That of a page which pages of PROXY may use."""
    pytest.importorskip("viser", reason="the live page needs viser: pip install 'supple[view]'")
    from supple.live.page import Page
    from supple.live.session import Session

    folder = tmp_path_factory.mktemp("visitors")
    session = Session(scene_file(folder))
    page = Page(session, LOCAL, free_port(LOCAL, 8500), folder, visitors(LOCAL, [PROXY]))
    session.start()
    yield page.server.get_port()
    page.close()
    session.close()


def home(port):
    return f"{LOCAL}:{port}"


def knock(port, host, origin):
    """The status that opening a WebSocket gives, and how many bytes came over it first. Whatever the name of
    the host, it leads here."""
    import viser
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    options = {"subprotocols": [f"viser-v{viser.__version__}"], "max_size": None, "proxy": None}
    try:
        with connect(
            f"ws://{host}", sock=socket.create_connection((LOCAL, port)), origin=origin, **options
        ) as channel:
            return 101, len(channel.recv(timeout=20))
    except InvalidStatus as refused:
        return refused.response.status_code, 0


def fetch(port, *headers):
    """Status and text of the page, asked for with these headers and no others."""
    connection = http.client.HTTPConnection(LOCAL, port, timeout=20)
    connection.putrequest("GET", "/", skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_those_who_opened_the_page_are_served(port):
    for host in (home(port), f"localhost:{port}", "localhost:9999", f"[::1]:{port}", f"me.localhost:{port}"):
        status, received = knock(port, host, f"http://{host}")
        assert (status, received > 100) == (101, True), host


def test_a_program_without_an_origin_is_served(port):
    assert knock(port, home(port), None)[0] == 101


def test_what_was_allowed_is_served_with_either_host(port):
    assert knock(port, home(port), PROXY)[0] == 101
    assert knock(port, "box.example.org", PROXY)[0] == 101


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
def test_pages_from_elsewhere_are_refused(port, origin):
    assert knock(port, home(port), origin) == (403, 0)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8500", "box"])
def test_names_that_lead_here_by_a_foreign_name_server_are_refused(port, host):
    """With DNS rebinding the page is of one origin with its host, which is not ours."""
    assert knock(port, host, f"http://{host}") == (403, 0)
    status, text = fetch(port, ("Host", host))
    assert status == 403
    assert f"supple view --allow-origin http://{host}" in text


@pytest.mark.parametrize("host", ["a@localhost", "localhost:x", "[::1", "localhost/", ""])
def test_hosts_that_are_none_are_refused(port, host):
    assert fetch(port, ("Host", host))[0] == 403


def test_the_page_itself_is_refused_too(port):
    assert fetch(port, ("Host", home(port)))[0] == 200
    assert fetch(port, ("Host", home(port)), ("Origin", FOREIGN))[0] == 403
    assert fetch(port)[0] == 403
    assert fetch(port, ("Host", home(port)), ("Host", "evil.example"))[0] == 403


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_tab_has_the_title_of_the_scene(port, encoding):
    status, text = fetch(port, ("Host", home(port)), ("Accept-Encoding", encoding))
    assert status == 200
    assert re.findall("<title>(.*?)</title>", text) == ["Live block"]
    assert text.rstrip().endswith("</html>")


def test_a_server_that_goes_past_the_door_is_not_left_open():
    """As another version of viser might."""
    with pytest.raises(RuntimeError, match="cannot guard"), guarded(visitors(LOCAL), "title"):
        pass


def test_the_host_that_was_chosen_is_home():
    assert visitors("Box").refusal(["box:8080"], ["http://box:8080"]) is None
    assert visitors("").refusal([""], []) is not None


@pytest.mark.parametrize("origin", ["http://box:8080/", "HTTP://BOX:8080", "http://box:8080"])
def test_origins_are_compared_as_browsers_write_them(origin):
    assert visitors(LOCAL, [origin]).refusal(["localhost:8080"], ["http://box:8080"]) is None


def test_a_usual_port_goes_without_saying():
    assert visitors(LOCAL, ["https://box:443"]).refusal(["box"], ["https://box"]) is None


@pytest.mark.parametrize(
    "origin", ["*", "null", "box:8080", "https://", "http://box/page", "http://box:port"]
)
def test_what_is_no_origin_is_refused_with_a_sentence(tmp_path, origin):
    file = scene_file(tmp_path)
    result = CliRunner().invoke(app, ["view", str(file.path), "--allow-origin", origin])
    assert result.exit_code == 2
    assert "an allowed origin is http:// or https://" in " ".join(result.output.split())
