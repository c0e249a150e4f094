"""Further valid calls: cloth, obstacles, contact, loads, batches, gradients, pictures."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import supple

Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]
"""Functions with valid arguments, by name."""

NEVER_CALLED = {
    "BatchFrame", "Body", "Cloth", "Comparison", "Direction", "Embedding", "Evaluation", "Fabric", "Frame",
    "Gradient", "GradientReport", "History", "IterationInfo", "Material", "MeshError", "Mode",
    "MotionGradient", "NoGradientError", "Obstacle", "Outcome", "Pa", "Parameter", "Report", "Result",
    "SceneError", "SceneFile", "SceneFileError", "State", "Trial", "VertexSet",
}  # fmt: skip
"""Public classes that users receive but do not create: results, errors, kinds of parameters."""

TESTED_ELSEWHERE = {
    "dataset": "tests/datasets", "scene_schema": "no arguments", "show_versions": "no arguments",
    "where": "kernels",
}  # fmt: skip
"""Public names without calls here, and the place of their tests."""


def meshes_and_cloth() -> Calls:
    sheet, mesh = supple.sheet(2), supple.block(1)
    soft = supple.StVK(young=1e3, poisson=0.3)
    cloth = {"mesh": sheet, "membrane": soft, "bending": supple.HingeBending(rigidity=1e-3), "density": 0.2}
    cloth |= {"thickness": 1e-3, "name": "a", "rest": sheet, "render": None}
    cloth |= {"velocity": (0, 0, 0), "angular_velocity": (0, 0, 0)}
    flat = {"cells": 2, "size": (1, 1), "pattern": "alternating", "plane": "xy", "origin": (0, 0, 0)}
    region = {
        "name": "r",
        "where": [0, 1],
        "material": supple.Corotated(young=1e3, poisson=0.3),
        "density": 2,
    }

    def add_region(**given: Any) -> Any:
        others = supple.Corotated(young=1e4, poisson=0.3)
        return supple.Scene().add_solid(mesh, others, regions=[supple.scene.Region(**given)])

    def viscous(kind: Any) -> Callable[..., Any]:
        def add(**given: Any) -> Any:
            return supple.Scene().add_solid(mesh, soft, viscosity=[kind(**given)])

        return add

    return {
        "Scene.add_cloth": (lambda **given: supple.Scene().add_cloth(**given), cloth),
        "sheet": (supple.sheet, flat),
        "pillow": (supple.meshes.pillow, flat | {"plane": "xz"}),
        "disc": (supple.meshes.disc, {"radius": 0.5, "resolution": 2, "plane": "xy", "center": (0, 0, 0)}),
        "tube": (supple.meshes.tube, {"radius": 0.25, "length": 1.0, "cells": (8, 4),
                 "pattern": "equilateral"}),
        "sphere": (supple.meshes.sphere, {"radius": 0.5, "resolution": 2, "center": (0, 0, 0)}),
        "weld": (supple.meshes.weld, {"surfaces": [sheet, sheet.translated((1, 0, 0))], "tolerance": 1e-6}),
        "merge": (supple.meshes.merge, {"meshes": [mesh, mesh.translated((2, 0, 0))]}),
        "extract_cells": (mesh.extract_cells, {"cells": [0, 1]}),
        "fibers_between": (supple.meshes.fibers_between, {"mesh": mesh, "origin": [0, 1],
                           "insertion": [6, 7]}),
        "Region": (add_region, region),
        "KelvinVoigt": (viscous(supple.KelvinVoigt), {"shear_viscosity": 1.0, "bulk_viscosity": 1.0}),
        "Maxwell": (viscous(supple.Maxwell), {"young": 1e3, "poisson": 0.3, "time": 0.1}),
        "Rayleigh": (viscous(supple.Rayleigh), {"stiffness_factor": 0.1, "mass_factor": 0.1}),
        "HingeBending": (supple.HingeBending, {"rigidity": 1e-3, "weighted": True, "rest": "shape"}),
        "IsometricBending": (supple.IsometricBending, {"rigidity": 1e-3}),
        "CreasedBending": (supple.CreasedBending, {"rigidity": 1e-3, "yield_angle": 0.2, "creep": 10.0,
                           "max_angle": 3.0}),
        "prestrained": (supple.materials.prestrained,
                        {"material": soft, "swelling": 0.1, "rest_deformation": None}),
        "preset": (supple.materials.preset, {"name": "rubber_treloar"}),
        "load_fabric": (supple.load_fabric, {"file": "nowhere.json"}),
        "register_material": (supple.materials.register_material, {"name": "corotated",
                              "kind": supple.Corotated}),
        "register_solver": (supple.solvers.register_solver, {"kind": supple.PBNG}),
    }  # fmt: skip


def obstacles_and_loads() -> Calls:
    ball, surface = supple.Sphere(radius=0.3), supple.meshes.sphere(resolution=1)
    axis: dict[str, Any] = {"point0": (0, 0, 0), "point1": (0, 1, 0), "radius": 0.1, "hollow": False}
    contact: dict[str, Any] = {"method": "weak", "thickness": 0.01, "stiffness": 1e3, "friction": 0.2}
    contact |= {
        "kinetic_friction": 0.1,
        "friction_pairs": (supple.scene.FrictionPair(("a", "b"), 0.5),),
        "separate_initial": False,
    }
    obstacle: dict[str, Any] = {
        "shape": ball,
        "motion": None,
        "friction": 0.2,
        "kinetic_friction": 0.1,
        "mass": 1.0,
    }
    obstacle |= {"velocity": (0, 0, 0), "angular_velocity": (0, 0, 0), "name": "o"}
    ramp = supple.loads.Ramp((0, 1), (0, 1))

    def on_ball(name: str) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            scene = supple.Scene(quasistatic=False)
            body = scene.add_cloth(surface, supple.StVK(young=1e3, poisson=0.3))
            given = {k: body if isinstance(v, str) and v == "body" else v for k, v in given.items()}
            return getattr(scene, name)(**given)

        return call

    def on_block(name: str) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            scene = supple.Scene()
            body = scene.add_solid(supple.block(2), supple.Corotated(young=1e3, poisson=0.3))
            given = {k: body if isinstance(v, str) and v == "body" else v for k, v in given.items()}
            return getattr(scene, name)(**given)

        return call

    return {
        "Plane": (supple.Plane, {"normal": (0, 1, 0), "point": (0, 0, 0)}),
        "Sphere": (supple.Sphere, {"radius": 0.3, "center": (0, 0, 0), "hollow": False}),
        "Box": (supple.Box, {"size": (1, 1, 1), "center": (0, 0, 0), "axis": (0, 0, 1), "angle": 0.1,
                "hollow": False}),
        "Capsule": (supple.Capsule, axis),
        "Cylinder": (supple.Cylinder, axis),
        "SurfaceShape": (supple.SurfaceShape, {"mesh": surface}),
        "SurfaceSequence": (supple.SurfaceSequence, {"meshes": [surface, surface.scaled(1.1)],
                            "times": [0, 1]}),
        "Scene.add_obstacle": (lambda **given: supple.Scene(quasistatic=False).add_obstacle(**given),
                               obstacle),
        "Contact": (supple.Contact, contact),
        "Contact of a grid": (supple.Contact, {"method": "grid", "spacing": 0.1, "cfl": 0.4}),
        "FrictionPair": (supple.scene.FrictionPair, {"bodies": ("a", "b"), "friction": 0.5,
                         "kinetic_friction": 0.2}),
        "Ramp": (supple.loads.Ramp, {"times": (0, 1), "fractions": (0, 1)}),
        "Scene.add_pressure": (on_ball("add_pressure"), {"vertices": "body", "pressure": 1.0, "ramp": ramp}),
        "Scene.add_cavity": (on_ball("add_cavity"), {"vertices": "body", "pressure": 1.0, "ramp": ramp,
                             "sealed": True, "ambient": 1e5, "exponent": 1.4}),
        "Scene.add_wind": (on_ball("add_wind"), {"velocity": (1, 0, 0), "drag": 1.0, "lift": 0.5,
                           "density": 1.2, "ramp": ramp}),
        "Scene.add_body_force": (on_block("add_body_force"), {"body": "body", "force": (0, 1, 0),
                                 "ramp": ramp}),
        "Scene.add_cable": (on_block("add_cable"), {"vertices": "body", "points": [(0, 0, 0), (1, 0, 0)],
                            "tension": 1.0, "stiffness": 1e3, "ramp": ramp}),
        "Scene.add_term": (on_block("add_term"), {"make": lambda rest: None}),
    }  # fmt: skip


def batches_gradients_and_pictures(folder: Path) -> Calls:
    scene = supple.Scene(gravity=(0, -1, 0), quasistatic=False, dt=0.1)
    body = scene.add_solid(supple.block(1), supple.Corotated(young=1e3, poisson=0.3), density=1.0)
    left = body.where(lambda X: X[:, 0] <= 0)
    scene.pin(left)
    rest = supple.scene.build_model(scene).rest
    still = copy.copy(scene)
    still.quasistatic = True
    result = supple.equilibrium(still)
    state = next(supple.simulate(scene, max_iterations=1)).state
    backend: dict[str, Any] = {"device": "cpu", "precision": "float64", "threads": 1}
    stepper: dict[str, Any] = {"scene": scene, "dt": 0.1, "solver": "pbng", "substeps": 1, "damping": 0.0}
    stepper |= {"quasistatic": False, "integrator": "backward_euler", "batch_size": 2, "springs": 0}
    stepper |= {"tolerance": 1e-2, "max_iterations": 1, "time_limit": 1.0}

    def step(**given: Any) -> Any:
        return supple.Stepper(scene, solver="pbng", max_iterations=1, batch_size=2, springs=1).step(**given)

    def spring(**given: Any) -> Any:
        sim = supple.Stepper(scene, solver="pbng", max_iterations=1, springs=2)
        return sim.set_springs(**given)

    def reset(**given: Any) -> Any:
        return supple.Stepper(scene, solver="pbng", max_iterations=1).reset(**given)

    def all_gradients(**given: Any) -> Any:
        return list(supple.gradients.gradients(**given))

    appearance: dict[str, Any] = {"field": "displacement", "camera": "corner", "theme": "light"}
    appearance |= {"size": (64, 48), "title": "t", "thickness": None, "names": None}
    motion: dict[str, Any] = {
        "scene": scene,
        "loss": lambda frame, x: _height(x),
        "solver": "newton",
        "checkpoints": 1,
        "dt": 0.1,
    }
    motion |= {"frames": 1, "substeps": 1, "damping": 0.0, "initial": rest, "velocities": 0 * rest}
    return {
        "Backend": (supple.Backend, backend),
        "StopCriteria": (supple.StopCriteria, {"tolerance": 1e-4, "max_iterations": 2, "time_limit": 1.0,
                                               "position_tolerance": 1e-3}),
        "evaluate": (supple.evaluate, {"scene": scene, "positions": rest, "time": 0.0, **backend}),
        "Stepper": (supple.Stepper, stepper),
        "Stepper.step": (step, {"forces": {body: (0, 1, 0)}, "pins": {left: left.points}}),
        "Stepper.reset": (reset, {"positions": rest, "velocities": 0 * rest}),
        "Stepper.set_springs": (spring, {"pairs": [(0, 7)], "stiffness": 1.0, "rest_length": 1.0}),
        "simulate from a state": (lambda **given: list(supple.simulate(scene, max_iterations=1, **given)),
                                  {"initial": state, "damping": 0.0, "integrator": "bdf2"}),
        "gradient": (supple.gradient, {"result": result, "loss": _height, **backend}),
        "gradients": (all_gradients, {"results": [result], "loss": _height,
                      "transform": lambda gradient: gradient.gravity,
                      "batch_size": 2, **backend}),
        "motion_gradient": (supple.gradients.motion_gradient, motion),
        "render": (supple.render, {"result": result, "path": folder / "a.png", **appearance,
                    "subtitle": "s"}),
        "animate": (supple.animate, {"frames": folder / "none", "path": folder / "a.mp4", **appearance,
                                      "fps": 10,
                 "turntable": False, "progress": None}),
        "load_run": (supple.load_run, {"path": folder / "none"}),
        "write_report": (supple.write_report, {"results": folder / "none", "path": folder / "a.html"}),
    }  # fmt: skip


def _height(x: np.ndarray) -> np.ndarray:
    """Derivative of the mean height."""
    slope = np.zeros_like(x)
    slope[:, 1] = 1 / len(x)
    return slope


def more_valid_calls(folder: Path) -> Calls:
    return meshes_and_cloth() | obstacles_and_loads() | batches_gradients_and_pictures(folder)
