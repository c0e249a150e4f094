"""The scene of a data set with other numbers in it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.datasets.files import files_of
from supple.datasets.places import Key, Place, find
from supple.holding import Holding
from supple.meshes import TetMesh
from supple.model import Conditions, Model
from supple.scene import Scene, SceneError, SceneFile, build_model, load_scene
from supple.scene.adding import check_parameters
from supple.scene.build import check_scene, part_of
from supple.scene.checks import vector
from supple.scene.mistakes import Mistakes, describe_in
from supple.scene.motions import Compose
from supple.scene.reader import Reader
from supple.scene.schema import SceneTable, scene_table
from supple.scene.tables.solids import as_grown
from supple.scene.variations import conditions_in

Values = Mapping[str, Any]
"""A number or a list of numbers for each varied quantity, by its label."""


class Source:
    """A scene file, and the same scene for any values of what varies in it. places: for each label, those
    that get its value."""

    def __init__(self, file: SceneFile) -> None:
        self.file = file
        self.text = file.path.read_text(encoding="utf-8")
        self.tables = tomllib.loads(self.text)
        self.table = scene_table().model_validate(self.tables)
        self.places: dict[str, list[Place]] = {}
        self._meshes: dict[Any, Any] = {}

    @classmethod
    def load(cls, path: Path, folder: Path | None = None) -> Source:
        return cls(load_scene(path, folder))

    def place(self, text: str) -> Place:
        return find(self.table, text)

    def vary(self, label: str, paths: Sequence[str]) -> list[Place]:
        self.places[label] = [self.place(text) for text in paths]
        for known in ("_of_bodies", "_of_materials", "_weighs", "_entries", "rebuilds"):
            self.__dict__.pop(known, None)
        return self.places[label]

    @cached_property
    def rebuilds(self) -> bool:
        """Whether samples need models of their own."""
        every = (place for places in self.places.values() for place in places)
        return any(place.rebuilds or _follows(self.table, place) for place in every)

    @cached_property
    def _of_bodies(self) -> list[Key]:
        """The last key of every place that is one of a body."""
        every = (place.keys for places in self.places.values() for place in places)
        return [keys[-1] for keys in every if keys[0] in ("solid", "cloth")]

    @cached_property
    def _of_materials(self) -> bool:
        """Whether parameters of materials vary."""
        return any(key != "density" for key in self._of_bodies)

    @cached_property
    def _weighs(self) -> bool:
        """Whether densities vary, and with them masses."""
        return "density" in self._of_bodies

    @cached_property
    def files(self) -> dict[str, str]:
        """Of each file that decides what the scene is, by the text that names it: the SHA-256."""
        return files_of(self.tables, self.file.folder)

    @cached_property
    def model(self) -> Model:
        """Of the scene as its file has it."""
        return build_model(self.file.scene, quasistatic=True)

    def _with(self, values: Values) -> dict[str, Any]:
        """The tables of the file with these values in them."""
        tables = self.tables
        for name, value in values.items():
            for place in self.places[name]:
                tables = place.put(tables, value)
        return tables

    def scene(self, values: Values, label: str = "") -> Scene:
        """The scene with these values; a SceneError names what is wrong with them."""
        tables = self._with(values)
        mistakes = Mistakes(Path(label or self.file.path.name))
        try:
            table = type(self.table).model_validate(tables)
        except ValidationError as error:
            mistakes.add_invalid(error, describe_in(type(self.table)))
            mistakes.raise_any()
        kept = {key: list(range(len(found))) for key, found in tables.items() if isinstance(found, list)}
        names = [
            str(entry.get("name", f"{kind}{number}"))
            for kind in ("solid", "cloth")
            for number, entry in enumerate(tables.get(kind, []))
        ]
        scene = Reader(table, kept, names, self.file.folder, mistakes, self._meshes).read()
        mistakes.raise_any()
        return scene

    def conditions(self, values: Values) -> Conditions:
        """What these values mean for the model of the scene, where they do not need one of their own."""
        mass = None if self._weighs else self.model.mass
        found = conditions_in(self._changed(values), self._holding, mass)
        if not self._of_materials:
            return replace(found, materials=None)
        own = (type(term.material) for term in self.model.terms if term.material is not None)
        for material, kind in zip(found.materials or (), own, strict=False):
            if type(material) is not kind:
                raise TypeError(f"{type(material).__name__} in place of {kind.__name__}")
        return found

    @cached_property
    def _holding(self) -> Holding:
        return Holding([part_of(pin) for pin in self.file.scene.pins])

    def _changed(self, values: Values) -> Scene:
        """The scene of the file with other entries where these values stand: what makes `scene` slow, which
        reads all of it anew, is the same for all."""
        tables = self._with(values)
        base = self.file.scene
        scene = copy(base)
        scene.bodies, scene.pins, scene.loads = list(base.bodies), list(base.pins), list(base.loads)
        for kind, number in self._entries:
            if kind == "gravity":
                scene.gravity = vector(tables["gravity"], "gravity")
            else:
                self._change(scene, kind, number, tables[kind][number])
        return scene

    @cached_property
    def _entries(self) -> list[tuple[str, int]]:
        """The [[entries]] in which something varies."""
        every = (place.keys for places in self.places.values() for place in places)
        return list(
            dict.fromkeys((str(keys[0]), -1 if keys[0] == "gravity" else int(keys[1])) for keys in every)
        )

    def _change(self, scene: Scene, kind: str, number: int, table: dict[str, Any]) -> None:
        before = getattr(self.table, kind)[number]
        try:
            if kind == "pin":
                moves = [
                    self._valid(own, table["motion"][k], kind, number, "motion", k).make()
                    for k, own in enumerate(before.motion)
                ]
                scene.pins[number] = replace(scene.pins[number], motion=Compose(tuple(moves)))
            elif kind in ("solid", "cloth"):
                place = number if kind == "solid" else len(self.table.solid) + number
                made_of = "material" if kind == "solid" else "membrane"
                body = scene.bodies[place]
                own = getattr(before, made_of)
                if made_of in table:
                    own = self._valid(own, table[made_of], kind, number, made_of)
                material = own.make(body.mesh)
                if isinstance(body.mesh, TetMesh):
                    material = as_grown(material, before.swelling, before.rest_shape, body.mesh)
                check_parameters(material, body.mesh)
                weighs = self._weighs and "density" in table
                density = self._valid(before, table, kind, number).density if weighs else body.density
                scene.bodies[place] = replace(body, material=material, density=density)
            else:
                entry = self._valid(before, table, kind, number)
                place = number if kind == "force" else _place_of_traction(self.table, number)
                load = scene.loads[place]
                alone = copy(self.file.scene)
                alone.loads = []
                add = alone.add_force if kind == "force" else alone.add_traction
                add(load.on, getattr(entry, kind), load.ramp)
                scene.loads[place] = alone.loads[0]
        except SceneError:
            raise
        except ValueError as error:
            raise SceneError(f"{kind}[{number}]: {error}") from None

    def _valid(self, before: Any, table: dict[str, Any], *where: Key) -> Any:
        """A table of the scene with other values, as valid as it was before; only what varies is looked at,
        since there are many samples."""
        try:
            return type(before).model_validate(table)
        except ValidationError as error:
            mistakes = Mistakes(Path(self.file.path.name))
            mistakes.add_invalid(error, describe_in(type(before)), where)
            mistakes.raise_any()

    def own_model(self, values: Values) -> Model:
        """The model of the scene with these values, of as many vertices as that of the file."""
        model = build_model(self.scene(values), quasistatic=True)
        if model.vertices != self.model.vertices or not np.array_equal(model.cells, self.model.cells):
            raise SceneError(
                f"The scene has {model.vertices:,} vertices with these values and {self.model.vertices:,} "
                "without; all samples of a set must have the same mesh but for where its vertices are."
            )
        return model

    def check(self, values: Values) -> None:
        """Refuse values with which the scene has no solution, or another mesh."""
        scene = self.scene(values)
        check_scene(scene, quasistatic=True)
        if self.rebuilds:
            self.own_model(values)


def _follows(table: SceneTable, place: Place) -> bool:
    """Whether it is one of a traction that turns with its surface, which is a term of the model and no force
    of its conditions."""
    return place.keys[0] == "traction" and table.traction[int(place.keys[1])].following


def _place_of_traction(table: SceneTable, number: int) -> int:
    """Which of the loads of the scene it is: forces are first, then those on bodies, then tractions that do
    not turn."""
    before = sum(not entry.following for entry in table.traction[:number])
    return len(table.force) + len(table.body_force) + before
