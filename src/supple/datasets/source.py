"""The scene of a data set with other numbers in it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.datasets.places import Place, find
from supple.model import Conditions, Model
from supple.scene import Scene, SceneError, SceneFile, build_model, load_scene
from supple.scene.build import check_scene
from supple.scene.mistakes import Mistakes, describe_in
from supple.scene.reader import Reader
from supple.scene.schema import scene_table
from supple.scene.variations import conditions_in

Values = Mapping[str, Any]
"""A number or a list of numbers for each varied quantity, by its label."""

LISTS = (
    "solid",
    "cloth",
    "pin",
    "force",
    "traction",
    "pressure",
    "wind",
    "attach",
    "obstacle",
    "spring",
    "vary",
)


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
        return self.places[label]

    @property
    def rebuilds(self) -> bool:
        """Whether samples need models of their own."""
        return any(place.rebuilds for places in self.places.values() for place in places)

    @property
    def of_materials(self) -> bool:
        """Whether parameters of materials vary."""
        every = (place for places in self.places.values() for place in places)
        return any(place.keys[0] in ("solid", "cloth") and place.keys[-1] != "density" for place in every)

    @cached_property
    def model(self) -> Model:
        """Of the scene as its file has it."""
        return build_model(self.file.scene, quasistatic=True)

    def scene(self, values: Values, label: str = "") -> Scene:
        """The scene with these values; a SceneError names what is wrong with them."""
        tables = self.tables
        for name, value in values.items():
            for place in self.places[name]:
                tables = place.put(tables, value)
        mistakes = Mistakes(Path(label or self.file.path.name))
        try:
            table = type(self.table).model_validate(tables)
        except ValidationError as error:
            mistakes.add_invalid(error, describe_in(type(self.table)))
            mistakes.raise_any()
        kept = {key: list(range(len(tables.get(key, [])))) for key in LISTS}
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
        found = conditions_in(self.scene(values))
        if not self.of_materials:
            found = Conditions(found.pinned, found.force, None, None, found.time)
        return found

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
