"""Contact between scene bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from supple.collision.ccd.intersections import find_crossings
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.contact.barrier import intersection_message, with_barrier_contact
from supple.contact.weak_contact import DETECTION_INTERVAL, with_weak_contact
from supple.materials import evolving
from supple.model.model import Grid, Model
from supple.scene.errors import SceneError, about
from supple.scene.value_checks import comma_list, format_value, number
from supple.support.arguments import as_tuple, check_flag, check_integer
from supple.support.keywords import suggest_keywords

if TYPE_CHECKING:
    from supple.scene.scene import Scene


Method = Literal["weak", "barrier", "grid", "none"]

METHODS: dict[str, str] = {
    "weak": "Weak constraints repel surfaces closer than a thickness; bodies may intersect.",
    "barrier": "Barrier energies and continuous collision detection; surfaces never intersect.",
    "grid": "All solids move with a regular grid and stick to each other; for dynamic scenes.",
    "none": "No contact between bodies.",
}
"""Contact methods with their descriptions."""

OPTIONS: dict[tuple[Method, ...], tuple[str, ...]] = {
    ("barrier",): ("separate_initial",),
    ("grid",): ("spacing", "cfl"),
    ("weak",): ("detection_interval",),
    ("weak", "barrier"): ("thickness", "stiffness"),
}
"""Options that apply to some contact methods only."""

MAX_EDGE_IN_CELLS = 1.5
"""Largest edge of a surface, in grid cells; other bodies may pass between vertices farther apart."""


@suggest_keywords
@dataclass(frozen=True)
class FrictionPair:
    """Friction coefficients of two bodies, or of self-contact.

    Args:
        bodies: Names of both bodies.
        friction: Coulomb coefficient μ of sticking contacts.
        kinetic_friction: μ of sliding contacts. Default: `friction`.

    Raises:
        SceneError: A value is invalid, or `kinetic_friction` is larger than `friction`.
    """

    bodies: tuple[str, str]
    friction: float
    kinetic_friction: float | None = None

    def __post_init__(self) -> None:
        names = (self.bodies,) if isinstance(self.bodies, str) else as_tuple(self.bodies)
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise SceneError(f"bodies of FrictionPair must be two names, got {format_value(self.bodies)}.")
        object.__setattr__(self, "bodies", names)
        mu, kinetic = coefficients(
            self.friction, self.kinetic_friction, f"between {names[0]!r} and {names[1]!r}"
        )
        object.__setattr__(self, "friction", mu)
        object.__setattr__(self, "kinetic_friction", kinetic)


def coefficients(friction: Any, kinetic: Any, where: str) -> tuple[float, float]:
    """Return friction coefficients μ for sticking and sliding."""
    static = number(friction, f"friction {where}", at_least=0)
    if kinetic is None:
        return static, static
    sliding = number(kinetic, f"kinetic friction {where}", at_least=0)
    if sliding > static:
        raise SceneError(
            f"kinetic friction {where}, {sliding:g}, must not exceed the static friction, "
            f"{static:g}; otherwise sliding vertices would stick immediately."
        )
    return static, sliding


@suggest_keywords
@dataclass(frozen=True)
class Contact:
    """Contact between bodies, including self-contact.

    The methods are:

    - "weak": penalty constraints separate surfaces that are closer than the thickness [PBNG section 4.1].
      They are compliant; reports state the penetration depth.
    - "barrier": intersection-free contact. Forces act below the thickness and tend to infinity at contact.
      Bodies that start closer use their gap as thickness, but at least a tenth of the thickness.
    - "grid": motions are interpolated from a regular grid that carries all bodies, which stick to each other
      [PXPBD section 5.5]. Only for solids.

    Args:
        method: "none", "weak", "barrier" or "grid".
        thickness: Distance below which surfaces repel each other [m]. Default: 1 % of the mean edge of all
            surfaces ("weak") or 5 % ("barrier").
        stiffness: Stiffness of each contact [N/m]. Default: 10 E e ("weak") with the mean edge e and the
            largest Young's modulus E, or 30 E e ("barrier") with Young's modulus E of the softer body.
        detection_interval: Sweeps after which weak contacts are detected again within a step. They are also
            detected at the start of a step and before a state counts as converged.
        friction: Coulomb coefficient μ between all bodies, 0 for none. Sticking contacts hold indefinitely.
        kinetic_friction: μ of sliding contacts. Default: `friction`.
        friction_pairs: `FrictionPair` objects of bodies with other coefficients.
        separate_initial: For a barrier, which must start without intersections: separate initial
            intersections first, by the elasticity of the bodies and without loads.
        spacing: Edge of the grid cells [m]. Default: mean edge of all tetrahedra.
        cfl: Largest motion in one step on a grid, as a fraction of a cell; a frame takes as many steps as
            this requires.

    Raises:
        SceneError: A value is invalid, or an option does not apply to the method.
    """

    method: Method = "weak"
    thickness: float | None = None
    stiffness: float | None = None
    detection_interval: int = DETECTION_INTERVAL
    friction: float = 0.0
    kinetic_friction: float | None = None
    friction_pairs: tuple[FrictionPair, ...] = ()
    separate_initial: bool = False
    spacing: float | None = None
    cfl: float = 0.4

    def __post_init__(self) -> None:
        check_flag("separate_initial", self.separate_initial)
        if not isinstance(self.method, str) or self.method not in get_args(Method):
            raise SceneError(
                f"contact must be {comma_list(get_args(Method))}, got {format_value(self.method)}."
            )
        self._check_unused_options()
        for name, unit in (("thickness", "m"), ("stiffness", "N/m"), ("spacing", "m")):
            if getattr(self, name) is not None:
                value = number(getattr(self, name), f"{name} [{unit}] of contact", above=0)
                object.__setattr__(self, name, value)
        object.__setattr__(
            self,
            "detection_interval",
            check_integer("detection_interval of contact", self.detection_interval, at_least=1),
        )
        object.__setattr__(self, "cfl", number(self.cfl, "cfl of contact", above=0))
        if self.cfl > 1:
            raise SceneError(
                f"cfl of contact must be at most 1, a displacement of one cell, got {self.cfl:g}."
            )
        mu, kinetic = coefficients(self.friction, self.kinetic_friction, "of contact")
        object.__setattr__(self, "friction", mu)
        object.__setattr__(self, "kinetic_friction", kinetic)
        object.__setattr__(self, "friction_pairs", as_tuple(self.friction_pairs))
        if not all(isinstance(pair, FrictionPair) for pair in self.friction_pairs):
            raise SceneError(
                "friction_pairs of contact must be FrictionPair(...)s, got "
                f"{format_value(self.friction_pairs)}."
            )

    @property
    def options(self) -> dict[str, Any]:
        """Method options; `friction_pairs` counts body pairs."""
        names = [name for methods, names in OPTIONS.items() if self.method in methods for name in names]
        options = {name: getattr(self, name) for name in names}
        if self.method not in ("weak", "barrier"):
            return options
        return options | {
            "friction": self.friction,
            "kinetic_friction": self.kinetic_friction,
            "friction_pairs": len(self.friction_pairs),
        }

    def _check_unused_options(self) -> None:
        """Refuse non-default options unused by the method."""
        for methods, names in OPTIONS.items():
            for name in names if self.method not in methods else ():
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    methods_text = " or ".join(f'"{method}"' for method in methods)
                    raise SceneError(
                        f"{name} is only for the contact method {methods_text}, and the method is "
                        f"{self.method!r}."
                    )

    def table(self, names: list[str]) -> np.ndarray | None:
        """Friction coefficients of body pairs.

        Args:
            names: Names of all bodies.

        Returns:
            (2, bodies, bodies) coefficients μ of sticking and of sliding contacts; None without friction.

        Raises:
            SceneError: A pair names an unknown body.
        """
        mu = np.zeros((2, len(names), len(names)))
        mu[0], mu[1] = self.friction, self.kinetic_friction
        for pair in self.friction_pairs:
            for name in pair.bodies:
                if name not in names:
                    sentence = (
                        f"There is no body {name!r} for a friction pair; there are {comma_list(names)}."
                    )
                    raise SceneError(sentence, at="contact.friction_pair")
            a, b = map(names.index, pair.bodies)
            mu[:, a, b] = mu[:, b, a] = pair.friction, pair.kinetic_friction
        return mu if mu.any() else None


def contact_of(given: Any) -> Contact:
    """Return a `Contact`, built from a method name if necessary."""
    return given if isinstance(given, Contact) else Contact(given)


def with_contact(scene: Scene, model: Model) -> Model:
    """Add scene contact to a model."""
    contact = contact_of(scene.contact)
    if contact.method == "none":
        return model
    if contact.method == "grid":
        return replace(model, grid=_grid(contact, model))
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    flat = np.array([body.kind != "solid" for body in scene.bodies])
    _refuse_thick(scene, contact)
    friction = contact.table([body.name for body in scene.bodies])
    options = contact.thickness, contact.stiffness, friction
    if contact.method == "barrier":
        return with_barrier_contact(
            model, triangles, flat, _moduli(scene), *options, contact.separate_initial
        )
    return with_weak_contact(model, triangles, flat, _young(scene), *options, contact.detection_interval)


def _grid(contact: Contact, model: Model) -> Grid:
    """Build the background grid of a model, or refuse unsupported models."""
    obstacles = model.obstacles
    other_terms = [term.name for term in model.terms if not term.fills]
    evolves = [type(t.material).__name__ for t in model.terms if t.material and evolving(type(t.material))]
    rigid = [obstacles.names[obstacles.obstacle[body.row]] for body in obstacles.rigid] if obstacles else []
    wrong = {
        f"{comma_list(other_terms)} beside solids": other_terms,
        f"{comma_list(evolves)}, which has history variables": evolves,
        "pins along some directions only": model.constraint_projection is not None,
        "damping proportional to the mass": model.drag is not None,
        f"{comma_list(rigid)}, which has a mass": rigid,
        "friction between bodies, which always stick on a grid": contact.friction or contact.friction_pairs,
    }
    for what, present in wrong.items():
        if present:
            sentence = (
                'contact="grid" supports only solids without further features, and the scene has '
                f'{what}: use contact="weak".'
            )
            raise SceneError(sentence, at="contact")
    return Grid(contact.spacing or model.mean_edge, contact.cfl)


def open_on_grid(bodies: Sequence[Any], spacing: float) -> list[str]:
    """Warn of bodies that other bodies may pass through on a grid.

    Args:
        bodies: Bodies of the scene.
        spacing: Edge of the grid cells [m].

    Returns:
        One sentence per body whose edges are too long for the grid.
    """
    warnings = []
    for body in bodies if len(bodies) > 1 else []:
        edge = float(edges_of(body).mean())
        if edge > MAX_EDGE_IN_CELLS * spacing:
            warnings.append(
                f"{body.name!r} has edges of {edge:.3g} m, and the cells of the grid are "
                f"{spacing:.3g} m wide, so that other bodies may pass between its vertices. Use a "
                f"finer mesh, or contact spacing = {edge:.2g}"
            )
    return warnings


def intersections(scene: Scene) -> list[str]:
    """Describe initial intersections of body pairs and self-intersections, one sentence each.

    Pinned vertices are at their positions at time 0.
    """
    x = np.concatenate([body.points for body in scene.bodies])
    for pin in scene.pins:
        if pin.motion is not None:
            x[pin.on.vertices] = pin.motion(pin.on.points, 0.0)
    intersecting = find_crossings(_surfaces(scene, x), x)
    return [each.sentence([body.name for body in scene.bodies]) for each in intersecting]


def _surfaces(scene: Scene, x: np.ndarray) -> Surfaces:
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    body = np.repeat(np.arange(len(scene.bodies)), [len(body.points) for body in scene.bodies])
    return Surfaces(triangles, body, x, 0.0, np.array([body.kind != "solid" for body in scene.bodies]))


def check_contact(scene: Scene) -> None:
    """Check the contact of a scene.

    Raises:
        SceneError: The thickness is too large, friction names an unknown body, or bodies intersect at the
            start of a scene with a barrier.
    """
    contact = contact_of(scene.contact)
    if contact.method in ("weak", "barrier"):
        with about("contact"):
            _refuse_thick(scene, contact)
        contact.table([body.name for body in scene.bodies])
    if (
        contact.method == "barrier"
        and not contact.separate_initial
        and (intersecting := intersections(scene))
    ):
        raise SceneError(intersection_message(intersecting), at="contact")


def _moduli(scene: Scene) -> np.ndarray:
    """Largest Young's modulus [Pa] per body, (bodies,).

    Bodies without a modulus have that of the softest other body; 1 if no body has one.
    """
    young_moduli = [[getattr(part.material, "young", None) for part in body.parts] for body in scene.bodies]
    of_bodies = ([float(np.max(young)) for young in moduli if young is not None] for moduli in young_moduli)
    known = [max(moduli, default=np.nan) for moduli in of_bodies]
    least = np.nanmin(known) if np.isfinite(known).any() else 1.0
    return np.where(np.isnan(known), least, known)


def _young(scene: Scene) -> float:
    """Largest Young's modulus [Pa] over all bodies; 1 if undefined."""
    moduli = [getattr(part.material, "young", None) for body in scene.bodies for part in body.parts]
    return max((float(np.max(young)) for young in moduli if young is not None), default=1.0)


def _refuse_thick(scene: Scene, contact: Contact) -> None:
    """Refuse thicknesses above the shortest edge, since neighboring triangles would repel each other."""
    for body in scene.bodies:
        shortest = edges_of(body).min()
        if contact.thickness is not None and contact.thickness > shortest:
            raise SceneError(
                f"thickness [m] of contact, {contact.thickness:g}, must be smaller than the edges of "
                f"surfaces, but the shortest edge of {body.name!r} is {shortest:.3g} m long."
            )


def edges_of(body: Any) -> np.ndarray:
    """(t, 3) side lengths [m] of the surface triangles of a body."""
    corners = body.mesh.points[np.asarray(body.mesh.surface)]
    return np.asarray(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2))
