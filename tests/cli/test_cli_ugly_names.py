"""Titles, names and paths that contain terminal markup are printed verbatim by all commands."""

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from cli_scenes import SAG, supple, write_scene

from supple.cli.console import errors, note
from supple.cli.result_tables import print_comparison
from supple.live import server as serving

TITLE = "t[/x]t [red]:smile:"
FOLDER = "run[seed=3][/b]"


@pytest.fixture
def scene(tmp_path):
    text = SAG.replace("'Sagging block'", f"'{TITLE}'").replace('name = "block"', 'name = "a[red] [b]"')
    return write_scene(tmp_path, text, "scene[1][red].toml")


def command_output(*arguments, exit_code=0):
    """Complete printed output of a command."""
    result = supple(*arguments)
    assert result.exit_code == exit_code, result.output
    return result.output


def test_every_command_prints_titles_names_and_paths_verbatim(scene):
    ran = command_output("run", scene, "--output", FOLDER, "--no-picture")
    assert TITLE in ran
    assert FOLDER in ran
    assert scene in ran
    assert TITLE in command_output("inspect", scene)
    assert "a[red] [b]" in command_output("inspect", scene)
    assert f"{FOLDER}/positions.npz" in command_output("export", FOLDER, "--format", "npz")
    assert f"{FOLDER}/picture.png" in command_output("render", FOLDER, "--size", "160x160")
    assert f"{FOLDER}/report.html" in command_output("report", FOLDER)
    solvers = "pbng:acceleration=none,newton"
    compared = command_output("compare", scene, "--solver", solvers, "--no-picture", "--output", "c[/x]")
    assert "Results are in c[/x]." in compared
    assert FOLDER in command_output("run", scene, "--output", FOLDER, exit_code=2), (
        "refused: results are there"
    )
    assert "no[/x].toml" in command_output("inspect", "no[/x].toml", exit_code=2)


def test_view_prints_the_title_verbatim(scene, monkeypatch):
    @contextmanager
    def nothing(*arguments, **options):
        yield "http://127.0.0.1:8080"

    monkeypatch.setattr(serving, "serve_page", nothing)
    monkeypatch.setattr(import_module("supple.cli.commands.view"), "_wait", lambda: None)
    assert f"{TITLE} is live at http://127.0.0.1:8080." in command_output("view", scene)


def test_messages_print_folders_verbatim(capsys):
    for done in (0, 1, 2):
        import_module("supple.cli.commands.run")._print_interruption("Interrupted", done, 2, Path(FOLDER))
    note(f"about {FOLDER}")
    errors.print(TITLE)
    message = capsys.readouterr().err
    assert message.count(FOLDER) == 5
    assert TITLE in message


def test_name_of_a_failed_solver_is_printed_verbatim(capsys):
    trial = {"label": "a[/x]", "error": "no [/y]", "precision": "float64"}
    print_comparison({"trials": [trial], "precision": "float64"}, Path(FOLDER))
    message = capsys.readouterr().out
    assert "a[/x] was not run: no [/y]." in message
    assert f"Results are in {FOLDER}." in message
