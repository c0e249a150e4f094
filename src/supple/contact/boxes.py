"""Contact points of two boxes: clipped face contacts or edge-edge contacts.

The separating axis test selects the direction of largest separation among face normals and cross products of
edges [Gottschalk et al. 1996]. For a face normal, the most antiparallel face of the other box is clipped by
the side planes of the reference face. The corners of the clipped face are the contact points. All share one
normal, so flush boxes cause no lateral forces at their corners.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from supple.contact.box_edges import Block, block_of, crossing_edges, separations

FACE_SLACK = 1e-3
"""Advantage in separation, relative to the shortest half edge, that edges need over faces."""


def meeting_points(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points of two boxes.

    Args:
        one: Row of the first box in `Shapes`.
        other: Row of the second box.

    Yields:
        Contact point [m], gap [m], negative for overlap, and unit normal toward the first box.
    """
    a, b = block_of(one), block_of(other)
    of_faces, of_edges = separations(a, b)
    slack = FACE_SLACK * min(a.halves.min(), b.halves.min())
    if of_edges.max(initial=-np.inf) > of_faces.max() + slack:
        yield from crossing_edges(one, other)
        return
    axis = int((of_faces - slack * (np.arange(6) >= 3)).argmax())  # ties go to the first box
    reference, incident, sign = (a, b, -1.0) if axis < 3 else (b, a, 1.0)
    for point, gap, normal in _above_face(reference, axis % 3, incident):
        yield point, gap, sign * normal


def _above_face(
    reference: Block, axis: int, incident: Block
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points of a box over a face of another: point, gap and outward face normal."""
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
    """(4, 3) corners [m], in order, of the face most antiparallel to a normal."""
    along = box.axes @ normal
    axis = int(np.abs(along).argmax())
    one, two = (box.halves[k] * box.axes[k] for k in range(3) if k != axis)
    middle = box.centre - np.sign(along[axis]) * box.halves[axis] * box.axes[axis]
    return middle + np.array([one + two, one - two, -one - two, two - one])


def _clip_polygon(polygon: np.ndarray, direction: np.ndarray, limit: float) -> np.ndarray:
    """Clip a polygon (k, 3) to the half space direction · x ≤ limit."""
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
