"""supple mesh: conversion of meshes, and tetrahedralization of surfaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.console import handle_errors, print_json, stdout
from supple.cli.shared_options import Json


def mesh(
    source: Annotated[Path, typer.Argument(help="Mesh or closed surface.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(help="Output file: .vtu, .vtk, .msh, .mesh, .node.", show_default=False)
    ],
    edge_length: Annotated[
        float | None,
        typer.Option(
            help="Edge length of the tetrahedra \\[m] after scaling; default: 1/20 of the surface's diagonal."
        ),
    ] = None,
    scale: Annotated[float, typer.Option(help="Factor on all lengths.")] = 1.0,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Reorient inverted tetrahedra and remove unused vertices."),
    ] = False,
    json: Json = False,
) -> None:
    """Convert a mesh to another format; a surface (.obj, .stl, .ply, .off) is filled with tetrahedra."""
    with handle_errors(json):
        from supple.cli.tetrahedralization_status import show_tetrahedralization
        from supple.meshes import load_mesh, save_mesh
        from supple.meshes.files.load_save import check_target

        check_target(target)
        with show_tetrahedralization():
            made = load_mesh(source, repair, edge_length=edge_length, scale=scale)
        save_mesh(made, target)
        if json:
            facts = {"vertices": made.n_vertices, "tets": made.n_tets, "volume": made.volume}
            print_json({"file": str(target), **facts, "exit_code": 0})
        else:
            stdout().print(f"{target}: {made!r}, worst quality {made.quality.min():.2g}")
