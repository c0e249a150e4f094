"""Scene of a data set with varied values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.datasets.at_once import AtOnce
from supple.datasets.changing import Changing
from supple.datasets.fields import field_place, is_field, meshes_with
from supple.datasets.files import files_of
from supple.datasets.places import Key, Place, find
from supple.holding import Holding
from supple.model import Conditions, Model
from supple.problem.materials import materials_of
from supple.scene import Scene, SceneError, SceneFile, build_model, load_scene
from supple.scene.build import check_scene, part_of
from supple.scene.contact import contact_of
from supple.scene.mistakes import Mistakes, describe_in
from supple.scene.reader import Reader
from supple.scene.schema import scene_table
from supple.scene.variations import conditions_in

Values = Mapping[str, Any]
"""Number or list of numbers of each varied quantity, by label."""


class Source:
    """Scene file with replaceable values.

    Attributes:
        file: The scene file.
        text: Text of the file.
        tables: Parsed TOML tables.
        table: Validated tables.
        places: Scene paths that receive the value of each label.
        meshes: Meshes by their tables.
    """

    def __init__(self, file: SceneFile) -> None:
        self.file = file
        self.text = file.path.read_text(encoding="utf-8")
        self.tables = tomllib.loads(self.text)
        self.table = scene_table().model_validate(self.tables)
        self.places: dict[str, list[Place]] = {}
        self.meshes: dict[Any, Any] = {}

    @classmethod
    def load(cls, path: Path, folder: Path | None = None) -> Source:
        return cls(load_scene(path, folder))

    def place(self, text: str) -> Place:
        return field_place(self, text) or find(self.table, text)

    def vary(self, label: str, paths: Sequence[str]) -> list[Place]:
        self.places[label] = [self.place(text) for text in paths]
        for known in ("_of_bodies", "_of_materials", "weighs", "entries", "_at_once", "rebuilds"):
            self.__dict__.pop(known, None)
        return self.places[label]

    @cached_property
    def rebuilds(self) -> bool:
        """True if samples need their own models."""
        every = (place for places in self.places.values() for place in places)
        return any(map(self.needs_model, every))

    def needs_model(self, place: Place) -> bool:
        """True if a value at this path requires a new model. Follower tractions are terms of the model."""
        turns = place.keys[0] == "traction" and self.table.traction[int(place.keys[1])].following
        return place.rebuilds or turns

    @cached_property
    def _of_bodies(self) -> list[Key]:
        """Last key of every varied path within a body."""
        every = (place.keys for places in self.places.values() for place in places)
        return [keys[-1] for keys in every if keys[0] in ("solid", "cloth")]

    @cached_property
    def _of_materials(self) -> bool:
        """True if material parameters vary."""
        return any(key != "density" for key in self._of_bodies)

    @cached_property
    def weighs(self) -> bool:
        """True if densities, and therefore masses, vary."""
        return "density" in self._of_bodies

    @cached_property
    def files(self) -> dict[str, str]:
        """SHA-256 checksums of files that determine the scene, by scene value."""
        return files_of(self.tables, self.file.folder)

    @cached_property
    def model(self) -> Model:
        """Model built from the unmodified scene file."""
        return build_model(self.file.scene, quasistatic=True)

    def tables_with(self, values: Values) -> dict[str, Any]:
        """Scene tables with the given values."""
        tables = self.tables
        for name, value in values.items():
            for place in self.places[name]:
                tables = tables if is_field(place) else place.put(tables, value)
        return tables

    def scene(self, values: Values, label: str = "") -> Scene:
        """Scene with the given values.

        Raises:
            SceneError: The values are invalid.
        """
        tables = self.tables_with(values)
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
        folder = self.file.folder
        varied = any(is_field(place) for name in values for place in self.places[name])
        meshes = meshes_with(self, values, table, folder) if varied else self.meshes
        scene = Reader(table, kept, names, folder, mistakes, meshes).read()
        mistakes.raise_any()
        return scene

    def conditions_of(self, every: Sequence[Values]) -> Sequence[Conditions | SceneError]:
        """Conditions or error for each set of values; requires a shared model."""
        if self._at_once.able:
            columns = {label: np.array([values[label] for values in every]) for label in every[0]}
            found = self._at_once.conditions(columns)
            if found is not None:
                return list(found)
        return [_attempt(self, values) for values in every]

    @cached_property
    def _at_once(self) -> AtOnce:
        return AtOnce(self)

    def conditions(self, values: Values) -> Conditions:
        """Conditions of the shared model for the given values."""
        mass = None if self.weighs else self.model.mass
        found = conditions_in(Changing(self).scene(values), self.holding, mass)
        if not self._of_materials:
            return replace(found, materials=None)
        own = materials_of(self.model)
        of_bodies = found.materials or ()
        for material, kind in zip(of_bodies, map(type, own), strict=False):
            if type(material) is not kind:
                raise TypeError(f"{type(material).__name__} in place of {kind.__name__}")
        return replace(found, materials=(*of_bodies, *own[len(of_bodies) :]))

    @cached_property
    def holding(self) -> Holding:
        return Holding([part_of(pin) for pin in self.file.scene.pins])

    @cached_property
    def entries(self) -> list[tuple[str, int]]:
        """Tables and indices of the scene entries that contain varied values."""
        every = (place.keys for places in self.places.values() for place in places)
        return list(
            dict.fromkeys((str(keys[0]), -1 if keys[0] == "gravity" else int(keys[1])) for keys in every)
        )

    def own_model(self, values: Values) -> Model:
        """Build a separate model for given values.

        Raises:
            SceneError: The mesh has other vertices or cells than the mesh of the scene file.
        """
        model = build_model(self.scene(values), quasistatic=True)
        if model.vertices != self.model.vertices or not np.array_equal(model.cells, self.model.cells):
            raise SceneError(
                f"The scene has {model.vertices:,} vertices with these values and {self.model.vertices:,} "
                "without; all samples of a set must have the same mesh but for where its vertices are."
            )
        return model

    def check(self, values: Values) -> None:
        """Check that values give a solvable scene with the same mesh.

        Raises:
            SceneError: They do not.
        """
        scene = self.scene(values)
        check_scene(scene, quasistatic=True)
        if self.rebuilds:
            self.own_model(values)


def _attempt(source: Source, values: Values) -> Conditions | SceneError:
    try:
        return source.conditions(values)
    except SceneError as error:
        return error


def rubs(source: Source) -> bool:
    """True if the scene has friction or friction varies.

    Sticking contacts make the solution depend on the initial positions.
    """
    scene, every = source.file.scene, (place for places in source.places.values() for place in places)
    contact = contact_of(scene.contact)
    return (
        bool(contact.friction or contact.pairs)
        or any(obstacle.friction for obstacle in scene.obstacles)
        or any({"friction", "kinetic"} & {str(key) for key in place.keys} for place in every)
    )
