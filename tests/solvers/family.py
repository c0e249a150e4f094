"""Scenes for the element-wise methods, and what the methods store, in NumPy.

Every scene has one kind of material and weak constraints, so that few kernels need to be compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from problems import face

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBD, XPBD, BlockXPBD
from supple.materials import stress
from supple.model.model import Model
from supple.problem import Problem
from supple.solvers.elementwise.element_run import ElementOptions, ElementRun
from supple.terms import WeakConstraints
from supple_papers.common import begin_time_step, cube_of_six, elastic_energy, jacobians, volume

__all__ = ["begin_time_step", "cube_of_six", "elastic_energy", "jacobians", "volume"]
"""Shared with the experiments of the papers."""

METHODS: dict[str, tuple[ElementOptions, type]] = {
    "xpbd": (XPBD(), supple.Corotated),
    "block_xpbd": (BlockXPBD(), supple.NeoHookean),
    "bpxpbd": (BPXPBD(), supple.Corotated),
    "fpxpbd": (FPXPBD(), supple.Corotated),
    "gpbd": (GPBD(), supple.materials.LogNeoHookean),
    "pbd": (PBD(), supple.StVK),
}
"""Every element-wise method and the material its tests use."""


def clamped(
    mesh: supple.TetMesh,
    material: Any,
    gravity: float = -9.8,
    density: float = 10.0,
    dt: float = 0.01,
    quasistatic: bool = False,
) -> supple.Scene:
    """A body fixed at its least x twice: by pins, and by weak constraints that therefore never act."""
    scene = supple.Scene(gravity=(0, gravity, 0), quasistatic=quasistatic, dt=dt)
    body = scene.add_solid(mesh, material, density=density)
    end = body.where(face(0, float(mesh.points[:, 0].min())))
    scene.pin(end)
    scene.attach(end, stiffness=1e3)
    return scene


def tied(material: Any, stiffness: float = 1e4, gap: float = 0.0, cells: Any = 2) -> supple.Scene:
    """A block tied by springs to a clamped one, in steps of 0.01 s."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.01)
    upper = scene.add_solid(supple.block(cells, origin=(0, 1 + gap, 0)), material, density=10)
    lower = scene.add_solid(supple.block(cells), material, density=10)
    scene.pin(upper.where(face(1, 2 + gap)))
    scene.attach(lower.where(face(1, 1)), upper.where(face(1, 1 + gap)), stiffness=stiffness)
    return scene


def placed(
    scene: supple.Scene,
    x: np.ndarray | None = None,
    v: np.ndarray | None = None,
    precision: str = "float64",
    threads: int = 1,
) -> Problem:
    """One backward Euler step of a scene from positions x with velocities v, rest by default."""
    problem = Problem(supple.scene.build_model(scene), precision, threads)
    problem.device.threads = threads
    begin_time_step(problem, scene.dt, problem.model.rest if x is None else x, 0.0 if v is None else v)
    return problem


def swept(problem: Problem, solver: ElementOptions, sweeps: int) -> ElementRun:
    run = solver.begin(problem)
    run.advance(sweeps)
    return run


def terms(run: ElementRun) -> tuple[int, int]:
    """(elastic, weak): indices of the two terms in the model."""
    is_weak = [isinstance(term, WeakConstraints) for term in run.problem.model.terms]
    return is_weak.index(False), is_weak.index(True)


def by_element(run: ElementRun, term: int, values: np.ndarray) -> np.ndarray:
    """(elements, fields) from the (1, rows, fields, lanes) that a projection stores."""
    element = run._element_batches(term).element
    out = np.full((element.max() + 1, values.shape[2]), np.nan)
    out[element[element >= 0]] = values[0].transpose(0, 2, 1)[element >= 0]
    return out


def predicted(problem: Problem, run: ElementRun) -> np.ndarray:
    """x̃ = x + Δt v + W f_ext."""
    model = problem.model
    x = model.rest + problem.states.anchor[:-1, :3]
    x[model.pinned] = model.prescribed(0.0)
    return x + run.weights[:-1, None] * model.force


def scattered(model: Model, term: int, values: np.ndarray) -> np.ndarray:
    """(n, 3) sums at the vertices of (elements, k, 3) values at the corners."""
    out = np.zeros((model.vertices, 3))
    np.add.at(out, model.terms[term].vertices, values)
    return out


def weak_displacement(run: ElementRun) -> np.ndarray:
    """(n, 3): W w λ of the weak constraints."""
    _, k = terms(run)
    model = run.problem.model
    lam = by_element(run, k, run.projections[-1].memory[0])
    term = model.terms[k]
    return run.weights[:-1, None] * scattered(model, k, term.weights[:, :, None] * lam[:, None, :])


def gaps(model: Model, x: np.ndarray) -> np.ndarray:
    """(m,) gaps of the weak constraints [m]."""
    (term,) = (t for t in model.terms if isinstance(t, WeakConstraints))
    C = np.einsum("ek,eki->ei", term.weights, x[term.vertices]) - term.target
    return np.linalg.norm(C, axis=1)


def deformation(model: Model, x: np.ndarray, term: int = 0) -> np.ndarray:
    """(elements, 3, 3): F of every tetrahedron of a term."""
    t = model.terms[term]
    return np.einsum("evi,evj->eij", x[t.vertices], t.gradients)


def stresses(material: Any, F: np.ndarray) -> np.ndarray:
    """(elements, 3, 3): the material's P."""
    return np.array([stress(material, tuple(f.ravel().tolist())) for f in F]).reshape(-1, 3, 3)
