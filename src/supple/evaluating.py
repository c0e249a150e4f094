"""evaluate(): forces, energies, deformations and stresses at given positions, by the solvers' kernels."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.asking import Circumstances, compute_of, takes_options
from supple.checks import finite_rows, floats, shown
from supple.compute import Compute
from supple.evaluation import FIGURES, Deformations, Evaluation, Pulls
from supple.meshes.measures import means_at_vertices
from supple.model import Model, Step
from supple.problem import Problem
from supple.problem.element_values import (
    COUNT,
    Deformed,
    Figures,
    Pulling,
    Stored,
    element_values,
    is_deformed,
)
from supple.scene import Scene, SceneFile
from supple.scene.build import assembled
from supple.scene.scene import scene_of
from supple.solving import make_problem
from supple.terms import Term, inversion

DEFAULT = Compute()


@takes_options
def evaluate(
    scene: Scene | SceneFile | Model,
    positions: ArrayLike,
    *,
    time: float = np.inf,
    **options: Unpack[Circumstances],
) -> Evaluation:
    """Forces, reactions at pins, energies, deformations and stresses with all vertices at positions (n, 3)
    [m]; nothing is solved, and pins need not be where their motions have them.

    time [s]: when to take loads that vary, at their end unless given. compute: a `Compute`, or its device,
    precision and threads one by one; all is computed there, by what solvers compute with, and returned in
    float64. To evaluate one scene many times, give `supple.build_model(scene)`: what is set up for it is
    kept. Examples: `supple.evaluate(scene, result.positions).von_mises`,
    `supple.evaluate(scene, result.positions).reactions["pin0"].force`.
    """
    compute = compute_of(options)
    when = floats(time)
    if when.ndim or not when >= 0:
        raise ValueError(f"time [s] must not be negative, got {shown(time)}")
    model = scene if isinstance(scene, Model) else assembled(scene_of(scene))
    x = finite_rows("positions", positions, model.vertices)
    step = Step(np.inf, x, model.force_at(float(when)))
    return evaluation_of(model, x, step, compute)


def evaluation_of(
    model: Model,
    positions: np.ndarray,
    step: Step | None = None,
    compute: Compute = DEFAULT,
) -> Evaluation:
    """What `evaluate` says, at the end of a step; None for one without inertia under the model's constant
    forces."""
    problem = _problem(model, compute)
    internal = _internal_force(problem, positions)
    terms = tuple(_values(problem, k, term) for k, term in enumerate(model.terms))
    solids = [
        values for k, values in enumerate(terms) if isinstance(values, Deformations) and _is_solid(problem, k)
    ]
    return Evaluation(
        **_joined(solids, model.tets),
        model=model,
        positions=positions,
        internal_force=internal,
        external_force=_external_force(model, step),
        terms=terms,
        _inertial=_inertial_force(model, positions, step),
    )


def net_force_of(model: Model, positions: np.ndarray, step: Step) -> np.ndarray:
    """(n, 3) [N] the net force alone, at the end of a step whose anchor is known."""
    internal = _internal_force(_problem(model, DEFAULT), positions)
    inertial = _inertial_force(model, positions, step)
    assert inertial is not None
    return internal + _external_force(model, step) + inertial


def _internal_force(problem: Problem, positions: np.ndarray) -> np.ndarray:
    problem.positions = positions
    problem.balance()
    return problem.states.vectors(problem.states.net)[0].astype(float)


def _external_force(model: Model, step: Step | None) -> np.ndarray:
    return model.force if step is None or step.force is None else step.force


@lru_cache(maxsize=2)
def _problem(model: Model, compute: Compute) -> Problem:
    """The elements of a model alone, without anything that holds or loads them; kept for the frames of a
    film."""
    nothing = np.empty((0, 3))
    alone = replace(
        model,
        force=np.zeros_like(model.rest),
        pinned=np.empty(0, int),
        held=None,
        prescribed=lambda t: nothing,
        varying=(),
        velocities=None,
        obstacles=None,
    )
    return make_problem(alone, False, compute)


def means_of(model: Model, positions: np.ndarray, figure: str) -> np.ndarray:
    """(n, ...) one of `FIGURES`, the mean over the tetrahedra around each vertex; energies per volume at rest
    [J/m³]. Nothing else is evaluated: for pictures while something moves."""
    problem = _problem(model, DEFAULT)
    problem.positions = positions
    solids = [k for k in range(len(model.terms)) if _is_solid(problem, k)]
    quantity = Stored if figure == "energy" else Figures
    numbers = [element_values(problem, k, quantity)[:, FIGURES[figure]] for k in solids]
    terms = [model.terms[k] for k in solids]
    vertices, volume = (np.concatenate([getattr(t, name) for t in terms]) for name in ("vertices", "volume"))
    values = np.concatenate(numbers)
    values = values / volume if figure == "energy" else values
    return means_at_vertices(values, vertices, volume, model.vertices)


def _is_solid(problem: Problem, k: int) -> bool:
    """Whether a term's elements have a deformation gradient and a volume."""
    return is_deformed(problem, k) and inversion.known(type(problem.layout.elements[k].rows))


def _values(problem: Problem, k: int, term: Term) -> Deformations | Pulls:
    if not is_deformed(problem, k):
        numbers = element_values(problem, k, Pulling)
        return Pulls(term.vertices, numbers[:, 0], numbers[:, 1:])
    numbers = element_values(problem, k, Deformed)
    figures, F, P = np.split(numbers, [COUNT[Figures], COUNT[Figures] + 9], axis=1)
    linear = np.full(len(numbers), not getattr(term.material, "objective", True))
    volume = term.volume  # type: ignore[attr-defined]
    return Deformations(
        term.vertices, volume, figures[:, 0], F.reshape(-1, 3, 3), P.reshape(-1, 3, 3), figures, linear
    )


def _joined(parts: list[Deformations], tets: np.ndarray) -> dict[str, np.ndarray]:
    """All tetrahedra in the order of the model, which has them body after body, not material by material."""
    if len(parts) == 1 and np.array_equal(parts[0].vertices, tets):
        return dict(vars(parts[0]))
    none, no_matrices = np.empty(0), np.empty((0, 3, 3))
    no_figures, no_vertices = np.empty((0, COUNT[Figures])), np.empty((0, 4), np.int32)
    parts = parts or [
        Deformations(no_vertices, none, none, no_matrices, no_matrices, no_figures, none.astype(bool))
    ]
    names = [field.name for field in fields(Deformations)]
    together = {name: np.concatenate([vars(part)[name] for part in parts]) for name in names}
    found = together["vertices"]
    if found.shape == tets.shape and not np.array_equal(found, tets):
        order = np.empty(len(tets), np.int64)
        order[np.lexsort(tets.T)] = np.lexsort(found.T)
        together = {name: values[order] for name, values in together.items()}
    return together


def _inertial_force(model: Model, positions: np.ndarray, step: Step | None) -> np.ndarray | None:
    """-m/Δt² (x - x̂) (n, 3) [N]; None where that is not known."""
    if step is None or np.isinf(step.dt):
        return np.zeros_like(positions)
    if step.anchor is None:
        return None
    return (model.mass / step.dt**2)[:, None] * (step.anchor - positions)
