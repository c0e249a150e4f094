"""Vectorized boundary conditions, loads and materials of many samples of one scene.

External forces are linear in their values and are combined from unit responses. Motions and materials are
constructed once from the stacked values of all samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.datasets.spec.key_path import KeyPath
from supple.materials import Material, evolving
from supple.model.model import Conditions
from supple.problem.material_update import materials_of
from supple.scene.build import elastic_groups
from supple.scene.constraints.motions import Compose
from supple.support.arguments import MAX_LENGTH, MAX_MAGNITUDE, MIN_MAGNITUDE

if TYPE_CHECKING:
    from supple.datasets.spec.parametric_scene import Source

Columns = Mapping[str, np.ndarray]
"""(k,) or (k, size) values of each varied quantity, by label."""

FORCE_TABLES = {"gravity", "force", "body_force", "traction"}
"""Scene tables on whose values external forces depend linearly."""

ARRAY_MOTION_PARAMETERS = {
    "translate": {"offset"}, "rotate": {"angle", "center"}, "twist": {"rate", "center"},
    "scale": {"factor", "center"},
}  # fmt: skip
"""Motion parameters for which `Motion` also accepts arrays."""


class VectorizedConditions:
    """Vectorized evaluation of sample conditions.

    Attributes:
        is_supported: True if every varied quantity is of a supported kind.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._base = source, source.file.scene
        self._key_paths: dict[str, list[tuple[str, KeyPath]]] = {
            "force": [],
            "pin": [],
            "material": [],
            "": [],
        }
        categories = {
            label: {self._category(key_path) for key_path in key_paths}
            for label, key_paths in source.key_paths.items()
        }
        for label, key_paths in source.key_paths.items():
            for kind in categories[label]:
                self._key_paths[kind] += [(label, key_path) for key_path in key_paths]
        self.is_supported = not self._key_paths[""] and all(len(kind) == 1 for kind in categories.values())
        if self.is_supported:
            self._zero, self._unit = self._unit_responses()
            self._final_positions = [_final_positions(pin.motion, pin.on.points) for pin in self._base.pins]
            self._varied_materials = [
                (label, self._group(p), *self._material(p)) for label, p in self._key_paths["material"]
            ]

    def conditions(self, columns: Columns) -> list[Conditions] | None:
        """Evaluate conditions for many sets of values.

        Returns:
            One entry per sample; None if any value is out of bounds, so that the caller evaluates samples one
            by one and reports the error.
        """
        count = len(next(iter(columns.values())))
        if not all((np.abs(values) <= MAX_MAGNITUDE).all() for values in columns.values()):
            return None
        pinned, materials = self._prescribed_positions(columns), self._materials(columns, count)
        if pinned is None or materials is None:
            return None
        forces, pins = (
            values if values.ndim == 3 else [values] * count
            for values in (self._external_forces(columns, count), pinned)
        )
        each = zip(pins, forces, materials, strict=True)
        return [Conditions(at, force, own, None, np.inf) for at, force, own in each]

    def _category(self, key_path: KeyPath) -> str:
        """Kind of quantity at a scene path: "force", "pin", "material", or "" if not supported."""
        table, *inner = key_path.keys
        if self._source.needs_model(key_path):
            return ""
        if table in FORCE_TABLES:
            return "force"
        if table == "pin":
            _, _, _, kind, name, *_ = inner
            return "pin" if name in ARRAY_MOTION_PARAMETERS.get(str(kind), ()) else ""
        return "material" if table in ("solid", "cloth") and self._is_of_one_material(key_path) else ""

    def _is_of_one_material(self, key_path: KeyPath) -> bool:
        """True for scalar parameters of uniform materials used by a single term."""
        kind, number, *inner = key_path.keys
        if len(inner) != 3 or key_path.size != 1 or self._base.varying_parameters:
            return False
        _, of, given = self._material(key_path)
        uniform = all(isinstance(value, float | list) for value in given.values())
        entry = getattr(self._source.table, str(kind))[number]
        plain = getattr(entry, "swelling", None) is None and getattr(entry, "rest_deformation", None) is None
        return uniform and plain and not evolving(of) and self._group(key_path) is not None

    def _material(self, key_path: KeyPath) -> tuple[str, type[Material], dict[str, Any]]:
        """Parameter name at a scene path, its material class and the parameters in the scene file."""
        kind, number, made_of, _, name = key_path.keys
        table = getattr(getattr(self._source.table, str(kind))[number], str(made_of)).chosen[1]
        return str(name), table.kind, table.given()

    def _group(self, key_path: KeyPath) -> int | None:
        """Index of the elastic term of the body at a scene path; None if the term contains other bodies."""
        kind, number = str(key_path.keys[0]), int(key_path.keys[1])
        body = self._base.bodies[number if kind == "solid" else len(self._source.table.solid) + number]
        groups = elastic_groups(self._base.bodies)
        return next((k for k, group in enumerate(groups) if group == [body]), None)

    def _unit_responses(self) -> tuple[np.ndarray, np.ndarray]:
        """External forces (n, 3) [N] at zero values, and unit responses (d, 3 n) of each component."""
        key_paths = dict(self._key_paths["force"])
        nothing = {
            label: _shaped_like(key_path, np.zeros(key_path.size)) for label, key_path in key_paths.items()
        }
        zero = self._source.conditions(nothing).force
        rows = [
            self._source.conditions(nothing | {label: _shaped_like(key_path, unit)}).force - zero
            for label, key_path in key_paths.items()
            for unit in np.eye(key_path.size)
        ]
        return zero, np.array(rows).reshape(len(rows), zero.size)

    def _external_forces(self, columns: Columns, count: int) -> np.ndarray:
        """External forces (k, n, 3) [N], or (n, 3) if they do not vary.

        Summed without BLAS, whose rounding may depend on the number of threads.
        """
        key_paths = dict(self._key_paths["force"])
        if not key_paths:
            return self._zero
        values = [_column(label, key_path, columns, count) for label, key_path in key_paths.items()]
        force = np.einsum("kd,dn->kn", np.concatenate(values, axis=1), self._unit)
        force += self._zero.ravel()
        return force.reshape(count, *self._zero.shape)

    def _prescribed_positions(self, columns: Columns) -> np.ndarray | None:
        """Prescribed positions (k, p, 3) [m], or (p, 3) if they do not vary; None for an invalid value."""
        varied: dict[int, list[Any]] = {}
        for label, key_path in self._key_paths["pin"]:
            if label in columns:
                number, which, name = int(key_path.keys[1]), int(key_path.keys[3]), str(key_path.keys[5])
                values = np.reshape(columns[label], (len(columns[label]), -1))
                if name == "factor" and not (values >= MIN_MAGNITUDE).all():
                    return None
                motions = varied.setdefault(number, list(self._base.pins[number].motion.motions))  # type: ignore[union-attr]
                motions[which] = _replace_parameter(motions[which], name, key_path.keys[6:], values)
        moved = [
            _final_positions(Compose(tuple(varied[number])), pin.on.points)
            if number in varied
            else self._final_positions[number]
            for number, pin in enumerate(self._base.pins)
        ]
        if not all((np.abs(points) <= MAX_LENGTH).all() for points in moved):
            return None
        try:
            return self._source.dirichlet_conditions.positions(moved, when="in the end")
        except ValueError:
            return None

    def _materials(self, columns: Columns, count: int) -> list[Any] | None:
        """Materials of every term, per sample.

        Returns:
            One entry per sample: a tuple of materials, or None if materials do not vary. None as a whole if a
                value is invalid.
        """
        varied: dict[int | None, tuple[type[Material], dict[str, Any]]] = {}
        for label, group, name, kind, given in self._varied_materials:
            if label in columns:
                known = varied.setdefault(group, (kind, dict(given)))
                known[1][name] = np.reshape(columns[label], count)
        if not varied:
            return [None] * count
        try:
            made = {
                group: _split_material(kind.from_parameters(**given), count)
                for group, (kind, given) in varied.items()
            }
        except ValueError:
            return None
        base = materials_of(self._source.model)
        columns_of = [made.get(number, [own] * count) for number, own in enumerate(base)]
        return list(zip(*columns_of, strict=True))


def _column(label: str, key_path: KeyPath, columns: Columns, count: int) -> np.ndarray:
    """(k, size) values of a quantity; constant quantities repeat the scene value."""
    scene_value = key_path.value
    return np.reshape(
        columns.get(label, np.broadcast_to(scene_value, (count, *np.shape(scene_value)))), (count, -1)
    )


def _final_positions(motion: Any, points: np.ndarray) -> np.ndarray:
    """Final positions of points (p, 3) [m]; (k, p, 3) for a motion stacked over samples."""
    return points if motion is None else np.asarray(motion(points, np.inf))


def _shaped_like(key_path: KeyPath, values: np.ndarray) -> Any:
    return values.tolist() if isinstance(key_path.value, list) else float(values[0])


def _replace_parameter(motion: Any, name: str, component: Sequence[Any], values: np.ndarray) -> Any:
    """Copy of a motion with stacked parameters.

    Args:
        motion: Motion to copy.
        name: Parameter to replace.
        component: Index of a vector component, or empty for the full parameter.
        values: (k, size) values; stored as (k, 1) for an angle and (k, 1, 3) for a vector.
    """
    after = values
    if name not in ("angle", "rate"):
        after = np.array(np.broadcast_to(getattr(motion, name), (len(values), 1, 3)))
        after[..., list(component) or slice(None)] = values[:, None]
    copied_motion = copy(motion)
    object.__setattr__(copied_motion, name, after)
    return copied_motion


def _split_material(material: Material, count: int) -> list[Material]:
    """Split a material with parameters stacked over samples into one material per sample."""

    def column(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return [value] * count
        return value.tolist() if value.ndim == 1 else map(tuple, value.tolist())

    return [type(material)._make(values) for values in zip(*map(column, material), strict=True)]
