"""supple list: the names that scene files and options may use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from supple.cli.speech import Json, refusing

Entries = list[dict[str, Any]]


def list_names(
    what: Annotated[str | None, typer.Argument(help="One section; all of them unless given.")] = None,
    json: Json = False,
) -> None:
    """List materials, solvers with their options, motions, selections, meshes, files, exports and scenes."""
    with refusing(json):
        from supple.checks import closest
        from supple.io.results import to_json

        sections = catalogue()
        if what is not None and what not in sections:
            raise ValueError(f"there is no section {what!r}; {closest(what, sections)}")
        chosen = {name: entries for name, entries in sections.items() if what in (None, name)}
        if json:
            typer.echo(to_json(chosen))
        else:
            _print(chosen)


def catalogue() -> dict[str, Entries]:
    """Everything that has a name, by section; each entry has at least a name and a description."""
    from supple.io import FORMATS
    from supple.materials import MATERIALS
    from supple.meshes.files import _FORMATS
    from supple.meshes.surfaces import SURFACES
    from supple.scene import schema
    from supple.solvers import SOLVERS

    return {
        "materials": [{"name": name, "description": _first_line(kind)} for name, kind in MATERIALS.items()],
        "solvers": [
            {"name": name, "description": _first_line(kind), "options": _options(kind)}
            for name, kind in SOLVERS.items()
        ],
        "motions": _kinds(schema.Motion),
        "selections": _kinds(schema.Where),
        "meshes": [entry for entry in _kinds(schema.Mesh) if entry["name"] != "file"],
        "files": [{"name": suffix, "description": f"{kind} mesh"} for suffix, (kind, _) in _FORMATS.items()]
        + [{"name": suffix, "description": f"{kind} surface"} for suffix, kind in SURFACES.items()],
        "exports": [{"name": name, "description": format.description} for name, format in FORMATS.items()],
        "scenes": _scenes(Path("scenes")),
    }


def _kinds(choice: Any) -> Entries:
    return [{"name": name, "description": choice.model_fields[name].description} for name in choice.kinds()]


def _options(solver: Any) -> Entries:
    from dataclasses import fields
    from typing import Literal, get_args, get_origin, get_type_hints

    hints = get_type_hints(solver)

    def type_name(hint: Any) -> str:
        if get_origin(hint) is Literal:
            return " | ".join(get_args(hint))
        parts = get_args(hint) or (hint,)
        return " | ".join("none" if part is type(None) else part.__name__ for part in parts)

    return [
        {"name": field.name, "type": type_name(hints[field.name]), "default": field.default}
        for field in fields(solver)
    ]


def _scenes(folder: Path) -> Entries:
    import tomllib

    entries = []
    for path in sorted(folder.glob("*.toml")):
        try:
            title = tomllib.loads(path.read_text(encoding="utf-8")).get("title", "")
        except (OSError, ValueError):
            title = "cannot be read"
        entries.append({"name": str(path), "description": title})
    return entries


def _first_line(kind: Any) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def _print(sections: dict[str, Entries]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for section, entries in sections.items():
        table = Table(title=section, title_justify="left", title_style="bold", show_header=False, box=None)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column()
        for entry in entries:
            table.add_row(entry["name"], entry["description"])
            for option in entry.get("options", []):
                default = "" if option["default"] is None else f", {option['default']} unless given"
                table.add_row(f"  {option['name']}", f"{option['type']}{default}")
        console.print(table)
        console.print()
