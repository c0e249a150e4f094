"""Array inputs that replace scene properties, and their gradients, for PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.gradients.gradient import Gradient
from supple.gradients.parameter_derivatives import differentiable_parameters
from supple.meshes import TetMesh
from supple.scene import Body, Scene, SceneError, VertexSet
from supple.scene.body_validation import check_parameters
from supple.scene.loads.forces import Load, body_forces
from supple.scene.value_checks import number, vector
from supple.support.arguments import check_vectors, comma_list, format_value, suggest_name

SCENE_INPUTS = ("gravity", "forces", "rest", "pressures")
"""Inputs of the whole scene. Densities and material parameters belong to bodies, positions to pins."""


@dataclass(frozen=True)
class Input:
    """An input of a differentiable equilibrium.

    Attributes:
        kind: "gravity" (3,), "forces" (n, 3) in addition to the scene's, "rest" (n, 3) positions of all
            vertices, "pressures" (p,), "pins" (k, 3) of a pin, "density" or a material parameter of a body.
        name: Name of the pin or body, None for inputs of the whole scene.
    """

    kind: str
    name: str | None = None

    def __str__(self) -> str:
        return self.kind if self.name is None else f"{self.kind} of {self.name!r}"


def parse_inputs(scene: Scene, given: Mapping[str, Any]) -> list[tuple[Input, Any]]:
    """Parse keyword inputs to pairs of input and value.

    Args:
        scene: Scene.
        given: Value by keyword, or a dictionary of values per body or pin.
    """
    inputs: list[tuple[Input, Any]] = []
    for kind, value in given.items():
        if kind in SCENE_INPUTS:
            inputs.append((Input(kind), value))
        elif kind == "pins":
            inputs += _parse_named(kind, value, [pin.name for pin in scene.pins])
        else:
            inputs += _parse_named(kind, value, _bodies_with(scene, kind))
    if not inputs:
        known = ["gravity", "forces", "pins", "density", "rest", "pressures"]
        raise ValueError(
            f"no input given; pass at least one of {comma_list(known)}, or a parameter of a material"
        )
    return inputs


def _bodies_with(scene: Scene, kind: str) -> list[str]:
    """Names of bodies with a given parameter."""
    known = {body.name: ["density", *differentiable_parameters(body.material)] for body in scene.bodies}
    owners = [name for name, parameters in known.items() if kind in parameters]
    if not owners:
        every = sorted({parameter for parameters in known.values() for parameter in parameters})
        raise ValueError(
            f"the scene has no input {kind!r}; {suggest_name(kind, [*SCENE_INPUTS, 'pins', *every])}"
        )
    return owners


def _parse_named(kind: str, value: Any, names: list[str]) -> list[tuple[Input, Any]]:
    if not isinstance(value, Mapping):
        if len(names) != 1:
            raise ValueError(
                f"{comma_list(names)} have {kind!r}; name one, such as {kind}={{{names[0]!r}: ...}}"
            )
        return [(Input(kind, names[0]), value)]
    inputs = []
    for key, one in value.items():
        name = getattr(key, "name", key)
        if name not in names:
            raise ValueError(
                f"{format_value(name)} has no {kind!r}; available for: {comma_list(names) or 'none'}"
            )
        inputs.append((Input(kind, name), one))
    return inputs


@dataclass(frozen=True, eq=False)
class FixedPositions:
    """Motion that keeps vertices at positions (k, 3) [m]."""

    positions: np.ndarray

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        return self.positions


def replace_inputs(scene: Scene, inputs: Sequence[Input], values: Sequence[np.ndarray]) -> Scene:
    """Return a copy of the scene with replaced properties."""
    given = dict(zip(inputs, values, strict=True))
    bodies = {body.name: _replace_body(body, given) for body in scene.bodies}

    def on(chosen: VertexSet) -> VertexSet:
        return VertexSet(bodies[chosen.body.name], chosen.indices)

    new = replace(scene)
    new.bodies = list(bodies.values())
    new.pins = [replace(pin, on=on(pin.on), motion=_motion(pin, given)) for pin in scene.pins]
    new.loads = [_transfer_load(load, on(load.on)) for load in scene.loads]
    new.varying_parameters = [replace(each, body=bodies[each.body.name]) for each in scene.varying_parameters]
    new.inflations = [replace(each, body=bodies[each.body.name]) for each in scene.inflations]
    new.follower_tractions = [replace(each, body=bodies[each.body.name]) for each in scene.follower_tractions]
    new.winds = [replace(w, bodies=tuple(bodies[b.name] for b in w.bodies)) for w in scene.winds]
    new.attachments, new.springs, new.cables = scene.attachments, scene.springs, scene.cables
    new.obstacles, new.user_terms = scene.obstacles, scene.user_terms
    if (gravity := given.get(Input("gravity"))) is not None:
        new.gravity = vector(gravity, "gravity [m/s²]")
    if (forces := given.get(Input("forces"))) is not None:
        rows = check_vectors("forces [N]", forces, scene.bodies[-1].vertices.stop, SceneError)
        new.loads += [Load(body.all, rows[body.vertices].copy()) for body in new.bodies]
    if (pressures := given.get(Input("pressures"))) is not None:
        new.inflations = _set_pressures(new.inflations, pressures)
    return new


def _transfer_load(load: Load, on: VertexSet) -> Load:
    """Transfer a load to equal vertices of a changed body, whose volumes may differ."""
    force = load.force if load.per_volume is None else body_forces(on.body, load.per_volume)
    return replace(load, on=on, force=force)


def _set_pressures(inflations: list[Any], pressures: np.ndarray) -> list[Any]:
    if np.shape(pressures) != (len(inflations),):
        raise SceneError(
            f"pressures [Pa] must be one for each of the {len(inflations)} pressures of the scene, "
            f"shape ({len(inflations)},); got shape {np.shape(pressures)}."
        )
    return [
        replace(each, pressure=number(float(p), "pressure [Pa]"))
        for each, p in zip(inflations, pressures, strict=True)
    ]


def _motion(pin: Any, given: Mapping[Input, np.ndarray]) -> Any:
    positions = given.get(Input("pins", pin.name))
    if positions is None:
        return pin.motion
    return FixedPositions(
        check_vectors(f"positions of pin {pin.name!r} [m]", positions, len(pin.on), SceneError)
    )


def _replace_body(body: Body, given: Mapping[Input, np.ndarray]) -> Body:
    changes: dict[str, Any] = {}
    values = {
        each.kind: value for each, value in given.items() if each.name == body.name and each.kind != "pins"
    }
    if "density" in values:
        changes["density"] = number(float(values.pop("density")), f"density of {body.name!r}", above=0)
    if values:
        changes["material"] = _material(body, values)
    rest = given.get(Input("rest"))
    if rest is not None:
        changes["mesh"] = _move_mesh(body, rest)
    return replace(body, **changes) if changes else body


def _material(body: Body, own: Mapping[str, np.ndarray]) -> Any:
    """Material with replaced parameters, either declared or stored ones."""
    kind = type(body.material)
    values = {name: float(value) if np.ndim(value) == 0 else np.asarray(value) for name, value in own.items()}
    declared = {p.name for p in kind.parameters}
    if values.keys() <= declared:
        material = kind(**(body.material.given() | values))
    elif not values.keys() & declared:
        material = kind.of_stored(**(body.material._asdict() | values))
    else:
        raise SceneError(
            f"{comma_list(values)} of {body.name!r} determine the same moduli; give only one kind of them."
        )
    check_parameters(material, body.mesh)
    return material


def _move_mesh(body: Body, rest: np.ndarray) -> TetMesh:
    if not isinstance(body.mesh, TetMesh):
        raise SceneError(
            f"Derivatives with respect to the rest shape of cloth, here {body.name!r}, are not available yet."
        )
    stop = body.vertices.stop
    if len(rest) < stop:
        raise SceneError(
            f"rest [m] must be (n, 3) for all vertices of the scene; got shape {np.shape(rest)}."
        )
    mesh = body.mesh
    cells, vertices = dict(mesh.cell_data), dict(mesh.point_data)
    return TetMesh(rest[body.vertices], mesh.tets, cell_data=cells, point_data=vertices)


def input_derivative(gradient: Gradient, scene: Scene, item: Input, value: np.ndarray) -> np.ndarray:
    """Derivative of L with respect to an input, in the input's shape."""
    if item.kind in SCENE_INPUTS:
        return np.reshape(getattr(gradient, item.kind), value.shape)
    if item.kind == "pins":
        return gradient.pins[str(item.name)]
    (body,) = (body for body in gradient.model.bodies if body.name == item.name)
    properties = gradient.body(body)  # type: ignore[arg-type]
    if item.kind == "density":
        return np.reshape(properties.density, value.shape)
    derivative = properties.per_element(item.kind)
    parameter = differentiable_parameters(body.material)[item.kind]  # type: ignore[attr-defined]
    if parameter.kind == "direction":  # only its orientation counts
        derivative = derivative / np.linalg.norm(value, axis=-1, keepdims=True)
    return derivative if derivative.shape == value.shape else derivative.sum(axis=0).reshape(value.shape)
