"""Scene variations: changed pins, loads, materials or initial positions of the same bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.model.dirichlet import DirichletConditions
from supple.model.model import Conditions, ConstantFactor, Gravity, Model
from supple.scene.bodies import Body, VertexSet
from supple.scene.body_validation import check_parameters
from supple.scene.build import Prescribed, elastic_groups, forces_of, pins_of
from supple.scene.constraints.rigid_support import Support
from supple.scene.errors import SceneError
from supple.scene.loads.ramps import fraction_at
from supple.scene.loads.time_varying import merge_materials, varying_materials
from supple.scene.pickling import picklable
from supple.scene.regions import Portion, of_cells
from supple.scene.scene import Scene
from supple.scene.value_checks import format_value, vector
from supple.support.arguments import check_vectors
from supple.support.keywords import suggest_keywords

Vertices = VertexSet | Body


@suggest_keywords
@dataclass(frozen=True, eq=False)
class Variation:
    """Changes that define one of many equilibria; omitted arguments keep scene values.

    Args:
        time: Time [s] of the scene's own motions and loads. Default: their final state.
        pins: Pinned vertices with a motion, evaluated at `time`, or with positions (k, 3) [m].
        forces: Vertices with forces [N] in addition to those of the scene, a total (3,) or (k, 3).
        gravity: Acceleration (3,) [m/s²].
        materials: Bodies or regions with other parameters of the same class of material.
        initial: Initial positions (n, 3) [m].
    """

    time: float = np.inf
    pins: Mapping[Vertices, Any] = field(default_factory=dict)
    forces: Mapping[Vertices, ArrayLike] = field(default_factory=dict)
    gravity: ArrayLike | None = None
    materials: Mapping[Body | Portion, Any] = field(default_factory=dict)
    initial: ArrayLike | None = None

    def __getstate__(self) -> dict[str, Any]:
        pins = {on: picklable(target, "pins of a variation") for on, target in self.pins.items()}
        return self.__dict__ | {"pins": pins}


def conditions(
    scene: Scene, model: Model, variation: Variation, support: Support | None = None
) -> Conditions:
    """Convert a variation to model conditions.

    Args:
        scene: The scene.
        model: Its model.
        variation: The variation.
        support: Support of the scene's parts, if it is known.

    Raises:
        SceneError: The variation is invalid, or its forces have no equilibrium.
    """
    if not isinstance(variation, Variation):
        raise SceneError(f"A variation must be a supple.Variation(...); got {format_value(variation)}.")
    for name in ("pins", "forces", "materials"):
        if not isinstance(getattr(variation, name), Mapping):
            raise SceneError(
                f"{name} of a variation must be a dictionary such as {{vertices: ...}}; got "
                f"{format_value(getattr(variation, name))}."
            )
    if not isinstance(variation.time, int | float | np.number) or not variation.time >= 0:  # inf is the end
        raise SceneError(f"time [s] of a variation must not be negative, got {format_value(variation.time)}.")
    force = _force(scene, model, variation)
    if (variation.forces or variation.gravity is not None) and not scene.obstacles:
        (support or Support(scene, model.pinned, model.constraint_projection)).check_equilibrium(force)
    return Conditions(
        pins_at(scene, model, variation.pins, variation.time),
        force,
        _materials(scene, model, variation),
        _initial(model, variation),
        float(variation.time),
        _gravity(scene, variation),
        partial(_conditions_at, scene, model, variation),
    )


def _conditions_at(scene: Scene, model: Model, variation: Variation, part: float) -> Conditions:
    """Return conditions at a fraction of all variation loads and motions.

    Motions and ramps are at this fraction of their time. Constant loads, and pins with given positions, are
    at this fraction of their change.
    """
    time = part * (variation.time if np.isfinite(variation.time) else model.duration)
    at_fraction, begin = replace(variation, time=time), model.prescribed(0.0)
    pins: dict[Vertices, Any] = {}
    for chosen, target in variation.pins.items():
        if callable(target):
            pins[chosen] = target
        else:
            on = _in_scene(scene, chosen)
            first = begin[np.searchsorted(model.pinned, on.vertices)]
            pins[chosen] = first + part * (np.asarray(target, float) - first)
    constant = model.force
    if variation.forces:
        constant = constant + forces_on(scene, model, variation.forces)
    if variation.gravity is not None and scene.gravity_ramp is None:
        change = np.array(vector(variation.gravity, "gravity")) - np.array(scene.gravity)
        constant = constant + model.mass[:, None] * change
    return Conditions(
        pins_at(scene, model, pins, time),
        _force(scene, model, at_fraction) - (1 - part) * constant,
        _materials(scene, model, at_fraction),
        None,
        time,
    )


def conditions_in(
    scene: Scene, dirichlet: DirichletConditions | None = None, mass: np.ndarray | None = None
) -> Conditions:
    """Return conditions of a scene that shares bodies and constrained vertices with a model.

    These are final positions of pins, forces and materials.

    Args:
        scene: The scene.
        dirichlet: Merged Dirichlet conditions of the pins, if they are known.
        mass: (n,) vertex masses [kg], if they are known.
    """
    if mass is None:
        mass = np.concatenate([body.masses for body in scene.bodies])
    prescribed = pins_of(scene)[2] if dirichlet is None else Prescribed(tuple(scene.pins), dirichlet)
    force, varying = forces_of(scene, mass)
    for fraction, full in varying:
        force = force + fraction(np.inf) * full
    groups = elastic_groups(scene.bodies)
    changing = varying_materials(groups, scene.varying_parameters)
    materials = tuple(
        changing[k](np.inf) if k in changing else merge_materials(group) for k, group in enumerate(groups)
    )
    return Conditions(prescribed(np.inf), force, materials, None, np.inf)


def pins_at(scene: Scene, model: Model, pins: Mapping[Vertices, Any], time: float) -> np.ndarray:
    """Return positions (k, 3) [m] of the constrained vertices at a time [s].

    Args:
        scene: The scene.
        model: Its model.
        pins: Vertices with another motion or other positions than in the scene.
        time: Time [s].

    Raises:
        SceneError: The scene does not pin a vertex, or positions are not finite.
    """
    positions = model.prescribed(time).copy()
    for chosen, target in pins.items():
        on = _in_scene(scene, chosen)
        known = np.isin(on.vertices, model.pinned)
        if not np.all(known):
            raise SceneError(
                f"{np.count_nonzero(~known)} vertices of {on.body.name!r} have prescribed positions "
                "in this variation, but are not pinned in the scene; pin them with scene.pin(...), "
                "because all variations share the free vertices."
            )
        indices = np.searchsorted(model.pinned, on.vertices)
        with np.errstate(all="ignore"):  # non-finite positions are refused below
            target_positions = target(on.points, time) if callable(target) else target
        name = f"target positions of the pins of {on.body.name!r}"
        positions[indices] = check_vectors(name, target_positions, len(on), SceneError)
    return positions


def forces_on(scene: Scene, model: Model, forces: Mapping[Vertices, ArrayLike]) -> np.ndarray:
    """Return vertex forces (n, 3) [N] from totals (3,) or forces (k, 3) on vertex sets."""
    loaded = replace(scene)
    loaded.bodies = scene.bodies
    for chosen, force in forces.items():
        loaded.add_force(_in_scene(scene, chosen), force)
    total = np.zeros_like(model.rest)
    for load in loaded.loads:
        total[load.on.vertices] += load.force
    return total


def _force(scene: Scene, model: Model, variation: Variation) -> np.ndarray:
    force = model.force_at(variation.time)
    if variation.forces:
        force = force + forces_on(scene, model, variation.forces)
    if variation.gravity is not None:
        change = np.array(vector(variation.gravity, "gravity")) - np.array(scene.gravity)
        force = force + fraction_at(scene.gravity_ramp, variation.time) * model.mass[:, None] * change
    return force


def _gravity(scene: Scene, variation: Variation) -> Gravity:
    given = scene.gravity if variation.gravity is None else variation.gravity
    acting = ConstantFactor(fraction_at(scene.gravity_ramp, variation.time))
    return Gravity(np.array(vector(given, "gravity")), acting)


def _materials(scene: Scene, model: Model, variation: Variation) -> tuple[Any, ...] | None:
    """List term materials: first all bodies, then creases, which do not change."""
    if not variation.materials and not scene.varying_parameters:
        return None
    parts = [part for body in scene.bodies for part in (body, *body.parts)]
    for body, material in variation.materials.items():
        if body not in parts:
            raise SceneError(f"materials of a variation: {format_value(body)} is not a body of the scene.")
        if type(material) is not type(body.material):
            raise SceneError(
                f"A variation can change the parameters of {body.name!r}, but not the class of its "
                f"material, {type(body.material).__name__}; got {format_value(material)}."
            )
        if isinstance(body, Portion):
            of_cells(material, body.name, body.numbers, body.body.n_cells)
        else:
            check_parameters(material, body)
    materials_by_name = {body.name: material for body, material in variation.materials.items()}
    groups = [
        [replace(part, material=_for_part(part, materials_by_name)) for part in group]
        for group in elastic_groups(scene.bodies)
    ]
    varying = varying_materials(groups, scene.varying_parameters)
    of_bodies = [
        varying[k](variation.time) if k in varying else merge_materials(group)
        for k, group in enumerate(groups)
    ]
    others = [term.material for term in model.terms if term.material is not None][len(groups) :]
    return *of_bodies, *others


def _for_part(part: Any, materials_by_name: Mapping[str, Any]) -> Any:
    """Return the material of a body or portion, restricted to the cells of a portion."""
    material = materials_by_name.get(part.name)
    if material is None:
        return part.material
    return (
        of_cells(material, part.name, part.numbers, part.body.n_cells)
        if isinstance(part, Portion)
        else material
    )


def _initial(model: Model, variation: Variation) -> np.ndarray | None:
    if variation.initial is None:
        return None
    return check_vectors("initial of a variation", variation.initial, model.vertices, SceneError)


def _in_scene(scene: Scene, chosen: Vertices) -> VertexSet:
    on = chosen.all if isinstance(chosen, Body) else chosen
    if not isinstance(on, VertexSet) or on.body not in scene.bodies:
        raise SceneError(
            f"A variation needs vertices of a body of the scene here; got {format_value(chosen)}."
        )
    return on
