"""Tables of what is shown and written: [view] and [output]."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from supple.scene.tables.base import Number, Table


class View(Table):
    """How pictures and films show the scene."""

    field: StrictStr = Field(default="displacement", description="What surfaces are coloured by.")
    camera: Annotated[list[Number], Field(min_length=2, max_length=2)] = Field(
        default=[32.0, 20.0],
        description="Azimuth and elevation of the camera [degrees]; [0, 0] looks along -z.",
    )
    thickness: Annotated[Number, Field(ge=0, le=1000)] = Field(
        default=0.0, description="How many times as thick as it is cloth is drawn, 0 for not at all."
    )
    names: StrictBool = Field(default=False, description="Whether names of bodies stand below them.")


class Output(Table):
    """What the files of frames have beside positions."""

    fields: list[StrictStr] = Field(
        default=[], description="Of `supple list quantities`, e.g. ['von_mises', 'cauchy']."
    )
