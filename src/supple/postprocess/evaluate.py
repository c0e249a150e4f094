"""Evaluation of forces, energies, deformations and stresses at given positions by the solvers' kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.config.backend import Backend
from supple.contact.state.dynamic_term_updates import evaluate_dynamic_terms
from supple.contact.state.friction_state import contacts_to_state, frictional_terms
from supple.meshes.measures import means_at_vertices
from supple.model.model import Model, Step, find_cells, pad_cells
from supple.postprocess.evaluation import SCALAR_COLUMNS, Deformations, Evaluation, SpringForces
from supple.postprocess.problem_cache import cached_problem
from supple.problem import Problem
from supple.problem.element_quantities import (
    NUMBERS_PER_ELEMENT,
    FirstVertexForce,
    ScalarQuantities,
    StoredEnergy,
    TensorQuantities,
    element_values,
    is_deformed,
)
from supple.problem.material_update import change_materials, changing_materials
from supple.problem.reactions import ObstacleContacts
from supple.scene import Scene, SceneFile
from supple.scene.build import assemble_model
from supple.scene.scene import scene_of
from supple.solve.batch_solve import make_problem
from supple.solve.call_options import BackendOptions, resolve_backend, takes_options
from supple.support.arguments import check_vectors, format_value, to_floats
from supple.support.keywords import suggest_keywords
from supple.terms import Term

DEFAULT_BACKEND = Backend()
"""Default compute settings."""


@suggest_keywords
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
    at_time = to_floats(time)
    if at_time.ndim or not at_time >= 0:
        raise ValueError(f"time [s] must not be negative, got {format_value(time)}")
    model = scene if isinstance(scene, Model) else assemble_model(scene_of(scene))
    x = check_vectors("positions", positions, model.vertices)
    step = Step(np.inf, x, model.force_at(float(at_time)), model.materials_at(float(at_time)), float(at_time))
    return evaluate_model(evaluate_dynamic_terms(model, x, float(at_time)), x, step, backend)


def evaluate_model(
    model: Model,
    positions: np.ndarray,
    step: Step | None = None,
    backend: Backend = DEFAULT_BACKEND,
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
    terms = tuple(_evaluate_term(problem, k, term) for k, term in enumerate(model.terms))
    contacts = (
        None
        if inertial is None
        else _find_obstacle_contacts(model, positions, step, external + inertial, backend)
    )
    if contacts is not None:
        for each in (
            f.obstacle_contacts(model, positions) for _, f in model.dynamic_terms if f.resolves_faces
        ):
            internal, contacts = internal - each.total(model.vertices), contacts.and_others(each)
    return Evaluation(
        **_join_terms([values for values in terms if isinstance(values, Deformations)], model.cells),
        model=model,
        positions=positions,
        internal_force=internal,
        external_force=external,
        terms=terms,
        _inertial=inertial,
        _obstacle_contacts=contacts,
    )


def evaluate_net_force(model: Model, positions: np.ndarray, step: Step) -> np.ndarray:
    """(n, 3) net force [N] at the end of a step with known anchor."""
    internal = _internal_force(_problem_at(model, step, DEFAULT_BACKEND), positions)
    inertial = _inertial_force(model, positions, step)
    assert inertial is not None
    external = _external_force(model, step) + inertial
    return (
        internal
        + external
        + _find_obstacle_contacts(model, positions, step, external, DEFAULT_BACKEND).total(model.vertices)
    )


def _find_obstacle_contacts(
    model: Model, positions: np.ndarray, step: Step | None, external: np.ndarray, backend: Backend
) -> ObstacleContacts:
    """Obstacle contacts of vertices under external and inertial forces `external` (n, 3) [N]."""
    if model.obstacles is None:
        return ObstacleContacts.none()
    problem = _with_obstacles(model, backend)
    change_materials(problem, (None if step is None else step.materials) or changing_materials(model))
    problem.loads.set(external)
    problem.positions = positions
    problem.contacts.find(np.inf if step is None else step.time)
    problem.balance()
    _, _, forces, which = problem.contacts.get_planes(0)
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
        unconstrained = replace(
            model,
            force=np.zeros_like(model.rest),
            pinned=np.empty(0, int),
            constraint_projection=None,
            prescribed=lambda t: nothing,
            varying=(),
            velocities=None,
            obstacles=None,
        )
        return make_problem(unconstrained, False, backend)

    return cached_problem("alone", model, backend, make)


def _with_obstacles(model: Model, backend: Backend) -> Problem:
    """Cached problem of a model with its obstacles, without forces and dynamic terms."""

    def make() -> Problem:
        static = replace(
            model, force=np.zeros_like(model.rest), varying=(), velocities=None, dynamic_terms=()
        )
        return make_problem(static, False, backend)

    return cached_problem("with obstacles", model, backend, make)


def _problem_at(model: Model, step: Step | None, backend: Backend) -> Problem:
    """Cached problem with parameters and history variables of a given step."""
    problem = _problem(model, backend)
    restore_step(problem, model, step)
    return problem


def restore_step(problem: Problem, model: Model, step: Step | None) -> None:
    """Set the varying parameters and history variables of a step in a model's problem."""
    materials = None if step is None else step.materials
    change_materials(problem, materials or changing_materials(model))
    history = {} if step is None else dict(step.history)
    for k in frictional_terms(model):  # use the model's friction state if the step has none
        frictional_term: Any = model.terms[k]
        history = contacts_to_state(frictional_term, model.rest) | history
    problem.history.set_variables([history])


def vertex_means(
    model: Model, positions: np.ndarray, quantity_name: str, step: Step | None = None
) -> np.ndarray:
    """Average one cell quantity around each vertex; nothing else is evaluated.

    This serves pictures of a running simulation.

    Args:
        model: Model.
        positions: (n, 3) positions [m].
        quantity_name: Name in `SCALAR_COLUMNS`; energies are per rest volume [J/m³].
        step: Step that led to the positions, or None.

    Returns:
        (n, ...) means; NaN for vertices without cells of a material.
    """
    problem = _problem_at(model, step, DEFAULT_BACKEND)
    problem.positions = positions
    if any(getattr(term.material, "dissipates", False) for term in model.terms):
        return _sum_vertex_means(model, positions, quantity_name, step)
    quantity = StoredEnergy if quantity_name == "energy" else ScalarQuantities
    values, cells, volume = [], [], []
    for k, term in enumerate(model.terms):
        if is_deformed(problem, k):
            numbers = element_values(problem, k, quantity)[:, SCALAR_COLUMNS[quantity_name]]
            rest = term.volume  # type: ignore[attr-defined]
            values.append(numbers / rest if quantity_name == "energy" else numbers)
            cells.append(pad_cells(term.vertices, 4))
            volume.append(rest)
    if not values:
        return np.full(model.vertices, np.nan)
    return means_at_vertices(
        np.concatenate(values), np.concatenate(cells), np.concatenate(volume), model.vertices
    )


def _sum_vertex_means(
    model: Model, positions: np.ndarray, quantity_name: str, step: Step | None = None
) -> np.ndarray:
    """`vertex_means` for models whose terms share cells: stresses are summed first."""
    evaluation = evaluate_model(model, positions, step)
    numbers = evaluation.scalars[:, SCALAR_COLUMNS[quantity_name]]
    if quantity_name == "energy":
        numbers = evaluation.energy_density
    has_material = np.isfinite(evaluation.rest_volume)
    cells = pad_cells(evaluation.vertices, 4)[has_material]
    return means_at_vertices(
        numbers[has_material], cells, evaluation.rest_volume[has_material], model.vertices
    )


def _evaluate_term(problem: Problem, k: int, term: Term) -> Deformations | SpringForces:
    """Evaluate one term: deformations of elements with a material, otherwise energies and forces."""
    if not is_deformed(problem, k):
        numbers = element_values(problem, k, FirstVertexForce)
        return SpringForces(term.vertices, numbers[:, 0], numbers[:, 1:])
    numbers = element_values(problem, k, TensorQuantities)
    scalars, F, P = np.split(
        numbers, [NUMBERS_PER_ELEMENT[ScalarQuantities], NUMBERS_PER_ELEMENT[ScalarQuantities] + 9], axis=1
    )
    linear = np.full(len(numbers), not getattr(term.material, "objective", True))
    volume = term.volume  # type: ignore[attr-defined]
    plastic_strain = (
        None if term.material is None else _plastic_strain(_material(problem, k), F.reshape(-1, 3, 3))
    )
    return Deformations(
        term.vertices,
        volume,
        scalars[:, 0],
        F.reshape(-1, 3, 3),
        P.reshape(-1, 3, 3),
        scalars,
        linear,
        np.full(len(numbers), np.nan) if plastic_strain is None else plastic_strain,
    )


def _plastic_strain(material: Any, F: np.ndarray) -> np.ndarray | None:
    """Equivalent plastic strains (m,) at F (m, 3, 3), or None.

    For rate-independent plasticity they include the flow of the step that led to F, as the forces do.
    """
    if getattr(material, "rate_independent", False):
        material = material._replace(**material.evolve(F, 0.0))
    plastic_strain: np.ndarray | None = material.plastic_strains()
    return plastic_strain


def _material(problem: Problem, k: int) -> Any:
    """Current material of term k."""
    number = sum(term.material is not None for term in problem.model.terms[:k])
    return problem.layout.materials[0][number]


def _join_terms(parts: list[Deformations], cells: np.ndarray) -> dict[str, np.ndarray]:
    """Join terms in the cell order of the model: cells (m, k), body after body.

    Cells without a deformation gradient have NaN.
    """
    if len(parts) == 1 and np.array_equal(parts[0].vertices, cells):
        return dict(vars(parts[0]))
    matrices = np.full((len(cells), 3, 3), np.nan)
    numbers = np.full(len(cells), np.nan)
    joined = {
        "vertices": cells,
        "rest_volume": numbers.copy(),
        "element_energy": numbers.copy(),
        "deformation_gradient": matrices,
        "piola": matrices.copy(),
        "scalars": np.full((len(cells), NUMBERS_PER_ELEMENT[ScalarQuantities]), np.nan),
        "linear": np.zeros(len(cells), bool),
        "plastic_strain": numbers.copy(),
    }
    filled = np.zeros(len(cells) + 1, bool)  # the last entry is for elements without a cell
    for part in parts:
        rows = find_cells(pad_cells(part.vertices, cells.shape[1]), cells)
        new = (rows >= 0) & ~filled[rows]
        for name in joined.keys() - {"vertices"}:
            joined[name][rows[new]] = vars(part)[name][new]
        again = (rows >= 0) & filled[rows]
        if again.any():
            _add_shared(joined, rows[again], part, again)
        filled[rows[rows >= 0]] = True
    return joined


def _add_shared(
    fields: dict[str, np.ndarray], cells: np.ndarray, part: Deformations, rows: np.ndarray
) -> None:
    """Add energies and stresses of further terms that share cells, such as viscous stresses."""
    fields["element_energy"][cells] += part.element_energy[rows]
    fields["piola"][cells] += part.piola[rows]
    F, P = fields["deformation_gradient"][cells], fields["piola"][cells]
    J = fields["scalars"][cells, SCALAR_COLUMNS["volume_ratio"]]
    with np.errstate(all="ignore"):
        true = P @ F.transpose(0, 2, 1) / J[:, None, None]
    cauchy = np.where(fields["linear"][cells][:, None, None], P, true)
    pressure = -np.trace(cauchy, axis1=1, axis2=2) / 3
    deviator = cauchy + pressure[:, None, None] * np.eye(3)
    fields["scalars"][cells, SCALAR_COLUMNS["energy"]] = fields["element_energy"][cells]
    fields["scalars"][cells, SCALAR_COLUMNS["von_mises"]] = np.sqrt(1.5 * (deviator**2).sum(axis=(1, 2)))
    fields["scalars"][cells, SCALAR_COLUMNS["pressure"]] = pressure
    finite = np.isfinite(cauchy).all(axis=(1, 2))[:, None, None]
    symmetric = np.where(finite, 0.5 * (cauchy + cauchy.transpose(0, 2, 1)), 0.0)
    fields["scalars"][cells, SCALAR_COLUMNS["principal_stresses"]] = np.linalg.eigvalsh(symmetric)[:, ::-1]


def _inertial_force(model: Model, positions: np.ndarray, step: Step | None) -> np.ndarray | None:
    """-m/Δt² (x - x̂) (n, 3) [N]; None if the anchor x̂ is unknown."""
    if step is None or np.isinf(step.dt):
        return np.zeros_like(positions)
    if step.anchor is None:
        return None
    return model.inertia(step.dt)[:, None] * (step.anchor - positions)
