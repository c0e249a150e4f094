"""Tables of materials in scene files, generated from the parameters that material classes declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictStr,
    create_model,
    model_validator,
)
from pydantic_core import core_schema

from supple.materials import Material, Parameter
from supple.materials.moduli import MODULI, spellings
from supple.materials.preset_library import PRESETS
from supple.meshes import Mesh, fibers_between
from supple.scene.selections import SIDES
from supple.scene.tables.selections import Where
from supple.scene.tables.table import Choice, Number, Table, Vector
from supple.support.arguments import MIN_MAGNITUDE, match_name, suggest_name


class FromField(Table):
    """Mesh field that replaces a value."""

    field: StrictStr = Field(description="Name of mesh data with one value per cell or vertex.")


class OrSide:
    """Pydantic annotation that accepts side names as vertex selections."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def as_table(value: Any) -> Any:
            return {"side": value} if isinstance(value, str) else value

        return core_schema.no_info_before_validator_function(as_table, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(SIDES), "type": "string"}, handler(schema)]}


class Between(Table):
    """Direction field between two faces of a body, solved for inside."""

    between: Annotated[list[Annotated[Where, OrSide()]], Field(min_length=2, max_length=2)] = Field(
        description="Origin and insertion of the fibers: sides such as x- and x+, or any selection as for a "
        "pin, e.g. { box = ... }."
    )

    def directions(self, mesh: Any, name: str) -> Any:
        """Solve for directions (m, 3) of a named parameter."""
        ends = [end.selection() for end in self.between]
        for number, end in enumerate(ends):
            if not (np.any(end(mesh.points)) if callable(end) else len(end)):
                raise ValueError(
                    f"{name}.between[{number}] selects no vertex of the mesh; move or enlarge it."
                )
        return fibers_between(mesh, *ends)


class OrField:
    """Pydantic annotation that additionally accepts mesh fields, `{ field = "name" }`.

    If `solved` is set, a direction may also be `{ between = ["x-", "x+"] }`.
    """

    table = FromField

    def __init__(self, solved: bool = False) -> None:
        self.solved = solved

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def validate(value: Any, inner: Callable[[Any], Any]) -> Any:
            if not isinstance(value, dict):
                return inner(value)
            kind = Between if self.solved and "between" in value else FromField
            return kind.model_validate(value)

        return core_schema.no_info_wrap_validator_function(validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        tables = (FromField, Between) if self.solved else (FromField,)
        return {"anyOf": [handler(schema), *(handler(table.__pydantic_core_schema__) for table in tables)]}


Row = Annotated[list[Number], Field(min_length=3, max_length=3)]
MATERIAL_CLASSES: dict[str, Any] = {
    "direction": Vector,
    "tensor": Annotated[list[Row], Field(min_length=3, max_length=3)],
    "symmetric": Annotated[list[Row], Field(min_length=3, max_length=3)],
}
"""Types of non-scalar parameters in scene files."""


def _annotation(parameter: Parameter) -> Any:
    if parameter.kind != "scalar":
        return Annotated[MATERIAL_CLASSES[parameter.kind], OrField(parameter.kind == "direction")]
    bounds = {"gt": parameter.above, "ge": parameter.at_least, "lt": parameter.below, "le": parameter.at_most}
    if parameter.above == 0:
        bounds |= {"gt": None, "ge": MIN_MAGNITUDE}
    given: Any = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[Number, Field(**given) if given else Field(), OrField()]


Alternatives = list[tuple[set[str], list[str]]]
"""Accepted sets of parameters, each as (required names, all names)."""


def _alternatives(kind: type[Material]) -> Alternatives:
    """Sets of keys that determine a material: parameters, by alias or pair of moduli, too; or stored ones."""
    optional = [p.name for p in kind.parameters if p.default is not None]
    ways: Alternatives = [(set(names), [*names, *optional]) for names in spellings(kind)]
    stored = {p.name for p in kind.stored if p.default is None}
    if stored not in [required for required, _ in ways]:
        ways.append((stored, [p.name for p in kind.stored]))
    return ways


def _omitted_aliases(required: set[str]) -> set[str]:
    """Aliases that messages leave out: of a shear modulus, μ is named beside λ only."""
    return {"E", "nu", "kappa", "shear_modulus" if "lam" in required else "mu"}


class Parameters(Table):
    """Material parameters, either declared or stored ones."""

    kind: ClassVar[type[Material]]

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given, alternatives = self.model_fields_set, _alternatives(self.kind)
        if not any(required <= given <= set(known) for required, known in alternatives):
            declared = {p.name for p in self.kind.parameters}
            texts = [
                " and ".join(name for name in known if name in required)
                for required, known in alternatives
                if not required & (_omitted_aliases(required) - declared)
            ]
            expected = f"either {', or '.join(texts)}" if len(texts) > 1 else texts[0]
            raise ValueError(f"must have {expected}; it has {', '.join(sorted(given)) or 'none of them'}.")
        return self

    def make(self, mesh: Mesh | None) -> Material | None:
        """Build the material; None if required mesh data could not be read."""
        given = self.given()
        if mesh is None and any(isinstance(value, FromField | Between) for value in given.values()):
            return None
        values = {name: _on(mesh, value, name) for name, value in given.items()}
        return self.kind.from_parameters(**values)


def _on(mesh: Any, value: Any, name: str) -> Any:
    """Evaluate a parameter on a mesh: read fields, solve for directions."""
    if isinstance(value, FromField):
        return mesh.field(value.field)
    if isinstance(value, Between):
        return value.directions(mesh, name)
    return value


def _as_floats(value: Any) -> Any:
    """Convert integers to floats, including nested lists; other values stay unchanged."""
    if isinstance(value, list | tuple):
        return [_as_floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class PresetTable(Table):
    """Preset material by name; further keys override parameters, such as fiber directions."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Any, OrField(solved=True)]]

    name: Literal[tuple(PRESETS)] = Field(description="Name of a preset, see `supple list presets`.")  # type: ignore[valid-type]

    @property
    def density(self) -> float:
        return PRESETS[self.name].density

    @property
    def kind(self) -> type[Material]:
        return PRESETS[self.name].kind

    def given(self) -> dict[str, Any]:
        """Return all parameters with float values.

        Values in the file take precedence over those of the preset, and these over the defaults of the
        material.
        """
        settings = {p.name: p.default for p in self.kind.parameters if p.default is not None}
        settings |= PRESETS[self.name].parameters | (self.model_extra or {})
        return {name: _as_floats(value) for name, value in settings.items()}

    @model_validator(mode="after")
    def _known_parameters(self) -> Self:
        names = [p.name for p in self.kind.parameters]
        for name in self.model_extra or {}:
            if name not in names:
                raise ValueError(
                    f"{self.name} is a {self.kind.__name__} without {name}; {suggest_name(name, names)}"
                )
        return self

    def make(self, mesh: Mesh | None) -> Material | None:
        changes = self.model_extra or {}
        if mesh is None and any(isinstance(value, Table) for value in changes.values()):
            return None
        return PRESETS[self.name].material(
            **{name: _on(mesh, value, name) for name, value in changes.items()}
        )


class MaterialChoice(Choice):
    """Material: energy density and parameters."""

    foreign_names: ClassVar[dict[str, str]] = {"measured": "preset", "holzapfel": "holzapfel_gasser_ogden"}

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        """Find materials whatever the case of their names."""
        if not isinstance(given, dict):
            return given
        return {match_name(str(name), cls.model_fields) or name: value for name, value in given.items()}

    def make(self, mesh: Mesh | None) -> Material | None:
        return self.chosen[1].make(mesh)

    @property
    def density(self) -> float | None:
        """Mass density [kg/m³] of a preset, None for other materials."""
        return getattr(self.chosen[1], "density", None)


def material_choice(
    materials: Iterable[tuple[str, type[Material]]], name: str = "Material"
) -> type[MaterialChoice]:
    """Return a table with one key per material; new materials need no change here."""
    keys: Any = {
        name: (_table(kind) | None, Field(None, description=(kind.__doc__ or name).strip().split("\n")[0]))
        for name, kind in materials
    }
    if name == "Material":
        text = 'Preset: material with published parameters, e.g. { name = "ecoflex_0030" }.'
        keys["preset"] = (PresetTable | None, Field(None, description=text))
    return create_model(name, __base__=MaterialChoice, __doc__=MaterialChoice.__doc__, **keys)


def _table(kind: type[Material]) -> Any:
    declared = (*MODULI, *kind.stored, *kind.parameters)
    names = {alias: p for p in declared for alias in p.aliases} | {p.name: p for p in declared}
    keys: Any = {
        name: (
            _annotation(names[name]) | None,
            Field(None, description=_describe_parameter(name, names[name])),
        )
        for _, known in _alternatives(kind)
        for name in known
    }
    required: list[Any] = [
        {"required": [n for n in known if n in must]} for must, known in _alternatives(kind)
    ]
    extra = {"oneOf": required} if len(required) > 1 else required[0]
    base = type(
        "Base",
        (Parameters,),
        {
            "kind": kind,
            "__module__": __name__,
            "foreign_names": _foreign_names(kind),
            "model_config": ConfigDict(json_schema_extra=extra),
        },
    )
    summary = f"Parameters of {kind.__name__}."
    return create_model(f"{kind.__name__}Parameters", __base__=base, __doc__=summary, **keys)


def _foreign_names(kind: type[Material]) -> dict[str, str]:
    """Earlier and other names of parameters, for messages."""
    renamed = {"shear": "shear_modulus", "bulk": "bulk_modulus", "weft": "young_weft", "warp": "young_warp"}
    renamed = {old: new for old, new in renamed.items() if new in {p.name for p in kind.parameters}}
    return renamed


def _describe_parameter(name: str, parameter: Parameter) -> str:
    if name != parameter.name:
        return f"Another name of {parameter.name}."
    default = "" if parameter.default is None else f" {parameter.default} unless given."
    return f"{parameter.description}{default}"
