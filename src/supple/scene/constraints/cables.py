"""Cables (tendons) that pull body vertices towards each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from supple.model.dynamic_term import DynamicTerm
from supple.scene.bodies import VertexSet
from supple.scene.errors import SceneError
from supple.scene.loads.ramps import AnyRamp, check_ramp, fraction_at
from supple.scene.pickling import picklable
from supple.scene.value_checks import array, format_value, number
from supple.terms import Cable, CableSegments, Term
from supple.terms.cable import MAX_POINTS


@dataclass(frozen=True, eq=False)
class Tendon:
    """Cable through an ordered list of scene vertices with prescribed tension or length.

    Attributes:
        vertices: (k,) scene vertices.
        name: Name of the body.
        rest_length: Length at rest [m].
        tension: Tension [N], or None.
        length: Prescribed length [m], or None.
        stiffness: Stiffness [N/m] of a cable with a length.
        ramp: Fraction of the tension, or of the change from `rest_length` to `length`, over time.
    """

    vertices: np.ndarray
    name: str
    rest_length: float
    tension: float | None
    length: float | None
    stiffness: float
    ramp: AnyRamp | None = None

    def term(self, positions: np.ndarray) -> Term:
        """Build the term in its final state, for vertex positions (n, 3) [m] at zero displacement."""
        if self.tension is not None:
            ids = np.stack([self.vertices[:-1], self.vertices[1:]], axis=1).astype(np.int32)
            tensions = np.full(len(ids), self.tension)
            capacity = None if self.ramp is None else len(ids)
            return CableSegments(ids, tensions, np.empty((len(ids), 0)), positions, capacity)
        ids = self.vertices[None].astype(np.int32)
        assert self.length is not None
        rest, stiffness = np.array([[self.length]]), np.array([self.stiffness])
        return Cable(ids, stiffness, rest, positions, None if self.ramp is None else 1)

    def dynamic_term(self, index: int) -> tuple[int, Any] | None:
        """Return (index, updater) if term `index` varies in time, otherwise None."""
        return None if self.ramp is None else (index, TensionUpdate(index, self))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"a cable of {self.name!r}", "ramp")}


@dataclass(frozen=True, eq=False)
class TensionUpdate(DynamicTerm):
    """Updates cable tension or length from a ramp at the start of each step."""

    index: int
    tendon: Tendon

    def update(self, problem: Any, time: float) -> Term | None:
        term, tendon = problem.model.terms[self.index], self.tendon
        part = fraction_at(tendon.ramp, time)
        if tendon.tension is not None:
            now = part * tendon.tension
            same = bool((term.stiffness == now).all())
            return None if same else replace(term, stiffness=np.full_like(term.stiffness, now))
        assert tendon.length is not None
        now = tendon.rest_length + part * (tendon.length - tendon.rest_length)
        return None if term.rest[0, 0] == now else replace(term, rest=np.array([[now]]))


def tendon(
    chosen: VertexSet,
    points: ArrayLike,
    tension: Any,
    length: Any,
    stiffness: Any,
    ramp: Any,
) -> Tendon:
    """Build the cable that `Scene.add_cable` describes."""
    name = chosen.body.name
    if (tension is None) == (length is None):
        raise SceneError(f"A cable of {name!r} needs either a tension [N] or a length [m], not both.")
    through = _nearest(chosen, points)
    x = chosen.body.points[through]
    rest_length = float(np.linalg.norm(np.diff(x, axis=0), axis=1).sum())
    if tension is not None:
        tension = number(tension, "tension [N] of a cable", at_least=0)
    else:
        length = number(length, "length [m] of a cable", at_least=0)
        if len(through) > MAX_POINTS:
            raise SceneError(
                f"A cable of a given length leads through at most {MAX_POINTS} points; this one has "
                f"{len(through)}. Use fewer, or a tension."
            )
        if stiffness is None:
            raise SceneError("A cable of a given length needs a stiffness [N/m], such as 1e5.")
    stiffness = 0.0 if stiffness is None else number(stiffness, "stiffness [N/m] of a cable", above=0)
    ids = chosen.body.first + through
    return Tendon(ids, name, rest_length, tension, length, stiffness, check_ramp(ramp))


def _nearest(chosen: VertexSet, points: ArrayLike) -> np.ndarray:
    """Return the selected vertex nearest to each point, (k,) numbers within the body."""
    name, x = chosen.body.name, array(points, "points [m] of a cable")
    if x.ndim != 2 or x.shape[1] != 3 or len(x) < 2:
        raise SceneError(
            f"points of a cable of {name!r} must be at least two, (k, 3) [m]; got {format_value(points)}."
        )
    distance, nearest = map(np.asarray, KDTree(chosen.points).query(x))
    farthest = int(np.argmax(distance))
    reach = 0.1 * float(chosen.body.mesh.size.max())
    if distance[farthest] > reach:
        raise SceneError(
            f"Point {farthest} of a cable, {x[farthest].tolist()}, is {distance[farthest]:.3g} m from the "
            "nearest vertex of "
            f"{name!r}; a cable leads through the vertices nearest to its points, within {reach:.3g} m."
        )
    through = chosen.indices[nearest]
    if len(np.unique(through)) < len(through):
        twice = next(k for k in range(1, len(through)) if through[k] in through[:k])
        raise SceneError(
            f"Points {list(through).index(through[twice])} and {twice} of a cable of {name!r} have "
            f"the same nearest vertex, {through[twice]}; use points further apart, or a finer mesh."
        )
    return through
