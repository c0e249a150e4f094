"""Inspection of a scene before solving: sizes, orderings, worst elements and memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.materials import Material, Parameter, findings, is_per_element, material_name
from supple.model.model import Model
from supple.ordering import batch_tied_groups, color_elements, color_vertices
from supple.ordering.element_batches import color_groups, element_groups
from supple.scene import Body, Ramp, Scene, SceneFile, build_model
from supple.scene.bodies import cell_counts
from supple.scene.constraints.pins import Pin, describe_directions
from supple.scene.constraints.rigid_support import rigid_motions_left
from supple.scene.contact_settings import contact_of, intersections, open_on_grid
from supple.scene.loads.follower_tractions import FollowingTraction
from supple.scene.loads.forces import Load
from supple.scene.loads.time_varying import VaryingParameter
from supple.scene.regions import Portion
from supple.scene.scene import scene_of
from supple.scene.shapes.obstacle import small_obstacles
from supple.solvers import SOLVERS, Solver
from supple.support.arguments import check_integer

NUMBERS_PER_INCIDENCE = 10
"""Numbers per tetrahedron that an incidence reads: shape gradients and volume."""

MEASURES = {"tet": "volume", "triangle": "area"}
"""Rest measure of a cell: volume [m³] or area [m²]."""


def inspect(scene: Scene | SceneFile, cluster_size: int = 5, worst: int = 5) -> dict[str, Any]:
    """Summarize a scene without solving it.

    Args:
        scene: Scene or scene file.
        cluster_size: Largest number of elements per cluster.
        worst: Number of worst elements listed per body.

    Returns:
        Plain values by name. Sizes: `vertices`, `tets`, `triangles` and `components`. Constraints: `pinned`
        vertices, `rollers` (vertices constrained along some directions), `rigid_motions` (rigid-body motions
        that remain free) and `pins`. Forces: `loads`, `pressures`, `cables`, `springs`, `weak_constraints`,
        `varying` parameters and `contact`. Time: `clock`. Bodies: `bodies` with materials and worst elements.
        Warnings: `intersections` at the start, `open_on_grid` (bodies between whose vertices others may pass
        on a grid) and `small_obstacles` (obstacles that may pass through faces of bodies). Cost: `orderings`
        (colors of vertices, elements and clusters) and `memory_megabytes` of each solver [MB].

    Raises:
        ValueError: The scene is invalid, or an argument is out of range.
    """
    scene = scene_of(scene)
    check_integer("cluster_size", cluster_size)
    check_integer("worst", worst, at_least=0)
    model = build_model(scene)
    return {
        "vertices": model.vertices,
        **cell_counts(scene.bodies),
        "components": sum(body.mesh.n_components for body in scene.bodies),
        "pinned": int(np.count_nonzero(~model.free)),
        "rollers": len(model.rollers),
        "rigid_motions": rigid_motions_left(scene, model.pinned, model.constraint_projection),
        "weak_constraints": sum(len(attachment.vertices) for attachment in scene.attachments),
        "springs": sum(len(springs.vertices) for springs in scene.springs),
        "pressures": len(scene.inflations),
        "cables": len(scene.cables),
        "clock": _clock(scene),
        "pins": [_pin(pin) for pin in scene.pins],
        "loads": [*map(_load, scene.loads), *map(_following, scene.follower_tractions)],
        "contact": _contact(scene, model),
        "varying": [_describe_varying(each) for each in scene.varying_parameters],
        "bodies": [_body(body, worst) for body in scene.bodies],
        "intersections": intersections(scene),
        "open_on_grid": [] if model.grid is None else open_on_grid(scene.bodies, model.grid.spacing),
        "small_obstacles": small_obstacles(scene),
        "orderings": _orderings(model, cluster_size),
        "memory_megabytes": _memory(model),
    }


TIME_STEPPING_FIELDS = "quasistatic", "dt", "frames", "substeps", "damping", "integrator", "initial_guess"
"""Scene attributes that control time stepping."""


def _clock(scene: Scene) -> dict[str, Any]:
    """Time stepping and gravity."""
    clock = {name: getattr(scene, name) for name in TIME_STEPPING_FIELDS}
    return clock | {"gravity": list(scene.gravity), "gravity_ramp": _ramp(scene.gravity_ramp)}


def _pin(pin: Pin) -> dict[str, Any]:
    """Pin summary; `holds` lists axes, directions (d, 3), or a sentence for varying directions."""
    return {
        "body": pin.on.body.name,
        "vertices": len(pin.on),
        "holds": describe_directions(pin.directions),
        "moving": pin.motion is not None,
    }


def _load(load: Load) -> dict[str, Any]:
    """Summary of a load."""
    return _acting(load.on.body, len(load.on), load.force, load.ramp, is_follower=False)


def _following(load: FollowingTraction) -> dict[str, Any]:
    """Summary of a follower load in the rest configuration."""
    body = load.body
    return _acting(body, len(load.vertices), load.forces(body.points), load.ramp, is_follower=True)


def _acting(body: Body, count: int, forces: np.ndarray, ramp: Any, is_follower: bool) -> dict[str, Any]:
    """Total force [N], ramp and number of vertices of a load."""
    total = forces.sum(axis=0).tolist()
    about = {"body": body.name, "vertices": count, "force": total, "ramp": _ramp(ramp)}
    return about | {"following": is_follower}


def _contact(scene: Scene, model: Model) -> dict[str, Any]:
    """Contact method and options, None for automatic values; actual grid spacing."""
    contact = contact_of(scene.contact)
    settings = {"method": contact.method, **contact.options}
    return settings if model.grid is None else settings | {"spacing": model.grid.spacing}


def _describe_varying(each: VaryingParameter) -> dict[str, Any]:
    """Summary of a varying parameter."""
    return {"body": each.body.name, "parameter": each.parameter, "ramp": _ramp(each.ramp)}


def _ramp(ramp: Any) -> Any:
    """Times and fractions of a ramp as plain values; text for a function of time, None without a ramp."""
    if isinstance(ramp, Ramp):
        return {"times": list(ramp.times), "fractions": list(ramp.fractions)}
    return None if ramp is None else "a function of time"


def _body(body: Body, worst: int) -> dict[str, Any]:
    """Summary of a body."""
    mesh = body.mesh
    return {
        "name": body.name,
        "vertices": mesh.n_vertices,
        "kind": body.kind,
        **cell_counts([body]),
        "components": mesh.n_components,
        "volume": body.volume,
        "mass": float(body.masses.sum()),
        "material": material_name(body.material),
        "parameters": {p.name: _parameter(body.material, p) for p in body.material.parameters},
        "findings": [found for part in body.parts for found in findings(part.material)],
        "portions": [_portion(part) for part in body.parts if isinstance(part, Portion)],
        "fields": sorted({*mesh.cell_data, *mesh.point_data}),
        "velocity": list(body.velocity),
        "angular_velocity": list(body.angular_velocity),
        "worst_elements": [
            {
                mesh.cell: int(e),
                "quality": float(mesh.quality[e]),
                MEASURES[mesh.cell]: float(mesh.measures[e]),
            }
            for e in mesh.worst(worst)
        ],
    }


def _portion(part: Portion) -> dict[str, Any]:
    """Summary: region of a body, or damping material."""
    material = part.material
    return {
        "name": part.name,
        "cells": part.n_cells,
        "material": material_name(material),
        "parameters": {p.name: _parameter(material, p) for p in material.parameters if not p.evolves},
    }


def _parameter(material: Material, parameter: Parameter) -> dict[str, Any]:
    """Label and values of a material parameter.

    Scalars have their minimum and maximum. Other kinds have their numbers if uniform over the body, otherwise
    None.
    """
    value = getattr(material, parameter.name)
    if parameter.kind == "scalar":
        return {"label": parameter.label, "values": _span(value)}
    uniform = None if is_per_element(value) else [float(f"{number:.12g}") for number in value]
    return {"label": parameter.label, "values": uniform}


def _span(values: Any) -> list[float]:
    """Parameter minimum and maximum, rounded to 12 digits."""
    return [float(f"{np.min(values):.12g}"), float(f"{np.max(values):.12g}")]


def _orderings(model: Model, cluster_size: int) -> dict[str, int]:
    """Numbers of colors and clusters of the solvers' orderings.

    Vertices are colored for all terms together, elements term by term. `link_colors` counts PBNG's
    additional colors for vertices tied by weak constraints.
    """
    n, stencils = model.vertices, [term.vertices for term in model.terms]
    elastic = [term.vertices for term in model.terms if not term.ties and term.capacity is None]
    weak = [term.vertices for term in model.terms if term.family == "weak_constraint"]
    springs = [term.vertices for term in model.terms if term.family == "spring"]
    links = batch_tied_groups(model.terms, model.free, np.dtype(float))
    clusters = [element_groups(tets, n, cluster_size) for tets in elastic]
    colored = zip(clusters, elastic, strict=True)
    return {
        "vertex_colors": _count(color_vertices(stencils, np.flatnonzero(model.free), n)),
        "link_colors": 0 if links is None else len(links.color_start) - 1,
        "element_colors": sum(_count(color_elements(tets, n)) for tets in elastic),
        "weak_constraint_colors": sum(_count(color_elements(ids, n)) for ids in weak),
        "spring_colors": sum(_count(color_elements(ids, n)) for ids in springs),
        "cluster_size": cluster_size,
        "clusters": sum(map(len, clusters)),
        "cluster_colors": sum(_count(color_groups(groups, tets, n)) for groups, tets in colored),
    }


def _count(colors: np.ndarray) -> int:
    """Number of colors."""
    return int(colors.max(initial=-1)) + 1


def _memory(model: Model) -> dict[str, dict[str, float]]:
    """Memory [MB] by solver with default options, and by precision.

    Newton's excludes its linear solver.
    """
    return {
        name: {
            precision: round(bytes_needed(model, kind(), np.dtype(precision).itemsize) / 1e6, 1)
            for precision in kind.precisions
        }
        for name, kind in SOLVERS.items()
    }


def bytes_needed(model: Model, solver: Solver, size: int) -> int:
    """Estimate the memory of a solve [bytes].

    It includes packed data by vertices for sweeps and residuals, by elements for the energy, and the solver's
    own memory.
    """
    elements, stencils = model.elements, [term.vertices for term in model.terms]
    incidences = sum(int(np.count_nonzero(model.free[vertices])) for vertices in stencils)
    total = (
        incidences * (NUMBERS_PER_INCIDENCE * size + 12)
        + elements * (NUMBERS_PER_INCIDENCE * size + 16)
        + model.vertices * (20 * size + 100)
    )
    return total + solver.memory(model, size)
