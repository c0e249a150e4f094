"""Calls of all public functions with wrong arguments."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import Tally
from fuzz_valid_calls import more_valid_calls

import supple
from supple.materials import MATERIALS, MEMBRANES, Isotropic, examples_of
from supple.solvers import SOLVERS


class UnrelatedObject:
    """A value that no function accepts."""

    def __repr__(self) -> str:
        return "<Thing>"


WRONG_VALUES = [
    None, -1, 0, 1.5, math.nan, math.inf, 1e308, 1e-300, 10**30, True, "x", "", b"x", [], {}, (), [1, 2],
    [None], ["x", "y", "z"], [math.nan] * 3, [1e200] * 3, np.full((8, 3), np.nan), np.zeros((2, 2)),
    np.zeros((8, 3), complex), np.array("x"), UnrelatedObject(), supple.PBNG, lambda *given: 0,
    Path("nowhere.toml"),
]  # fmt: skip


def valid_calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every public function and class with valid arguments, by name."""
    scene = supple.Scene(gravity=(0, -1, 0))
    mesh, soft = supple.block(1), supple.Corotated(young=1e3, poisson=0.3)
    body = scene.add_solid(mesh, soft, density=1.0)
    left = body.where(lambda X: X[:, 0] <= 0)
    scene.pin(left)
    dynamic = copy.deepcopy(scene)
    dynamic.quasistatic = False
    rest, surface = mesh.points.copy(), supple.TriMesh(mesh.points, mesh.surface)
    result = supple.equilibrium(scene, max_iterations=1)
    run: dict[str, Any] = {"max_iterations": 2, "tolerance": 1e-4, "time_limit": 1.0, "precision": "float64"}
    run |= {"device": "cpu", "threads": 1}
    motion: dict[str, Any] = {"duration": 1.0, "start_time": 0.0}
    about: dict[str, Any] = {"axis": (1, 0, 0), "center": (0, 0, 0), "angle": 1.0, **motion}
    variation: dict[str, Any] = {"time": 1.0, "gravity": (0, 0, 0), "initial": rest}
    variation |= {"pins": {left: left.points}, "forces": {body: (1, 0, 0)}, "materials": {body: soft}}

    def new_object(name: str) -> Callable[..., Any]:
        return lambda **given: getattr(copy.copy(_copy_with_lists(scene)), name)(**given)

    def vary(**given: Any) -> Any:
        return list(supple.equilibria(scene, [supple.Variation(**given)], max_iterations=1))

    def add_solid(**given: Any) -> Any:
        return supple.Scene().add_solid(**given)

    def simulated(**given: Any) -> Any:
        return list(supple.simulate(**given))

    def many(**given: Any) -> Any:
        return list(supple.equilibria(**given))

    table: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "equilibrium": (supple.equilibrium, {"scene": scene, "solver": "pbng", "initial": rest, **run,
                        "record_history": False, "callback": None}),
        "simulate": (simulated, {"scene": dynamic, "solver": "pbng", "dt": 0.1, "frames": 1, "substeps": 1,
                     "quasistatic": False, "initial": rest, "velocities": 0 * rest, "first_frame": 1,
                     "record_history": False, "callback": None, **run}),
        "equilibria": (many, {"scene": scene, "variations": [supple.Variation()], "solver": "pbng",
                       "batch_size": 1, "progress": None, **run}),
        "compare": (supple.compare, {"scene": scene, "solvers": ["pbng"], "initial": rest, "frame": 1,
                    "velocities": 0 * rest, "progress": None, "callback": None, **run}),
        "inspect": (supple.inspect, {"scene": scene, "cluster_size": 2, "worst": 1}),
        "build_model": (supple.scene.build_model, {"scene": scene, "quasistatic": True}),
        "embed": (supple.embed, {"surface": surface, "body": body}),
        "visible_surface": (supple.visible_surface, {"scene": scene, "positions": rest}),
        "save_frames": (supple.io.save_frames, {"scene": scene, "frames": [rest], "formats": "npz",
                        "output": folder / "out", "dt": 0.1}),
        "save_mesh": (supple.meshes.save_mesh, {"mesh": mesh, "path": folder / "a.vtu", "positions": rest,
                      "point_data": {}, "cell_data": {}}),
        "load_mesh": (supple.load_mesh, {"path": folder / "none.mesh", "scale": 1.0}),
        "load_surface": (supple.meshes.load_surface, {"path": folder / "none.obj"}),
        "load_scene": (supple.load_scene, {"path": folder / "none.toml"}),
        "export": (supple.export, {"results": folder / "none", "formats": "npz"}),
        "tetrahedralize": (supple.meshes.tetrahedralize, {"surface": surface}),
        "block": (supple.block, {"cells": 1, "size": 1.0, "origin": 0.0}),
        "ball": (supple.ball, {"radius": 1.0, "resolution": 1}),
        "torus": (supple.meshes.torus, {"major": 1.0, "minor": 0.5, "resolution": 1}),
        "TetMesh": (supple.TetMesh, {"points": mesh.points, "tets": mesh.tets, "repair": False}),
        "TriMesh": (supple.TriMesh, {"points": mesh.points, "triangles": mesh.surface}),
        "TetMesh.translated": (mesh.translated, {"offset": (1, 0, 0)}),
        "TetMesh.scaled": (mesh.scaled, {"factor": 2.0}),
        "TetMesh.rotated": (mesh.rotated, {"axis": (1, 0, 0), "angle": 1.0, "center": (0, 0, 0)}),
        "TetMesh.transformed": (mesh.transformed, {"matrix": np.eye(3), "offset": (0, 0, 0)}),
        "TetMesh.masses": (mesh.masses, {"density": 1.0}),
        "TetMesh.worst": (mesh.worst, {"count": 1}),
        "TriMesh.scaled": (surface.scaled, {"factor": 2.0}),
        "TriMesh.translated": (surface.translated, {"offset": (1, 0, 0)}),
        "Scene": (supple.Scene, {"gravity": (0, 0, 0), "quasistatic": True, "dt": 0.1, "frames": 1}),
        "Scene.add_solid": (add_solid, {"mesh": mesh, "material": soft, "density": 1.0, "name": "a",
                            "render": surface}),
        "Scene.pin": (new_object("pin"), {"vertices": left, "motion": None}),
        "Scene.add_force": (new_object("add_force"), {"vertices": body, "force": (1, 0, 0)}),
        "Scene.add_traction": (new_object("add_traction"), {"vertices": body, "traction": (1, 0, 0)}),
        "Scene.attach": (new_object("attach"), {"a": body, "b": None, "stiffness": 1.0, "normal": (1, 0, 0),
                         "tangent_stiffness": 0.0, "keep_offset": False}),
        "Scene.add_springs": (new_object("add_springs"), {"a": body, "b": (9, 9, 9), "stiffness": 1.0,
                              "rest_length": 0.1}),
        "Scene.vary": (new_object("vary"), {"body": body, "parameter": "young",
                       "ramp": supple.loads.Ramp((0, 1), (1, 2))}),
        "Body.where": (body.where, {"selection": [0, 1]}),
        "Variation": (vary, variation),
        "Translate": (supple.Translate, {"offset": (1, 0, 0), **motion}),
        "Rotate": (supple.Rotate, about),
        "Twist": (supple.Twist, {k: v for k, v in about.items() if k != "angle"} | {"rate": 1.0}),
        "Scale": (supple.Scale, {"factor": 2.0, "center": (0, 0, 0), **motion}),
        "Keyframes": (supple.Keyframes, {"motion": supple.Scale(2.0), "times": (0, 1), "fractions": (0, 1)}),
        "Keyframes.path": (supple.Keyframes.path, {"times": (0, 1), "offsets": [(0, 0, 0), (1, 0, 0)]}),
        "Result.positions_of": (result.positions_of, {"body": body}),
        "Result.positions_as": (result.positions_as, {"like": "nothing"}),
    }  # fmt: skip
    for kind in (*MATERIALS.values(), *MEMBRANES.values()):
        table[kind.__name__] = kind, examples_of(kind)
        if issubclass(kind, Isotropic):
            table[f"{kind.__name__}.from_lame"] = kind.from_lame, {"mu": 1e3, "lam": 1e3}
    for name, solver in SOLVERS.items():
        table[name] = solver, {option.name: option.default for option in fields(solver)}  # type: ignore[arg-type]
    return table | more_valid_calls(folder)


def _copy_with_lists(scene: supple.Scene) -> supple.Scene:
    """A copy of a scene with separate lists."""
    other = copy.copy(scene)
    for name in ("bodies", "pins", "loads", "attachments", "springs", "varying_parameters", "user_terms"):
        setattr(other, name, list(getattr(scene, name)))
    return other


def wrong_calls(folder: Path) -> list[tuple[str, Callable[[], Any]]]:
    """Every public function with one argument replaced by each of the wrong values."""
    calls = []
    for name, (function, right) in valid_calls(folder).items():
        for argument in right:
            for wrong in WRONG_VALUES:
                given = {**right, argument: wrong}
                text = " ".join(repr(wrong).split())[:40]
                calls.append((f"{name}({argument}={text})", lambda f=function, g=given: f(**g)))
    return calls


def run_wrong_calls(count: int | None, folder: Path, seed: int = 0) -> Tally:
    """Run `count` random wrong calls, or all of them by default."""
    tally, calls = Tally(), wrong_calls(folder)
    order = np.random.default_rng(seed).permutation(len(calls))[:count]
    for number in order:
        tally.add(*calls[number])
    return tally
