"""Options of all commands: one meaning per name, flags without values, help in sentences."""

import re
from collections import defaultdict

import pytest
from cli_scenes import supple
from typer.main import get_command

from supple.cli import app
from supple.solve.call_options import BACKEND_DEFAULTS, LIMITS

SYNONYMS = {
    "--materials": "--material",
    "--solvers": "--solver",
    "--method": "--solver",
    "--precisions": "--precision",
    "--dtype": "--precision",
    "--processes": "--workers",
    "--jobs": "--workers",
    "--iterations": "--max-iterations",
    "--budget": "--time-limit",
    "--time-budget": "--time-limit",
    "--distance": "--position-tolerance",
    "--out": "--output",
    "--to": "--format",
    "--write": "--format",
    "--formats": "--format",
    "--force": "--overwrite",
    "--again": "--overwrite",
    "--pictures": "--picture",
}
"""Option names that are not used, and the common name of each."""

SEVERAL_MEANINGS = {"--frames"}
"""Options whose help differs by more than the default: a number or a selection of frames."""


def commands(command=None, path=()):
    """Yield the words of every command with the command."""
    command = command or get_command(app)
    below = getattr(command, "commands", {})
    yield path, command
    for name, each in below.items():
        yield from commands(each, (*path, name))


COMMANDS = list(commands())

OPTIONS = [
    (" ".join(path), name, option)
    for path, command in COMMANDS
    for option in command.params
    if option.param_type_name == "option"
    for name in option.opts
    if name.startswith("--")
]


def test_options_have_unique_names():
    names = {name for _, name, _ in OPTIONS}
    assert not {name: SYNONYMS[name] for name in names & SYNONYMS.keys()}
    assert {"--output", "--overwrite", "--json", "--fields", "--format", "--solver"} <= names


@pytest.mark.parametrize("command", ["run", "compare"])
def test_limits_and_device_have_their_python_names(command):
    names = {name for path, name, _ in OPTIONS if path == command}
    assert {f"--{name.replace('_', '-')}" for name in (*LIMITS, *BACKEND_DEFAULTS)} <= names


def test_flags_are_flags_in_every_command():
    kinds = defaultdict(set)
    for _, name, option in OPTIONS:
        kinds[name].add((option.is_flag, option.multiple))
    assert {name for name, each in kinds.items() if len(each) > 1} == set()


def test_shared_options_have_the_same_help():
    texts = defaultdict(set)
    for _, name, option in OPTIONS:
        texts[option.help].add(name)
    assert {text: names for text, names in texts.items() if len(names) > 1} == {}
    first_words = defaultdict(set)
    for _, name, option in OPTIONS:
        words = re.sub("^Comma-separated ", "", option.help).split()
        first_words[name].add(words[0].strip(":,;.").casefold().removesuffix("s"))
    different = {name for name, each in first_words.items() if len(each) > 1}
    assert different - {"--output"} - SEVERAL_MEANINGS == set()


def test_help_texts_are_sentences():
    for _, name, option in OPTIONS:
        assert option.help[0].isupper(), name
        assert option.help.endswith("."), name


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_flags_take_no_value(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed = supple(*path, "--help")
    assert printed.exit_code == 0
    assert "<bool>" not in printed.stdout
    assert "BOOLEAN" not in printed.stdout
    assert "--help" in printed.stdout
