"""The cases of arrive_more.py: shapes, sizes, stiffnesses, supports and starts in addition to those of
arrive.py, and every material of the list on a slender bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import supple
from supple.materials import MATERIALS, examples_of

Case = tuple[supple.Scene, np.ndarray | None]
"""A scene with its start, if that is not at rest."""


def of(name: str, young: Any, poisson: float = 0.4) -> Any:
    return MATERIALS[name](young=young, poisson=poisson)


def pinned_scene(
    mesh: supple.TetMesh, material: Any, depth: float = 1e-9, density: float = 1000.0
) -> supple.Scene:
    """A body under gravity, pinned at its low end of x."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, material, density=density)
    least = np.asarray(mesh.points)[:, 0].min()
    scene.pin(body.where(lambda X: X[:, 0] <= least + depth))
    return scene


def mapped(cells: tuple[int, int, int], position: Callable[[np.ndarray], np.ndarray]) -> supple.TetMesh:
    """A block whose unit coordinates are mapped to other points."""
    mesh = supple.block(cells)
    return supple.TetMesh(position(np.asarray(mesh.points)), np.asarray(mesh.tets))


def thin_ring() -> Case:
    """A slit ring whose wall is a hundredth of its radius, pinned at one end of the slit."""

    def mapping(X: np.ndarray) -> np.ndarray:
        angle, radius = 1.95 * np.pi * X[:, 0], 0.505 - 0.005 * X[:, 1]
        return np.stack([radius * np.sin(angle), -radius * np.cos(angle), 0.05 * X[:, 2]], axis=1)

    mesh = mapped((80, 1, 3), mapping)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("stable_neo_hookean", 1e8, 0.3), density=1000)
    scene.pin(body.where(lambda X: (np.abs(X[:, 0]) < 1e-9) & (X[:, 1] < -0.4)))
    return scene, None


def coil() -> Case:
    """Four turns of a square wire, pinned at the top."""

    def mapping(X: np.ndarray) -> np.ndarray:
        angle = 8 * np.pi * X[:, 0]
        radius = 0.3 + 0.03 * (X[:, 1] - 0.5)
        height = -0.12 * angle / (2 * np.pi) + 0.03 * (X[:, 2] - 0.5)
        return np.stack([radius * np.cos(angle), height, radius * np.sin(angle)], axis=1)

    mesh = mapped((160, 2, 2), mapping)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("corotated", 1e7, 0.3), density=1000)
    scene.pin(body.where(lambda X: (X[:, 1] > -0.02) & (X[:, 0] > 0) & (np.abs(X[:, 2]) < 1e-9)))
    return scene, None


def remote_ties() -> Case:
    """Blocks of non-matching meshes tied by stiff springs, ten kilometers away."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    away = np.array([1e4, -2e3, 5e3])
    top = scene.add_solid(
        supple.block(4, origin=away + np.array([0, 1, 0])), of("corotated", 1e6, 0.3), density=1000
    )
    low = scene.add_solid(supple.block(3, origin=away), of("corotated", 1e5, 0.3), density=1000)
    scene.pin(top.where(lambda X: X[:, 1] > away[1] + 2 - 1e-6))
    scene.attach(low.where(lambda X: X[:, 1] > away[1] + 1 - 1e-6), top, stiffness=1e8)
    return scene, None


def chain() -> Case:
    """Six blocks, each hanging from the one above by stiff springs."""
    scene, above = supple.Scene(gravity=(0, -9.8, 0)), None
    for k in range(6):
        mesh = supple.block(2 + k % 2, (0.3, 0.3, 0.3), origin=(0, -0.3 * k, 0))
        body = scene.add_solid(mesh, of("stable_neo_hookean", 1e5, 0.45), density=1000)
        if above is None:
            scene.pin(body.where(lambda X: X[:, 1] > 0.3 - 1e-9))
        else:
            scene.attach(body.where(lambda X, y=0.3 - 0.3 * k: X[:, 1] > y - 1e-9), above, stiffness=1e8)
        above = body
    return scene, None


def wrung_thrice() -> Case:
    """A bar of 10:1:1 whose end is rotated three times; it starts uniformly twisted."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((40, 4, 4), (2, 0.2, 0.2)), of("stable_neo_hookean", 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    turn = supple.Rotate(axis=(1, 0, 0), angle=6 * np.pi, center=(2, 0.1, 0.1))
    scene.pin(body.where(lambda X: X[:, 0] > 2 - 1e-9), motion=turn)
    twist = supple.Twist(axis=(1, 0, 0), rate=6 * np.pi, center=(0, 0.1, 0.1))
    return scene, twist(np.array(body.points), np.inf)


def scrambled_bar(name: str) -> Case:
    """A slender bar with random initial vertex positions."""
    mesh = supple.block((30, 2, 2), (1.5, 0.1, 0.1))
    scene = pinned_scene(mesh, of(name, 1e6, 0.3))
    points = np.asarray(mesh.points)
    x = np.random.default_rng(3).uniform(points.min(axis=0), points.max(axis=0), points.shape)
    return scene, x


def one_tet(pinned: int) -> Case:
    """One tetrahedron with some corners pinned, under gravity, or initially stretched if none is pinned."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    scene = supple.Scene(gravity=(0, -9.8 if pinned else 0, 0))
    body = scene.add_solid(supple.TetMesh(points, [[0, 1, 2, 3]]), of("neo_hookean", 1e5), density=1000)
    if pinned:
        scene.pin(body.where(lambda X: np.isin(np.arange(4), np.arange(pinned))))
    return scene, None if pinned else 1.5 * points


def loose_parts() -> Case:
    """A mesh of three separate unsupported parts, initially compressed."""
    parts = [supple.block(2, (0.5, 0.5, 0.5), origin=(2.0 * k, 0, 0)) for k in range(3)]
    mesh = supple.meshes.merge(parts)
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(mesh, of("stable_neo_hookean", 1e4), density=100)
    return scene, np.asarray(mesh.points) * [1, 0.6, 1.2]


def rollers() -> Case:
    """A block on rollers on three sides, under gravity and a pull."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.block((4, 4, 4)), of("log_neo_hookean", 1e5), density=1000)
    for axis, name in enumerate("xyz"):
        scene.pin(body.where(lambda X, axis=axis: X[:, axis] < 1e-9), axes=name)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((0.5, 0, 0)), axes="x")
    return scene, None


def graded(lowest: float = 1e-5) -> Case:
    """A bar whose cells grow along it from a size [m] to a tenth of its length, with a taper."""

    def mapping(X: np.ndarray) -> np.ndarray:
        s = lowest ** (1 - X[:, 0])
        width = 0.2 * s[:, None]
        return np.concatenate([s[:, None], width * (X[:, 1:] - 0.5)], axis=1)

    mesh = mapped((40, 2, 2), mapping)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("corotated", 1e6, 0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9))
    return scene, None


def tapered_from_tip() -> Case:
    """A tapered bar of steel-like stiffness, pinned at its tip of a fifth of a millimeter."""
    mesh = graded(1e-3)[0].bodies[0].mesh
    return pinned_scene(mesh, of("stable_neo_hookean", 1e11, 0.3), 1e-6), None


def slabs(lowest: float) -> Case:
    """A bar with large bending, whose cells grow from thin slabs at the pin to its free end."""
    mesh = mapped((30, 2, 2), lambda X: X * [1, 0.1, 0.1])
    points = np.array(mesh.points)
    points[:, 0] = (lowest ** (1 - points[:, 0]) - lowest) / (1 - lowest)
    return pinned_scene(supple.TetMesh(points, np.asarray(mesh.tets)), of("corotated", 1e6, 0.3)), None


def contrast(factor: float) -> Case:
    """A bar of alternating soft and stiff segments."""
    mesh = supple.block((20, 2, 2), (2, 0.2, 0.2))
    middle = np.asarray(mesh.points)[np.asarray(mesh.tets)].mean(axis=1)[:, 0]
    return pinned_scene(mesh, of("corotated", np.where(middle % 0.4 < 0.2, 1e4, 1e4 * factor))), None


def needles() -> Case:
    """Cells with an aspect ratio of a thousand."""
    return pinned_scene(supple.block((3, 3, 3), (30, 0.03, 0.03)), of("corotated", 1e10, 0.3)), None


def sized(size: float) -> Case:
    """A bar of 10:1:1 of some length [m], with equal relative bending at every size."""
    mesh = supple.block((20, 2, 2), (size, 0.1 * size, 0.1 * size))
    return pinned_scene(mesh, of("stable_neo_hookean", 1e6 * size, 0.3), 1e-6 * size), None


def remote_bar() -> Case:
    """A bar a thousand kilometers away."""
    mesh = supple.block((20, 2, 2), (1, 0.1, 0.1), origin=(1e6, 1e6, -1e6))
    return pinned_scene(mesh, of("corotated", 1e6, 0.3), 1e-3), None


def heavy_end() -> Case:
    """A soft bar with a block at its end that is ten thousand times heavier."""
    scene, material = supple.Scene(gravity=(0, -9.8, 0)), of("neo_hookean", 1e6)
    end = supple.scene.Region("end", lambda X: X[:, 0] > 0.95, material, density=1e5)
    body = scene.add_solid(supple.block((20, 2, 2), (1, 0.1, 0.1)), material, density=10.0, regions=[end])
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    return scene, None


def thin_plate() -> Case:
    """200:200:1, pinned at one side."""
    return pinned_scene(supple.block((24, 1, 24), (1, 0.005, 1)), of("stable_neo_hookean", 1e9, 0.3)), None


def pressed_plate() -> Case:
    """A flat plate compressed exactly in its plane, so that the solver must detect buckling."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((24, 1, 6), (1, 0.02, 0.25)), of("corotated", 1e6, 0.3))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((-0.05, 0, 0)))
    return scene, None


def squeezed(name: str) -> Case:
    """A block between plates that reduce its height to a fifth."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(5), of(name, 1e5, 0.3))
    scene.pin(body.where(lambda X: X[:, 1] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 1] > 1 - 1e-9), motion=supple.Translate((0, -0.8, 0)))
    points = np.array(body.points)
    return scene, points * [1, 0.2, 1]


def strongly_stretched() -> Case:
    """A body stretched tenfold."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block((10, 3, 3), (1, 0.3, 0.3)), of("log_neo_hookean", 1e5, 0.45))
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    scene.pin(body.where(lambda X: X[:, 0] > 1 - 1e-9), motion=supple.Translate((9, 0, 0)))
    return scene, None


def soft_coil() -> Case:
    """Eight turns of a round wire that its weight stretches to several times its height."""

    def mapping(X: np.ndarray) -> np.ndarray:
        angle = 16 * np.pi * X[:, 0]
        across, up = 0.02 * (X[:, 1] - 0.5), 0.02 * (X[:, 2] - 0.5)
        return np.stack(
            [(0.2 + across) * np.cos(angle), up - 0.05 * angle / (2 * np.pi), (0.2 + across) * np.sin(angle)],
            axis=1,
        )

    mesh = mapped((240, 1, 1), mapping)
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, of("stable_neo_hookean", 3e6, 0.45), density=1000)
    scene.pin(body.where(lambda X: np.arange(len(X)) < 4))
    return scene, None


def shell() -> Case:
    """A hollow ball with a wall of one tetrahedron, on its lowest part."""
    surface = supple.meshes.sphere(1.0, 8)
    outer, triangles = np.asarray(surface.points), np.sort(np.asarray(surface.triangles), axis=1)
    n = len(outer)
    a, b, c = triangles.T
    prisms = [[a, b, c, c + n], [a, b, b + n, c + n], [a, a + n, b + n, c + n]]
    tets = np.concatenate([np.stack(corners, axis=1) for corners in prisms])
    points = np.concatenate([outer, 0.97 * outer])
    edges = points[tets[:, 1:]] - points[tets[:, :1]]
    inside_out = np.linalg.det(edges) < 0
    tets[inside_out] = tets[inside_out][:, [0, 1, 3, 2]]
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.TetMesh(points, tets), of("neo_hookean", 3e6, 0.45), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] < -0.9))
    return scene, None


def tied_at_a_point() -> Case:
    """A bar tied stiffly to one corner of another one, so that it swings down rigidly."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    top = scene.add_solid(supple.block((4, 2, 2), (1, 0.2, 0.2)), of("corotated", 1e7, 0.3))
    scene.pin(top.where(lambda X: X[:, 0] < 1e-9))
    low = scene.add_solid(
        supple.block((5, 1, 1), (1, 0.15, 0.15), origin=(1, 0, 0)), of("stable_neo_hookean", 1e6, 0.4)
    )
    scene.attach(low.where(lambda X: (np.abs(X - [1, 0, 0]) < 1e-9).all(axis=1)), top, stiffness=1e8)
    return scene, None


def tied_and_free() -> Case:
    """Two unsupported blocks tied by stiff springs, one of them stretched."""
    scene = supple.Scene(gravity=(0, 0, 0))
    one = scene.add_solid(supple.block(3), of("stable_neo_hookean", 1e5))
    other = scene.add_solid(supple.block(2, origin=(0, 1, 0)), of("corotated", 1e7))
    scene.attach(other.where(lambda X: X[:, 1] < 1 + 1e-9), one, stiffness=1e8)
    return scene, np.concatenate([np.asarray(one.points) * [1.3, 1, 1], np.asarray(other.points)])


def hung_at(count: int) -> Case:
    """A bar pinned at some vertices of one end, from which it swings down."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(
        supple.block((10, 2, 2), (1, 0.2, 0.2)), of("stable_neo_hookean", 1e6), density=100
    )
    scene.pin(body.where(np.arange(count)))
    return scene, None


def nothing() -> Case:
    """A body without pins or loads, at rest."""
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(3), of("log_neo_hookean", 1e5))
    return scene, None


def slivers() -> Case:
    """Tetrahedra whose smallest dihedral angles are about a degree."""
    mesh = supple.block((8, 6, 6), (1, 0.01, 0.2))
    points = np.array(mesh.points)
    points[:, 1] *= 1 + 3 * points[:, 0]
    return pinned_scene(supple.TetMesh(points, np.asarray(mesh.tets)), of("neo_hookean", 1e8, 0.45)), None


def half_mirrored(name: str) -> Case:
    """A bar with one half initially inverted and some vertices of the other at random positions."""
    mesh = supple.block((12, 3, 3), (1, 0.25, 0.25))
    scene, x = pinned_scene(mesh, of(name, 1e6, 0.3)), np.array(mesh.points)
    x[x[:, 0] > 0.5, 1] *= -1
    moved = np.random.default_rng(5).random(len(x)) < 0.2
    x[moved] += np.random.default_rng(6).normal(0, 0.1, (int(moved.sum()), 3))
    return scene, x


def scrambled_block(poisson: float) -> Case:
    """A nearly incompressible block with random initial vertex positions."""
    mesh = supple.block(5)
    scene = pinned_scene(mesh, of("stable_neo_hookean", 1e5, poisson))
    return scene, np.random.default_rng(3).uniform(0, 1, (len(mesh.points), 3))


def light() -> Case:
    """A body with almost no mass."""
    return pinned_scene(supple.block((20, 2, 2), (1, 0.1, 0.1)), of("corotated", 1e6), density=1e-12), None


def slender(name: str) -> Case:
    """A bar of 20:1:1 of any material, whose directions are along the bar."""
    kind = MATERIALS[name]
    declared = {p.name: p for p in kind.parameters}
    given: dict[str, Any] = {"young": 1e6, "poisson": 0.3}
    stiffer = {p.name: examples_of(kind)[p.name] * 10 for p in kind.parameters if p.unit == "Pa"}
    material = kind.example(**stiffer | {k: v for k, v in given.items() if k in declared})
    return pinned_scene(supple.block((20, 2, 2), (2, 0.2, 0.2)), material, density=200), None


CASES: dict[str, Callable[[], Case]] = {
    "thin ring": thin_ring,
    "coil": coil,
    "ties 1e8 far away": remote_ties,
    "chain of ties 1e8": chain,
    "slender 0.4999": lambda: (
        pinned_scene(supple.block((60, 2, 2), (3, 0.1, 0.1)), of("stable_neo_hookean", 1e7, 0.4999)),
        None,
    ),
    "slender 0.49999": lambda: (
        pinned_scene(supple.block((20, 2, 2), (1, 0.1, 0.1)), of("stable_neo_hookean", 1e6, 0.49999)),
        None,
    ),
    "wrung three turns": wrung_thrice,
    "scrambled bar": lambda: scrambled_bar("corotated"),
    "scrambled bar log_neo_hookean": lambda: scrambled_bar("log_neo_hookean"),
    **{f"one tet, {k} held": lambda k=k: one_tet(k) for k in (0, 1, 2, 3)},
    "loose parts": loose_parts,
    "rollers": rollers,
    "graded 1e-3": lambda: graded(1e-3),
    "graded 1e-5": graded,
    "held at its thin tip": tapered_from_tip,
    "slabs 1e-3": lambda: slabs(1e-3),
    "slabs 1e-5": lambda: slabs(1e-5),
    "contrast 1e3": lambda: contrast(1e3),
    "contrast 1e6": lambda: contrast(1e6),
    "needles": needles,
    "a micrometre": lambda: sized(1e-6),
    "ten kilometres": lambda: sized(1e4),
    "far bar": remote_bar,
    "heavy end": heavy_end,
    "thin plate": thin_plate,
    "pressed plate": pressed_plate,
    "squeezed corotated": lambda: squeezed("corotated"),
    "squeezed log_neo_hookean": lambda: squeezed("log_neo_hookean"),
    "stretched far": strongly_stretched,
    "soft coil": soft_coil,
    "shell one tet thick": shell,
    "tied at a point 1e8": tied_at_a_point,
    "tied 1e8, nothing held": tied_and_free,
    "held at one vertex": lambda: hung_at(1),
    "held at two vertices": lambda: hung_at(2),
    "no pins, no loads": nothing,
    "a thousand kilometres": lambda: sized(1e6),
    "next to no mass": light,
    "scrambled 0.4995": lambda: scrambled_block(0.4995),
    "slivers of a degree": slivers,
    "half inside out log_neo_hookean": lambda: half_mirrored("log_neo_hookean"),
    "half inside out stvk": lambda: half_mirrored("stvk"),
    **{f"bar of {name}": lambda name=name: slender(name) for name in MATERIALS},
}
