"""Conversion from scenes to models with flat arrays over all bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.model.dirichlet import DirichletConditions, PinConstraint
from supple.model.model import Gravity, Model
from supple.scene.bodies import Body
from supple.scene.constraints.connector_methods import make_user_terms
from supple.scene.constraints.motions import Motion
from supple.scene.constraints.pins import Pin
from supple.scene.constraints.rigid_support import Support
from supple.scene.constraints.springs import spring_terms
from supple.scene.contact_settings import check_contact, contact_of, with_contact
from supple.scene.errors import SceneError
from supple.scene.loads.forces import refuse_still, volume_forces
from supple.scene.loads.ramps import Fraction, Ramp
from supple.scene.loads.time_varying import (
    VaryingMaterial,
    check_variation,
    merge_materials,
    varying_materials,
)
from supple.scene.scene import Scene, scene_of
from supple.scene.shapes.obstacle import (
    obstacles_of,
    refuse_inside,
    refuse_resting,
    with_small_obstacle_contact,
)
from supple.support.arguments import MAX_LENGTH, check_flag, to_floats
from supple.terms import Term, WeakConstraints

if TYPE_CHECKING:
    from supple.scene.files.loader import SceneFile


@dataclass(frozen=True, eq=False)
class Prescribed:
    """Positions (k, 3) [m] of the constrained vertices as a function of time t [s].

    Attributes:
        pins: Pins with their motions.
        dirichlet: Dirichlet conditions merged over the pins.
    """

    pins: tuple[Pin, ...]
    dirichlet: DirichletConditions

    def __call__(self, t: float) -> np.ndarray:
        with np.errstate(all="ignore"):  # non-finite positions are refused below
            positions = [self._positions_of(pin, t) for pin in self.pins]
        try:
            return self.dirichlet.positions(
                positions, when="in the end" if t == np.inf else f"at t = {t:g} s"
            )
        except ValueError as error:
            raise SceneError(str(error)) from None

    def _positions_of(self, pin: Pin, t: float) -> np.ndarray:
        rest = pin.on.points
        positions = rest if pin.motion is None else to_floats(pin.motion(rest, t))
        if positions.shape != rest.shape or not np.abs(positions).max() <= MAX_LENGTH:
            raise SceneError(
                f"The motion of pinned vertices of {pin.on.body.name!r} must give finite positions "
                f"of shape {rest.shape}; at t = {t:g} s it does not. Values beyond {MAX_LENGTH:g} m "
                "count as infinite."
            )
        return positions


@dataclass(frozen=True, eq=False)
class ConstantPositions:
    """Constant positions (k, 3) [m] of constrained vertices without motion, read-only."""

    positions: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        return self.positions

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        self.__dict__.update(state)
        self.positions.flags.writeable = False


def build_model(scene: Scene | SceneFile, quasistatic: bool | None = None) -> Model:
    """Build a scene model: concatenated bodies, one elasticity term per material class.

    Args:
        scene: Scene, or result of `load_scene`.
        quasistatic: True if the model is for equilibria, in which every body must be supported. Default: the
            scene's setting.

    Returns:
        The model.

    Raises:
        SceneError: The scene is invalid or has no solution.
    """
    scene = scene_of(scene)
    check_scene(scene, quasistatic)
    return assemble_model(scene)


def assemble_model(scene: Scene) -> Model:
    """Build a scene model without checking solvability.

    Bodies may fall, and all vertices may be constrained.
    """
    _check(scene)
    rest = np.concatenate([body.points for body in scene.bodies])
    mass = np.concatenate([body.masses for body in scene.bodies])
    pinned, constrained, prescribed = pins_of(scene)
    force, varying = forces_of(scene, mass)
    changing = varying_materials(elastic_groups(scene.bodies), scene.varying_parameters)
    terms = _elasticity(scene.bodies, rest, changing) + _weak_constraints(scene, rest)
    terms += spring_terms(scene.springs, rest)
    model = Model(
        rest=rest,
        mass=mass,
        force=force,
        pinned=pinned,
        prescribed=prescribed,
        terms=terms
        + tuple(each.term(rest) for each in _time_dependent_loads(scene))
        + make_user_terms(scene),
        tets=_tets(scene.bodies),
        bodies=tuple(scene.bodies),
        varying=varying,
        velocities=_velocities(scene.bodies),
        supports=tuple((pin.name, pin.on.vertices, pin.directions) for pin in scene.pins),
        constraint_projection=constrained,
        duration=_duration(scene),
        changing=tuple(changing.items()),
        dynamic_terms=_dynamic_terms(scene, len(terms)),
        winds=tuple(wind.forces for wind in scene.winds),
        obstacles=obstacles_of(scene),
        gravity=Gravity(np.array(scene.gravity), Fraction(scene.gravity_ramp)),
        drag=_drag(scene.bodies),
        volume_forces=volume_forces(scene.loads),
    )
    return with_small_obstacle_contact(scene, with_contact(scene, model))


def _duration(scene: Scene) -> float:
    """End time [s] of all motions and ramps; 1 if no end is known."""
    time_dependent = [*scene.loads, *_time_dependent_loads(scene), *scene.winds, *scene.varying_parameters]
    ramps = [scene.gravity_ramp, *(each.ramp for each in time_dependent)]
    motions = [pin.motion for pin in scene.pins] + [obstacle.motion for obstacle in scene.obstacles]
    ends = [motion.end for motion in motions if isinstance(motion, Motion)]
    ends += [float(ramp.times[-1]) for ramp in ramps if isinstance(ramp, Ramp)]
    return max(ends, default=1.0)


def _dynamic_terms(scene: Scene, first: int) -> tuple[tuple[int, Any], ...]:
    """List (index, updater) of time-dependent terms, numbered from `first`."""
    updaters = [each.dynamic_term(first + k) for k, each in enumerate(_time_dependent_loads(scene))]
    return tuple(updater for updater in updaters if updater is not None)


def _time_dependent_loads(scene: Scene) -> list[Any]:
    """List loads with separate, possibly time-dependent terms."""
    return [*scene.inflations, *scene.cables, *scene.follower_tractions]


def _rigid_only_advice(scene: Scene) -> str:
    """Return advice for scenes with movable rigid bodies only, otherwise empty text."""
    if all(obstacle.mass is None for obstacle in scene.obstacles):
        return ""
    return " Obstacles with a mass move only if a body has free vertices; add a small block without contact."


def _check(scene: Scene) -> None:
    if not scene.bodies:
        raise SceneError(
            "The scene has no bodies; add one with add_solid(mesh, material) or "
            f"add_cloth.{_rigid_only_advice(scene)}"
        )
    scene.check()
    named = {part.name: part for body in scene.bodies for part in body.parts}
    for each in scene.varying_parameters:
        if each.body.name not in named:
            raise SceneError(
                f"{each.parameter} of {each.body.name!r} cannot vary: all its elements belong to "
                "regions. Vary a region: scene.vary(body.region(name), ...).",
                at="vary",
            )
        check_variation(each, named[each.body.name], _sample_times(scene))


def _sample_times(scene: Scene) -> list[float]:
    """Sample times [s]: five over the scene duration, plus infinity."""
    return [*np.linspace(0, scene.frames * scene.dt, 5).tolist(), np.inf]


def check_scene(scene: Scene, quasistatic: bool | None = None) -> None:
    """Refuse scenes without a solution.

    Args:
        scene: Scene to check.
        quasistatic: True to check for an equilibrium. Default: the scene's setting.

    Raises:
        SceneError: There is nothing to solve for, or an unsupported body would fall forever.
    """
    _check(scene)
    pinned, constrained, prescribed = pins_of(scene)
    if constrained is None and len(pinned) == scene.bodies[-1].vertices.stop:
        raise SceneError(
            "All vertices are pinned, so there is nothing to solve for; pin fewer "
            f"vertices.{_rigid_only_advice(scene)}"
        )
    _refuse_contradictions(scene, prescribed)
    for inflation in scene.inflations:
        inflation.refuse_open(pinned)
    static = scene.quasistatic if quasistatic is None else check_flag("quasistatic", quasistatic)
    refuse_inside(scene, pinned, np.inf if static else scene.frames * scene.dt)
    check_contact(scene)
    if static:
        refuse_still(scene.winds)
        refuse_resting(scene)
        if contact_of(scene.contact).method == "grid":
            raise SceneError(
                'contact="grid" needs a motion, quasistatic=False; use "weak" or "barrier" for an '
                "equilibrium.",
                at="contact",
            )
        if scene.obstacles or contact_of(scene.contact).method != "none":  # contact may support bodies
            return
        mass = np.concatenate([body.masses for body in scene.bodies])
        force, varying = forces_of(scene, mass)
        support = Support(scene, pinned, constrained)
        for each in (force, *(full for _, full in varying)):
            support.check_equilibrium(each)


Varying = tuple[tuple[Callable[[float], float], np.ndarray], ...]


def forces_of(scene: Scene, mass: np.ndarray) -> tuple[np.ndarray, Varying]:
    """External forces f_i = m_i g + forces + tractions.

    Args:
        scene: Scene with its loads.
        mass: (n,) vertex masses [kg].

    Returns:
        Constant forces (n, 3) [N], and for each ramp its fraction and the full forces (n, 3) [N].
    """
    groups: list[tuple[Any, np.ndarray]] = [(None, np.zeros((len(mass), 3)))]

    def of(ramp: Any) -> np.ndarray:
        """Return the accumulated forces (n, 3) [N] of a ramp."""
        for other, force in groups:
            if other is ramp or (isinstance(ramp, Ramp) and other == ramp):
                return force
        groups.append((ramp, np.zeros((len(mass), 3))))
        return groups[-1][1]

    of(scene.gravity_ramp)[:] += mass[:, None] * np.array(scene.gravity)
    for load in scene.loads:
        of(load.ramp)[load.on.vertices] += load.force
    (_, constant), *varying = groups
    return constant, tuple((Fraction(ramp), force) for ramp, force in varying)


def _velocities(bodies: list[Body]) -> np.ndarray | None:
    """Initial velocities (n, 3) [m/s], None for bodies at rest."""
    moving = any(body.moving for body in bodies)
    return np.concatenate([body.velocities for body in bodies]) if moving else None


def _drag(bodies: list[Body]) -> np.ndarray | None:
    """Mass-proportional damping coefficients α (n,) [1/s], None if all are zero."""
    if not any(body.drag for body in bodies):
        return None
    return np.concatenate([np.full(len(body.points), body.drag) for body in bodies])


def initial_positions_of(scene: Scene) -> np.ndarray:
    """Return the initial positions (n, 3) [m] of a motion.

    Vertices are at rest, and pinned vertices at their positions at time 0.
    """
    positions = np.concatenate([body.points for body in scene.bodies])
    pinned, _, prescribed = pins_of(scene)
    positions[pinned] = prescribed(0.0)
    return positions


def pins_of(scene: Scene) -> tuple[np.ndarray, np.ndarray | None, Callable[[float], np.ndarray]]:
    """Merge the Dirichlet conditions of all pins.

    Returns:
        Sorted numbers (k,) of the constrained vertices; projections onto their constrained directions, as in
        `Model`; and a function of time t [s] that returns their positions (k, 3) [m].
    """
    dirichlet = DirichletConditions([part_of(pin) for pin in scene.pins])
    prescribed = Prescribed(tuple(scene.pins), dirichlet)
    if any(pin.motion is not None for pin in scene.pins):
        return dirichlet.vertices, dirichlet.constraint_projection, prescribed
    still = prescribed(0.0)
    still.flags.writeable = False
    return dirichlet.vertices, dirichlet.constraint_projection, ConstantPositions(still)


def part_of(pin: Pin) -> PinConstraint:
    """Return the Dirichlet condition of one pin."""
    return PinConstraint(pin.on.vertices, pin.on.points, pin.directions, pin.on.body.name)


def _refuse_contradictions(scene: Scene, prescribed: Callable[[float], np.ndarray]) -> None:
    """Refuse pins with contradicting positions along shared directions, at sample times."""
    if isinstance(prescribed, Prescribed) and prescribed.dirichlet.overlapping:
        for time in _sample_times(scene):
            prescribed(time)


def _elasticity(
    bodies: list[Body], rest: np.ndarray, changing: dict[int, VaryingMaterial]
) -> tuple[Term, ...]:
    """Build elasticity terms, one per body group, followed by further body terms.

    `Conditions` count materials in this order. Parameters that vary in time have their final values.
    """
    elastic = (
        group[0].elasticity(group, rest, changing[k](np.inf) if k in changing else merge_materials(group))
        for k, group in enumerate(elastic_groups(bodies))
    )
    return (*elastic, *(term for body in bodies for term in body.extra_terms(rest)))


def _tets(bodies: list[Body]) -> np.ndarray:
    """(m, 4) tetrahedra of all solids."""
    solid = [body.cells for body in bodies if body.mesh.corners == 4]
    return np.concatenate([np.empty((0, 4), np.int32), *solid])


def elastic_groups(bodies: list[Body]) -> list[list[Any]]:
    """Group bodies and portions by class and class of material; a group makes one elasticity term."""
    groups: dict[Any, list[Any]] = {}
    for body in bodies:
        for part in body.parts:
            groups.setdefault(part.group, []).append(part)
    return list(groups.values())


def _weak_constraints(scene: Scene, rest: np.ndarray) -> tuple[Term, ...]:
    """Merge all attachments to one term; shorter stencils repeat their first vertex with weight 0."""
    if not scene.attachments:
        return ()
    slots = max(a.vertices.shape[1] for a in scene.attachments)
    vertices, weights = [], []
    for a in scene.attachments:
        missing = slots - a.vertices.shape[1]
        vertices.append(np.column_stack([a.vertices, np.repeat(a.vertices[:, :1], missing, axis=1)]))
        weights.append(np.pad(a.weights, ((0, 0), (0, missing))))
    term = WeakConstraints(
        vertices=np.concatenate(vertices).astype(np.int32),
        weights=np.concatenate(weights),
        target=np.concatenate([a.target for a in scene.attachments]),
        stiffness=np.concatenate([a.stiffness for a in scene.attachments]),
        rest=rest,
        depends_on_rest=any(a.depends_on_rest for a in scene.attachments),
    )
    return (term,)
