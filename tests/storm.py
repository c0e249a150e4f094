"""A storm of bad input: gallery scenes changed at random, and calls with arguments that are no good.

Whatever happens must be an answer or a sentence: an error that our own code raises, of the right kind.
Anything else is a finding: other exceptions, warnings of NumPy, and reports that say "ok" beside figures that
are not finite.
"""

from __future__ import annotations

import copy
import json
import linecache
import math
import signal
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import supple
from supple.materials import MATERIALS, Isotropic, examples_of
from supple.solvers import SOLVERS

SCENES = Path(__file__).resolve().parents[1] / "scenes"
PATIENCE = 60
"""Seconds after which a case counts as hanging."""


@dataclass
class Tally:
    """How cases ended, and those that ended as none should."""

    counts: Counter = field(default_factory=Counter)
    findings: list[dict[str, str]] = field(default_factory=list)

    def add(self, case: str, act: Callable[[], Any]) -> None:
        outcome, finding = judge(act)
        self.counts[outcome] += 1
        if finding:
            self.findings.append({"case": case, "finding": finding})


def judge(act: Callable[[], Any]) -> tuple[str, str]:
    """ "answer" or "sentence" with nothing more to say, or "finding" and what it is."""
    try:
        with warnings.catch_warnings(record=True) as heard, time_limit(PATIENCE):
            warnings.simplefilter("always")
            result = act()
    except (ValueError, TypeError, OSError) as error:
        return ("sentence", "") if is_told(error) else ("finding", last_words(error))
    except Exception as error:
        return "finding", last_words(error)
    raw = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    wrong = raw[0] if raw else not_finite(result)
    return ("finding", wrong) if wrong else ("answer", "")


def is_told(error: BaseException) -> bool:
    """Whether our own code raises it, with a sentence; an OSError names its file."""
    if isinstance(error, OSError) and error.filename:
        return True
    place = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(place.filename, place.lineno or 0).strip()
    ours = Path(place.filename).is_relative_to(Path(supple.__file__).parent)
    return ours and line.startswith("raise ") and len(str(error).split()) > 3


def last_words(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"[:300]


def not_finite(result: Any) -> str:
    """What is wrong with a result whose report says that all is well."""
    for one in result if isinstance(result, list) else [result]:
        if isinstance(one, supple.Result):
            if not np.isfinite(one.positions).all():
                return "positions are not finite"
            figures = {name: getattr(one.report, name) for name in ("imbalance", "residual", "energy")}
            wrong = [f"{name} = {value}" for name, value in figures.items() if not math.isfinite(value)]
            if one.report.ok and wrong:
                return f"the report is ok with {', '.join(wrong)}"
    return ""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """A RuntimeError where it takes longer, on systems that have alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: Any) -> None:
        raise RuntimeError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- scenes ------------------------------------------------------------------------------------------------


def small_scenes(names: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """The gallery with a few cells for each body, by name; bodies from files become blocks. What is selected
    by a place becomes a side, where so few vertices would leave nothing there."""
    scenes = {}
    for path in sorted(SCENES.glob("*.toml")):
        if not names or path.stem in names:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            if "cavity" in table:  # whose chambers need all their cells
                continue
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
    for kind in ("block", "bar"):
        if kind in mesh:
            mesh[kind]["cells"] = [min(4, count) for count in mesh[kind]["cells"]]
    for kind in ("sheet", "pillow", "tube"):
        if kind in mesh:
            mesh[kind]["cells"] = [8, 4] if kind == "tube" else 4
    for kind in ("ball", "torus"):
        if kind in mesh:
            mesh[kind]["resolution"] = 2 if kind == "ball" else 1


ODD = [
    math.nan, math.inf, -math.inf, 0, -1, 1.5, 1e308, -1e308, 1e200, -1e200, 1e-300, 1e30, 1e29, 1e12, 1e-12,
    10**30, 2**31, -(2**63), True, False, "", "x", "pbng", "a/b", "\u0000", "ä" * 300, [], {}, [[]], [1, 2],
    [0, 0, 0], [1e200, 0, 0], ["x", "y", "z"], [math.nan] * 3, {"x": 1}, {"block": {}}, [[0, 0, 0]] * 3,
]  # fmt: skip

SIZES = (
    "cells",
    "resolution",
    "major",
    "minor",
    "frames",
    "sweeps_per_step",
    "newton_steps",
    "max_iterations",
)
"""Keys whose numbers mean memory or time: they get none that are right and extreme."""


class Nested(NamedTuple):
    """Brackets in brackets."""

    depth: int


def mutated(table: dict[str, Any], random: np.random.Generator) -> tuple[dict[str, Any], str]:
    """The table with one to three changes, and what they are."""
    table = copy.deepcopy(table)
    change = _scale if random.random() < 0.5 else _change
    changes = [change(table, random) for _ in range(random.integers(1, 4))]
    return table, "; ".join(changes)


def _scale(table: dict[str, Any], random: np.random.Generator) -> str:
    """A number becomes another one, of any magnitude or sign; so the file is right but for what it says."""
    places = [
        (holder, key, name)
        for holder, key, name in _places(table)
        if isinstance(holder[key], int | float)
        and not isinstance(holder[key], bool)
        and not any(size in name for size in (*SIZES, "where"))
    ]
    holder, key, name = places[random.integers(len(places))]
    power = random.choice([-290, -30, -20, -12, -9, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 9, 12, 20, 30, 290])
    sign = -1.0 if random.random() < 0.1 else 1.0
    holder[key] = sign * float(holder[key] or 1) * 10.0 ** float(power)
    return f"{name} = {holder[key]:g}"


def _change(table: dict[str, Any], random: np.random.Generator) -> str:
    places = list(_places(table))
    if not places:
        return "nothing is left"
    holder, key, name = places[random.integers(len(places))]
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
            holder[key] = copy.deepcopy(ODD[random.integers(len(ODD))])
    value = holder[key]
    if any(size in name for size in SIZES) and isinstance(value, int | float) and 0 < value < 2**31:
        holder[key] = min(value, 3) if isinstance(value, int) else 1.5
    return f"{name} = {str(holder[key])[:60]}"


def _places(value: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """(holder, key, name) of everything in a table."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key, f"{name}.{key}".lstrip(".")
        yield from _places(item, f"{name}.{key}".lstrip("."))


def to_toml(table: dict[str, Any]) -> str:
    return "\n".join(f"{json.dumps(key)} = {_toml(value)}" for key, value in table.items()) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Nested):
        return "[" * value.depth + "]" * value.depth
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(float(value)) if isinstance(value, float) else str(value)


def solve_scene(path: Path, precision: str = "float64") -> list[supple.Result]:
    """Load it, build it, and do two iterations of its first frame."""
    file = supple.load_scene(path)
    options: dict[str, Any] = {"tolerance": None, "max_iterations": 2, "precision": precision}
    if file.scene.quasistatic:
        return [supple.equilibrium(file, **options)]
    return list(supple.simulate(file, frames=1, **options))


def storm_of_scenes(
    count: int,
    folder: Path,
    seed: int = 0,
    names: tuple[str, ...] = (),
    precisions: tuple[str, ...] = ("float64", "float64", "float64", "float32"),
) -> Tally:
    """So many scenes, in turn from the gallery or from these of it, and in turn in these precisions."""
    random, tally = np.random.default_rng(seed), Tally()
    scenes, path = small_scenes(names), folder / "scene.toml"
    stems = list(scenes)
    for number in range(count):
        stem = stems[number % len(stems)]
        table, changes = mutated(scenes[stem], random)
        path.write_text(to_toml(table), encoding="utf-8")
        precision = precisions[number % len(precisions)]
        tally.add(f"{stem}, {precision}: {changes}", partial(solve_scene, path, precision))
    return tally


# --- calls -------------------------------------------------------------------------------------------------


class Thing:
    """Nothing that anybody could want."""

    def __repr__(self) -> str:
        return "<Thing>"


WRONG = [
    None, -1, 0, 1.5, math.nan, math.inf, 1e308, 1e-300, 10**30, True, "x", "", b"x", [], {}, (), [1, 2],
    [None], ["x", "y", "z"], [math.nan] * 3, [1e200] * 3, np.full((8, 3), np.nan), np.zeros((2, 2)),
    np.zeros((8, 3), complex), np.array("x"), Thing(), supple.PBNG, lambda *given: 0, Path("nowhere.toml"),
]  # fmt: skip


def doors(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every public function and class with arguments that are right, by name."""
    scene = supple.Scene(gravity=(0, -1, 0))
    mesh, soft = supple.block(1), supple.Corotated(young=1e3, poisson=0.3)
    body = scene.add_solid(mesh, soft, density=1.0)
    left = body.where(lambda X: X[:, 0] <= 0)
    scene.pin(left)
    dynamic = copy.deepcopy(scene)
    dynamic.quasistatic = False
    rest, surface = mesh.points.copy(), supple.TriMesh(mesh.points, mesh.surface)
    result = supple.equilibrium(scene, max_iterations=1)
    run: dict[str, Any] = {"max_iterations": 2, "tolerance": 1e-4, "time_budget": 1.0, "precision": "float64"}
    run |= {"device": "cpu", "threads": 1}
    motion: dict[str, Any] = {"duration": 1.0, "start": 0.0}
    about: dict[str, Any] = {"axis": (1, 0, 0), "centre": (0, 0, 0), "angle": 1.0, **motion}
    variation: dict[str, Any] = {"time": 1.0, "gravity": (0, 0, 0), "start": rest}
    variation |= {"pins": {left: left.points}, "forces": {body: (1, 0, 0)}, "materials": {body: soft}}

    def fresh(name: str) -> Callable[..., Any]:
        return lambda **given: getattr(copy.copy(_with_lists(scene)), name)(**given)

    def vary(**given: Any) -> Any:
        return list(supple.equilibria(scene, [supple.Variation(**given)], max_iterations=1))

    def add_solid(**given: Any) -> Any:
        return supple.Scene().add_solid(**given)

    def simulated(**given: Any) -> Any:
        return list(supple.simulate(**given))

    def many(**given: Any) -> Any:
        return list(supple.equilibria(**given))

    table: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "equilibrium": (supple.equilibrium, {"scene": scene, "solver": "pbng", "start": rest, **run,
                        "history": False, "watch": None}),
        "simulate": (simulated, {"scene": dynamic, "solver": "pbng", "dt": 0.1, "frames": 1, "substeps": 1,
                     "quasistatic": False, "start": rest, "velocities": 0 * rest, "first_frame": 1,
                     "history": False, "watch": None, **run}),
        "equilibria": (many, {"scene": scene, "variations": [supple.Variation()], "solver": "pbng",
                       "at_once": 1, "progress": None, **run}),
        "compare": (supple.compare, {"scene": scene, "solvers": ["pbng"], "start": rest, "frame": 1,
                    "velocities": 0 * rest, "progress": None, "watch": None, **run}),
        "inspect": (supple.inspect, {"scene": scene, "cluster_size": 2, "worst": 1}),
        "build_model": (supple.build_model, {"scene": scene, "quasistatic": True}),
        "embed": (supple.embed, {"surface": surface, "body": body}),
        "surface_of": (supple.surface_of, {"scene": scene, "positions": rest}),
        "save_frames": (supple.save_frames, {"scene": scene, "frames": [rest], "formats": "npz",
                        "output": folder / "out", "dt": 0.1}),
        "save_mesh": (supple.save_mesh, {"mesh": mesh, "path": folder / "a.vtu", "positions": rest,
                      "point_data": {}, "cell_data": {}}),
        "load_mesh": (supple.load_mesh, {"path": folder / "none.mesh", "scale": 1.0}),
        "load_surface": (supple.load_surface, {"path": folder / "none.obj"}),
        "load_scene": (supple.load_scene, {"path": folder / "none.toml"}),
        "export": (supple.export, {"results": folder / "none", "formats": "npz"}),
        "tetrahedralise": (supple.tetrahedralise, {"surface": surface}),
        "block": (supple.block, {"cells": 1, "size": 1.0, "origin": 0.0}),
        "ball": (supple.ball, {"radius": 1.0, "resolution": 1}),
        "torus": (supple.torus, {"major": 1.0, "minor": 0.5, "resolution": 1}),
        "TetMesh": (supple.TetMesh, {"points": mesh.points, "tets": mesh.tets, "repair": False}),
        "TriMesh": (supple.TriMesh, {"points": mesh.points, "triangles": mesh.surface}),
        "TetMesh.translated": (mesh.translated, {"offset": (1, 0, 0)}),
        "TetMesh.scaled": (mesh.scaled, {"factor": 2.0}),
        "TetMesh.rotated": (mesh.rotated, {"axis": (1, 0, 0), "angle": 1.0, "centre": (0, 0, 0)}),
        "TetMesh.transformed": (mesh.transformed, {"matrix": np.eye(3), "offset": (0, 0, 0)}),
        "TetMesh.masses": (mesh.masses, {"density": 1.0}),
        "TetMesh.worst": (mesh.worst, {"count": 1}),
        "TriMesh.scaled": (surface.scaled, {"factor": 2.0}),
        "TriMesh.translated": (surface.translated, {"offset": (1, 0, 0)}),
        "Scene": (supple.Scene, {"gravity": (0, 0, 0), "quasistatic": True, "dt": 0.1, "frames": 1}),
        "Scene.add_solid": (add_solid, {"mesh": mesh, "material": soft, "density": 1.0, "name": "a",
                            "render": surface}),
        "Scene.pin": (fresh("pin"), {"vertices": left, "motion": None}),
        "Scene.add_force": (fresh("add_force"), {"vertices": body, "force": (1, 0, 0)}),
        "Scene.add_traction": (fresh("add_traction"), {"vertices": body, "traction": (1, 0, 0)}),
        "Scene.attach": (fresh("attach"), {"a": body, "b": None, "stiffness": 1.0, "normal": (1, 0, 0),
                         "tangent_stiffness": 0.0, "keep_offset": False}),
        "Scene.add_springs": (fresh("add_springs"), {"a": body, "b": (9, 9, 9), "stiffness": 1.0,
                              "rest_length": 0.1}),
        "Scene.vary": (fresh("vary"), {"body": body, "parameter": "young",
                       "ramp": supple.Ramp((0, 1), (1, 2))}),
        "Body.where": (body.where, {"selection": [0, 1]}),
        "Variation": (vary, variation),
        "Translate": (supple.Translate, {"offset": (1, 0, 0), **motion}),
        "Rotate": (supple.Rotate, about),
        "Twist": (supple.Twist, about),
        "Scale": (supple.Scale, {"factor": 2.0, "centre": (0, 0, 0), **motion}),
        "Keyframes": (supple.Keyframes, {"motion": supple.Scale(2.0), "times": (0, 1), "fractions": (0, 1)}),
        "Keyframes.path": (supple.Keyframes.path, {"times": (0, 1), "offsets": [(0, 0, 0), (1, 0, 0)]}),
        "Result.of": (result.of, {"body": body}),
        "Result.positions_like": (result.positions_like, {"like": "nothing"}),
    }  # fmt: skip
    for kind in MATERIALS.values():
        table[kind.__name__] = kind, examples_of(kind)
        if issubclass(kind, Isotropic):
            table[f"{kind.__name__}.from_lame"] = kind.from_lame, {"mu": 1e3, "lam": 1e3}
    for name, solver in SOLVERS.items():
        table[name] = solver, {option.name: option.default for option in fields(solver)}  # type: ignore[arg-type]
    return table


def _with_lists(scene: supple.Scene) -> supple.Scene:
    """A copy whose lists are its own."""
    other = copy.copy(scene)
    for name in ("bodies", "pins", "loads", "attachments", "springs", "varied", "further"):
        setattr(other, name, list(getattr(scene, name)))
    return other


def bad_calls(folder: Path) -> list[tuple[str, Callable[[], Any]]]:
    """Every public function with every argument wrong in every way, one at a time."""
    calls = []
    for name, (function, right) in doors(folder).items():
        for argument in right:
            for wrong in WRONG:
                given = {**right, argument: wrong}
                shown = " ".join(repr(wrong).split())[:40]
                calls.append((f"{name}({argument}={shown})", lambda f=function, g=given: f(**g)))
    return calls


def storm_of_calls(count: int | None, folder: Path, seed: int = 0) -> Tally:
    """So many of them, at random; all of them unless given."""
    tally, calls = Tally(), bad_calls(folder)
    order = np.random.default_rng(seed).permutation(len(calls))[:count]
    for number in order:
        tally.add(*calls[number])
    return tally
