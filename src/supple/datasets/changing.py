"""Scene with some entries replaced by sampled values."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from supple.datasets.places import Key
from supple.meshes import TetMesh
from supple.scene import Scene, SceneError
from supple.scene.adding import check_parameters
from supple.scene.checks import vector
from supple.scene.loads import Load
from supple.scene.mistakes import Mistakes, describe_in
from supple.scene.motions import Compose
from supple.scene.schema import SceneTable
from supple.scene.tables.solids import as_grown

if TYPE_CHECKING:
    from supple.datasets.source import Source, Values


class Changing:
    """Replace scene entries for values that do not require a new model."""

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
                place = number if kind == "solid" else len(self._source.table.solid) + number
                made_of = "material" if kind == "solid" else "membrane"
                body = scene.bodies[place]
                own = getattr(before, made_of)
                if made_of in table:
                    own = self._valid(own, table[made_of], kind, number, made_of)
                material = own.make(body.mesh)
                if isinstance(body.mesh, TetMesh):
                    material = as_grown(material, before.swelling, before.rest_shape, body.mesh)
                check_parameters(material, body.mesh)
                weighs = self._source.weighs and "density" in table
                density = self._valid(before, table, kind, number).density if weighs else body.density
                scene.bodies[place] = replace(body, material=material, density=density)
            else:
                place = _place_of_load(self._source.table, kind, number)
                entry = self._valid(before, table, kind, number)
                scene.loads[place] = self._load(kind, entry, scene.loads[place])
        except SceneError:
            raise
        except ValueError as error:
            raise SceneError(f"{kind}[{number}]: {error}") from None

    def _load(self, kind: str, entry: Any, before: Load) -> Load:
        """Create a load from a new entry, keeping selection and ramp of the previous one."""
        alone = copy(self._source.file.scene)
        alone.loads = []
        if kind == "body_force":
            body = before.on.body
            part = body if entry.region is None else body.region(entry.region)
            alone.add_body_force(part, entry.force, before.ramp)
        else:
            add = alone.add_force if kind == "force" else alone.add_traction
            add(before.on, getattr(entry, kind), before.ramp)
        return alone.loads[0]

    def _valid(self, before: Any, table: dict[str, Any], *where: Key) -> Any:
        """Validate a scene table with sampled values. Only the varied entry is checked, for speed."""
        try:
            return type(before).model_validate(table)
        except ValidationError as error:
            mistakes = Mistakes(Path(self._source.file.path.name))
            mistakes.add_invalid(error, describe_in(type(before)), where)
            mistakes.raise_any()


def _place_of_load(table: SceneTable, kind: str, number: int) -> int:
    """Index of a load entry in the scene's load list.

    Forces come first, then body forces, then tractions that are not follower loads.
    """
    if kind != "traction":
        return number + (len(table.force) if kind == "body_force" else 0)
    before = sum(not entry.following for entry in table.traction[:number])
    return len(table.force) + len(table.body_force) + before
