"""Scenes of the gallery, made small and mutated at random."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from fuzz import Tally

import supple

SCENES = Path(__file__).resolve().parents[1] / "scenes"


def small_scenes(names: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """The gallery by name, with a few cells per body; mesh files become blocks, and selections by position
    become sides, since few vertices would leave them empty."""
    scenes = {}
    for path in sorted(SCENES.glob("*.toml")):
        if not names or path.stem in names:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            if "cavity" in table:  # whose chambers need all their cells
                continue
            for cable in table.get("cable", ()):  # along few vertices
                cable["points"] = [cable["points"][0], cable["points"][-1]]
            if any("fabric" in cloth for cloth in table.get("cloth", ())):  # whose files may be missing
                continue
            table["frames"] = min(2, table.get("frames", 1))
            solids = table.get("solid", [])
            coarse = any("file" in solid["mesh"] for solid in solids) or "traction" in table
            for body in (*solids, *table.get("cloth", [])):
                _shrink(body)
            for key in ("pin", "attach", "force", "traction") if coarse else ():
                for entry, side in zip(table.get(key, ()), ("y-", "y+", "x-", "x+"), strict=False):
                    entry["where"] = {"side": side}
            scenes[path.stem] = table
    return scenes


def _shrink(solid: dict[str, Any]) -> None:
    solid.pop("render", None)
    mesh = solid["mesh"]
    if "file" in mesh:
        solid["mesh"] = {"block": {"cells": [3, 3, 3], "size": [2, 2, 2], "origin": [-1, -1, -1]}}
    for kind in ("block",):
        if kind in mesh:
            mesh[kind]["cells"] = [min(4, count) for count in mesh[kind]["cells"]]
    for kind in ("sheet", "pillow", "tube"):
        if kind in mesh:
            mesh[kind]["cells"] = [8, 4] if kind == "tube" else 4
    for kind in ("ball", "torus"):
        if kind in mesh:
            mesh[kind]["resolution"] = 2 if kind == "ball" else 1


ODD_VALUES = [
    math.nan, math.inf, -math.inf, 0, -1, 1.5, 1e308, -1e308, 1e200, -1e200, 1e-300, 1e30, 1e29, 1e12, 1e-12,
    10**30, 2**31, -(2**63), True, False, "", "x", "pbng", "a/b", "\u0000", "ä" * 300, [], {}, [[]], [1, 2],
    [0, 0, 0], [1e200, 0, 0], ["x", "y", "z"], [math.nan] * 3, {"x": 1}, {"block": {}}, [[0, 0, 0]] * 3,
]  # fmt: skip


SIZE_KEYS = (
    "cells",
    "resolution",
    "major",
    "minor",
    "frames",
    "sweeps_per_step",
    "newton_steps",
    "max_iterations",
)
"""Keys that determine memory or time: they get no valid extreme numbers."""


class Nested(NamedTuple):
    """Brackets nested to a depth."""

    depth: int


def mutate(table: dict[str, Any], random: np.random.Generator) -> tuple[dict[str, Any], str]:
    """A table with one to three changes, and their description."""
    table = copy.deepcopy(table)
    change = _scale_number if random.random() < 0.5 else _change_entry
    changes = [change(table, random) for _ in range(random.integers(1, 4))]
    return table, "; ".join(changes)


def _scale_number(table: dict[str, Any], random: np.random.Generator) -> str:
    """Scale one number to any magnitude or sign, in an otherwise valid file."""
    locations = [
        (holder, key, name)
        for holder, key, name in _locations(table)
        if isinstance(holder[key], int | float)
        and not isinstance(holder[key], bool)
        and not any(size in name for size in (*SIZE_KEYS, "where"))
    ]
    holder, key, name = locations[random.integers(len(locations))]
    power = random.choice([-290, -30, -20, -12, -9, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 9, 12, 20, 30, 290])
    sign = -1.0 if random.random() < 0.1 else 1.0
    holder[key] = sign * float(holder[key] or 1) * 10.0 ** float(power)
    return f"{name} = {holder[key]:g}"


def _change_entry(table: dict[str, Any], random: np.random.Generator) -> str:
    """Remove, duplicate, nest or replace one entry."""
    locations = list(_locations(table))
    if not locations:
        return "nothing is left"
    holder, key, name = locations[random.integers(len(locations))]
    match random.integers(6):
        case 0:
            del holder[key]
            return f"{name} is gone"
        case 1:
            if isinstance(holder, dict):
                holder[f"{key}x"] = holder[key]
                return f"{name}x is new"
            holder.append(holder[key])
            return f"{name} is there twice"
        case 2:
            depth = int(random.choice([3, 60, 5000]))
            holder[key] = Nested(depth)
            return f"{name} is {depth} deep"
        case _:
            holder[key] = copy.deepcopy(ODD_VALUES[random.integers(len(ODD_VALUES))])
    value = holder[key]
    if any(size in name for size in SIZE_KEYS) and isinstance(value, int | float) and 0 < value < 2**31:
        holder[key] = min(value, 3) if isinstance(value, int) else 1.5
    return f"{name} = {str(holder[key])[:60]}"


def _locations(value: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """(holder, key, name) of every entry of a table."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key, f"{name}.{key}".lstrip(".")
        yield from _locations(item, f"{name}.{key}".lstrip("."))


def to_toml(table: dict[str, Any]) -> str:
    return "\n".join(f"{json.dumps(key)} = {_toml_value(value)}" for key, value in table.items()) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(item)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, Nested):
        return "[" * value.depth + "]" * value.depth
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return repr(float(value)) if isinstance(value, float) else str(value)


def solve_scene(path: Path, precision: str = "float64") -> list[supple.Result]:
    """Load a scene, and do two iterations of its first frame."""
    file = supple.load_scene(path)
    options: dict[str, Any] = {"tolerance": None, "max_iterations": 2, "precision": precision}
    if file.scene.quasistatic:
        return [supple.equilibrium(file, **options)]
    return list(supple.simulate(file, frames=1, **options))


def run_mutated_scenes(
    count: int,
    folder: Path,
    seed: int = 0,
    names: tuple[str, ...] = (),
    precisions: tuple[str, ...] = ("float64", "float64", "float64", "float32"),
    minutes: float = math.inf,
) -> Tally:
    """Run `count` mutated scenes, cycling through the gallery or `names` and through `precisions`; ends early
    after `minutes`."""
    end = perf_counter() + 60 * minutes
    random, tally = np.random.default_rng(seed), Tally()
    scenes, path = small_scenes(names), folder / "scene.toml"
    stems = list(scenes)
    for number in range(count):
        if perf_counter() > end:
            break
        stem = stems[number % len(stems)]
        table, changes = mutate(scenes[stem], random)
        path.write_text(to_toml(table), encoding="utf-8")
        precision = precisions[number % len(precisions)]
        tally.add(f"{stem}, {precision}: {changes}", partial(solve_scene, path, precision))
    return tally
