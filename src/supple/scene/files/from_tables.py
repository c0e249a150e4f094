"""Scene construction from valid file tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from supple.meshes import TriMesh
from supple.scene.bodies import Body, VertexSet
from supple.scene.constraints import motions
from supple.scene.constraints.motions import Compose
from supple.scene.error_collector import Mistakes
from supple.scene.files.scene_table import SceneTable
from supple.scene.loads import ramps
from supple.scene.regions import resolve_regions
from supple.scene.scene import Scene
from supple.scene.tables.bodies import Cloth, Solid
from supple.scene.tables.constraints import Attach, Pin, Spring, Target
from supple.scene.tables.contact import Obstacle
from supple.scene.tables.loads import (
    BodyForce,
    Cable,
    Cavity,
    Force,
    Pressure,
    Traction,
    Vary,
    Wind,
)
from supple.scene.tables.motions import Motion, Ramp
from supple.scene.tables.table import Table
from supple.scene.value_checks import comma_list, vector

EntryNumbers = dict[str, list[int]]
"""Original numbers in the file of the valid [[entries]] of each table."""


OF_OBSTACLES = {"friction", "kinetic_friction", "name", "mass", "velocity", "angular_velocity"}
"""Options of obstacles in addition to shape and motion."""


class Reader:
    """Builds a scene from tables; impossible values become errors of their field.

    Args:
        table: Valid tables of the file.
        entry_numbers: Original numbers of the entries in `table`.
        names: Names of all bodies in the file, valid or not. Invalid bodies are None in `bodies`, and entries
            that refer to them are skipped silently.
        folder: Folder that paths in the file are relative to.
        mistakes: Collection of the errors.
        meshes: Cache of meshes by table, for scenes that are read many times.
    """

    def __init__(
        self,
        table: SceneTable,
        entry_numbers: EntryNumbers,
        names: list[str],
        folder: Path,
        mistakes: Mistakes,
        meshes: dict[Any, Any] | None = None,
    ) -> None:
        contact = None if table.contact is None else mistakes.attempt("contact", table.contact.make)
        self.table, self.entry_numbers, self.folder, self.mistakes = table, entry_numbers, folder, mistakes
        self.meshes = meshes
        self.bodies: dict[str, Body | None] = dict.fromkeys(names)
        self.scene = Scene(
            vector(table.gravity, "gravity"),
            table.quasistatic,
            table.dt,
            table.frames,
            table.substeps,
            table.damping,
            self._ramp("gravity_ramp", table.gravity_ramp),
            contact or "none",
            table.integrator,
            table.initial_guess,
        )
        self._refuse_idle("substeps", "damping", "integrator", "initial_guess")

    def read(self) -> Scene:
        """Build the scene; errors are added to `mistakes`."""
        for number, field, entry in self._entries("solid"):
            self._solid(number, field, entry)
        for number, field, entry in self._entries("cloth"):
            self._cloth(number, field, entry)
        for _, field, entry in self._entries("pin"):
            self._pin(field, entry)
        for _, field, entry in self._entries("force"):
            self._load(field, entry, self.scene.add_force, entry.force)
        for _, field, entry in self._entries("body_force"):
            force = entry.field if entry.force is None else entry.force
            self._part(field, entry, self.scene.add_body_force, force)
        for _, field, entry in self._entries("traction"):
            self._load(field, entry, self.scene.add_traction, entry.traction, following=entry.following)
        for _, field, entry in self._entries("pressure"):
            self._load(field, entry, self.scene.add_pressure, entry.pressure)
        for _, field, entry in self._entries("cavity"):
            options = entry.model_dump(include={"sealed", "ambient", "exponent"})
            self._load(field, entry, self.scene.add_cavity, entry.pressure, **options)
        for _, field, entry in self._entries("cable"):
            self._cable(field, entry)
        for _, field, entry in self._entries("wind"):
            self._wind(field, entry)
        for _, field, entry in self._entries("attach"):
            self._attach(field, entry)
        for _, field, entry in self._entries("obstacle"):
            self._obstacle(field, entry)
        for _, field, entry in self._entries("spring"):
            self._spring(field, entry)
        for _, field, entry in self._entries("vary"):
            self._part(field, entry, self.scene.vary, entry.parameter)
        return self.scene

    def _entries(self, key: str) -> Iterator[tuple[int, str, Any]]:
        for number, entry in zip(self.entry_numbers.get(key, []), getattr(self.table, key), strict=True):
            yield number, f"{key}[{number}]", entry

    def _solid(self, number: int, field: str, solid: Solid) -> None:
        name = f"solid{number}" if solid.name is None else solid.name
        mesh = self.mistakes.attempt(f"{field}.mesh", lambda: _make(solid.mesh, self.folder, self.meshes))
        material = self.mistakes.attempt(f"{field}.material", lambda: solid.make_material(mesh))
        render = self._render(field, solid)
        moving: dict[str, Any] = solid.model_dump(include={"velocity", "angular_velocity"})
        self._refuse_idle(*moving, table=solid, field=field)
        if mesh is not None and material is not None:
            regions = self.mistakes.attempt(
                f"{field}.region", lambda: resolve_regions([r.make(mesh) for r in solid.region], mesh, name)
            )
            viscosity = [
                self.mistakes.attempt(f"{field}.viscosity[{i}]", each.make)
                for i, each in enumerate(solid.viscosity)
            ]
            if regions is None or None in viscosity:
                return
            moving |= {"regions": regions, "viscosity": viscosity}
            self.bodies[name] = self.mistakes.attempt(
                f"{field}.name",
                lambda: self.scene.add_solid(mesh, material, solid.mass_density, name, render, **moving),
            )

    def _cloth(self, number: int, field: str, cloth: Cloth) -> None:
        attempt = self.mistakes.attempt
        name = f"cloth{number}" if cloth.name is None else cloth.name
        mesh = attempt(f"{field}.mesh", lambda: _make(cloth.mesh, self.folder, self.meshes))
        what = "membrane" if cloth.fabric is None else "fabric"
        membrane = attempt(f"{field}.{what}", lambda: cloth.make_membrane(self.folder, mesh))
        bending, rest = cloth.bending, cloth.rest
        options = cloth.model_dump(include={"density", "thickness", "velocity", "angular_velocity"})
        self._refuse_idle("velocity", "angular_velocity", table=cloth, field=field)
        options["render"] = self._render(field, cloth)
        before = len(self.mistakes.lines)
        if bending is not None:
            options["bending"] = attempt(f"{field}.bending", lambda: bending.make(cloth.thickness))
        if rest is not None and mesh is not None:
            options["rest"] = attempt(f"{field}.rest", lambda: rest.make(self.folder, mesh))
        if mesh is not None:
            options["regions"] = attempt(
                f"{field}.region", lambda: resolve_regions([r.make(mesh) for r in cloth.region], mesh, name)
            )
        if mesh is not None and membrane is not None and len(self.mistakes.lines) == before:
            self.bodies[name] = attempt(
                field, lambda: self.scene.add_cloth(mesh, membrane, name=name, **options)
            )

    def _render(self, field: str, solid: Solid | Cloth) -> TriMesh | None:
        if (render := solid.render) is None:
            return None
        return self.mistakes.attempt(f"{field}.render", lambda: render.make(self.folder, solid.mesh))

    def _pin(self, field: str, pin: Pin) -> None:
        vertices = self._vertices(field, pin)
        motions = self._motions(field, pin.motion)
        if vertices is not None and motions is not None:
            motion = Compose(motions) if motions else None
            self.mistakes.attempt(field, lambda: self.scene.pin(vertices, motion, name=pin.name, **pin.holds))

    def _motions(self, field: str, tables: list[Motion]) -> tuple[motions.Motion, ...] | None:
        """Build a list of motions; None if any motion is invalid."""
        attempts = [
            self.mistakes.attempt(f"{field}.motion[{i}]", table.make) for i, table in enumerate(tables)
        ]
        made = tuple(motion for motion in attempts if motion is not None)
        return made if len(made) == len(tables) else None

    def _obstacle(self, field: str, entry: Obstacle) -> None:
        shape = self.mistakes.attempt(f"{field}.shape", lambda: entry.shape.make(self.folder))
        motions = self._motions(field, entry.motion)
        if shape is not None and motions is not None:
            motion = Compose(motions) if motions else None
            self.mistakes.attempt(
                field,
                lambda: self.scene.add_obstacle(shape, motion, **entry.model_dump(include=OF_OBSTACLES)),
            )

    def _wind(self, field: str, entry: Wind) -> None:
        chosen = [self._body(field, name, "bodies") for name in entry.bodies]
        bodies = [body for body in chosen if body is not None]
        ramp = self._ramp(f"{field}.ramp", entry.ramp)
        options = entry.model_dump(include={"drag", "lift", "density"})
        if len(bodies) == len(chosen) and self.scene.bodies:
            velocity = vector(entry.velocity, "velocity")
            self.mistakes.attempt(field, lambda: self.scene.add_wind(velocity, *bodies, ramp=ramp, **options))

    def _cable(self, field: str, entry: Cable) -> None:
        vertices, ramp = self._vertices(field, entry), self._ramp(f"{field}.ramp", entry.ramp)
        options = entry.model_dump(include={"tension", "length", "stiffness"})
        if vertices is not None:
            self.mistakes.attempt(
                field, lambda: self.scene.add_cable(vertices, entry.points, ramp=ramp, **options)
            )

    def _load(
        self,
        field: str,
        entry: Force | Traction | Pressure | Cavity,
        add: Callable[..., None],
        value: Any,
        **options: Any,
    ) -> None:
        vertices, ramp = self._vertices(field, entry), self._ramp(f"{field}.ramp", entry.ramp)
        if vertices is not None:
            self.mistakes.attempt(field, lambda: add(vertices, value, ramp, **options))

    def _ramp(self, field: str, ramp: Ramp | None) -> ramps.Ramp | None:
        return None if ramp is None else self.mistakes.attempt(field, ramp.make)

    def _refuse_idle(self, *names: str, table: Table | None = None, field: str = "") -> None:
        """Report options of dynamic scenes in a quasistatic scene."""
        table = table or self.table
        for name in names if self.table.quasistatic else ():
            if name in table.model_fields_set:
                self.mistakes.add(
                    f"{field}.{name}".lstrip("."),
                    "has no effect in a quasistatic scene; remove it, or add quasistatic = false.",
                )

    def _attach(self, field: str, entry: Attach) -> None:
        a: Any = self._vertices(field, entry)
        if entry.at is not None and a is not None:
            if entry.where is not None:
                self.mistakes.add(
                    f"{field}.where", "selects vertices, but at gives points between them; keep one."
                )
                return
            a = a.body
        b: Any = None
        if entry.to is not None:
            b = entry.to.points
            b = self._target(f"{field}.to", entry.to) if b is None else b
        if a is None or (b is None and entry.to is not None):
            return
        options = entry.model_dump(exclude={"solid", "cloth", "where", "to"})
        self.mistakes.attempt(field, lambda: self.scene.attach(a, b, **options))

    def _spring(self, field: str, entry: Spring) -> None:
        a = self._vertices(field, entry)
        b: Any = entry.to.points
        if b is None:
            b = self._vertices(f"{field}.to", entry.to)
        if a is not None and b is not None:
            options = entry.model_dump(include={"stiffness", "rest_length"})
            self.mistakes.attempt(field, lambda: self.scene.add_springs(a, b, **options))

    def _part(self, field: str, entry: BodyForce | Vary, add: Callable[..., None], value: Any) -> None:
        """Add a load or variation on a body or region."""
        body, ramp = self._body(field, entry.body, entry.key), self._ramp(f"{field}.ramp", entry.ramp)
        if body is None or (ramp is None and entry.ramp is not None):
            return
        region = entry.region
        self.mistakes.attempt(
            field, lambda: add(body if region is None else body.region(region), value, ramp)
        )

    def _target(self, field: str, to: Target) -> VertexSet | Body | None:
        if to.where is None:
            return self._body(field, to.body, to.key)
        return self._vertices(field, to)

    def _vertices(self, field: str, entry: Any) -> VertexSet | None:
        """Return vertices selected by body name and `where`."""
        body, where = self._body(field, entry.body, entry.key), entry.where
        if body is None:
            return None
        if where is None:
            return body.all
        return self.mistakes.attempt(f"{field}.where", lambda: body.where(where.selection()))

    def _body(self, field: str, name: str | None, key: str) -> Body | None:
        """Return a named body, or the only body; `key` is the naming key in error messages."""
        if name is None and len(self.bodies) == 1:
            (name,) = self.bodies
        if name is None:
            self.mistakes.add(f"{field}.{key}", f"is missing. Name one of {comma_list(self.bodies)}.")
            return None
        if name not in self.bodies:
            known, what = comma_list(self.bodies) or "none", "body" if key == "bodies" else key
            self.mistakes.add(f"{field}.{key}", f"there is no {what} {name!r}; the scene has {known}.")
        return self.bodies.get(name)


def _make(mesh: Any, folder: Any, known: dict[str, Any] | None) -> Any:
    """Build the mesh of a table; equal tables share a cached mesh."""
    if known is None:
        return mesh.make(folder)
    key = mesh.model_dump_json()
    if key not in known:
        known[key] = mesh.make(folder)
    return known[key]
