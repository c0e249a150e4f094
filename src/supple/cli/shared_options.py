"""Options that several commands share, each with one name and one help text, and the classes of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

ScenePath = Annotated[
    Path, typer.Argument(help="Scene file (TOML), or a name of `supple list scenes`.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")]

Tolerance = Annotated[
    float | None, typer.Option("--tolerance", help="Relative residual at which a solve ends.")
]
MaxIterations = Annotated[
    int | None, typer.Option("--max-iterations", help="Largest number of iterations of a solve.")
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", help="Time limit of a solve, such as 2s or 200ms.")
]
PositionTolerance = Annotated[
    float | None,
    typer.Option(
        "--position-tolerance",
        help="Largest distance of a body from its equilibrium, relative to its size.",
    ),
]
Device = Annotated[str, typer.Option("--device", help="Device: cpu or cuda.")]
Precision = Annotated[str, typer.Option("--precision", help="Precision: float32 or float64.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Number of threads; default: all cores.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Number of processes; default: one per core.")]


class Command(TyperCommand):
    """Command whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_values(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """Group of commands whose help shows flags without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_values(super().get_params(ctx))


def _hide_flag_values(parameters: list[Any]) -> list[Any]:
    """Hide the value that Typer would show for flags, "<bool>", also for --help."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
