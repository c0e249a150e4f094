"""Command-line interface. Heavy imports are deferred to the commands, so that help appears quickly."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from supple.cli.commands.bench import bench
from supple.cli.commands.compare import compare
from supple.cli.commands.compile import compile_kernels
from supple.cli.commands.dataset import dataset
from supple.cli.commands.export import export
from supple.cli.commands.inspect import inspect
from supple.cli.commands.list import list_names
from supple.cli.commands.mesh import mesh
from supple.cli.commands.render import render
from supple.cli.commands.report import report
from supple.cli.commands.run import run
from supple.cli.commands.schema import schema
from supple.cli.commands.verify import verify
from supple.cli.commands.view import view
from supple.cli.console import catch_sigterm, handle_errors, say, use_ascii_replacements
from supple.cli.shared_options import Command, CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    help="Position-based simulation of hyperelastic solids and cloth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run)
app.command("compare")(compare)
app.command("render")(render)
app.command("report")(report)
app.command("export")(export)
app.command("verify")(verify)
app.command("inspect")(inspect)
app.command("list")(list_names)
app.command("mesh")(mesh)
app.add_typer(dataset, name="dataset")
app.add_typer(bench, name="bench")
app.command("compile")(compile_kernels)
app.command("schema")(schema)
app.command("view")(view)
for _entry in sorted(entry_points(group="supple.commands"), key=lambda entry: entry.name):
    app.command(_entry.name)(_entry.load())  # such as `supple papers`


def _join_lines(text: str) -> str:
    """Join the lines of each paragraph, so that terminals wrap the text at their own width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _command in (*app.registered_commands, *dataset.registered_commands, *bench.registered_commands):
    _command.cls = Command
    _command.help = _join_lines(_command.callback.__doc__ or "") if _command.callback else None


def _show_version(value: bool) -> None:
    if value:
        from supple import __version__

        with handle_errors(False):
            say(f"supple {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `supple` executable; see also supple_command."""
    catch_sigterm()
    use_ascii_replacements(sys.stdout, sys.stderr)
    app()
