"""Dirichlet conditions of a live scene: pins movable by hand, and grabbed vertices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from supple.model.dirichlet import DirichletConditions, PinConstraint
from supple.scene import Scene
from supple.scene.build import part_of
from supple.scene.constraints.pins import Pin


@dataclass(frozen=True, eq=False)
class Placement:
    """Affine placement of points X: x = position + R S (X - center), with stretch S = diag(stretch).

    The center is the mean of the points.

    Attributes:
        position: (3,) target of the center [m].
        rotation: Rotation R.
        stretch: (3,) stretch factors.
    """

    position: np.ndarray
    rotation: Rotation = field(default_factory=Rotation.identity)
    stretch: np.ndarray = field(default_factory=lambda: np.ones(3))

    def __call__(self, points: np.ndarray, center: np.ndarray) -> np.ndarray:
        return self.position + self.rotation.apply((points - center) * self.stretch)


class PinSet:
    """Vertices of one pin. The scene's motion moves them until they are placed by hand.

    Attributes:
        name: Name of the pin.
        part: Constrained part.
        vertices: (k,) vertex ids.
        placement_time: Time of the first manual placement [s]; None before. The positions reached by the
            motion at that time are the reference points of the placement.
        placement: Manual placement.
    """

    def __init__(self, pin: Pin, name: str) -> None:
        self.name, self.part, self.vertices = name, part_of(pin), pin.on.vertices
        self._rest, self._motion = pin.on.points, pin.motion
        self.clear_placement()

    def clear_placement(self) -> None:
        """Discard the manual placement; the scene's motion moves the pin again."""
        self.placement_time: float | None = None
        self._base = self._rest
        self.placement = Placement(self.middle)

    @property
    def middle(self) -> np.ndarray:
        """Center (3,) [m] of the reference points."""
        return self._base.mean(axis=0)

    def place(self, placement: Placement, time: float) -> None:
        """Place the pin by hand at a time [s]."""
        if self.placement_time is None:
            self._base, self.placement_time = self._positions_at(time), time
        self.placement = placement

    def targets(self, time: float) -> np.ndarray:
        """Target positions (k, 3) [m] at a time [s]."""
        return (
            self._positions_at(time)
            if self.placement_time is None
            else self.placement(self._base, self.middle)
        )

    def center(self, time: float) -> np.ndarray:
        """Position (3,) [m] of the handle at a time [s]."""
        return (
            self._positions_at(time).mean(axis=0) if self.placement_time is None else self.placement.position
        )

    def _positions_at(self, time: float) -> np.ndarray:
        return self._rest if self._motion is None else self._motion(self._rest, time)


@dataclass(eq=False)
class Grab:
    """Vertices grabbed by the pointer.

    Attributes:
        vertices: (k,) vertex ids.
        base: (k, 3) positions at the start of the grab [m].
        offset: (3,) drag offset [m].
    """

    vertices: np.ndarray
    base: np.ndarray
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @property
    def part(self) -> PinConstraint:
        return PinConstraint(self.vertices, self.base, np.eye(3))

    @property
    def targets(self) -> np.ndarray:
        return self.base + self.offset


class Pins:
    """All Dirichlet conditions: pin sets and grabs.

    Vertices that a pin constrains along some directions can be grabbed and moved in the remaining ones.
    """

    def __init__(self, scene: Scene) -> None:
        self.sets = [PinSet(pin, _name(scene, pin)) for pin in scene.pins]
        self.grabs: list[Grab] = []
        self._update_conditions()

    def _update_conditions(self) -> None:
        self._dirichlet_conditions = DirichletConditions(
            [s.part for s in self.sets] + [grab.part for grab in self.grabs]
        )

    @property
    def pinned(self) -> np.ndarray:
        """(k,) sorted ids of the constrained vertices."""
        return self._dirichlet_conditions.vertices

    @property
    def directions(self) -> np.ndarray | None:
        """Constrained directions of each vertex, as in `Model.constraint_projection`."""
        return self._dirichlet_conditions.constraint_projection

    @property
    def fully_constrained(self) -> np.ndarray:
        """Ids of the vertices constrained in all directions."""
        directions = self._dirichlet_conditions.constraint_projection
        return (
            self.pinned if directions is None else self.pinned[np.all(directions == np.eye(3), axis=(1, 2))]
        )

    def prescribed(self, time: float, when: str | None = None) -> np.ndarray:
        """Target positions (k, 3) [m] of the constrained vertices.

        Args:
            time: Time [s].
            when: Words for the time in an error message. Without it, the first of contradictory pins applies.

        Raises:
            ValueError: Pins contradict each other, if `when` is given.
        """
        targets = [s.targets(time) for s in self.sets]
        grab_targets = [grab.targets for grab in self.grabs]
        if when is not None and self.sets:
            DirichletConditions([s.part for s in self.sets]).positions(targets, when)
        return self._dirichlet_conditions.positions(targets + grab_targets)

    def grab(self, vertices: np.ndarray, positions: np.ndarray) -> Grab:
        """Grab vertices that are not fully constrained.

        Args:
            vertices: Vertex ids.
            positions: (n, 3) current positions of all vertices [m].

        Raises:
            ValueError: All of the vertices are constrained, or no free vertex would remain.
        """
        free = np.setdiff1d(vertices, self.fully_constrained)
        if not len(free):
            raise ValueError("this part is already pinned; move its pin with the handle instead")
        if len(self.fully_constrained) + len(free) == len(positions):
            raise ValueError("this would pin all vertices; grab a smaller part")
        self.grabs.append(Grab(free, positions[free]))
        self._update_conditions()
        return self.grabs[-1]

    def release(self, grabs: list[Grab]) -> None:
        self.grabs = [grab for grab in self.grabs if grab not in grabs]
        self._update_conditions()

    def reset(self) -> None:
        for each in self.sets:
            each.clear_placement()
        self.release(self.grabs)

    @property
    def grabbed(self) -> np.ndarray:
        """Ids of the grabbed vertices."""
        return np.concatenate([np.empty(0, np.int64), *(grab.vertices for grab in self.grabs)])


def _name(scene: Scene, pin: Pin) -> str:
    """Pin name, followed by the body name in scenes with several bodies."""
    return pin.name + (f" of {pin.on.body.name}" if len(scene.bodies) > 1 else "")
