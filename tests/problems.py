"""Shared lists of property tests: materials, terms, solvers, precisions, and small problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import supple
from supple.materials import MATERIALS, MEMBRANES, Material, evolving, examples_of
from supple.model.model import Model
from supple.problem import Problem
from supple.terms import (
    HingeBending,
    IsometricBending,
    PointSprings,
    Springs,
    TriangleElasticity,
    bending_terms,
)

YOUNG, POISSON = 1e3, 0.3

PRECISIONS = ("float32", "float64")

HAND_WRITTEN = {
    name: kind for name, kind in MATERIALS.items() if not hasattr(kind, "psi") and not evolving(kind)
}
"""Materials with formulas for their derivatives: every solver is tested with all of them. A few materials
with derivatives from ψ represent the others; inelastic materials have separate tests."""

BARRIERS = [name for name, kind in HAND_WRITTEN.items() if kind.barrier]
FINITE = [name for name, kind in HAND_WRITTEN.items() if not kind.barrier]
"""Materials whose energy is finite for every F."""

SELF_RECOVERING = ("corotated", "neo_hookean", "stable_neo_hookean")
"""Materials that return to rest from any start, since inversion costs energy."""

PBNGS = {
    "none": supple.PBNG(acceleration="none"),
    "sor": supple.PBNG(acceleration="sor"),
    "chebyshev": supple.PBNG(acceleration="chebyshev"),
    "anderson": supple.PBNG(acceleration="anderson"),
    "paper_sor": supple.PBNG(acceleration="paper_sor"),
    "paper_chebyshev": supple.PBNG(acceleration="paper_chebyshev"),
}

NEWTONS = {
    "exact-multilevel": supple.Newton(hessian="exact", linear_solver="multilevel"),
    "projected-multilevel": supple.Newton(hessian="projected", linear_solver="multilevel"),
    "projected-direct": supple.Newton(hessian="projected", linear_solver="direct"),
    "projected-amg": supple.Newton(hessian="projected", linear_solver="amg"),
    "projected-cg": supple.Newton(hessian="projected", linear_solver="cg"),
    "exact-direct": supple.Newton(hessian="exact", linear_solver="direct"),
    "bound-direct": supple.Newton(hessian="bound", linear_solver="direct"),
}


def material(name: str, young: Any = YOUNG, poisson: Any = POISSON, **given: Any) -> Any:
    """A material of the list with parameters that suit the problems below; other parameters are those of its
    examples."""
    kind, given = (MATERIALS | MEMBRANES)[name], {"young": young, "poisson": poisson, **given}
    declared = [parameter.name for parameter in kind.parameters]
    softer = {p.name: examples_of(kind)[p.name] * YOUNG / 1e5 for p in kind.parameters if p.unit == "Pa"}
    return kind.example(**softer | {key: value for key, value in given.items() if key in declared})


def face(axis: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Predicate of the points with X[axis] = value."""
    return lambda X: np.abs(X[:, axis] - value) < 1e-9


def affine(A: np.ndarray, b: np.ndarray | float = 0.0) -> Callable[[np.ndarray, float], np.ndarray]:
    """The motion x = A X + b, complete at any time."""
    return lambda X, t: X @ np.asarray(A).T + b


def cantilever(kind: Material, cells: Any = 3, gravity: float = 10.0, density: float = 2.0) -> supple.Scene:
    """A unit block that sticks out of a wall at x = 0."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    body = scene.add_solid(supple.block(cells), kind, density=density)
    scene.pin(body.where(face(0, 0)))
    return scene


def twisted(kind: Material, cells: Any = 4, angle: float = 0.5, stretch: float = 0.1) -> supple.Scene:
    """A unit block whose end is rotated and pulled."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), kind, density=10)
    scene.pin(body.where(face(0, 0)))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=angle)
    scene.pin(body.where(face(0, 1)), motion=turn + supple.Translate((stretch, 0, 0)))
    return scene


def tied_blocks(upper: Material, lower: Material, stiffness: float = 1e4, cells: Any = 2) -> supple.Scene:
    """A block that hangs from another one, with matching meshes."""
    scene = supple.Scene(gravity=(0, -1, 0))
    top = scene.add_solid(supple.block(cells, origin=(0, 1, 0)), upper, density=10)
    below = scene.add_solid(supple.block(cells), lower, density=10)
    scene.pin(top.where(face(1, 2)))
    scene.attach(below.where(face(1, 1)), top.where(face(1, 1)), stiffness=stiffness)
    return scene


def hung(stiffness: float = 1e4, upper: Any = 3, lower: Any = 2, kind: Any = None) -> supple.Scene:
    """A block that hangs from another one by points between the vertices of the upper one."""
    scene = supple.Scene(gravity=(0, -1, 0))
    kind = kind or material("corotated")
    top = scene.add_solid(supple.block(upper, origin=(0, 1, 0)), kind, density=10)
    below = scene.add_solid(supple.block(lower), kind, density=10)
    scene.pin(top.where(face(1, 2)))
    scene.attach(below.where(face(1, 1)), top, stiffness=stiffness)
    return scene


def tendon(stiffness: float = 1e4) -> supple.Scene:
    """A stiff slender bar whose end is tied into a soft block."""
    scene = supple.Scene(gravity=(0, -1, 0))
    block = scene.add_solid(supple.block(3), material("corotated"), density=10)
    mesh = supple.block((8, 1, 1), size=(1.2, 0.1, 0.1), origin=(0.7, 0.45, 0.45))
    bar = scene.add_solid(mesh, material("corotated", young=1e6), density=10)
    scene.pin(block.where(face(0, 0)))
    scene.attach(bar.where(lambda X: X[:, 0] < 1), block, stiffness=stiffness)
    return scene


def layers(stiffness: float = 1e4) -> supple.Scene:
    """A soft core between stiff faces, all three with different cells."""
    scene, before = supple.Scene(gravity=(0, -9.8, 0)), None
    for cells, young, height, y in (
        ((8, 1, 3), 2e6, 0.06, 0.0),
        ((6, 2, 2), 2e4, 0.25, 0.06),
        ((9, 1, 4), 2e6, 0.06, 0.31),
    ):
        mesh = supple.block(cells, size=(1, height, 0.5), origin=(0, y, 0))
        layer = scene.add_solid(mesh, material("corotated", young=young), density=300)
        scene.pin(layer.where(face(0, 0)))
        if before is not None:
            scene.attach(layer.where(face(1, y)), before, stiffness=stiffness)
        before = layer
    return scene


def chained(stiffness: float = 1e4) -> supple.Scene:
    """Three blocks, each tied to the one above, the lowest to both; some ties are redundant."""
    scene = supple.Scene(gravity=(0, -1, 0))
    kind = material("corotated")
    top, middle, below = (
        scene.add_solid(supple.block(cells, (1, 0.5, 1), origin=(0, y, 0)), kind, density=10)
        for cells, y in (((2, 1, 2), 1.0), ((3, 1, 3), 0.5), ((2, 2, 2), 0.25))
    )
    scene.pin(top.where(face(1, 1.5)))
    scene.attach(middle.where(face(1, 1)), top, stiffness=stiffness)
    scene.attach(below.where(lambda X: X[:, 1] > 0.6), middle, stiffness=2 * stiffness)
    scene.attach(below.where(lambda X: (X[:, 1] > 0.6) & (X[:, 0] < 0.3)), top, stiffness=0.5 * stiffness)
    scene.attach(middle.where(face(1, 1)), top, stiffness=stiffness)
    return scene


NON_MATCHING_TIES = {"hung": hung, "tendon": tendon, "layers": layers, "chained": chained}
"""Scenes with ties of a given stiffness [N/m] that end between vertices."""


def scrambled(model: Model, seed: int = 0) -> np.ndarray:
    """All vertices at random positions in the bounding box."""
    low, high = model.rest.min(axis=0), model.rest.max(axis=0)
    return np.random.default_rng(seed).uniform(low, high, model.rest.shape)


def flattened(model: Model) -> np.ndarray:
    """All vertices at y = 0."""
    return model.rest * [1, 0, 1]


def perturbed(problem: Problem, amount: float, seed: int = 0) -> Problem:
    """The problem after random displacements of all free vertices by about `amount` [m]."""
    free = np.flatnonzero(problem.model.free)
    noise = np.random.default_rng(seed).uniform(-amount, amount, (len(free), 3))
    problem.u[free, :3] += noise.astype(problem.dtype)
    return problem


def matrix(F: Any) -> np.ndarray:
    return np.array(F, float).reshape(3, 3)


def flat(F: np.ndarray) -> tuple[float, ...]:
    """A matrix as the row-major tuple of physics functions."""
    return tuple(np.asarray(F, float).ravel().tolist())


def rotations(count: int, seed: int = 0) -> np.ndarray:
    """(count, 3, 3) proper rotations."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(count, 3, 3)))
    return Q * np.sign(np.linalg.det(Q))[:, None, None]


def stretches(values: Any, count: int = 20, seed: int = 0) -> np.ndarray:
    """(count, 3, 3) matrices with these singular values and random axes; one negative value inverts."""
    return rotations(count, seed) @ np.diag(np.asarray(values, float)) @ rotations(count, seed + 1)


NEARLY_CANCELLING = [(1, 0.5, -0.2), (1, 1, -0.8), (1.5, 0.5, -0.4), (1, 0.05, -0.01), (2, 1, -0.98)]
"""Stretches of inverted elements, two of which nearly cancel, so that the rotation of F is
ill-conditioned."""


def deformations(count: int = 20, seed: int = 0, inverted: bool = False) -> np.ndarray:
    """(count, 3, 3) random deformation gradients with principal stretches from 0.5 to 2; inverted ones have
    one small negative stretch, so that their rotation is unique."""
    random = np.random.default_rng(seed)
    values = random.uniform(0.5, 2.0, (count, 3))
    if inverted:
        values[:, 2] = -random.uniform(0.1, 0.2, count)
    return rotations(count, seed + 1) @ (values[:, :, None] * rotations(count, seed + 2))


THICKNESS = 0.01


def sheet(cells=4):
    """Points (n, 3) of a unit square in the plane z = 0, and its triangles (m, 3)."""
    line = np.linspace(0, 1, cells + 1)
    points = np.stack([*np.meshgrid(line, line, indexing="ij"), np.zeros((cells + 1,) * 2)], axis=-1)
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    step = cells + 1
    lower = np.stack([corner, corner + step, corner + step + 1], axis=1)
    upper = np.stack([corner, corner + step + 1, corner + 1], axis=1)
    return points.reshape(-1, 3), np.concatenate([lower, upper])


def model_of(points, *terms, pinned=(), stretch=1.0, gravity=(0, 0, -10)):
    """A model of terms on points, with pinned points scaled by `stretch` in the plane."""
    n, pinned = len(points), np.asarray(pinned, int)
    mass = np.full(n, 1.0 / n)
    targets = points[pinned] * [stretch, stretch, 1]
    no_tets = np.empty((0, 4), int)
    return Model(points, mass, mass[:, None] * gravity, pinned, lambda t: targets, terms, no_tets)


def edges_of(triangles):
    pairs = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def border(points):
    return np.flatnonzero((points[:, :2] == 0).any(axis=1) | (points[:, :2] == 1).any(axis=1))


def net(stiffness=300.0, **changes):
    """A square net of springs, pinned at its stretched border, so that it resists its weight."""
    points, triangles = sheet()
    springs = Springs.between(points, edges_of(triangles), stiffness)
    return model_of(points, springs, pinned=border(points), **{"stretch": 1.1, **changes})


def hung_net(stiffness=300.0, stretch=1.25, **changes):
    """A square net whose border hangs by springs from fixed points outside, longer by `stretch` than at
    rest."""
    points, triangles = sheet()
    springs = Springs.between(points, edges_of(triangles), stiffness)
    edge = border(points)
    hooks = (0.5 + 1.6 * (points[edge] - 0.5)) * [1, 1, 0]
    length = np.linalg.norm(hooks - points[edge], axis=1) / stretch
    given = edge[:, None].astype(np.int32), np.full(len(edge), stiffness), length[:, None], points
    return model_of(points, springs, PointSprings(*given, points=hooks), **changes)


def membrane(name="corotated", young=1e5, **changes):
    """A drum: a membrane pinned at its stretched border."""
    points, triangles = sheet()
    kind = material(name, young=young) if isinstance(name, str) else name
    term = TriangleElasticity.from_mesh(points, triangles, kind, THICKNESS)
    return model_of(points, term, pinned=border(points), **{"stretch": 1.1, **changes})


BIAS_WEAVE = supple.materials.WovenStVK(
    young_weft=2e5, young_warp=5e4, shear_modulus=1e4, poisson_weft=0.4, poisson_warp=0.1, direction=(2, 1, 0)
)
"""A weave whose threads are oblique to the axes."""


def bent(cells=4):
    """A sheet rolled to a part of a cylinder, with ripples: points (n, 3) and triangles (m, 3)."""
    points, triangles = sheet(cells)
    x, y, _ = points.T
    return np.stack([np.sin(x), y, 1 - np.cos(x) + 0.05 * np.sin(7 * x + 5 * y)], axis=1), triangles


def hinged(stiffness=3.0, shape=bent, **options):
    """Only hinges, between the triangles of a shape at rest."""
    points, triangles = shape()
    return model_of(
        points,
        *bending_terms(HingeBending(stiffness, **options), points, triangles, points),
        gravity=(0, 0, 0),
    )


def isometric(stiffness=3.0):
    """Only isometric bending of a flat sheet."""
    points, triangles = sheet()
    return model_of(
        points, *bending_terms(IsometricBending(stiffness), points, triangles, points), gravity=(0, 0, 0)
    )


def plate(bending=HingeBending, stiffness=0.05, **changes):
    """A drum with bending stiffness."""
    points, triangles = sheet()
    term = TriangleElasticity.from_mesh(points, triangles, material("corotated", young=1e5), THICKNESS)
    terms = (term, *bending_terms(bending(stiffness), points, triangles, points))
    return model_of(points, *terms, pinned=border(points), **{"stretch": 1.1, **changes})
