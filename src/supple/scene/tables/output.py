"""Tables of pictures and output files: [view] and [output]."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from supple.scene.tables.table import Number, Table

Angles = tuple[float, float]
"""Azimuth and elevation [degrees] of the camera: (0, 0) looks along -z, (90, 0) along -x; y is up."""

CAMERAS: dict[str, Angles] = {
    "corner": (32.0, 20.0),
    "front": (0.0, 4.0),
    "side": (90.0, 4.0),
    "back": (180.0, 4.0),
    "top": (0.0, 89.0),
}


def _angles_of(camera: Any) -> Any:
    """Replace camera names by angles; other values stay unchanged."""
    if not isinstance(camera, str):
        return camera
    if camera not in CAMERAS:
        raise ValueError(
            f"must be one of {', '.join(CAMERAS)}, or azimuth and elevation such as [45, 30]; got {camera!r}"
        )
    return list(CAMERAS[camera])


def _or_name(schema: dict[str, Any]) -> None:
    """Extend the JSON schema of camera angles by the names of cameras."""
    angles = {key: schema.pop(key) for key in ("items", "maxItems", "minItems", "type")}
    schema["anyOf"] = [{"enum": list(CAMERAS)}, angles]


class View(Table):
    """Display settings of pictures and films."""

    field: StrictStr = Field(
        default="displacement", description="Field for the colors of surfaces, see `supple list fields`."
    )
    camera: Annotated[list[Number], Field(min_length=2, max_length=2), BeforeValidator(_angles_of)] = Field(
        default=list(CAMERAS["corner"]),
        description=f"Azimuth and elevation of the camera [degrees], [0, 0] looks along -z; or "
        f"{', '.join(CAMERAS)}.",
        json_schema_extra=_or_name,
    )
    thickness: Annotated[Number, Field(ge=0, le=1000)] = Field(
        default=0.0, description="Factor on the drawn thickness of cloth, 0 for an infinitely thin surface."
    )
    names: StrictBool = Field(default=False, description="Label bodies with their names.")


class Output(Table):
    """Quantities in frame files, in addition to positions."""

    fields: list[StrictStr] = Field(
        default=[],
        description="Fields written with every frame, see `supple list quantities`, e.g. ['von_mises'].",
    )
