"""Vectorized boundary conditions, loads and materials of many samples of one scene.

External forces are linear in their values and are combined from unit responses. Motions and materials are
constructed once from the stacked values of all samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.datasets.spec.key_path import Place
from supple.materials import Material, evolving
from supple.model.model import Conditions
from supple.problem.material_update import materials_of
from supple.scene.build import elastic_groups
from supple.scene.constraints.motions import Compose
from supple.support.arguments import LARGEST, LONGEST, SMALLEST

if TYPE_CHECKING:
    from supple.datasets.spec.parametric_scene import Source

Columns = Mapping[str, np.ndarray]
"""(k,) or (k, size) values of each varied quantity, by label."""

FORCES = {"gravity", "force", "body_force", "traction"}
"""Scene tables on whose values external forces depend linearly."""

OF_MOTIONS = {
    "translate": {"offset"}, "rotate": {"angle", "center"}, "twist": {"rate", "center"},
    "scale": {"factor", "center"},
}  # fmt: skip
"""Motion parameters for which `Motion` also accepts arrays."""


class AtOnce:
    """Vectorized evaluation of sample conditions.

    Attributes:
        able: True if every varied quantity is of a supported kind.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._base = source, source.file.scene
        self._of: dict[str, list[tuple[str, Place]]] = {"force": [], "pin": [], "material": [], "": []}
        kinds = {label: {self._kind(place) for place in places} for label, places in source.places.items()}
        for label, places in source.places.items():
            for kind in kinds[label]:
                self._of[kind] += [(label, place) for place in places]
        self.able = not self._of[""] and all(len(kind) == 1 for kind in kinds.values())
        if self.able:
            self._zero, self._unit = self._responses()
            self._moved = [_moved(pin.motion, pin.on.points) for pin in self._base.pins]
            self._made_of = [(label, self._group(p), *self._material(p)) for label, p in self._of["material"]]

    def conditions(self, columns: Columns) -> list[Conditions] | None:
        """Evaluate conditions for many sets of values.

        Returns:
            One entry per sample; None if any value is out of bounds, so that the caller evaluates samples one
            by one and reports the error.
        """
        count = len(next(iter(columns.values())))
        if not all((np.abs(values) <= LARGEST).all() for values in columns.values()):
            return None
        pinned, materials = self._pinned(columns), self._materials(columns, count)
        if pinned is None or materials is None:
            return None
        forces, pins = (
            values if values.ndim == 3 else [values] * count
            for values in (self._forces(columns, count), pinned)
        )
        each = zip(pins, forces, materials, strict=True)
        return [Conditions(at, force, own, None, np.inf) for at, force, own in each]

    def _kind(self, place: Place) -> str:
        """Kind of quantity at a scene path: "force", "pin", "material", or "" if not supported."""
        table, *inner = place.keys
        if self._source.needs_model(place):
            return ""
        if table in FORCES:
            return "force"
        if table == "pin":
            _, _, _, kind, name, *_ = inner
            return "pin" if name in OF_MOTIONS.get(str(kind), ()) else ""
        return "material" if table in ("solid", "cloth") and self._is_of_one_material(place) else ""

    def _is_of_one_material(self, place: Place) -> bool:
        """True for scalar parameters of uniform materials used by a single term."""
        kind, number, *inner = place.keys
        if len(inner) != 3 or place.size != 1 or self._base.varied:
            return False
        _, of, given = self._material(place)
        uniform = all(isinstance(value, float | list) for value in given.values())
        entry = getattr(self._source.table, str(kind))[number]
        plain = getattr(entry, "swelling", None) is None and getattr(entry, "rest_deformation", None) is None
        return uniform and plain and not evolving(of) and self._group(place) is not None

    def _material(self, place: Place) -> tuple[str, type[Material], dict[str, Any]]:
        """Parameter name at a scene path, its material class and the parameters in the scene file."""
        kind, number, made_of, _, name = place.keys
        table = getattr(getattr(self._source.table, str(kind))[number], str(made_of)).chosen[1]
        return str(name), table.kind, table.given()

    def _group(self, place: Place) -> int | None:
        """Index of the elastic term exclusive to a scene path's body; None if bodies share terms."""
        kind, number = str(place.keys[0]), int(place.keys[1])
        body = self._base.bodies[number if kind == "solid" else len(self._source.table.solid) + number]
        groups = elastic_groups(self._base.bodies)
        return next((k for k, group in enumerate(groups) if group == [body]), None)

    def _responses(self) -> tuple[np.ndarray, np.ndarray]:
        """External forces (n, 3) [N] at zero values, and unit responses (d, 3 n) of each component."""
        places = dict(self._of["force"])
        nothing = {label: _like(place, np.zeros(place.size)) for label, place in places.items()}
        zero = self._source.conditions(nothing).force
        rows = [
            self._source.conditions(nothing | {label: _like(place, unit)}).force - zero
            for label, place in places.items()
            for unit in np.eye(place.size)
        ]
        return zero, np.array(rows).reshape(len(rows), zero.size)

    def _forces(self, columns: Columns, count: int) -> np.ndarray:
        """External forces (k, n, 3) [N], or (n, 3) if they do not vary.

        Summed without BLAS, whose rounding may depend on the number of threads.
        """
        places = dict(self._of["force"])
        if not places:
            return self._zero
        values = [_column(label, place, columns, count) for label, place in places.items()]
        force = np.einsum("kd,dn->kn", np.concatenate(values, axis=1), self._unit)
        force += self._zero.ravel()
        return force.reshape(count, *self._zero.shape)

    def _pinned(self, columns: Columns) -> np.ndarray | None:
        """Prescribed positions (k, p, 3) [m], or (p, 3) if they do not vary; None for an invalid value."""
        varied: dict[int, list[Any]] = {}
        for label, place in self._of["pin"]:
            if label in columns:
                number, which, name = int(place.keys[1]), int(place.keys[3]), str(place.keys[5])
                values = np.reshape(columns[label], (len(columns[label]), -1))
                if name == "factor" and not (values >= SMALLEST).all():
                    return None
                motions = varied.setdefault(number, list(self._base.pins[number].motion.motions))  # type: ignore[union-attr]
                motions[which] = _with(motions[which], name, place.keys[6:], values)
        moved = [
            _moved(Compose(tuple(varied[number])), pin.on.points) if number in varied else self._moved[number]
            for number, pin in enumerate(self._base.pins)
        ]
        if not all((np.abs(points) <= LONGEST).all() for points in moved):
            return None
        try:
            return self._source.holding.positions(moved, when="in the end")
        except ValueError:
            return None

    def _materials(self, columns: Columns, count: int) -> list[Any] | None:
        """Materials of every term, per sample.

        Returns:
            One entry per sample: a tuple of materials, or None if materials do not vary. None as a whole if a
                value is invalid.
        """
        varied: dict[int | None, tuple[type[Material], dict[str, Any]]] = {}
        for label, group, name, kind, given in self._made_of:
            if label in columns:
                known = varied.setdefault(group, (kind, dict(given)))
                known[1][name] = np.reshape(columns[label], count)
        if not varied:
            return [None] * count
        try:
            made = {group: _each(_made(*of), count) for group, of in varied.items()}
        except ValueError:
            return None
        base = materials_of(self._source.model)
        columns_of = [made.get(number, [own] * count) for number, own in enumerate(base)]
        return list(zip(*columns_of, strict=True))


def _column(label: str, place: Place, columns: Columns, count: int) -> np.ndarray:
    """(k, size) values of a quantity; constant quantities repeat the scene value."""
    now = place.now
    return np.reshape(columns.get(label, np.broadcast_to(now, (count, *np.shape(now)))), (count, -1))


def _moved(motion: Any, points: np.ndarray) -> np.ndarray:
    """Final positions of points (p, 3) [m]; (k, p, 3) for a motion stacked over samples."""
    return points if motion is None else np.asarray(motion(points, np.inf))


def _like(place: Place, values: np.ndarray) -> Any:
    return values.tolist() if isinstance(place.now, list) else float(values[0])


def _with(motion: Any, name: str, component: Sequence[Any], values: np.ndarray) -> Any:
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
    found = copy(motion)
    object.__setattr__(found, name, after)
    return found


def _made(kind: type[Material], given: dict[str, Any]) -> Material:
    declared = {p.name for p in kind.parameters}
    return kind(**given) if given.keys() <= declared else kind.of_stored(**given)


def _each(material: Material, count: int) -> list[Material]:
    """Split a material with parameters stacked over samples into one material per sample."""

    def column(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return [value] * count
        return value.tolist() if value.ndim == 1 else map(tuple, value.tolist())

    return [type(material)._make(values) for values in zip(*map(column, material), strict=True)]
