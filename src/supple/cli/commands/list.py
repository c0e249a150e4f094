"""supple list: names accepted by scene files and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supple.cli.console import handle_errors, print_json, stdout
from supple.cli.shared_options import Json

if TYPE_CHECKING:
    from rich.text import Text

Entries = list[dict[str, Any]]

SECTIONS = "materials, membranes, presets, solvers, motions, selections, meshes, surfaces, bending, "
SECTIONS += "contact, integrators, guesses, files, fields, quantities, exports or scenes"
"""Sections of `catalogue`, listed here so that help does not have to build it."""

INTEGRATORS = {
    "backward_euler": "First order; damps fast motion.",
    "bdf2": "Second order; damps fast motion less.",
    "trapezoidal": "Second order; does not damp.",
}
"""Time integrators and their descriptions."""

INITIAL_GUESSES = {
    "adaptive": "Bodies without contact start at their motion under external forces, all others at x + Δt v.",
    "inertial": "x + Δt v + Δt² g, as in the paper of PBNG.",
    "coast": "x + Δt v.",
}
"""Initial guesses of a time step and their descriptions."""

OPTIONS = {
    "acceleration": "Acceleration of sweeps; none is the method of the paper.",
    "attachments_first": "Project attachments before the elements instead of after them.",
    "binding_factor": "Factor on the stiffness that ties layers of cloth to each other.",
    "cluster_size": "Largest number of elements per cluster.",
    "coarse_sweeps": "Sweeps over the coarsest layer per iteration.",
    "compliant": "False: constraints of elements are hard, whatever the material's stiffness; a baseline.",
    "constraints": "Constraints of an element. xpbd: pair, two constraints; root, the square root of the "
    "energy, for any material; auto, the pair where there is one. pbd: energy; distance, of edges; shape, "
    "shape matching.",
    "coupling": "Coupling of cloth and layers. carried: cloth moves with its layers; bound: springs connect "
    "them; divided: springs, with stiffness and mass shared by all layers, as printed.",
    "cycle": "Iterations with layers per step with a tolerance, followed by sweeps of pbng.",
    "damping": "Fraction of every velocity that is lost per step.",
    "final_sweeps": "Sweeps over the cloth alone after the last iteration with layers.",
    "first_iteration": "Sweep at which chebyshev begins.",
    "gamma": "Relaxation factor of chebyshev; values above 1 are over-relaxation.",
    "hessian": "Hessian. bound: the positive definite bound of PBNG; exact: second derivatives, "
    "which make pbng VBD, and in newton are projected where needed; projected: always projected to positive "
    "semidefinite.",
    "iterations": "Iterations per step if neither [stop] nor the command line sets a limit.",
    "jacobi_weights": "Weights that keep the sum of jacobi steps from overshooting. mass: the mass of a "
    "vertex is shared among elements; vertex: average at each vertex, as in the paper; element: one factor "
    "for each.",
    "layers": "Largest number of coarser layers of cloth; by default, as many as have enough vertices.",
    "line_search": "Halve a step until the potential decreases.",
    "linear_iterations": "Fixed number of iterations of the linear solver per step, for equal budgets.",
    "linear_solver": "Linear solver: multilevel, cg (conjugate gradients), direct, amg (algebraic "
    "multigrid), or auto, which is multilevel until it converges slowly; baselines: gauss_seidel, bicgstab, "
    "and qr for small systems.",
    "max_predicted_sweeps": "Largest number of predicted remaining sweeps; above it, Newton steps follow. 0 "
    "begins with Newton steps.",
    "max_rotation": "Largest rotation of nearly all elements in a Newton step [rad].",
    "newton_steps": "Local Newton steps per projection of an element.",
    "omega": "Relaxation factor: of each vertex with sor, of all elements with jacobi.",
    "ordering": "Units updated in parallel: elements by colors, clusters of elements, or cells of blocks.",
    "pad": "Number added to the iteration count in the decay of the layers' contribution.",
    "path": "Path of a Newton step. rotation: elements rotate along it; straight: vertices move on lines.",
    "primal_residual": "Kept: sweeps include the residual of positions, which is unstable; a baseline.",
    "pseudo_damping": "Fraction of every velocity that is lost per pseudo-time step with dynamics.",
    "pseudo_dt": "Pseudo-time step of quasistatic solves [s].",
    "pseudo_time": "Velocities in pseudo-time. flow: zero at the start of a step; dynamics: kept, as in the "
    "paper.",
    "rescue": "Project a Hessian that is not positive definite; false: use it unchanged.",
    "rho": "Expected convergence rate of sweeps for chebyshev, below 1.",
    "stiffness": "Fraction of each correction that is applied.",
    "sweep": "Sweep: gauss_seidel by colors, or jacobi, all elements from the same positions.",
    "sweeps_per_step": "Sweeps per pseudo-time step.",
    "tied_groups": "Also move groups of vertices tied by stiff attachments as one, so that these converge.",
    "vertex_order": "Order of the vertices by which elements are grouped: mesh, or smallest_last.",
    "window": "Number of previous sweeps that anderson combines.",
    "zeta": "Fraction of XPBD's update that is kept: larger is more stable, smaller reduces the residual "
    "further; by default 0.5, or the smallest larger value that is stable.",
}
"""Descriptions of solver options; each name has the same meaning in all solvers."""


def list_names(
    what: Annotated[str | None, typer.Argument(help=f"{SECTIONS}; default: all.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Plot stress over stretch of materials or presets into a PNG file."),
    ] = None,
    json: Json = False,
) -> None:
    """List names accepted by scene files, options and commands: materials, solvers, fields, scenes, ..."""
    with handle_errors(json):
        from supple.support.arguments import suggest_name

        sections = catalogue()
        if what is not None and what not in sections:
            raise ValueError(f"there is no section {what!r}; {suggest_name(what, sections)}")
        if plot is not None:
            _plot(what, plot)
        chosen = {name: entries for name, entries in sections.items() if what in (None, name)}
        if json:
            print_json(chosen)
        else:
            _print(chosen)


def _plot(what: str | None, path: Path) -> None:
    """Plot stress against stretch for example materials or presets."""
    from supple.io.replace_file import replacing
    from supple.materials import MATERIALS, presets
    from supple.view.stress_stretch import stretch_plot

    if what not in ("materials", "presets"):
        raise ValueError(
            "--plot needs the section materials or presets: supple list materials --plot FILE.png"
        )
    if path.suffix != ".png":
        raise ValueError(f"--plot writes a PNG file, such as stress.png, got {path}")
    materials = (
        {name: kind.example() for name, kind in MATERIALS.items()}
        if what == "materials"
        else {name: preset.material for name, preset in presets().items()}
    )
    with replacing(path) as unfinished:
        stretch_plot(unfinished, materials, title="Materials" if what == "materials" else "Preset materials")


def catalogue() -> dict[str, Entries]:
    """Catalogue by section; each entry has at least name and description."""
    from supple.io import FORMATS
    from supple.materials import MATERIALS, MEMBRANES, material_name, presets
    from supple.meshes.files.load_save import _FORMATS
    from supple.meshes.files.surface_files import SURFACES
    from supple.postprocess.evaluation import QUANTITIES
    from supple.scene.contact_settings import METHODS
    from supple.scene.tables import cloth, meshes, motions, selections
    from supple.solvers import SOLVERS
    from supple.view.fields import FIELDS

    solvers: dict[str, Any] = SOLVERS
    return {
        "materials": [
            {"name": name, "description": _summary(kind, []), "parameters": _parameters(kind)}
            for name, kind in MATERIALS.items()
        ],
        "membranes": [
            {"name": name, "description": _summary(kind, []), "parameters": _parameters(kind)}
            for name, kind in MEMBRANES.items()
        ],
        "presets": [
            {
                "name": name,
                "description": f"{material_name(preset.material)}, {preset.density:g} kg/m³. "
                f"{preset.source}. {preset.note[:1].upper()}{preset.note[1:]}.",
            }
            for name, preset in presets().items()
        ],
        "solvers": [
            {
                "name": name,
                "description": _summary(kind, [field.name for field in fields(kind)]),
                "devices": list(kind.devices),
                "precisions": list(kind.precisions),
                "batches": kind.batches,
                "options": _options(kind, kind.parts),
            }
            for name, kind in solvers.items()
        ],
        "motions": _choice_entries(motions.Motion),
        "selections": _choice_entries(selections.Where),
        "meshes": [entry for entry in _choice_entries(meshes.Mesh) if entry["name"] != "file"],
        "surfaces": [entry for entry in _choice_entries(cloth.Surface) if entry["name"] != "file"],
        "bending": _choice_entries(cloth.BendingChoice),
        "contact": [{"name": name, "description": text} for name, text in METHODS.items()],
        "integrators": [{"name": name, "description": text} for name, text in INTEGRATORS.items()],
        "guesses": [{"name": name, "description": text} for name, text in INITIAL_GUESSES.items()],
        "files": [{"name": suffix, "description": f"{kind} mesh"} for suffix, (kind, _) in _FORMATS.items()]
        + [{"name": suffix, "description": f"{kind} surface"} for suffix, kind in SURFACES.items()],
        "fields": [{"name": name, "description": field.label} for name, field in FIELDS.items()],
        "quantities": [{"name": name, "description": text} for name, text in QUANTITIES.items()],
        "exports": [{"name": name, "description": format.description} for name, format in FORMATS.items()],
        "scenes": _scenes(),
    }


def _choice_entries(choice: Any) -> Entries:
    return [
        {"name": name, "description": choice.model_fields[name].description} for name in choice.variants()
    ]


def _parameters(material: Any) -> Entries:
    """Declared parameters of a material."""
    return [
        {
            "name": p.name,
            "description": f"{p.description.rstrip('.')}.",
            "unit": p.unit,
            "type": p.kind,
            "default": p.default,
        }
        for p in material.parameters
    ]


def _options(kind: Any, parts: dict[str, dict[str, type]]) -> Entries:
    """Options of a solver or solver part; options with parts list the options of each kind."""
    from typing import Literal, get_args, get_origin, get_type_hints

    from supple.solvers.options import kind_of

    hints = get_type_hints(kind)

    def type_name(hint: Any) -> str:
        if get_origin(hint) is Literal:
            return " | ".join(get_args(hint))
        of_union = get_args(hint) or (hint,)
        return " | ".join("none" if one is type(None) else one.__name__ for one in of_union)

    def entry(option: Any) -> dict[str, Any]:
        described = {"name": option.name, "description": OPTIONS.get(option.name, "")}
        if option.name not in parts:
            return described | {"type": type_name(hints[option.name]), "default": option.default}
        classes = parts[option.name]
        return described | {
            "type": " | ".join(["none", *classes]),
            "default": kind_of(option.default),
            "kinds": [
                {"name": name, "description": _summary(one, []), "options": _options(one, {})}
                for name, one in classes.items()
            ],
        }

    return [entry(option) for option in fields(kind)]


def _scenes() -> Entries:
    """Scene files in the folder `scenes` of the working directory, otherwise the bundled scenes by name."""
    from supple.cli.bundled_scenes import list_scene_files

    own = {str(path): path for path in sorted(Path("scenes").glob("*.toml"))}
    return [{"name": name, "description": _title(path)} for name, path in (own or list_scene_files()).items()]


def _title(path: Path) -> str:
    """Title of a scene file, with a note on missing data files."""
    import os
    import tomllib

    from supple.support.input_files import read_text

    try:
        text = read_text(path)
        title = tomllib.loads(text).get("title") or path.stem
    except (OSError, ValueError):
        return "cannot be read"
    kind = "meshes" if "$SUPPLE_DATA" in text else "fabrics" if "\nfabric = " in text else ""
    missing = kind and "SUPPLE_DATA" not in os.environ
    return f"{title} (needs {kind} in the folder $SUPPLE_DATA)" if missing else title


def _summary(kind: Any, options: list[str]) -> str:
    """First paragraph of a class docstring, without option explanations."""
    import re

    text = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    explained = re.search(rf"(?:^|\s)(?:{'|'.join(options)}): ", text) if options else None
    return text[: explained.start()] if explained else text


def _print(sections: dict[str, Entries]) -> None:
    from rich.table import Table

    console = stdout()
    for section, entries in sections.items():
        table = Table(title=section, title_justify="left", title_style="bold", show_header=False, box=None)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column()
        for entry in entries:
            table.add_row(entry["name"], entry["description"] + _capability_note(entry))
            for row in _rows(entry.get("parameters", []), "  "):
                table.add_row(*row)
            for row in _rows(entry.get("options", []), "  "):
                table.add_row(*row)
        console.print(table)
        console.print()


def _capability_note(entry: dict[str, Any]) -> str:
    """Devices, precisions and batching of a solver in words; empty for other entries."""
    if "devices" not in entry:
        return ""
    batched = ", many equilibria together" if entry["batches"] else ""
    return f" On {' and '.join(entry['devices'])}, in {' and '.join(entry['precisions'])}{batched}."


def _rows(options: Entries, indent: str) -> Iterator[tuple[str, Text]]:
    """Yield table rows of options, kinds of parts, and the options of each kind."""
    from rich.text import Text

    for option in options:
        default = "" if option["default"] is None else f", {option['default']} unless given"
        text = Text.assemble(option["description"], " ", (f"{option['type']}{default}", "dim"))
        yield f"{indent}{option['name']}", text
        for kind in option.get("kinds", []):
            yield f"{indent}  {kind['name']}", Text(kind["description"])
            yield from _rows(kind["options"], f"{indent}    ")
