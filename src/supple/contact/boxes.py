"""Contact points of two boxes: a face and what of the other box is above it, or edges that cross.

The separating axis test finds the direction that separates the boxes best, of their face normals and the
products of their edges [Gottschalk et al. 1996]. Where that is a face normal, the face of the other box that
looks at it most is clipped by the sides of the reference face, and its corners are the contact points. They
share one normal, so that boxes which lie flush on each other do not push each other aside at their corners.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from supple.contact.box_edges import Block, block_of, crossing_edges, separations

FACE_SLACK = 1e-3
"""Part of the shortest half edge by which edges must separate boxes better than faces do to count."""


def meeting_points(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points of two boxes.

    Args:
        one: Row of a shape that is a box.
        other: Row of another.

    Yields:
        Points [m], gaps [m], negative where the boxes overlap, and unit normals that push the one away.
    """
    a, b = block_of(one), block_of(other)
    of_faces, of_edges = separations(a, b)
    slack = FACE_SLACK * min(a.halves.min(), b.halves.min())
    if of_edges.max(initial=-np.inf) > of_faces.max() + slack:
        yield from crossing_edges(one, other)
        return
    axis = int((of_faces - slack * (np.arange(6) >= 3)).argmax())  # of the first box where both are as good
    reference, incident, sign = (a, b, -1.0) if axis < 3 else (b, a, 1.0)
    for point, gap, normal in _above_face(reference, axis % 3, incident):
        yield point, gap, sign * normal


def _above_face(
    reference: Block, axis: int, incident: Block
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Points of a box above a face of another, their gaps and the outward normal of the face."""
    offset = incident.centre - reference.centre
    normal = reference.axes[axis] * (1.0 if reference.axes[axis] @ offset >= 0 else -1.0)
    polygon = _opposite_face(incident, normal) - reference.centre
    for side in (k for k in range(3) if k != axis):
        for direction in (reference.axes[side], -reference.axes[side]):
            polygon = _clip_polygon(polygon, direction, float(reference.halves[side]))
    for corner in polygon:
        gap = float(corner @ normal - reference.halves[axis])
        yield reference.centre + corner - 0.5 * gap * normal, gap, normal


def _opposite_face(box: Block, normal: np.ndarray) -> np.ndarray:
    """(4, 3) corners [m], in order, of the face of a box that looks most against a normal."""
    along = box.axes @ normal
    axis = int(np.abs(along).argmax())
    one, two = (box.halves[k] * box.axes[k] for k in range(3) if k != axis)
    middle = box.centre - np.sign(along[axis]) * box.halves[axis] * box.axes[axis]
    return middle + np.array([one + two, one - two, -one - two, two - one])


def _clip_polygon(polygon: np.ndarray, direction: np.ndarray, limit: float) -> np.ndarray:
    """The part of a polygon (k, 3) whose points x have direction · x ≤ limit."""
    heights = (polygon @ direction - limit).tolist() if len(polygon) else []
    if all(height <= 0 for height in heights):
        return polygon
    kept = []
    for k, height in enumerate(heights):
        before = heights[k - 1]
        if (height <= 0) != (before <= 0):
            kept.append(polygon[k - 1] + before / (before - height) * (polygon[k] - polygon[k - 1]))
        if height <= 0:
            kept.append(polygon[k])
    return np.array(kept).reshape(-1, 3)
