"""What is held: the pins of a scene, which a hand can move, and what a hand has grabbed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from supple.holding import Holding, Part
from supple.scene import Scene
from supple.scene.build import part_of
from supple.scene.pins import Pin


@dataclass(frozen=True, eq=False)
class Placement:
    """x = position + R S (X - centre): turned by R and stretched by S = diag(stretch) about the middle of the
    points, which goes to position (3,) [m]."""

    position: np.ndarray
    rotation: Rotation = field(default_factory=Rotation.identity)
    stretch: np.ndarray = field(default_factory=lambda: np.ones(3))

    def __call__(self, points: np.ndarray, centre: np.ndarray) -> np.ndarray:
        return self.position + self.rotation.apply((points - centre) * self.stretch)


class PinSet:
    """The vertices of one pin of the scene. Its motion moves them until a hand takes them over; what the
    motion had reached then, at `taken` [s], is what the hand moves."""

    def __init__(self, pin: Pin, name: str) -> None:
        self.name, self.part, self.vertices = name, part_of(pin), pin.on.vertices
        self._rest, self._motion = pin.on.points, pin.motion
        self.give_back()

    def give_back(self) -> None:
        """Let the scene's motion move it again."""
        self.taken: float | None = None
        self._base = self._rest
        self.placement = Placement(self.middle)

    @property
    def middle(self) -> np.ndarray:
        """(3,) [m], of the points that a hand moves."""
        return self._base.mean(axis=0)

    def place(self, placement: Placement, time: float) -> None:
        """Put it somewhere by hand."""
        if self.taken is None:
            self._base, self.taken = self._moved(time), time
        self.placement = placement

    def targets(self, time: float) -> np.ndarray:
        """(k, 3) [m]"""
        return self._moved(time) if self.taken is None else self.placement(self._base, self.middle)

    def centre(self, time: float) -> np.ndarray:
        """Where the handle of the set belongs, (3,) [m]."""
        return self._moved(time).mean(axis=0) if self.taken is None else self.placement.position

    def _moved(self, time: float) -> np.ndarray:
        return self._rest if self._motion is None else self._motion(self._rest, time)


@dataclass(eq=False)
class Grab:
    """Vertices (k,) that a hand holds; base (k, 3) [m] is where they were; offset (3,) [m] how far they were
    dragged from there."""

    vertices: np.ndarray
    base: np.ndarray
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @property
    def part(self) -> Part:
        return Part(self.vertices, self.base, np.eye(3))

    @property
    def targets(self) -> np.ndarray:
        return self.base + self.offset


class Pins:
    """All that is held. A hand that grabs what a pin holds along some directions moves it across these."""

    def __init__(self, scene: Scene) -> None:
        self.sets = [PinSet(pin, _name(scene, pin)) for pin in scene.pins]
        self.grabs: list[Grab] = []
        self._arrange()

    def _arrange(self) -> None:
        self._holding = Holding([s.part for s in self.sets] + [grab.part for grab in self.grabs])

    @property
    def pinned(self) -> np.ndarray:
        """(k,) sorted vertex ids."""
        return self._holding.vertices

    @property
    def directions(self) -> np.ndarray | None:
        """Along which each of them is held, as in `Model.held`."""
        return self._holding.held

    @property
    def wholly(self) -> np.ndarray:
        """Ids of those that are held in all directions."""
        held = self._holding.held
        return self.pinned if held is None else self.pinned[np.all(held == np.eye(3), axis=(1, 2))]

    def prescribed(self, time: float, when: str | None = None) -> np.ndarray:
        """Positions (k, 3) [m] of the pinned vertices. Where hands have led pins to contradict each other the
        first counts, or, with words for `when`, a ValueError says so."""
        targets = [s.targets(time) for s in self.sets]
        held = [grab.targets for grab in self.grabs]
        if when is not None and self.sets:
            Holding([s.part for s in self.sets]).positions(targets, when)
        return self._holding.positions(targets + held)

    def grab(self, vertices: np.ndarray, positions: np.ndarray) -> Grab:
        """Hold those of the vertices that may move, from positions (n, 3) [m] of all vertices."""
        free = np.setdiff1d(vertices, self.wholly)
        if not len(free):
            raise ValueError("that part is pinned already; move its pin with the handle instead")
        if len(self.wholly) + len(free) == len(positions):
            raise ValueError("all vertices would be held; grab a smaller part")
        self.grabs.append(Grab(free, positions[free]))
        self._arrange()
        return self.grabs[-1]

    def release(self, grabs: list[Grab]) -> None:
        self.grabs = [grab for grab in self.grabs if grab not in grabs]
        self._arrange()

    def reset(self) -> None:
        for each in self.sets:
            each.give_back()
        self.release(self.grabs)

    @property
    def held(self) -> np.ndarray:
        """Ids of the vertices that a hand holds."""
        return np.concatenate([np.empty(0, np.int64), *(grab.vertices for grab in self.grabs)])


def _name(scene: Scene, pin: Pin) -> str:
    """Name of the pin, with that of its body where there are several."""
    return pin.name + (f" of {pin.on.body.name}" if len(scene.bodies) > 1 else "")
