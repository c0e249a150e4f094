"""Tables of a spec. Field names, defaults and descriptions define the file format."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, StrictStr, model_validator

from supple.config.backend import PRECISIONS
from supple.kernels.devices import DEVICES
from supple.scene.schema.base import Count, Index, Number, Table
from supple.support.arguments import MAX_MAGNITUDE, format_value, to_floats

DESIGNS = ("grid", "random", "latin_hypercube", "sobol", "table", "function")
DESCRIPTIVE_KEYS = ("title", "description", "licence", "scene", "table", "function")
"""Spec keys that are names or paths and do not affect sample values."""

Part = Annotated[Number, Field(gt=0, lt=1)]
Share = Annotated[Number, Field(ge=0, le=1)]


def _finite(value: Any) -> Any:
    numbers = to_floats(value)
    if numbers.ndim > 1 or not (np.abs(numbers) <= MAX_MAGNITUDE).all():
        raise ValueError(
            f"must be a finite number up to {MAX_MAGNITUDE:g}, or a list of them for a vector; got "
            f"{format_value(value)}."
        )
    return value


Value = Annotated[Number | list[Number], BeforeValidator(_finite)]
Values = Annotated[list[Value], Field(min_length=1)]


class VaryTable(Table):
    """Varied quantity: scene path and range or values."""

    path: StrictStr | Annotated[list[StrictStr], Field(min_length=1)] = Field(
        description="Where it stands in the scene, e.g. 'gravity.y' or 'solid.bar.material.young'; a "
        "list for "
        "several places that all get the same value."
    )
    name: StrictStr | None = Field(None, description="What it is called in the store; its path unless given.")
    range: Annotated[list[Value], Field(min_length=2, max_length=2)] | None = Field(
        None, description="The lowest and the highest value, e.g. [1e4, 1e6]; lists of numbers for a vector."
    )
    scale: Literal["linear", "log"] = Field(
        "linear", description="How values lie in the range: evenly, or evenly in their logarithm."
    )
    values: Values | None = Field(None, description="The values that it may have, in place of a range.")
    steps: Count | None = Field(
        None, description="For a grid: how many values the range gives, both ends among them."
    )

    @property
    def paths(self) -> list[str]:
        return [self.path] if isinstance(self.path, str) else list(self.path)

    @property
    def label(self) -> str:
        return self.paths[0] if self.name is None else self.name

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.range is not None and self.values is not None:
            raise ValueError("has both a range and values; give one of them.")
        if self.values is not None and ({"scale", "steps"} & self.model_fields_set):
            raise ValueError("has values, and scale and steps are for a range; remove them.")
        if self.range is not None:
            low, high = (v if isinstance(v, list) else [v] for v in self.range)
            if len(low) != len(high):
                raise ValueError(f"has a range from {len(low)} numbers to {len(high)}; both need as many.")
            if any(a > b for a, b in zip(low, high, strict=True)):
                raise ValueError(
                    f"has a range that goes down, from {self.range[0]} to {self.range[1]}; the lowest "
                    f"is first."
                )
            if self.scale == "log" and min(low) <= 0:
                raise ValueError(
                    f"has a logarithmic range that begins at {self.range[0]}; it must begin above 0."
                )
        return self


class SolveTable(Table):
    """Solver settings; unset values come from the scene file."""

    tolerance: Part | None = Field(None, description="The relative residual of forces to reach, e.g. 1e-4.")
    position_tolerance: Part | Literal[False] | None = Field(
        None,
        description="How close to the equilibrium every body must be, of its size; false where the "
        "relative residual "
        "is all that counts and distances are not computed.",
    )
    max_iterations: Count | None = Field(None, description="Iterations of a solve at most.")
    time_limit: Annotated[Number, Field(gt=0)] | None = Field(None, description="Seconds of a solve at most.")
    device: Literal[DEVICES] = Field("cpu", description="Where to compute: cpu or cuda.")  # type: ignore[valid-type]
    precision: Literal[PRECISIONS] = Field("float64", description="Of the solves: float32 or float64.")  # type: ignore[valid-type]
    start: Literal["neighbor", "predicted", "cold"] = Field(
        "predicted",
        description="Where a solve begins: at the sample before it, which is near; at what the samples "
        "before "
        "it in its shard predict; or at the scene's own start.",
    )
    check: Share = Field(
        0.01,
        description="The part of all samples that is also solved from the scene's own start, to compare "
        "energies.",
    )


class StoreTable(Table):
    """Stored quantities and storage format."""

    quantities: Annotated[list[StrictStr], Field(min_length=1)] = Field(
        ["positions"],
        description="positions, displacements, body_energies, reactions, contact_force, or any of "
        "`supple list quantities`.",
    )
    precision: Literal["float16", "float32", "float64"] = Field("float32", description="Of what is stored.")
    shard: Count | None = Field(
        None,
        description="Samples in a shard, which one worker solves and writes as a whole; unless given 64, 256 "
        "in sets of 10,000 and more, and 1024 on a CUDA device.",
    )


class SplitTable(Table):
    """Fractions of training, validation and test samples; samples keep their split when the set grows."""

    train: Share = Field(0.8, description="The part for training.")
    valid: Share = Field(0.1, description="The part for validation.")
    test: Share = Field(0.1, description="The part for tests.")

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        total = self.train + self.valid + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"adds up to {total:g}; train, valid and test must add up to 1.")
        return self


class SpecTable(Table):
    """Data set of equilibria: scene, varied quantities, design, number of samples and stored quantities."""

    others_call: ClassVar[dict[str, str]] = {
        "samples": "count",
        "size": "count",
        "license": "licence",
        "sampling": "design",
    }

    title: StrictStr = Field("", description="What the set shows; the scene's title unless given.")
    description: StrictStr = Field("", description="For the data card.")
    licence: StrictStr = Field("", description="Under which the set is published, e.g. 'CC-BY-4.0'.")
    scene: StrictStr = Field(description="The scene file, relative to this one.")
    count: Count | None = Field(None, description="How many samples; a grid or a table has its own number.")
    seed: Index = Field(0, description="Of everything that is random.")
    design: Literal[DESIGNS] = Field("sobol", description=f"One of {', '.join(DESIGNS)}.")  # type: ignore[valid-type]
    table: StrictStr | None = Field(
        None, description="For design = 'table': a CSV, NPZ or Parquet file with a column for each quantity."
    )
    function: StrictStr | None = Field(
        None,
        description="For design = 'function': 'module:name', called with the count and a NumPy generator.",
    )
    vary: Annotated[list[VaryTable], Field(min_length=1)] = Field(
        description="What varies, each under [[vary]] with its path."
    )
    solve: SolveTable = Field(
        default_factory=lambda: SolveTable.model_validate({}), description="How to solve, under [solve]."
    )
    store: StoreTable = Field(
        default_factory=lambda: StoreTable.model_validate({}), description="What to store, under [store]."
    )
    splits: SplitTable = Field(
        default_factory=lambda: SplitTable.model_validate({}), description="Parts, under [splits]."
    )
