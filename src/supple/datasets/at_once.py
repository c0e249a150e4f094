"""What many samples mean for the model of a scene, by arrays rather than a scene for each: forces are linear
in values, motions and materials are made of the values of all samples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import LARGEST, LONGEST, SMALLEST
from supple.datasets.places import Place
from supple.materials import Material, evolving
from supple.model import Conditions
from supple.problem.materials import materials_of
from supple.scene.build import elastic_groups
from supple.scene.motions import Compose

if TYPE_CHECKING:
    from supple.datasets.source import Source

Columns = Mapping[str, np.ndarray]
"""(k,) or (k, size) values of each varied quantity, by its label."""

FORCES = {"gravity", "force", "body_force", "traction"}
"""Tables whose values external forces are linear in."""

OF_MOTIONS = {
    "translate": {"offset"}, "rotate": {"angle", "centre"}, "twist": {"angle", "centre"},
    "scale": {"factor", "centre"},
}  # fmt: skip
"""Numbers of motions that `Motion` takes as arrays, too."""


class AtOnce:
    """Conditions of many samples of a source. able: whether all that varies is of a kind that it knows."""

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
        """Of the samples that have these values; None where one of them is out of bounds, and who makes it by
        itself will say how."""
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
        """What a place changes; nothing where that is not known of many at once."""
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
        """Whether it is a number of a material that one term has to itself, the same for all its elements."""
        kind, number, *inner = place.keys
        if len(inner) != 3 or place.size != 1 or self._base.varied:
            return False
        _, of, given = self._material(place)
        uniform = all(isinstance(value, float | list) for value in given.values())
        entry = getattr(self._source.table, str(kind))[number]
        plain = getattr(entry, "swelling", None) is None and getattr(entry, "rest_shape", None) is None
        return uniform and plain and not evolving(of) and self._group(place) is not None

    def _material(self, place: Place) -> tuple[str, type[Material], dict[str, Any]]:
        """The name of the number that stands at a place, the class of its material, and what the file has."""
        kind, number, made_of, _, name = place.keys
        table = getattr(getattr(self._source.table, str(kind))[number], str(made_of)).chosen[1]
        return str(name), table.kind, table.given()

    def _group(self, place: Place) -> int | None:
        """Which of the elastic terms is that of the body alone."""
        kind, number = str(place.keys[0]), int(place.keys[1])
        body = self._base.bodies[number if kind == "solid" else len(self._source.table.solid) + number]
        groups = elastic_groups(self._base.bodies)
        return next((k for k, group in enumerate(groups) if group == [body]), None)

    def _responses(self) -> tuple[np.ndarray, np.ndarray]:
        """External forces (n, 3) [N] where all that they are linear in is 0, and (d, 3 n) what they gain with
        each number that varies."""
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
        """(k, n, 3) [N], or (n, 3) where they are the same for all. Summed without BLAS, whose bits may
        depend on its threads."""
        places = dict(self._of["force"])
        if not places:
            return self._zero
        values = [_column(label, place, columns, count) for label, place in places.items()]
        force = np.einsum("kd,dn->kn", np.concatenate(values, axis=1), self._unit)
        force += self._zero.ravel()
        return force.reshape(count, *self._zero.shape)

    def _pinned(self, columns: Columns) -> np.ndarray | None:
        """(k, p, 3) [m], or (p, 3) where nothing moves them apart; None where a value is no value for it."""
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
        """A tuple of one for each term that has one, of every sample, or None for those of the model; None
        where a value is no value for it."""
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
    """(k, size) values; what the file has where none are given."""
    now = place.now
    return np.reshape(columns.get(label, np.broadcast_to(now, (count, *np.shape(now)))), (count, -1))


def _moved(motion: Any, points: np.ndarray) -> np.ndarray:
    """Where points (p, 3) [m] are in the end; (k, p, 3) of motions of several samples."""
    return points if motion is None else np.asarray(motion(points, np.inf))


def _like(place: Place, values: np.ndarray) -> Any:
    return values.tolist() if isinstance(place.now, list) else float(values[0])


def _with(motion: Any, name: str, component: Sequence[Any], values: np.ndarray) -> Any:
    """A motion with other numbers (k, size) for each sample: (k, 1) of an angle, and (k, 1, 3) of a vector,
    be it for one component of it."""
    after = values
    if name != "angle":
        after = np.array(np.broadcast_to(getattr(motion, name), (len(values), 1, 3)))
        after[..., list(component) or slice(None)] = values[:, None]
    found = copy(motion)
    object.__setattr__(found, name, after)
    return found


def _made(kind: type[Material], given: dict[str, Any]) -> Material:
    declared = {p.name for p in kind.parameters}
    return kind(**given) if given.keys() <= declared else kind.of_stored(**given)


def _each(material: Material, count: int) -> list[Material]:
    """Of a material with an entry for every sample: those of each."""

    def column(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return [value] * count
        return value.tolist() if value.ndim == 1 else map(tuple, value.tolist())

    return [type(material)._make(values) for values in zip(*map(column, material), strict=True)]
