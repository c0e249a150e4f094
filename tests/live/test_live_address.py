"""Addresses of the live page, and errors of the command about them."""

import re
import socket
import sys

import pytest
from live_scenes import BLOCK
from typer.testing import CliRunner

from supple.cli import app
from supple.live.server import free_port, is_local


@pytest.fixture
def taken():
    """A port that is in use, with a free one after it somewhere."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_occupied_port_leads_to_the_next_free_one(taken):
    port = free_port("127.0.0.1", taken)
    assert taken < port < taken + 100
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_unusable_addresses_are_refused():
    with pytest.raises(ValueError, match=r"cannot serve at 192\.0\.2\.1"):
        free_port("192.0.2.1", 8080)  # an address that no machine has
    with pytest.raises(ValueError, match="between 1 and 65535"):
        free_port("127.0.0.1", 70000)


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("192.168.0.7", False)],
)
def test_only_this_machine_is_local(host, local):
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.toml"], "no scene file nothing.toml"),
        (["scene.toml", "--port", "0"], "port must lie between"),
        (["scene.toml", "--output", "scene.toml"], "scene.toml is not a folder that files"),
        (["scene.toml", "--host", "192.0.2.1"], "cannot serve at"),
    ],
)
def test_command_refuses_bad_arguments(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.toml").write_text(BLOCK)
    result = CliRunner().invoke(app, ["view", *arguments])
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())


def test_command_names_the_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "scene.toml").write_text(BLOCK)
    result = CliRunner().invoke(app, ["view", str(tmp_path / "scene.toml")])
    assert result.exit_code == 2
    assert "pip install 'supple[view]'" in " ".join(result.output.split())


def test_command_makes_the_folder_and_opens_the_address_with_its_token(tmp_path, monkeypatch):
    pytest.importorskip("viser", reason="the live page needs viser: pip install 'supple[view]'")
    opened, output = [], tmp_path / "new" / "folder"
    monkeypatch.setattr(sys.modules["supple.cli.commands.view"], "_wait", lambda: None)
    monkeypatch.setattr("typer.launch", opened.append)
    (tmp_path / "scene.toml").write_text(BLOCK)
    arguments = ["view", str(tmp_path / "scene.toml"), "--output", str(output), "--open", "--port", "8700"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert output.is_dir()
    (url,) = opened
    assert re.fullmatch(r"http://127\.0\.0\.1:87\d\d/\?token=[\w-]{32}", url)
    assert url in "".join(result.output.split())
