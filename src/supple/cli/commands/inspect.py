"""supple inspect: properties of a scene before it is solved."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from supple.cli.console import handle_errors, print_json, stdout
from supple.cli.shared_options import Json, ScenePath


def inspect(
    scene: ScenePath,
    cluster_size: Annotated[int, typer.Option(help="Largest number of elements per cluster.")] = 5,
    json: Json = False,
) -> None:
    """Show sizes, orderings, worst elements, intersections, and the memory required by each solver."""
    with handle_errors(json):
        from supple.api.inspect import inspect as inspect_scene
        from supple.cli.job import load_file

        file = load_file(scene)
        properties = inspect_scene(file.scene, cluster_size)
        if json:
            print_json({"scene": {"file": str(scene), "title": file.title}, **properties})
        else:
            _print(file.title, properties)


def _print(title: str, properties: dict[str, Any]) -> None:
    console = stdout()
    console.print(title, style="bold")
    cell_types = [kind for kind in ("tets", "triangles") if properties[kind]]
    sizes = ["vertices", *cell_types, "components", "pinned", "rollers", "rigid_motions", "weak_constraints"]
    sizes += [name for name in ("springs", "pressures", "cables") if properties[name]]
    console.print(_two_column_table({_words(name): f"{properties[name]:,}" for name in sizes}))
    portions = [portion for body in properties["bodies"] for portion in body["portions"]]
    for heading, table in (
        ("clock", _two_column_table(_clock(properties["clock"]))),
        ("bodies", _bodies(properties["bodies"])),
        *([("materials", _portions(portions))] if portions else []),
        *([("pins", _pins(properties["pins"]))] if properties["pins"] else []),
        *([("loads", _loads(properties["loads"]))] if properties["loads"] else []),
        *(
            [("contact", _two_column_table(_contact(properties["contact"])))]
            if properties["contact"]["method"] != "none"
            else []
        ),
        *([("in time", _parameter_table(properties["varying"]))] if properties["varying"] else []),
        ("orderings", _orderings(properties["orderings"])),
        ("worst elements", _worst(properties["bodies"])),
        ("memory [MB]", _memory(properties["memory_megabytes"])),
    ):
        console.print(f"\n{heading}", style="bold")
        console.print(table)
    for body in properties["bodies"]:
        for sentence in body["findings"]:
            console.print(f"{body['name']}, {body['material']}: {sentence}.", style="yellow")
    for sentence in properties["intersections"] + properties["open_on_grid"] + properties["small_obstacles"]:
        console.print(f"{sentence}.", style="yellow")
    console.print("newton: without what its linear solver needs.", style="dim")


def _clock(clock: dict[str, Any]) -> dict[str, str]:
    """Time stepping settings; those with default values are omitted."""
    count, dt, substeps = clock["frames"], clock["dt"], clock["substeps"]
    rows = {"kind": "quasistatic" if clock["quasistatic"] else "dynamic"}
    rows |= {"frames": f"{count:,} of {dt:.4g} s"}
    rows |= {"substeps": f"{substeps:,} of {dt / substeps:.4g} s"} if substeps > 1 else {}
    rule = clock["integrator"]
    rows |= {"integrator": rule} if rule != "backward_euler" else {}
    guess = clock["initial_guess"]
    rows |= {"initial guess": guess} if guess != "adaptive" else {}
    rows |= {"damping": f"{clock['damping']:.4g} per step"} if clock["damping"] else {}
    return rows | {"gravity": f"{_vector(clock['gravity'])} m/s²{_format_ramp(clock['gravity_ramp'])}"}


def _pins(pins: list[dict[str, Any]]) -> Any:
    table = _table("vertices", "directions held", "moving")
    for pin in pins:
        directions = (
            pin["holds"] if isinstance(pin["holds"], str) else " and ".join(map(_vector, pin["holds"]))
        )
        table.add_row(pin["body"], f"{pin['vertices']:,}", directions, "yes" if pin["moving"] else "no")
    return table


def _loads(loads: list[dict[str, Any]]) -> Any:
    table = _table("vertices", "total [N]", "in time")
    for load in loads:
        force, varying = _vector(load["force"]), _format_ramp(load["ramp"]).removeprefix(", ") or "constant"
        follows = ", following the surface" if load["following"] else ""
        table.add_row(load["body"], f"{load['vertices']:,}", force, varying + follows)
    return table


CONTACT_UNITS = {"thickness": " m", "stiffness": " N/m", "spacing": " m"}
"""Units of contact parameters."""


def _contact(contact: dict[str, Any]) -> dict[str, str]:
    """Contact settings of the scene; parameters determined automatically are omitted."""
    nonzero = {name: value for name, value in contact.items() if name != "method" and value}
    texts = {
        name: "yes" if value is True else f"{value:.4g}{CONTACT_UNITS.get(name, '')}"
        for name, value in nonzero.items()
    }
    return {"method": contact["method"], **texts}


def _parameter_table(varying: list[dict[str, Any]]) -> Any:
    table = _table("parameter", "parts of it")
    for each in varying:
        table.add_row(each["body"], each["parameter"], _format_ramp(each["ramp"]).removeprefix(", "))
    return table


def _format_ramp(ramp: Any) -> str:
    """Text of a ramp: ", 0 at 0 s, 1 at 2 s"."""
    if not isinstance(ramp, dict):
        return f", {ramp}" if ramp else ""
    keys = zip(ramp["fractions"], ramp["times"], strict=True)
    return "".join(f", {fraction:.4g} at {time:.4g} s" for fraction, time in keys)


def _vector(numbers: list[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def _two_column_table(rows: dict[str, str]) -> Any:
    table = _table()
    table.show_header = False
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _table(*numbers: str) -> Any:
    """Table with a column of names and one right-aligned column per kind of number."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", style="cyan")
    for number in numbers or ("",):
        table.add_column(number, justify="right")
    return table


def _bodies(bodies: list[dict[str, Any]]) -> Any:
    cell_types = [kind for kind in ("tets", "triangles") if any(body[kind] for body in bodies)]
    columns = ("vertices", *cell_types, "components", "volume [m³]", "mass [kg]", "material")
    labels = list(dict.fromkeys(p["label"] for body in bodies for p in body["parameters"].values()))
    moving = any(any(body["velocity"]) or any(body["angular_velocity"]) for body in bodies)
    table = _table(*columns, *labels, *(("v [m/s]", "ω [rad/s]") if moving else ()))
    for body in bodies:
        values = {p["label"]: _values(p["values"]) for p in body["parameters"].values()}
        at_start = [_vector(body["velocity"]), _vector(body["angular_velocity"])] if moving else []
        table.add_row(
            body["name"],
            f"{body['vertices']:,}",
            *(f"{body[kind]:,}" for kind in cell_types),
            f"{body['components']:,}",
            f"{body['volume']:.4g}",
            f"{body['mass']:.4g}",
            body["material"],
            *(values.get(label, "") for label in labels),
            *at_start,
        )
    return table


def _portions(portions: list[dict[str, Any]]) -> Any:
    """Table of region materials and viscosities."""
    table = _table("cells", "material", "parameters")
    for portion in portions:
        values = (f"{p['label']} {_values(p['values'])}" for p in portion["parameters"].values())
        table.add_row(portion["name"], f"{portion['cells']:,}", portion["material"], ", ".join(values))
    return table


def _orderings(orderings: dict[str, int]) -> Any:
    size, clusters = orderings["cluster_size"], orderings["clusters"]
    table = _table("colors")
    table.add_row("vertices (pbng)", str(orderings["vertex_colors"]))
    if orderings["link_colors"]:
        table.add_row("vertices tied by weak constraints (pbng)", str(orderings["link_colors"]))
    table.add_row("elements (xpbd and its kin)", str(orderings["element_colors"]))
    table.add_row(f"{clusters:,} clusters of up to {size} elements", str(orderings["cluster_colors"]))
    if orderings["weak_constraint_colors"]:
        table.add_row("weak constraints", str(orderings["weak_constraint_colors"]))
    if orderings["spring_colors"]:
        table.add_row("springs", str(orderings["spring_colors"]))
    return table


def _worst(bodies: list[dict[str, Any]]) -> Any:
    table = _table("cell", "quality", "volume [m³] or area [m²]")
    for body in bodies:
        for element in body["worst_elements"]:
            (kind, number), (_, quality), (_, measure) = element.items()
            table.add_row(body["name"], f"{kind} {number}", f"{quality:.3f}", f"{measure:.3g}")
    return table


def _memory(memory: dict[str, dict[str, float]]) -> Any:
    table = _table("float32", "float64")
    for solver, megabytes in memory.items():
        table.add_row(
            solver, *(f"{megabytes[p]:,.1f}" if p in megabytes else "" for p in ("float32", "float64"))
        )
    return table


def _values(numbers: list[float] | None) -> str:
    """Text of parameter values: a number, a range, several numbers, or "by element"."""
    if numbers is None:
        return "by element"
    return _span(numbers) if len(numbers) == 2 else _vector(numbers)


def _span(ends: list[float]) -> str:
    low, high = (f"{end:.4g}" for end in ends)
    return low if low == high else f"{low} to {high}"


def _words(name: str) -> str:
    return name.replace("_", " ")
