"""Cases of arrive.py: slender, thin, organic, twisted, compressed, tied and scrambled bodies, soft to
stiff.

Written for any version of supple that has scenes, so that an older one can be compared in the same run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.materials import MATERIALS

DATA = os.environ.get("SUPPLE_DATA")

CENTER = "center" if "center" in signature(supple.Rotate).parameters else "centre"
"""Spelling of the keyword in this version of supple."""

ISOTROPIC = "corotated", "neo_hookean", "stable_neo_hookean", "log_neo_hookean", "stvk", "linear_elastic"

Case = tuple[supple.Scene, Callable[[supple.Scene], np.ndarray] | None]
"""A scene with its start, if that is not at rest."""


def pinned_scene(
    mesh: supple.TetMesh, material: Any, low: int, depth: float, density: float = 1000
) -> supple.Scene:
    """A body under gravity, pinned up to a depth [m] at its low end of an axis."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, material, density=density)
    least = np.asarray(mesh.points)[:, low].min()
    scene.pin(body.where(lambda X: X[:, low] <= least + depth))
    return scene


def of(name: str, young: float, poisson: float = 0.4) -> Any:
    return MATERIALS[name](young=young, poisson=poisson)


def bar(cells: int, young: float, name: str = "corotated", poisson: float = 0.4) -> Case:
    """20:1:1, two metres long, clamped at one end."""
    mesh = supple.block((20 * cells, cells, cells), (2, 0.1, 0.1))
    return pinned_scene(mesh, of(name, young, poisson), 0, 1e-9), None


def plate(young: float, name: str = "corotated", poisson: float = 0.3) -> Case:
    """50:50:1, clamped along one side."""
    return pinned_scene(supple.block((25, 1, 25), (1, 0.02, 1)), of(name, young, poisson), 0, 1e-9), None


def organic(file: str, young: float, name: str = "corotated", poisson: float = 0.4) -> Case:
    """A mesh from SUPPLE_DATA of size 1, pinned at its feet."""
    mesh = supple.load_mesh(Path(str(DATA)) / file)
    points = np.asarray(mesh.points) / np.ptp(mesh.points, axis=0).max()
    return pinned_scene(
        supple.TetMesh(points, np.asarray(mesh.tets)), of(name, young, poisson), 1, 0.05
    ), None


def ring(young: float, name: str = "neo_hookean") -> Case:
    """A ring that hangs from one side."""
    mesh = supple.meshes.torus(0.5, 0.12, 3)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of(name, young), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] < -0.52))
    return scene, None


def armadillo(young: float, name: str = "stable_neo_hookean") -> Case:
    """A surface tetrahedralized with edges of 7 cm, pinned at its ears."""
    file = Path(__file__).parent.parent / "scenes" / "armadillo_drop.toml"
    mesh = supple.load_scene(file).scene.bodies[0].mesh
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of(name, young), density=1000)
    scene.pin(body.where(lambda X: (X[:, 1] > 0.36) & (np.abs(X[:, 0]) < 0.25)))
    return scene, None


def wrung(angle: float, name: str = "corotated") -> Case:
    """A bar of 5:1:1 whose end is rotated about its axis [rad]; it starts uniformly twisted, since full turns
    of the end alone would have no effect."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((30, 6, 6), (1, 0.2, 0.2)), of(name, 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    turn = supple.Rotate(axis=(1, 0, 0), angle=angle, **{CENTER: (1, 0.1, 0.1)})
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=turn)
    twist = supple.Twist(axis=(1, 0, 0), rate=angle, **{CENTER: (0, 0.1, 0.1)})
    return scene, lambda scene: twist(np.array(body.points), np.inf)


def column() -> Case:
    """A column compressed by 10 % with a lateral perturbation of a millionth of its height, so that it
    buckles."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((3, 30, 3), (0.1, 1, 0.1)), of("corotated", 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 1] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 1] > 1 - 1e-9), motion=supple.Translate((0, -0.1, 0)))

    def pushed(scene: supple.Scene) -> np.ndarray:
        x = np.concatenate([body.points for body in scene.bodies])
        x[:, 0] += 1e-6 * np.sin(np.pi * x[:, 1])
        return x

    return scene, pushed


def hanging(stiffness: float) -> Case:
    """Blocks of non-matching meshes, one hanging from the other by stiff springs."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    top = scene.add_solid(supple.block((6, 6, 6), origin=(0, 1, 0)), of("corotated", 1e6, 0.3), density=1000)
    low = scene.add_solid(supple.block((5, 5, 5)), of("corotated", 1e5, 0.3), density=1000)
    scene.pin(top.where(lambda X: X[:, 1] > 2 - 1e-9))
    scene.attach(low.where(lambda X: X[:, 1] > 1 - 1e-9), top, stiffness=stiffness)
    return scene, None


def tangled(flat: bool, name: str = "corotated") -> Case:
    """A block whose vertices start at random positions, or all in one plane."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((8, 8, 8)), of(name, 1e3, 0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))

    def start(scene: supple.Scene) -> np.ndarray:
        x = np.array(body.points)
        return x * [1, 0, 1] if flat else np.random.default_rng(1).uniform(0, 1, x.shape)

    return scene, start


def shipped(name: str) -> Case:
    """A scene of the gallery."""
    file = Path(__file__).parent.parent / "scenes" / f"{name}.toml"
    with tempfile.TemporaryDirectory() as folder:
        spelt = Path(folder) / file.name
        spelt.write_text(file.read_text(encoding="utf-8").replace("center", CENTER), encoding="utf-8")
        return supple.load_scene(spelt).scene, None


CASES: dict[str, Callable[[], Case]] = {
    "bar 4K soft": lambda: bar(5, 1e5),
    "bar 4K": lambda: bar(5, 1e6),
    "bar 4K stiff": lambda: bar(5, 1e8),
    "bar 4K 0.3": lambda: bar(5, 1e6, poisson=0.3),
    "bar 4K 0.49": lambda: bar(5, 1e6, poisson=0.49),
    "bar 4K 0.4995": lambda: bar(5, 1e6, "stable_neo_hookean", 0.4995),
    **{f"bar 2K {name}": lambda name=name: bar(4, 1e6, name, 0.3) for name in ISOTROPIC},
    "bar 40K": lambda: bar(12, 1e6),
    "plate soft": lambda: plate(1e6),
    "plate": lambda: plate(1e7),
    "plate stiff": lambda: plate(1e8),
    "plate 0.4995": lambda: plate(1e7, "stable_neo_hookean", 0.4995),
    "ring soft": lambda: ring(2e4),
    "ring stiff": lambda: ring(1e6),
    "octopus 2e4": lambda: organic("octopus-low.mesh", 2e4),
    **{
        f"octopus 2e5 {name}": lambda name=name: organic("octopus-low.mesh", 2e5, name)
        for name in ISOTROPIC
        if name != "linear_elastic"
    },
    "octopus 2e5 0.49": lambda: organic("octopus-low.mesh", 2e5, poisson=0.49),
    "octopus 2e5 0.4995": lambda: organic("octopus-low.mesh", 2e5, poisson=0.4995),
    "octopus 2e6": lambda: organic("octopus-low.mesh", 2e6),
    "bunny 2e4": lambda: organic("bunny.mesh", 2e4),
    "bunny 2e5": lambda: organic("bunny.mesh", 2e5),
    "bunny 2e6": lambda: organic("bunny.mesh", 2e6),
    "armadillo 5e4": lambda: armadillo(5e4),
    "armadillo 1e6": lambda: armadillo(1e6, "corotated"),
    "wrung two turns": lambda: wrung(4 * np.pi),
    "wrung half a turn": lambda: wrung(np.pi, "stable_neo_hookean"),
    "wrung log_neo_hookean": lambda: wrung(np.pi, "log_neo_hookean"),
    "column": column,
    "hanging 1e4": lambda: hanging(1e4),
    "hanging 1e8": lambda: hanging(1e8),
    "scrambled": lambda: tangled(False),
    "scrambled log_neo_hookean": lambda: tangled(False, "log_neo_hookean"),
    "flattened": lambda: tangled(True, "stable_neo_hookean"),
    "sandwich": lambda: shipped("sandwich"),
    "muscle": lambda: shipped("muscle"),
    "twist": lambda: shipped("twist"),
    "bar 300K": lambda: bar(24, 1e6),
}

NEEDS_DATA = "octopus", "bunny", "armadillo"


def available() -> list[str]:
    """Names of the cases, without those of missing meshes."""
    return [name for name in CASES if DATA or not name.startswith(NEEDS_DATA)]
