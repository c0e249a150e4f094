"""Scene of a data set, with entries and mesh fields replaced by sampled values.

Mesh fields are named `solid.NAME.field.FIELD` and have one number per cell.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from supple.datasets.spec.key_path import Key, KeyPath, resolve_key_path
from supple.datasets.spec.vectorized_conditions import VectorizedConditions
from supple.datasets.store.scene_files import files_of
from supple.meshes import TetMesh
from supple.model.dirichlet import DirichletConditions
from supple.model.model import Conditions, Model
from supple.problem.material_update import materials_of
from supple.scene import Scene, SceneError, SceneFile, build_model, load_scene
from supple.scene.body_validation import check_parameters
from supple.scene.build import check_scene, part_of
from supple.scene.constraints.motions import Compose
from supple.scene.contact_settings import contact_of
from supple.scene.error_collector import Mistakes, describe_in
from supple.scene.files.from_tables import Reader
from supple.scene.files.scene_table import SceneTable, scene_table
from supple.scene.loads.forces import Load
from supple.scene.tables.solids import as_prestrained
from supple.scene.value_checks import vector
from supple.scene.variations import conditions_in
from supple.support.arguments import suggest_name


class EntryReplacement:
    """Replacement of scene entries by sampled values that do not require a new model."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def scene(self, values: Values) -> Scene:
        """Scene with the given values.

        Only the affected entries are parsed again, which is faster than rebuilding the full scene.
        """
        tables = self._source.tables_with(values)
        base = self._source.file.scene
        scene = copy(base)
        scene.bodies, scene.pins, scene.loads = list(base.bodies), list(base.pins), list(base.loads)
        for kind, number in self._source.entries:
            if kind == "gravity":
                scene.gravity = vector(tables["gravity"], "gravity")
            else:
                self._change(scene, kind, number, tables[kind][number])
        return scene

    def _change(self, scene: Scene, kind: str, number: int, table: dict[str, Any]) -> None:
        before = getattr(self._source.table, kind)[number]
        try:
            if kind == "pin":
                moves = [
                    self._valid(own, table["motion"][k], kind, number, "motion", k).make()
                    for k, own in enumerate(before.motion)
                ]
                scene.pins[number] = replace(scene.pins[number], motion=Compose(tuple(moves)))
            elif kind in ("solid", "cloth"):
                index = number if kind == "solid" else len(self._source.table.solid) + number
                made_of = "material" if kind == "solid" else "membrane"
                body = scene.bodies[index]
                own = getattr(before, made_of)
                if made_of in table:
                    own = self._valid(own, table[made_of], kind, number, made_of)
                material = own.make(body.mesh)
                if isinstance(body.mesh, TetMesh):
                    material = as_prestrained(material, before.swelling, before.rest_deformation, body.mesh)
                check_parameters(material, body.mesh)
                varies_density = self._source.varies_density and "density" in table
                density = self._valid(before, table, kind, number).density if varies_density else body.density
                scene.bodies[index] = replace(body, material=material, density=density)
            else:
                index = _load_index(self._source.table, kind, number)
                entry = self._valid(before, table, kind, number)
                scene.loads[index] = self._load(kind, entry, scene.loads[index])
        except SceneError:
            raise
        except ValueError as error:
            raise SceneError(f"{kind}[{number}]: {error}") from None

    def _load(self, kind: str, entry: Any, before: Load) -> Load:
        """Create a load from a new entry, keeping selection and ramp of the previous one."""
        scratch_scene = copy(self._source.file.scene)
        scratch_scene.loads = []
        if kind == "body_force":
            body = before.on.body
            part = body if entry.region is None else body.region(entry.region)
            scratch_scene.add_body_force(part, entry.force, before.ramp)
        else:
            add = scratch_scene.add_force if kind == "force" else scratch_scene.add_traction
            add(before.on, getattr(entry, kind), before.ramp)
        return scratch_scene.loads[0]

    def _valid(self, before: Any, table: dict[str, Any], *where: Key) -> Any:
        """Validate a scene table with sampled values. Only the varied entry is checked, for speed."""
        try:
            return type(before).model_validate(table)
        except ValidationError as error:
            mistakes = Mistakes(Path(self._source.file.path.name))
            mistakes.add_invalid(error, describe_in(type(before)), where)
            mistakes.raise_any()


def _load_index(table: SceneTable, kind: str, number: int) -> int:
    """Index of a load entry in the scene's load list.

    Forces come first, then body forces, then tractions that are not follower loads.
    """
    if kind != "traction":
        return number + (len(table.force) if kind == "body_force" else 0)
    before = sum(not entry.following for entry in table.traction[:number])
    return len(table.force) + len(table.body_force) + before


FIELD_KEY = "field"


def field_key_path(source: Source, text: str) -> KeyPath | None:
    """Parse the scene path of a mesh field; None for other paths.

    Raises:
        ValueError: The scene has no such body or field; the message names the closest match.
    """
    match = re.fullmatch(r"(solid|cloth)[.\[]([^.\[\]]+)\]?\.field\.(.+)", text)
    if match is None:
        return None
    kind, name, field = match.groups()
    entries: Sequence[Any] = getattr(source.table, kind)
    names = [entry.name or f"{kind}{number}" for number, entry in enumerate(entries)]
    number = int(name) if name.isdigit() and int(name) < len(names) else None
    if number is None and name not in names:
        raise ValueError(f"the scene has no {kind} {name!r}; {suggest_name(name, names)}")
    number = names.index(name) if number is None else number
    mesh = source.file.scene.bodies[number + (len(source.table.solid) if kind == "cloth" else 0)].mesh
    return KeyPath(text, (kind, number, FIELD_KEY, field), mesh.field(field).ravel().tolist())


def is_field(key_path: KeyPath) -> bool:
    return len(key_path.keys) == 4 and key_path.keys[2] == FIELD_KEY


def meshes_with(source: Source, values: Values, table: SceneTable, folder: Path) -> dict[Any, Any]:
    """Meshes by their tables, with varied fields replaced by sampled values.

    Bodies that share a mesh share its fields.
    """
    known = source.meshes
    meshes = dict(known)
    for key_path, value in _fields(source, values):
        mesh = getattr(table, str(key_path.keys[0]))[key_path.keys[1]].mesh
        key, name = mesh.model_dump_json(), str(key_path.keys[3])
        if key not in meshes:
            meshes[key] = known[key] = mesh.make(folder)
        shape = meshes[key].field(name).shape
        meshes[key] = meshes[key].with_data({name: np.reshape(value, shape)})
    return meshes


def _fields(source: Source, values: Values) -> Iterator[tuple[KeyPath, Any]]:
    for label, value in values.items():
        for key_path in source.key_paths[label]:
            if is_field(key_path):
                yield key_path, value


Values = Mapping[str, Any]
"""Number or list of numbers of each varied quantity, by label."""


class Source:
    """Scene file with replaceable values.

    Attributes:
        file: The scene file.
        text: Text of the file.
        tables: Parsed TOML tables.
        table: Validated tables.
        key_paths: Scene paths that receive the value of each label.
        meshes: Meshes by their tables.
    """

    def __init__(self, file: SceneFile) -> None:
        self.file = file
        self.text = file.path.read_text(encoding="utf-8")
        self.tables = tomllib.loads(self.text)
        self.table = scene_table().model_validate(self.tables)
        self.key_paths: dict[str, list[KeyPath]] = {}
        self.meshes: dict[Any, Any] = {}

    @classmethod
    def load(cls, path: Path, folder: Path | None = None) -> Source:
        return cls(load_scene(path, folder))

    def key_path(self, text: str) -> KeyPath:
        return field_key_path(self, text) or resolve_key_path(self.table, text)

    def vary(self, label: str, paths: Sequence[str]) -> list[KeyPath]:
        self.key_paths[label] = [self.key_path(text) for text in paths]
        for known in (
            "_body_keys",
            "_varies_materials",
            "varies_density",
            "entries",
            "_vectorized",
            "rebuilds",
        ):
            self.__dict__.pop(known, None)
        return self.key_paths[label]

    @cached_property
    def rebuilds(self) -> bool:
        """True if samples need their own models."""
        every = (key_path for key_paths in self.key_paths.values() for key_path in key_paths)
        return any(map(self.needs_model, every))

    def needs_model(self, key_path: KeyPath) -> bool:
        """True if a value at this path requires a new model. Follower tractions are terms of the model."""
        turns = key_path.keys[0] == "traction" and self.table.traction[int(key_path.keys[1])].following
        return key_path.rebuilds or turns

    @cached_property
    def _body_keys(self) -> list[Key]:
        """Last key of every varied path within a body."""
        every = (key_path.keys for key_paths in self.key_paths.values() for key_path in key_paths)
        return [keys[-1] for keys in every if keys[0] in ("solid", "cloth")]

    @cached_property
    def _varies_materials(self) -> bool:
        """True if material parameters vary."""
        return any(key != "density" for key in self._body_keys)

    @cached_property
    def varies_density(self) -> bool:
        """True if densities, and therefore masses, vary."""
        return "density" in self._body_keys

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
            for key_path in self.key_paths[name]:
                tables = tables if is_field(key_path) else key_path.with_value(tables, value)
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
        entry_indices = {
            key: list(range(len(entries))) for key, entries in tables.items() if isinstance(entries, list)
        }
        names = [
            str(entry.get("name", f"{kind}{number}"))
            for kind in ("solid", "cloth")
            for number, entry in enumerate(tables.get(kind, []))
        ]
        folder = self.file.folder
        varied = any(is_field(key_path) for name in values for key_path in self.key_paths[name])
        meshes = meshes_with(self, values, table, folder) if varied else self.meshes
        scene = Reader(table, entry_indices, names, folder, mistakes, meshes).read()
        mistakes.raise_any()
        return scene

    def conditions_of(self, every: Sequence[Values]) -> Sequence[Conditions | SceneError]:
        """Conditions or error for each set of values; requires a shared model."""
        if self._vectorized.is_supported:
            columns = {label: np.array([values[label] for values in every]) for label in every[0]}
            conditions = self._vectorized.conditions(columns)
            if conditions is not None:
                return list(conditions)
        return [_conditions_or_error(self, values) for values in every]

    @cached_property
    def _vectorized(self) -> VectorizedConditions:
        return VectorizedConditions(self)

    def conditions(self, values: Values) -> Conditions:
        """Conditions of the shared model for the given values."""
        mass = None if self.varies_density else self.model.mass
        conditions = conditions_in(EntryReplacement(self).scene(values), self.dirichlet_conditions, mass)
        if not self._varies_materials:
            return replace(conditions, materials=None)
        own = materials_of(self.model)
        body_materials = conditions.materials or ()
        for material, kind in zip(body_materials, map(type, own), strict=False):
            if type(material) is not kind:
                raise TypeError(f"expected {kind.__name__}, got {type(material).__name__}")
        return replace(conditions, materials=(*body_materials, *own[len(body_materials) :]))

    @cached_property
    def dirichlet_conditions(self) -> DirichletConditions:
        return DirichletConditions([part_of(pin) for pin in self.file.scene.pins])

    @cached_property
    def entries(self) -> list[tuple[str, int]]:
        """Tables and indices of the scene entries that contain varied values."""
        every = (key_path.keys for key_paths in self.key_paths.values() for key_path in key_paths)
        return list(
            dict.fromkeys((str(keys[0]), -1 if keys[0] == "gravity" else int(keys[1])) for keys in every)
        )

    def make_model(self, values: Values) -> Model:
        """Build a separate model for given values.

        Raises:
            SceneError: The mesh has other vertices or cells than the mesh of the scene file.
        """
        model = build_model(self.scene(values), quasistatic=True)
        if model.vertices != self.model.vertices or not np.array_equal(model.cells, self.model.cells):
            raise SceneError(
                f"The scene has {model.vertices:,} vertices with these values and "
                f"{self.model.vertices:,} without; all samples must share the mesh, apart from "
                "vertex positions."
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
            self.make_model(values)


def _conditions_or_error(source: Source, values: Values) -> Conditions | SceneError:
    try:
        return source.conditions(values)
    except SceneError as error:
        return error


def has_friction(source: Source) -> bool:
    """True if the scene has friction or friction varies.

    Sticking contacts make the solution depend on the initial positions.
    """
    scene, every = (
        source.file.scene,
        (key_path for key_paths in source.key_paths.values() for key_path in key_paths),
    )
    contact = contact_of(scene.contact)
    return (
        bool(contact.friction or contact.friction_pairs)
        or any(obstacle.friction for obstacle in scene.obstacles)
        or any({"friction", "kinetic_friction"} & {str(key) for key in key_path.keys} for key_path in every)
    )
