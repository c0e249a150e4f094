"""supple bench: performance measurements on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from supple.cli.console import announce_compilation, handle_errors, print_json, say
from supple.cli.shared_options import CommandGroup, Device, Json, Precision, Threads

bench = typer.Typer(cls=CommandGroup, help="Measure speed on this machine.", no_args_is_help=True)


@bench.callback()
def _group() -> None:
    """Make Typer treat the single command `sweep` as a subcommand."""


@bench.command()
def sweep(
    cells: Annotated[int, typer.Option(help="Cells along each edge of the block.")] = 31,
    solver: Annotated[
        str, typer.Option(help="Solver, see `supple list solvers`, such as xpbd:ordering=clusters.")
    ] = "pbng:acceleration=none",
    material: Annotated[str, typer.Option(help="Material, see `supple list materials`.")] = "corotated",
    device: Device = "cpu",
    precision: Precision = "float32",
    threads: Threads = None,
    repeats: Annotated[int, typer.Option(help="Number of samples, of which the median is reported.")] = 20,
    json: Json = False,
) -> None:
    """Measure milliseconds per sweep on a twisted and stretched block."""
    with handle_errors(json), announce_compilation():
        from supple.api.bench import sweep as measure
        from supple.api.solver_syntax import parse_solver

        measurements = measure(cells, parse_solver(solver), material, precision, device, threads, repeats)
        if json:
            print_json(measurements)
            return
        say(
            f"{solver}, {material}, {precision}, {device}: {measurements['ms_per_sweep']:.2f} ms per sweep "
            f"(best {measurements['ms_min']:.2f}), threads: {measurements['threads']}\n"
            f"{measurements['vertices']:,} vertices, {measurements['tets']:,} tets, "
            f"{measurements['colors']} colors, "
            f"{measurements['visits']:,} visits; set up in {measurements['setup_seconds']:.2f} s, "
            f"compiled in {measurements['compile_seconds']:.1f} s\n"
            f"{measurements['machine']['cpu']}, {measurements['machine']['cores']} cores"
        )
