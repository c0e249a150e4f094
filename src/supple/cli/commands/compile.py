"""supple compile: ahead-of-time compilation of kernels for images and containers."""

from __future__ import annotations

from typing import Annotated

import typer

from supple.cli.console import errors, handle_errors, print_json, say
from supple.cli.shared_options import Device, Json, Workers
from supple.support.text import format_duration


def compile_kernels(
    materials: Annotated[
        str,
        typer.Option(
            "--material",
            help="Comma-separated materials, see `supple list materials`; default: those with hand-written "
            "derivatives.",
        ),
    ] = "",
    solvers: Annotated[
        str, typer.Option("--solver", help="Comma-separated solvers, see `supple list solvers`.")
    ] = "hybrid,pbng,newton",
    precisions: Annotated[
        str, typer.Option("--precision", help="Precision: float64, float32 or both.")
    ] = "float64,float32",
    device: Device = "cpu",
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Compile kernels before their first use, for example in a container image."""
    with handle_errors(json):
        from supple.api.precompile import precompile
        from supple.api.solver_syntax import parse_solver, split_names
        from supple.config.backend import Backend
        from supple.kernels import cache_directory
        from supple.kernels.compile.disk_cache import cache_obstacle
        from supple.materials import MATERIALS
        from supple.support.arguments import check_integer, match_name, suggest_name

        common = [name for name, kind in MATERIALS.items() if not hasattr(kind, "psi")]
        names = _words(materials) or common
        for k, name in enumerate(names):
            if (known := match_name(name, MATERIALS)) is not None:
                names[k] = known
            else:
                raise ValueError(f"there is no material {name!r}; {suggest_name(name, MATERIALS)}")
        for precision in _words(precisions):
            Backend(device, precision).check_available()
        if workers is not None:
            check_integer("workers", workers)
        if why := cache_obstacle():
            raise ValueError(f"compiled kernels cannot be saved: {why}")
        n_variants = len(names) * len(_words(precisions))
        seconds = {}
        methods = [parse_solver(word) for word in split_names(solvers)]
        compiled = precompile(names, methods, _words(precisions), device, workers)
        for done, ready in enumerate(compiled, 1):
            seconds[f"{ready.material} {ready.precision}"] = ready.seconds
            errors.print(
                f"{done}/{n_variants} {ready.material}, {ready.precision}: {format_duration(ready.seconds)}"
            )
        if json:
            print_json({"folder": str(cache_directory()), "seconds": seconds})
        else:
            say(f"Kernels are in {cache_directory()}")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
