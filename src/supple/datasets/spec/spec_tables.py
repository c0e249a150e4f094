"""Tables of a spec. Field names, defaults and descriptions define the file format."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, StrictStr, model_validator

from supple.config.backend import PRECISIONS
from supple.kernels.devices import DEVICES
from supple.scene.tables.table import Count, Index, Number, Table
from supple.support.arguments import MAX_MAGNITUDE, format_value, to_floats

DESIGNS = ("grid", "random", "latin_hypercube", "sobol", "table", "function")
DESCRIPTIVE_KEYS = ("title", "description", "license", "scene", "table", "function")
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
        description="Path of a number in the scene, e.g. 'gravity.y' or 'solid.bar.material.young'; or a "
        "list of paths that get the same value."
    )
    name: StrictStr | None = Field(None, description="Name in the store; the path by default.")
    range: Annotated[list[Value], Field(min_length=2, max_length=2)] | None = Field(
        None, description="Lowest and highest value, e.g. [1e4, 1e6]; lists of numbers for a vector."
    )
    scale: Literal["linear", "log"] = Field(
        "linear", description="Distribution in the range: uniform, or uniform in the logarithm."
    )
    values: Values | None = Field(None, description="List of values instead of a range.")
    steps: Count | None = Field(
        None, description="For a grid: number of values in the range, including both ends."
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
            raise ValueError("has both a range and values; keep one of them.")
        if self.values is not None and ({"scale", "steps"} & self.model_fields_set):
            raise ValueError("has values, but scale and steps are only for a range; remove them.")
        if self.range is not None:
            low, high = (v if isinstance(v, list) else [v] for v in self.range)
            if len(low) != len(high):
                raise ValueError(
                    f"has a range with {len(low)} lower and {len(high)} upper bounds; both need the same "
                    "length."
                )
            if any(a > b for a, b in zip(low, high, strict=True)):
                raise ValueError(
                    f"has a range that decreases, from {self.range[0]} to {self.range[1]}; put the "
                    "lower bound first."
                )
            if self.scale == "log" and min(low) <= 0:
                raise ValueError(
                    f"has a logarithmic range that begins at {self.range[0]}; it must begin above 0."
                )
        return self


class SolveTable(Table):
    """Solver settings; unset values come from the scene file."""

    tolerance: Part | None = Field(None, description="Tolerance of the relative residual, e.g. 1e-4.")
    position_tolerance: Part | Literal[False] | None = Field(
        None,
        description="Largest distance of a body from its equilibrium, relative to its size; false disables "
        "the error estimate.",
    )
    max_iterations: Count | None = Field(None, description="Largest number of iterations of a solve.")
    time_limit: Annotated[Number, Field(gt=0)] | None = Field(None, description="Time limit of a solve [s].")
    device: Literal[DEVICES] = Field("cpu", description="Device: cpu or cuda.")  # type: ignore[valid-type]
    precision: Literal[PRECISIONS] = Field(  # type: ignore[valid-type]
        "float64", description="Precision of the solves: float32 or float64."
    )
    initial: Literal["neighbor", "predicted", "cold"] = Field(
        "predicted",
        description="Initial positions of a solve: those of the nearest earlier sample of its shard, a "
        "prediction from earlier samples, or the initial positions of the scene (cold).",
    )
    check: Share = Field(
        0.01,
        description="Fraction of the samples that are also solved from the scene's initial positions, to "
        "compare energies.",
    )


class StoreTable(Table):
    """Stored quantities and storage format."""

    quantities: Annotated[list[StrictStr], Field(min_length=1)] = Field(
        ["positions"],
        description="positions, displacements, body_energies, reactions, contact_force, or any of "
        "`supple list quantities`.",
    )
    precision: Literal["float16", "float32", "float64"] = Field(
        "float32", description="Precision of stored arrays."
    )
    shard_size: Count | None = Field(
        None,
        description="Samples per shard, which one worker solves and writes as a whole; by default 64, 256 "
        "for 10,000 samples and more, and 1024 on a CUDA device.",
    )


class SplitTable(Table):
    """Fractions of training, validation and test samples; samples keep their split when the set grows."""

    train: Share = Field(0.8, description="Fraction of training samples.")
    valid: Share = Field(0.1, description="Fraction of validation samples.")
    test: Share = Field(0.1, description="Fraction of test samples.")

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        total = self.train + self.valid + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"adds up to {total:g}; train, valid and test must add up to 1.")
        return self


class SpecTable(Table):
    """Data set of equilibria: scene, varied quantities, design, number of samples and stored quantities."""

    foreign_names: ClassVar[dict[str, str]] = {
        "samples": "count",
        "size": "count",
        "licence": "license",
        "sampling": "design",
    }

    title: StrictStr = Field("", description="Title of the data set; the scene's title by default.")
    description: StrictStr = Field("", description="Description for the data card.")
    license: StrictStr = Field("", description="License of the data set, e.g. 'CC-BY-4.0'.")
    scene: StrictStr = Field(description="Path of the scene file, relative to the spec.")
    count: Count | None = Field(
        None, description="Number of samples; a grid or a table determines it itself."
    )
    seed: Index = Field(0, description="Seed of all random numbers.")
    design: Literal[DESIGNS] = Field("sobol", description=f"Design: {', '.join(DESIGNS)}.")  # type: ignore[valid-type]
    table: StrictStr | None = Field(
        None, description="For design = 'table': a CSV, NPZ or Parquet file with a column for each quantity."
    )
    function: StrictStr | None = Field(
        None,
        description="For design = 'function': 'module:name', called with the count and a NumPy generator.",
    )
    vary: Annotated[list[VaryTable], Field(min_length=1)] = Field(
        description="Varied quantities, each a table [[vary]] with its path."
    )
    solve: SolveTable = Field(
        default_factory=lambda: SolveTable.model_validate({}),
        description="Solver settings, the table [solve].",
    )
    store: StoreTable = Field(
        default_factory=lambda: StoreTable.model_validate({}),
        description="Stored quantities, the table [store].",
    )
    splits: SplitTable = Field(
        default_factory=lambda: SplitTable.model_validate({}),
        description="Fractions of training, validation and test samples, the table [splits].",
    )
