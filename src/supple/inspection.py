"""What a scene amounts to, before anything is solved: sizes, orderings, worst elements, memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.checks import whole_number
from supple.materials import Material, Parameter, findings, is_per_element, material_name
from supple.model import Model
from supple.ordering import batch_links, colour_elements, colour_vertices
from supple.ordering.elements import colour_groups, element_groups
from supple.scene import Body, Ramp, Scene, SceneFile, build_model
from supple.scene.bodies import cell_counts
from supple.scene.contact import contact_of, intersections, open_on_grid
from supple.scene.directions import holds
from supple.scene.loads import Load
from supple.scene.pins import Pin
from supple.scene.regions import Portion
from supple.scene.scene import scene_of
from supple.scene.small_obstacles import small_obstacles
from supple.scene.support import rigid_motions_left
from supple.scene.turning import FollowingTraction
from supple.scene.varying import Varied
from supple.solvers import SOLVERS, Solver

REST = 10
"""Numbers of a tetrahedron that a visit reads: shape gradients and volume."""

MEASURES = {"tet": "volume", "triangle": "area"}
"""What a cell has at rest [m³ or m²]."""


def inspect(scene: Scene | SceneFile, cluster_size: int = 5, worst: int = 5) -> dict[str, Any]:
    """Vertices, tets, triangles, components, how many vertices are pinned wholly or, as rollers, along some
    directions, in how many ways bodies can still move without deforming, clock, pins, loads, contact, colours
    of vertices, elements and clusters of up to cluster_size elements, the worst elements of every body, what
    intersects at the start, what bodies may pass through on a grid, what obstacles may pass through between
    vertices, and the memory that each solver needs [MB]."""
    scene = scene_of(scene)
    whole_number("cluster_size", cluster_size)
    whole_number("worst", worst, at_least=0)
    model = build_model(scene)
    return {
        "vertices": model.vertices,
        **cell_counts(scene.bodies),
        "components": sum(body.mesh.n_components for body in scene.bodies),
        "pinned": int(np.count_nonzero(~model.free)),
        "rollers": len(model.rollers),
        "rigid_motions": rigid_motions_left(scene, model.pinned, model.held),
        "weak_constraints": sum(len(attachment.vertices) for attachment in scene.attachments),
        "springs": sum(len(springs.vertices) for springs in scene.springs),
        "pressures": len(scene.inflations),
        "cables": len(scene.cables),
        "clock": _clock(scene),
        "pins": [_pin(pin) for pin in scene.pins],
        "loads": [*map(_load, scene.loads), *map(_following, scene.turning)],
        "contact": _contact(scene, model),
        "varying": [_varied(each) for each in scene.varied],
        "bodies": [_body(body, worst) for body in scene.bodies],
        "intersections": intersections(scene),
        "open_on_grid": [] if model.grid is None else open_on_grid(scene.bodies, model.grid.spacing),
        "small_obstacles": small_obstacles(scene),
        "orderings": _orderings(model, cluster_size),
        "memory_megabytes": _memory(model),
    }


CLOCK = "quasistatic", "dt", "frames", "substeps", "damping", "integrator", "initial_guess"


def _clock(scene: Scene) -> dict[str, Any]:
    """How time passes, and gravity in it."""
    clock = {name: getattr(scene, name) for name in CLOCK}
    return clock | {"gravity": list(scene.gravity), "gravity_ramp": _ramp(scene.gravity_ramp)}


def _pin(pin: Pin) -> dict[str, Any]:
    """holds: axes, directions (d, 3), or a sentence where they differ from vertex to vertex."""
    return {
        "body": pin.on.body.name,
        "vertices": len(pin.on),
        "holds": holds(pin.directions),
        "moving": pin.motion is not None,
    }


def _load(load: Load) -> dict[str, Any]:
    return _acting(load.on.body, len(load.on), load.force, load.ramp, following=False)


def _following(load: FollowingTraction) -> dict[str, Any]:
    """As it is at rest."""
    body = load.body
    return _acting(body, len(load.vertices), load.forces(body.points), load.ramp, following=True)


def _acting(body: Body, count: int, forces: np.ndarray, ramp: Any, following: bool) -> dict[str, Any]:
    total = forces.sum(axis=0).tolist()
    about = {"body": body.name, "vertices": count, "force": total, "ramp": _ramp(ramp)}
    return about | {"following": following}


def _contact(scene: Scene, model: Model) -> dict[str, Any]:
    """The method and what it looks at, None for what is found for the scene; the spacing of a grid as it
    is."""
    contact = contact_of(scene.contact)
    found = {"method": contact.method, **contact.options}
    return found if model.grid is None else found | {"spacing": model.grid.spacing}


def _varied(each: Varied) -> dict[str, Any]:
    return {"body": each.body.name, "parameter": each.parameter, "ramp": _ramp(each.ramp)}


def _ramp(ramp: Any) -> Any:
    """Its times and fractions; a sentence for a function, None for what does not vary."""
    if isinstance(ramp, Ramp):
        return {"times": list(ramp.times), "fractions": list(ramp.fractions)}
    return None if ramp is None else "a function of the time"


def _body(body: Body, worst: int) -> dict[str, Any]:
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
    """A region of a body, or what resists its rate of strain."""
    material = part.material
    return {
        "name": part.name,
        "cells": part.n_cells,
        "material": material_name(material),
        "parameters": {p.name: _parameter(material, p) for p in material.parameters if not p.evolves},
    }


def _parameter(material: Material, parameter: Parameter) -> dict[str, Any]:
    """What it is called in tables, and its values: lowest and highest of a scalar, of other kinds the numbers
    where they are the same for the whole body and otherwise None."""
    value = getattr(material, parameter.name)
    if parameter.kind == "scalar":
        return {"label": parameter.label, "values": _span(value)}
    uniform = None if is_per_element(value) else [float(f"{number:.12g}") for number in value]
    return {"label": parameter.label, "values": uniform}


def _span(values: Any) -> list[float]:
    """Lowest and highest of a parameter, to 12 digits."""
    return [float(f"{np.min(values):.12g}"), float(f"{np.max(values):.12g}")]


def _orderings(model: Model, cluster_size: int) -> dict[str, int]:
    """Counts as solvers have them: vertices of all terms together, elements term by term.

    link_colours are PBNG's further colours for vertices that weak constraints tie together.
    """
    n, stencils = model.vertices, [term.vertices for term in model.terms]
    elastic = [term.vertices for term in model.terms if not term.ties and term.capacity is None]
    weak = [term.vertices for term in model.terms if term.family == "weak_constraint"]
    springs = [term.vertices for term in model.terms if term.family == "spring"]
    links = batch_links(model.terms, model.free, np.dtype(float))
    clusters = [element_groups(tets, n, cluster_size) for tets in elastic]
    coloured = zip(clusters, elastic, strict=True)
    return {
        "vertex_colours": _count(colour_vertices(stencils, np.flatnonzero(model.free), n)),
        "link_colours": 0 if links is None else len(links.colour_start) - 1,
        "element_colours": sum(_count(colour_elements(tets, n)) for tets in elastic),
        "weak_constraint_colours": sum(_count(colour_elements(ids, n)) for ids in weak),
        "spring_colours": sum(_count(colour_elements(ids, n)) for ids in springs),
        "cluster_size": cluster_size,
        "clusters": sum(map(len, clusters)),
        "cluster_colours": sum(_count(colour_groups(groups, tets, n)) for groups, tets in coloured),
    }


def _count(colours: np.ndarray) -> int:
    return int(colours.max(initial=-1)) + 1


def _memory(model: Model) -> dict[str, dict[str, float]]:
    """Megabytes by solver, with its own options, and precision; Newton's without what its linear solver
    needs."""
    return {
        name: {
            precision: round(bytes_needed(model, kind(), np.dtype(precision).itemsize) / 1e6, 1)
            for precision in kind.precisions
        }
        for name, kind in SOLVERS.items()
    }


def bytes_needed(model: Model, solver: Solver, size: int) -> int:
    """Rows by vertices for sweeps and residuals, by elements for the energy, and what the solver adds."""
    elements, stencils = model.elements, [term.vertices for term in model.terms]
    visits = sum(int(np.count_nonzero(model.free[vertices])) for vertices in stencils)
    total = visits * (REST * size + 12) + elements * (REST * size + 16) + model.vertices * (20 * size + 100)
    return total + solver.memory(model, size)
