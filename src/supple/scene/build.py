"""Turning a scene into a model: flat arrays over all bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.checks import LONGEST, flag, floats
from supple.model import Model
from supple.scene.bodies import Body
from supple.scene.errors import SceneError
from supple.scene.ramps import Fraction, Ramp
from supple.scene.scene import Pin, Scene, scene_of
from supple.terms import Term, TetElasticity, WeakConstraints

if TYPE_CHECKING:
    from supple.scene.files import SceneFile


@dataclass(frozen=True, eq=False)
class Prescribed:
    """t -> where the pinned vertices are at a time [s], (k, 3) [m]; order: places among those of all pins."""

    pins: tuple[Pin, ...]
    order: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        if not self.pins:
            return np.empty((0, 3))
        with np.errstate(all="ignore"):  # what is not finite is refused with a sentence
            return np.concatenate([self._moved(pin, t) for pin in self.pins])[self.order]

    def _moved(self, pin: Pin, t: float) -> np.ndarray:
        rest = pin.on.points
        moved = rest if pin.motion is None else floats(pin.motion(rest, t))
        if moved.shape != rest.shape or not np.abs(moved).max() <= LONGEST:
            raise SceneError(
                f"The motion of pinned vertices of {pin.on.body.name!r} must give finite positions "
                f"of shape {rest.shape}; at t = {t:g} s it does not. Beyond {LONGEST:g} m counts as infinite."
            )
        return moved


@dataclass(frozen=True, eq=False)
class Held:
    """The same where nothing moves: positions (k, 3) [m], read-only."""

    positions: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        return self.positions

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        self.__dict__.update(state)
        self.positions.flags.writeable = False


def build_model(scene: Scene | SceneFile, quasistatic: bool | None = None) -> Model:
    """The model of a scene: bodies one after the other, one elasticity term for each kind of material.

    quasistatic: what the model is for, by default what the scene says; then every body must be held.
    """
    scene = scene_of(scene)
    check_scene(scene, quasistatic)
    return assembled(scene)


def assembled(scene: Scene) -> Model:
    """The model of a scene that need not have a solution: bodies may fall, or all vertices be pinned."""
    _check(scene)
    rest = np.concatenate([body.points for body in scene.bodies])
    mass = np.concatenate([body.mesh.masses(body.density) for body in scene.bodies])
    pinned, prescribed = _pins(scene)
    force, varying = _forces(scene, mass)
    return Model(
        rest=rest,
        mass=mass,
        force=force,
        pinned=pinned,
        prescribed=prescribed,
        terms=_elasticity(scene.bodies, rest) + _weak_constraints(scene, rest),
        tets=_tets(scene.bodies),
        bodies=tuple(scene.bodies),
        varying=varying,
        velocities=_velocities(scene.bodies),
        supports=tuple((pin.name, pin.on.vertices) for pin in scene.pins),
    )


def _check(scene: Scene) -> None:
    if not scene.bodies:
        raise SceneError("The scene has no bodies; add one with scene.add_solid(mesh, material).")
    scene.check()


def check_scene(scene: Scene, quasistatic: bool | None = None) -> None:
    """Refuse scenes without a solution: nothing to solve for, or a body that would fall forever."""
    _check(scene)
    pinned, _ = _pins(scene)
    if len(pinned) == scene.bodies[-1].vertices.stop:
        raise SceneError("All vertices are pinned, so there is nothing to solve for; pin fewer vertices.")
    if scene.quasistatic if quasistatic is None else flag("quasistatic", quasistatic):
        mass = np.concatenate([body.mesh.masses(body.density) for body in scene.bodies])
        force, varying = _forces(scene, mass)
        for each in (force, *(whole for _, whole in varying)):
            refuse_falling(scene, pinned, each)


def refuse_falling(scene: Scene, pinned: np.ndarray, force: np.ndarray) -> None:
    """A part that nothing holds has an equilibrium only where the forces (n, 3) on it add up to zero."""
    if not force.any():
        return
    part = _connected_parts(scene)
    held = np.zeros(part.max() + 1, bool)
    held[part[pinned]] = True
    for attachment in scene.attachments:
        to_fixed_point = np.abs(attachment.weights.sum(axis=1)) > 0.5
        held[part[attachment.vertices[to_fixed_point, 0]]] = True
    total = np.column_stack([np.bincount(part, axis) for axis in force.T])
    magnitude = np.bincount(part, np.linalg.norm(force, axis=1))
    falling = ~held & (np.linalg.norm(total, axis=1) > 1e-9 * magnitude)
    if falling.any():
        names = [repr(body.name) for body in scene.bodies if falling[part[body.vertices]].any()]
        raise SceneError(
            f"Nothing holds {' and '.join(names)} against the forces on it: it would fall forever and has no "
            "quasistatic equilibrium. Pin some of its vertices, attach it to something that is held, "
            "take the load away (gravity=(0, 0, 0)), or make the scene dynamic with quasistatic=False."
        )


def _connected_parts(scene: Scene) -> np.ndarray:
    """(n,) number of the part that each vertex belongs to; tetrahedra and attachments connect vertices."""
    stencils = [_tets(scene.bodies), *(attachment.vertices for attachment in scene.attachments)]
    start = np.concatenate([np.repeat(s[:, 0], s.shape[1] - 1) for s in stencils])
    end = np.concatenate([s[:, 1:].ravel() for s in stencils])
    n = scene.bodies[-1].vertices.stop
    graph = coo_array((np.ones(len(start), bool), (start, end)), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _tets(bodies: list[Body]) -> np.ndarray:
    return np.concatenate([np.asarray(body.mesh.tets) + np.int32(body.first) for body in bodies])


Varying = tuple[tuple[Callable[[float], float], np.ndarray], ...]


def _forces(scene: Scene, mass: np.ndarray) -> tuple[np.ndarray, Varying]:
    """f_i = m_i g + forces + tractions, (n, 3) [N]: those that are constant, and those of each ramp."""
    found: list[tuple[Any, np.ndarray]] = [(None, np.zeros((len(mass), 3)))]

    def of(ramp: Any) -> np.ndarray:
        """The forces of this ramp so far."""
        for other, force in found:
            if other is ramp or (isinstance(ramp, Ramp) and other == ramp):
                return force
        found.append((ramp, np.zeros((len(mass), 3))))
        return found[-1][1]

    of(scene.gravity_ramp)[:] += mass[:, None] * np.array(scene.gravity)
    for load in scene.loads:
        of(load.ramp)[load.on.vertices] += load.force
    (_, constant), *varying = found
    return constant, tuple((Fraction(ramp), force) for ramp, force in varying)


def _velocities(bodies: list[Body]) -> np.ndarray | None:
    """(n, 3) [m/s] at the start; None where nothing moves."""
    if not any(body.moving for body in bodies):
        return None
    return np.concatenate([body.velocities for body in bodies])


def start_of(scene: Scene) -> np.ndarray:
    """(n, 3) [m] where a motion begins: the scene at rest, with pinned vertices where they are at time 0."""
    positions = np.concatenate([body.points for body in scene.bodies])
    pinned, prescribed = _pins(scene)
    positions[pinned] = prescribed(0.0)
    return positions


def _pins(scene: Scene) -> tuple[np.ndarray, Callable[[float], np.ndarray]]:
    """Sorted numbers (k,) of the pinned vertices, and t -> their positions (k, 3) [m]."""
    ids = [pin.on.vertices for pin in scene.pins]
    pinned, order = np.unique(np.concatenate([np.empty(0, np.int64), *ids]), return_index=True)
    prescribed = Prescribed(tuple(scene.pins), order)
    if any(pin.motion is not None for pin in scene.pins):
        return pinned, prescribed
    still = prescribed(0.0)
    still.flags.writeable = False
    return pinned, Held(still)


def _elasticity(bodies: list[Body], rest: np.ndarray) -> tuple[Term, ...]:
    return tuple(
        TetElasticity.from_mesh(rest, _tets(group), merged_material(group))
        for group in elastic_groups(bodies)
    )


def elastic_groups(bodies: list[Body]) -> list[list[Body]]:
    """Bodies of the same kind of material, which make one elasticity term each."""
    kinds = dict.fromkeys(type(body.material) for body in bodies)
    return [[body for body in bodies if type(body.material) is kind] for kind in kinds]


def merged_material(bodies: list[Body]) -> Any:
    """One material for several bodies: numbers where all are the same, else one value for each tet."""
    first = bodies[0].material
    if len(bodies) == 1 or all(not any(map(np.ndim, b.material)) and b.material == first for b in bodies):
        return first
    per_tet = ([np.broadcast_to(value, len(b.mesh.tets)) for value in b.material] for b in bodies)
    return type(first)._make(np.concatenate(values) for values in zip(*per_tet, strict=True))


def _weak_constraints(scene: Scene, rest: np.ndarray) -> tuple[Term, ...]:
    """All attachments as one term; shorter stencils are filled up with their first vertex at weight 0."""
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
    )
    return (term,)
