"""Evaluation of forces, energies, deformations and stresses at given positions by the solvers' kernels.

Cache of problems for evaluation.

Frames of a film differ only in vertex positions and dynamic terms, so that nothing else is set up again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.config.backend import Backend
from supple.contact.dynamic_terms import evaluate_dynamic_terms
from supple.contact.friction_state import contacts_to_state, rubbing_terms
from supple.meshes.measures import means_at_vertices
from supple.model.model import Model, Step, padded, places
from supple.postprocess.evaluation import FIGURES, Deformations, Evaluation, Pulls
from supple.problem import Problem
from supple.problem.element_quantities import (
    COUNT,
    Deformed,
    Figures,
    Pulling,
    Stored,
    element_values,
    is_deformed,
)
from supple.problem.material_update import change_materials, changing_materials
from supple.problem.reactions import ObstacleContacts
from supple.scene import Scene, SceneFile
from supple.scene.build import assemble_model
from supple.scene.scene import scene_of
from supple.solve.loop import make_problem
from supple.solve.options import BackendOptions, resolve_backend, takes_options
from supple.support.arguments import check_vectors, format_value, to_floats
from supple.terms import Term

MOST = 4
"""Largest number of cached problems."""


@dataclass
class _Kept:
    """Cached problem with its key: kind, model, compute settings."""

    kind: str
    model: Model
    backend: Backend
    problem: Problem


_known: deque[_Kept] = deque(maxlen=MOST)


def kept(kind: str, model: Model, backend: Backend, make: Callable[[], Problem]) -> Problem:
    """Return a model's cached problem, or create it.

    A problem whose model differs only in dynamic terms, such as contacts, is reused with the terms of this
    model.

    Args:
        kind: Kind of problem, part of the cache key.
        model: Model.
        backend: Compute settings.
        make: Function that creates the problem.
    """
    for each in list(_known):
        if each.kind == kind and each.backend == backend and _alike(each.model, model):
            _known.remove(each)  # out of the cache while it is inconsistent
            for index, _ in model.dynamic_terms:
                if each.model.terms[index] is not model.terms[index]:
                    each.problem.refresh(index, model.terms[index])
            each.model = model
            _known.append(each)
            return each.problem
    problem = make()
    _known.append(_Kept(kind, model, backend, problem))
    return problem


def _alike(one: Model, other: Model) -> bool:
    """True if two models differ only in their dynamic terms."""
    if one is other:
        return True
    names = (each.name for each in fields(Model) if each.name != "terms")
    if not all(getattr(one, name) is getattr(other, name) for name in names):
        return False
    if len(one.terms) != len(other.terms):
        return False
    following = {index for index, _ in one.dynamic_terms}
    pairs = enumerate(zip(one.terms, other.terms, strict=True))
    return all(k in following or a is b for k, (a, b) in pairs)


DEFAULT = Backend()
"""Default compute settings."""


@takes_options
def evaluate(
    scene: Scene | SceneFile | Model,
    positions: ArrayLike,
    *,
    time: float = np.inf,
    **options: Unpack[BackendOptions],
) -> Evaluation:
    """Evaluate forces, reactions, energies, deformations and stresses at given positions, without solving.

    Pinned vertices need not be at their prescribed positions. Obstacles exert the forces that balance the
    vertices in contact as far as possible; friction is evaluated without sliding. Contacts between bodies are
    detected at these positions. Everything is computed with the solvers' kernels and returned in float64.

    For many evaluations of one scene pass `supple.scene.build_model(scene)`, whose set-up is cached.

    Examples: `supple.evaluate(scene, result.positions).von_mises`, `supple.evaluate(scene,
    result.positions).reactions["pin0"].force`.

    Args:
        scene: Scene, scene file or model.
        positions: (n, 3) positions of all vertices [m].
        time: Time of loads, varying parameters and moving obstacles [s]; by default their end.
        **options: `backend`, or `device`, `precision` and `threads` one by one.

    Returns:
        The evaluated quantities.

    Raises:
        ValueError: Positions, time or options are invalid.
    """
    backend = resolve_backend(options)
    when = to_floats(time)
    if when.ndim or not when >= 0:
        raise ValueError(f"time [s] must not be negative, got {format_value(time)}")
    model = scene if isinstance(scene, Model) else assemble_model(scene_of(scene))
    x = check_vectors("positions", positions, model.vertices)
    step = Step(np.inf, x, model.force_at(float(when)), model.materials_at(float(when)), float(when))
    return evaluation_of(evaluate_dynamic_terms(model, x, float(when)), x, step, backend)


def evaluation_of(
    model: Model,
    positions: np.ndarray,
    step: Step | None = None,
    backend: Backend = DEFAULT,
) -> Evaluation:
    """Evaluate all quantities of a model after a step.

    Args:
        model: Model with contacts at these positions.
        positions: (n, 3) positions [m].
        step: Step that led to the positions; None for no inertia and the model's constant forces.
        backend: Compute settings.
    """
    problem = _problem_at(model, step, backend)
    internal, external = _internal_force(problem, positions), _external_force(model, step)
    inertial = _inertial_force(model, positions, step)
    terms = tuple(_values(problem, k, term) for k, term in enumerate(model.terms))
    touches = None if inertial is None else _touches(model, positions, step, external + inertial, backend)
    if touches is not None:
        for each in (
            f.touches(model, positions) for _, f in model.dynamic_terms if getattr(f, "resolves_faces", False)
        ):
            internal, touches = internal - each.total(model.vertices), touches.and_others(each)
    return Evaluation(
        **_joined([values for values in terms if isinstance(values, Deformations)], model.cells),
        model=model,
        positions=positions,
        internal_force=internal,
        external_force=external,
        terms=terms,
        _inertial=inertial,
        _obstacle_contacts=touches,
    )


def net_force_of(model: Model, positions: np.ndarray, step: Step) -> np.ndarray:
    """(n, 3) net force [N] at the end of a step with known anchor."""
    internal = _internal_force(_problem_at(model, step, DEFAULT), positions)
    inertial = _inertial_force(model, positions, step)
    assert inertial is not None
    outer = _external_force(model, step) + inertial
    return internal + outer + _touches(model, positions, step, outer, DEFAULT).total(model.vertices)


def _touches(
    model: Model, positions: np.ndarray, step: Step | None, outer: np.ndarray, backend: Backend
) -> ObstacleContacts:
    """Obstacle contacts of vertices under external and inertial forces `outer` (n, 3) [N]."""
    if model.obstacles is None:
        return ObstacleContacts.none()
    problem = _with_obstacles(model, backend)
    change_materials(problem, (None if step is None else step.materials) or changing_materials(model))
    problem.loads.set(outer)
    problem.positions = positions
    problem.contacts.find(np.inf if step is None else step.time)
    problem.balance()
    _, _, forces, which = problem.contacts.found(0)
    planes, vertices = np.nonzero((which >= 0) & forces.any(axis=2))
    obstacle = model.obstacles.obstacle[which[planes, vertices]]
    return ObstacleContacts(model.obstacles.names, vertices, obstacle, forces[planes, vertices])


def _internal_force(problem: Problem, positions: np.ndarray) -> np.ndarray:
    """(n, 3) net force of a problem without loads [N]."""
    problem.positions = positions
    problem.balance()
    return problem.states.vectors(problem.states.net)[0].astype(float)


def _external_force(model: Model, step: Step | None) -> np.ndarray:
    """(n, 3) external force of a step [N], or the model's constant force."""
    return model.force if step is None or step.force is None else step.force


def _problem(model: Model, backend: Backend) -> Problem:
    """Cached problem of a model's elements alone, without constraints, loads and obstacles."""

    def make() -> Problem:
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
        return make_problem(alone, False, backend)

    return kept("alone", model, backend, make)


def _with_obstacles(model: Model, backend: Backend) -> Problem:
    """Cached problem of a model with its obstacles, without forces and dynamic terms."""

    def make() -> Problem:
        quiet = replace(model, force=np.zeros_like(model.rest), varying=(), velocities=None, dynamic_terms=())
        return make_problem(quiet, False, backend)

    return kept("with obstacles", model, backend, make)


def _problem_at(model: Model, step: Step | None, backend: Backend) -> Problem:
    """Cached problem with parameters and history variables of a given step."""
    problem = _problem(model, backend)
    recall(problem, model, step)
    return problem


def recall(problem: Problem, model: Model, step: Step | None) -> None:
    """Set the varying parameters and history variables of a step in a model's problem."""
    materials = None if step is None else step.materials
    change_materials(problem, materials or changing_materials(model))
    history = {} if step is None else dict(step.history)
    for k in rubbing_terms(model):  # use the model's friction state if the step has none
        rubbing: Any = model.terms[k]
        history = contacts_to_state(rubbing, model.rest) | history
    problem.history.set_variables([history])


def means_of(model: Model, positions: np.ndarray, figure: str, step: Step | None = None) -> np.ndarray:
    """Average one cell quantity around each vertex; nothing else is evaluated.

    This serves pictures of a running simulation.

    Args:
        model: Model.
        positions: (n, 3) positions [m].
        figure: Name in `FIGURES`; energies are per rest volume [J/m³].
        step: Step that led to the positions, or None.

    Returns:
        (n, ...) means; NaN for vertices without cells of a material.
    """
    problem = _problem_at(model, step, DEFAULT)
    problem.positions = positions
    if any(getattr(term.material, "dissipates", False) for term in model.terms):
        return _means_of_sums(model, positions, figure, step)
    quantity = Stored if figure == "energy" else Figures
    values, cells, volume = [], [], []
    for k, term in enumerate(model.terms):
        if is_deformed(problem, k):
            numbers = element_values(problem, k, quantity)[:, FIGURES[figure]]
            rest = term.volume  # type: ignore[attr-defined]
            values.append(numbers / rest if figure == "energy" else numbers)
            cells.append(padded(term.vertices, 4))
            volume.append(rest)
    if not values:
        return np.full(model.vertices, np.nan)
    return means_at_vertices(
        np.concatenate(values), np.concatenate(cells), np.concatenate(volume), model.vertices
    )


def _means_of_sums(model: Model, positions: np.ndarray, figure: str, step: Step | None = None) -> np.ndarray:
    """`means_of` for models whose terms share cells: stresses are summed first."""
    found = evaluation_of(model, positions, step)
    numbers = found.figures[:, FIGURES[figure]]
    if figure == "energy":
        numbers = found.energy_density
    made = np.isfinite(found.rest_volume)
    cells = padded(found.vertices, 4)[made]
    return means_at_vertices(numbers[made], cells, found.rest_volume[made], model.vertices)


def _values(problem: Problem, k: int, term: Term) -> Deformations | Pulls:
    """Evaluate one term: deformations of elements with a material, otherwise energies and forces."""
    if not is_deformed(problem, k):
        numbers = element_values(problem, k, Pulling)
        return Pulls(term.vertices, numbers[:, 0], numbers[:, 1:])
    numbers = element_values(problem, k, Deformed)
    figures, F, P = np.split(numbers, [COUNT[Figures], COUNT[Figures] + 9], axis=1)
    linear = np.full(len(numbers), not getattr(term.material, "objective", True))
    volume = term.volume  # type: ignore[attr-defined]
    flowed = None if term.material is None else _flowed(_material(problem, k), F.reshape(-1, 3, 3))
    return Deformations(
        term.vertices,
        volume,
        figures[:, 0],
        F.reshape(-1, 3, 3),
        P.reshape(-1, 3, 3),
        figures,
        linear,
        np.full(len(numbers), np.nan) if flowed is None else flowed,
    )


def _flowed(material: Any, F: np.ndarray) -> np.ndarray | None:
    """Equivalent plastic strains (m,) at F (m, 3, 3), or None.

    For rate-independent plasticity they include the flow of the step that led to F, as the forces do.
    """
    if getattr(material, "rate_independent", False):
        material = material._replace(**material.evolve(F, 0.0))
    flowed: np.ndarray | None = material.flowed()
    return flowed


def _material(problem: Problem, k: int) -> Any:
    """Current material of term k."""
    number = sum(term.material is not None for term in problem.model.terms[:k])
    return problem.layout.materials[0][number]


def _joined(parts: list[Deformations], cells: np.ndarray) -> dict[str, np.ndarray]:
    """Join terms in the cell order of the model: cells (m, k), body after body.

    Cells without a deformation gradient have NaN.
    """
    if len(parts) == 1 and np.array_equal(parts[0].vertices, cells):
        return dict(vars(parts[0]))
    matrices = np.full((len(cells), 3, 3), np.nan)
    numbers = np.full(len(cells), np.nan)
    found = {
        "vertices": cells,
        "rest_volume": numbers.copy(),
        "element_energy": numbers.copy(),
        "deformation_gradient": matrices,
        "piola": matrices.copy(),
        "figures": np.full((len(cells), COUNT[Figures]), np.nan),
        "linear": np.zeros(len(cells), bool),
        "plastic_strain": numbers.copy(),
    }
    taken = np.zeros(len(cells) + 1, bool)  # the last entry is for elements without a cell
    for part in parts:
        here = places(padded(part.vertices, cells.shape[1]), cells)
        new = (here >= 0) & ~taken[here]
        for name in found.keys() - {"vertices"}:
            found[name][here[new]] = vars(part)[name][new]
        again = (here >= 0) & taken[here]
        if again.any():
            _add(found, here[again], part, again)
        taken[here[here >= 0]] = True
    return found


def _add(found: dict[str, np.ndarray], cells: np.ndarray, part: Deformations, rows: np.ndarray) -> None:
    """Add energies and stresses of further terms that share cells, such as viscous stresses."""
    found["element_energy"][cells] += part.element_energy[rows]
    found["piola"][cells] += part.piola[rows]
    F, P = found["deformation_gradient"][cells], found["piola"][cells]
    J = found["figures"][cells, FIGURES["volume_ratio"]]
    with np.errstate(all="ignore"):
        true = P @ F.transpose(0, 2, 1) / J[:, None, None]
    cauchy = np.where(found["linear"][cells][:, None, None], P, true)
    pressure = -np.trace(cauchy, axis1=1, axis2=2) / 3
    deviator = cauchy + pressure[:, None, None] * np.eye(3)
    found["figures"][cells, FIGURES["energy"]] = found["element_energy"][cells]
    found["figures"][cells, FIGURES["von_mises"]] = np.sqrt(1.5 * (deviator**2).sum(axis=(1, 2)))
    found["figures"][cells, FIGURES["pressure"]] = pressure
    finite = np.isfinite(cauchy).all(axis=(1, 2))[:, None, None]
    symmetric = np.where(finite, 0.5 * (cauchy + cauchy.transpose(0, 2, 1)), 0.0)
    found["figures"][cells, FIGURES["principal_stresses"]] = np.linalg.eigvalsh(symmetric)[:, ::-1]


def _inertial_force(model: Model, positions: np.ndarray, step: Step | None) -> np.ndarray | None:
    """-m/Δt² (x - x̂) (n, 3) [N]; None if the anchor x̂ is unknown."""
    if step is None or np.isinf(step.dt):
        return np.zeros_like(positions)
    if step.anchor is None:
        return None
    return model.inertia(step.dt)[:, None] * (step.anchor - positions)
