"""Passage of rigid bodies through faces: the center of mass crosses a surface triangle in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supple.contact.state.face_penetration import surface_triangles

if TYPE_CHECKING:
    from supple.contact.state.obstacle_contact import Contacts

MAX_IMAGINARY = 1e-9
"""Relative imaginary part up to which a root is real."""


class RigidPassage:
    """Positions of faces and rigid bodies at the start of a frame.

    Args:
        contacts: Obstacle contact with rigid bodies, batch size 1.
    """

    def __init__(self, contacts: Contacts) -> None:
        self._contacts = contacts
        self._triangles = surface_triangles(contacts.model)
        self._corners, self._centers = self._positions()

    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (t, 3, 3) of all faces and centers of mass (k, 3) of all rigid bodies [m]."""
        positions = self._contacts.states.positions[0]
        return positions[self._triangles], np.array([motion.center for motion in self._contacts.rigid])

    def find(self) -> list[tuple[str, str]]:
        """Names of rigid bodies and of the bodies whose faces their centers have crossed since the start."""
        corners, centers = self._positions()
        model, obstacles, passages = self._contacts.model, self._contacts.obstacles, []
        assert obstacles is not None
        for motion, start, end in zip(self._contacts.rigid, self._centers, centers, strict=True):
            faces = crossed_triangles(self._corners - start, corners - end)
            rigid_body = obstacles.names[int(obstacles.obstacle[motion.body.row])]
            vertices = self._triangles[faces, 0]
            passages += [
                (rigid_body, name)
                for name, own in model.body_vertices
                if ((own.start <= vertices) & (vertices < own.stop)).any()
            ]
        return passages


def crossed_triangles(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Numbers of the triangles that the origin crosses.

    Args:
        first: (t, 3, 3) corners at the start [m].
        last: (t, 3, 3) corners at the end [m], at constant velocity.
    """
    both = np.concatenate([first, last], axis=1)
    near = (both.min(axis=1) <= 0).all(axis=1) & (both.max(axis=1) >= 0).all(axis=1)
    return np.array([k for k in np.flatnonzero(near) if _crosses(first[k], last[k])], int)


def _crosses(first: np.ndarray, last: np.ndarray) -> bool:
    """True if the origin is in a triangle with corners (3, 3) at a time after the first."""
    times = np.array([0.0, 1 / 3, 2 / 3, 1.0])
    volumes = [np.linalg.det(first + t * (last - first)) for t in times]
    if not np.isfinite(volumes).all():
        return False
    roots = np.roots(np.polyfit(times, volumes, 3))
    for root in roots[np.abs(roots.imag) <= MAX_IMAGINARY * np.abs(roots)].real:
        if 0.0 < root <= 1.0:
            a, b, c = first + root * (last - first)
            normal = np.cross(b - a, c - a)
            sides = [normal @ np.cross(p, q) for p, q in ((a, b), (b, c), (c, a))]
            if normal.any() and min(sides) >= 0:
                return True
    return False
