"""Material parameters that vary in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.materials import Material, by_element, is_per_element, table_of
from supple.scene.bodies import Body
from supple.scene.errors import SceneError
from supple.scene.loads.ramps import AnyRamp, Ramp, check_ramp, fraction_at
from supple.scene.pickling import picklable
from supple.scene.regions import Portion
from supple.scene.value_checks import format_value
from supple.support.arguments import suggest_name

Part = Body | Portion
"""A body or portion, with one material."""


@dataclass(frozen=True, eq=False)
class VaryingParameter:
    """Material parameter with a ramp over time."""

    body: Part
    parameter: str
    ramp: AnyRamp

    def __getstate__(self) -> dict[str, Any]:
        whose = f"{self.parameter} of {self.body.name!r}"
        return self.__dict__ | {"ramp": picklable(self.ramp, whose, "ramp")}

    def material_at(self, material: Material, t: float) -> Material:
        """Return the material at time t [s].

        Raises:
            SceneError: The parameter is out of its bounds at this time.
        """
        fraction = fraction_at(self.ramp, t)
        if fraction == 1:
            return material
        given = material.given()
        try:
            part = fraction * np.asarray(given[self.parameter])
            return type(material)(**(given | {self.parameter: part if part.ndim else part.item()}))
        except ValueError as error:
            when = "in the end" if np.isinf(t) else f"at t = {t:g} s"
            raise SceneError(
                f"{fraction:g} times the {self.parameter} of {self.body.name!r}, {when}, is not a "
                f"valid value: {error}",
                at="vary",
            ) from None


def vary_parameter(body: Part, parameter: Any, ramp: Any) -> VaryingParameter:
    """Build the variation that `Scene.vary` describes."""
    material, kind = body.material, type(body.material).__name__
    declared = {p.name: p for p in material.parameters}
    if not isinstance(parameter, str) or parameter not in declared:
        raise SceneError(
            f"{kind} of {body.name!r} has no parameter {format_value(parameter)}; "
            f"{suggest_name(str(parameter), declared)}"
        )
    if not declared[parameter].may_vary:
        able = [name for name, p in declared.items() if p.may_vary]
        raise SceneError(
            f"{parameter} of {kind} is a {declared[parameter].kind} and cannot vary; only scalar "
            f"parameters can, here {', '.join(able) or 'none'}."
        )
    if ramp is None or check_ramp(ramp) is None:
        raise SceneError(f"{parameter} of {body.name!r} needs a ramp; got None.")
    if not np.any(getattr(material, parameter)):
        raise SceneError(
            f"{parameter} of {body.name!r} is 0, and a ramp multiplies that value. Set the material "
            "to the value at fraction 1."
        )
    parameter_variation = VaryingParameter(body, parameter, ramp)
    if isinstance(ramp, Ramp):
        check_variation(parameter_variation, body, [])
    return parameter_variation


def check_variation(each: VaryingParameter, body: Part, times: list[float]) -> None:
    """Refuse ramps that violate parameter bounds.

    Args:
        each: The parameter with its ramp.
        body: Body or portion with the material.
        times: Times to check [s], for functions of the user; a `Ramp` is checked at its own times.
    """
    for t in each.ramp.times if isinstance(each.ramp, Ramp) else times:
        each.material_at(body.material, float(t))


@dataclass(frozen=True, eq=False)
class VaryingMaterial:
    """Merged body material as a function of time t [s]."""

    bodies: tuple[Part, ...]
    varying_parameters: tuple[VaryingParameter, ...]

    def fractions(self, t: float) -> tuple[float, ...]:
        """Return parameter fractions at time t [s]."""
        return tuple(fraction_at(each.ramp, t) for each in self.varying_parameters)

    def __call__(self, t: float) -> Material:
        return merge_materials([self._at(body, t) for body in self.bodies], per_cell=True)

    def _at(self, body: Part, t: float) -> Part:
        material = body.material
        for each in self.varying_parameters:
            if each.body.name == body.name:
                material = each.material_at(material, t)
        return replace(body, material=material)


def merge_materials(bodies: list[Part], per_cell: bool = False) -> Any:
    """Merge materials of several bodies.

    A parameter is uniform if all bodies have the same value, otherwise it has one value per cell.

    Args:
        bodies: Bodies or portions with the same class of material.
        per_cell: True for one value per cell even if bodies have the same value, since varying parameters may
            differ later.
    """
    materials = [by_element(body.material, body.n_cells) for body in bodies]
    if len(bodies) == 1:
        return materials[0]

    def merge(values: tuple[Any, ...]) -> Any:
        uniform = not any(map(is_per_element, values)) and all(value == values[0] for value in values)
        if uniform and not per_cell:
            return values[0]
        rows = [table_of(v, b.n_cells) for v, b in zip(values, bodies, strict=True)]
        table = np.concatenate(rows)
        return table[:, 0].copy() if table.shape[1] == 1 else table

    return type(materials[0])._make(map(merge, zip(*materials, strict=True)))


def varying_materials(
    groups: list[list[Part]], varying_parameters: list[VaryingParameter]
) -> dict[int, VaryingMaterial]:
    """Return time-dependent materials by group number, for groups with varying parameters."""
    materials = {}
    for number, group in enumerate(groups):
        own = tuple(each for each in varying_parameters if each.body.name in {body.name for body in group})
        if own:
            materials[number] = VaryingMaterial(tuple(group), own)
    return materials
