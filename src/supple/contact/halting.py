"""Where bodies that fly a long way meet obstacles, which take them along from there on.

Seen from an obstacle, which may move, vertices fly on straight ways. Each goes on by a part of its distance,
looks again, and so forth [Hart 1996, sphere tracing]; beside what it touches, by a part of how thick that is.
"""

from __future__ import annotations

import numpy as np

from supple.contact.obstacles import Obstacles
from supple.contact.shapes import STEP, Shapes, distances_to

OF_DISTANCE = 0.9
"""How far a vertex goes on at once, of its distance, which may be a tenth too large far from a mesh."""

OF_THICKNESS, ROUNDS = 0.25, 1000
"""How far it goes on at least, of the thickness of what it meets, and how often at most; whatever is on its
way still stops there."""

ROUNDING = 1e-3
"""Part of that by which what touches something may be inside of it."""


def halted(
    obstacles: Obstacles,
    shapes: Shapes,
    x: np.ndarray,
    goal: np.ndarray,
    body: np.ndarray,
    some: np.ndarray,
    fine: float,
) -> np.ndarray:
    """(n, 3) [m] where bodies get to that fly from x to a goal (n, 3) in a step of the shapes: whoever has a
    vertex, of some, that would enter one stays on the first that it meets. body (n,): whose each vertex is;
    fine [m]: how deep one is that has entered, and less in what is thin."""
    part, by = np.ones(body.max(initial=0) + 1), np.full(body.max(initial=0) + 1, -1)
    thick, _ = obstacles.extents
    for k, row in enumerate(shapes.rows):
        alone = Shapes(shapes.rows[k : k + 1], shapes.values)
        start = _carried(row, x[some])
        least = min(fine, OF_THICKNESS * thick[k])
        first = np.ones(len(part))
        np.minimum.at(first, body[some], _outside(alone, start, goal[some] - start, least))
        by[first < part] = k
        part = np.minimum(first, part)
    there = goal.copy()
    for k in np.unique(by[by >= 0]):
        own = (by == k)[body]
        start = _carried(shapes.rows[k], x[own])
        there[own] = start + part[body[own], None] * (goal[own] - start)
    return there


def _carried(row: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Points (n, 3) that move with a shape, at the end of its step."""
    R, t = row[STEP : STEP + 9].reshape(3, 3), row[STEP + 9 : STEP + 12]
    return x @ R.T + t


def _outside(shapes: Shapes, x: np.ndarray, way: np.ndarray, least: float) -> np.ndarray:
    """(n,) the part of a way (n, 3) [m] from x (n, 3) after which a point gets deeper into shapes than it
    was, by least [m] or more."""
    length = np.linalg.norm(way, axis=1)
    part, there = np.zeros(len(x)), np.zeros(len(x))
    distance = distances_to(shapes, x)[0]
    begun = np.minimum(distance, 0.0)
    on = np.arange(len(x))
    for _ in range(ROUNDS):
        there[on] += np.maximum(OF_DISTANCE * distance[on], least) / np.maximum(length[on], 1e-300)
        part[on[there[on] >= 1]] = 1.0
        on = on[there[on] < 1]
        if not len(on):
            break
        distance[on] = distances_to(shapes, x[on] + there[on, None] * way[on])[0]
        outside = on[distance[on] >= begun[on] - ROUNDING * least]
        part[outside] = there[outside]
        on = on[distance[on] >= begun[on] - least]
    return part
