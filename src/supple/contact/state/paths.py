"""Paths of obstacles and vertices in a step: neither passes through the other between contact detections.

Fast obstacles move along waypoints, with contact detection at each, and in a time step each waypoint has its
share of the motion of the vertices. At every detection, a vertex whose path since the last one passes through
an obstacle moves back to the point where it entered, so that its contact planes are those of its own side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.obstacles.face_distance import thin_parts
from supple.collision.obstacles.signed_distance import OBSTACLE, POSE
from supple.contact.state.contact_report import VertexPassage
from supple.contact.state.obstacle_kernels import NO_THICKNESS, Paths, RecordStart, SplitPath
from supple.kernels import RECORD
from supple.problem.vertex_kernels import Displace

if TYPE_CHECKING:
    from supple.contact.state.obstacle_contact import Contacts

MAX_MOTION_RATIO, MAX_WAYPOINTS = 0.4, 256
"""Limits of projections in a step.

They are the motion of an obstacle between projections, as a fraction of its thickness, and the maximum number
of projections.
"""


def find_waypoints(contacts: Contacts, begin: float, end: float) -> list[tuple[np.ndarray, float]]:
    """Intermediate poses of the obstacles, close enough to push every vertex in their way.

    Args:
        contacts: Obstacle contact.
        begin: Start of the motion [s].
        end: End of the motion [s].

    Returns:
        Frames (r, 12) of all shapes and times [s].
    """
    obstacles = contacts.obstacles
    assert obstacles is not None
    motion_ratio = obstacles.motion_ratio(contacts.shapes) + obstacles.deformation(begin, end)
    steps = min(int(np.ceil(motion_ratio / MAX_MOTION_RATIO)), MAX_WAYPOINTS)
    times = np.linspace(begin, end, max(steps, 1) + 1)[1:-1].tolist()
    way = [(obstacles.poses(t).copy(), t) for t in times]
    for frames, _ in way:
        for motion in contacts.rigid:
            frames[motion.body.row] = motion.frame
    return way


class VertexPaths:
    """Paths of the vertices since the last contact detection.

    Paths are traced unless no vertex can pass through an obstacle, or step bounds prevent it.
    """

    def __init__(self, contacts: Contacts, dtype: np.dtype) -> None:
        model, shapes = contacts.model, contacts.shapes
        self._contacts, self._device, self._states, self._dtype = (
            contacts,
            contacts.device,
            contacts.states,
            dtype,
        )
        self._half_thickness = np.minimum(0.5 * thin_parts(shapes), NO_THICKNESS)
        can_pass = bool((self._half_thickness < NO_THICKNESS).any())
        self._traces = can_pass and not any(term.intersection_free for _, term in model.dynamic_terms)
        self._paths: Paths | tuple[()] = ()
        self._begun = False

    def resize(self) -> None:
        """Allocate the paths for the present batch size."""
        self._begun = False
        if self._traces:
            count, vectors = len(self._half_thickness), len(self._states.u)
            self._paths = Paths(
                np.zeros((vectors, RECORD), self._dtype),
                np.zeros((count, 12)),
                np.zeros(count, np.int32),
                self._half_thickness,
                np.zeros(vectors, np.int32),
                np.zeros(self._device.batch_size, np.int64),
            )

    def begin(self) -> None:
        """Begin the paths of all vertices at the present u and the present poses."""
        self._begun = True
        if self._paths:
            self._device.apply_to_vectors(RecordStart(self._states.u, self._paths.last))
            self._store_frames(self._paths)

    def _store_frames(self, paths: Paths) -> None:
        """Store the present poses as those of the last detection."""
        paths.frames[:] = self._contacts.shapes.rows[:, POSE : POSE + 12]
        self._device.upload(paths.frames)

    def detect(self, run: Any) -> None:
        """Run a detection at the end of the paths, where the next ones begin.

        Args:
            run: Function of the paths that runs the detection.
        """
        if not self._begun:
            self.begin()
        paths = self._paths
        if not paths:
            run(paths)
            return
        moved = (paths.frames != self._contacts.shapes.rows[:, POSE : POSE + 12]).any(axis=1)
        if moved.any() or paths.moved.any():
            paths.moved[:] = moved
            self._device.upload(paths.moved)
        run(paths)
        if moved.any():
            self._store_frames(paths)

    def split_motion(self, waypoints: int, free: np.ndarray) -> tuple[Displace, ...]:
        """Split the motion of the vertices evenly over the waypoints, and move them back to the first one.

        Args:
            waypoints: Number of waypoints before the end of the step.
            free: (n + 1,) 1 for vertices that move, otherwise 0.

        Returns:
            Operation that advances them to the next waypoint; () without waypoints.
        """
        if not (waypoints and self._paths):
            return ()
        step = np.zeros_like(self._paths.last)
        share = SplitPath(self._states.u, self._paths.last, free, 1 / (waypoints + 1), step)
        self._device.apply_to_vectors(share)
        return (Displace(self._states.u, step, 1),)

    def clear_passages(self) -> None:
        """Forget vertices that have passed through obstacles."""
        if self._paths:
            for array in (self._paths.passed, self._paths.count):
                array[:] = 0
                self._device.upload(array)

    def passages(self) -> list[tuple[VertexPassage, ...]]:
        """Vertices that have passed through obstacles since `clear_passages`, per batch member."""
        paths, contacts = self._paths, self._contacts
        if not paths:
            return [()] * self._device.batch_size
        self._device.download(paths.count)
        if not paths.count.any():
            return [()] * self._device.batch_size
        self._device.download(paths.passed)
        assert contacts.obstacles is not None
        by_member = paths.passed.reshape(self._device.batch_size, -1)
        owner = contacts.shapes.rows[:, OBSTACLE].astype(int)
        return [
            tuple(
                VertexPassage(name, body, int(count))
                for number, name in enumerate(contacts.obstacles.names)
                for body, own in contacts.model.body_vertices
                if (count := np.isin(passed[own], 1 + np.flatnonzero(owner == number)).sum())
            )
            for passed in by_member
        ]
