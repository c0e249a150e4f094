"""Conservative advancement to the first contact: of bodies towards each other, and of vertices to obstacles.

All bodies start at the same time on straight paths. A body that gets too close to another surface stops as a
whole; the others continue. Long paths are divided into stages with a new broad phase each.

In the frame of a moving obstacle, vertices follow straight paths. Each vertex advances by a fraction of its
distance, evaluates the distance again, and so on [Hart 1996, sphere tracing]; close to a surface, by a
fraction of the obstacle thickness.
"""

from __future__ import annotations

import math

import numpy as np

from supple.collision.broad_phase.cached_broad_phase import Candidates, max_approach
from supple.collision.ccd.time_of_impact import impact_times
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity_bounds import Neighbors, ProximityPairs, proximity_pairs
from supple.collision.obstacles.obstacles import Obstacles
from supple.collision.obstacles.signed_distance import STEP, Shapes, distances_to
from supple.kernels import HOST, Runner

MAX_STAGE_APPROACH, MAX_STAGES = 0.5, 200
"""Largest approach of surfaces in a stage, in mean edge lengths, and largest number of stages."""

REMAINING_DISTANCE = 0.5
"""Smallest remaining distance of a stopped pair, relative to the lesser of its distance at the start of the
stage and the thickness."""


def advance_to_contact(
    surfaces: Surfaces,
    x: np.ndarray,
    step: np.ndarray,
    thickness: float,
    runner: Runner = HOST,
    neighbors: Neighbors | None = None,
    candidates: Candidates | None = None,
) -> np.ndarray:
    """Advance bodies along their steps to the first contact.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        step: (n, 3) steps [m].
        thickness: Contact thickness [m].
        runner: Device of the search.
        neighbors: Proximity pairs at x, if available.
        candidates: Cache of the broad phase.

    Returns:
        (bodies,) admissible fraction of the step of each body.
    """
    bodies, body = len(surfaces.flat), surfaces.body
    nearer, part, going = max_approach(surfaces, x, step, thickness), np.zeros(bodies), np.ones(bodies, bool)
    longest = MAX_STAGE_APPROACH * surfaces.edge
    count = min(MAX_STAGES, max(1, math.ceil(nearer / longest)))
    length = min(1.0, count * longest / max(nearer, 1e-300)) / count
    for _ in range(count):
        positions = x + part[body, None] * step
        if count > 1 or neighbors is None or neighbors.radius < nearer + thickness:
            pairs = proximity_pairs(surfaces, positions, length * nearer + thickness, runner, candidates)
        else:
            pairs = neighbors.pairs
        impact_time = _times_of_impact(
            surfaces, positions, np.where(going[body, None], length * step, 0.0), pairs, thickness
        )
        part += np.where(going, length * impact_time, 0.0)
        going &= impact_time >= 1
        if not going.any():
            break
    ends = going & (count * length > 1 - 1e-9)
    return np.where(ends, 1.0, part)


def _times_of_impact(
    surfaces: Surfaces, x: np.ndarray, step: np.ndarray, pairs: ProximityPairs, thickness: float
) -> np.ndarray:
    """(bodies,) time of impact of each body on its way (n, 3), 1 without contact."""
    impact_time = np.ones(len(surfaces.flat))
    own = surfaces.body[pairs.vertices]
    corners, steps = x[pairs.vertices], step[pairs.vertices]
    least = REMAINING_DISTANCE * np.minimum(pairs.distance, thickness)
    times = impact_times(corners, steps, pairs.crossing, least)
    while times.min(initial=1.0) < 1:
        first = times.argmin()
        now = times[first]
        impact_time[own[first]] = np.minimum(impact_time[own[first]], now)
        affected = np.flatnonzero(np.isin(own[:, [0, -1]], own[first]).any(axis=1))
        stands = (impact_time[own[affected]] <= now)[:, :, None]
        positions = (
            corners[affected] + np.minimum(impact_time[own[affected]], now)[:, :, None] * steps[affected]
        )
        rest = np.where(stands, 0.0, (1 - now) * steps[affected])
        times[affected] = now + (1 - now) * impact_times(
            positions, rest, pairs.crossing[affected], least[affected]
        )
    return impact_time


DISTANCE_FRACTION = 0.9
"""Step relative to the distance, which may be 10 % too large far from a mesh."""

THICKNESS_FRACTION, MAX_STEPS = 0.25, 1000
"""Smallest step relative to the obstacle thickness, and maximum number of steps. A path that exceeds the
maximum ends at its last point."""

PENETRATION_TOLERANCE = 1e-3
"""Tolerated penetration of a vertex in contact, relative to the smallest step."""


def stop_at_obstacles(
    obstacles: Obstacles,
    shapes: Shapes,
    x: np.ndarray,
    goal: np.ndarray,
    body: np.ndarray,
    tested: np.ndarray,
    fine: float,
) -> np.ndarray:
    """Stop bodies at the first obstacle on their path.

    A body stops as a whole if one of its vertices would penetrate an obstacle, and then follows the motion of
    that obstacle.

    Args:
        obstacles: Obstacles of the model.
        shapes: Their shapes, with the motion of the step.
        x: (n, 3) initial positions [m].
        goal: (n, 3) target positions [m].
        body: (n,) body of each vertex.
        tested: Vertices to test.
        fine: Depth of a penetration [m]; less in thin shapes.

    Returns:
        (n, 3) positions [m].
    """
    part, by = np.ones(body.max(initial=0) + 1), np.full(body.max(initial=0) + 1, -1)
    thick, _ = obstacles.extents
    for k, row in enumerate(shapes.rows):
        shape = Shapes(shapes.rows[k : k + 1], shapes.values)
        start = _advect(row, x[tested])
        least = min(fine, THICKNESS_FRACTION * thick[k])
        first = np.ones(len(part))
        np.minimum.at(first, body[tested], _penetration_times(shape, start, goal[tested] - start, least))
        by[first < part] = k
        part = np.minimum(first, part)
    positions = goal.copy()
    for k in np.unique(by[by >= 0]):
        own = (by == k)[body]
        start = _advect(shapes.rows[k], x[own])
        positions[own] = start + part[body[own], None] * (goal[own] - start)
    return positions


def _advect(row: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Points (n, 3) advected by a shape from start to end of the step."""
    R, t = row[STEP : STEP + 9].reshape(3, 3), row[STEP + 9 : STEP + 12]
    return x @ R.T + t


def _penetration_times(shapes: Shapes, x: np.ndarray, step: np.ndarray, least: float) -> np.ndarray:
    """Fraction of the path after which each point penetrates shapes more deeply than initially.

    Args:
        shapes: Obstacle shapes.
        x: (n, 3) initial points [m].
        step: (n, 3) straight paths [m].
        least: Additional depth of a penetration [m].

    Returns:
        (n,) fractions.
    """
    length = np.linalg.norm(step, axis=1)
    part, fraction = np.zeros(len(x)), np.zeros(len(x))
    distance = distances_to(shapes, x)[0]
    initial_depth = np.minimum(distance, 0.0)
    active = np.arange(len(x))
    for _ in range(MAX_STEPS):
        fraction[active] += np.maximum(DISTANCE_FRACTION * distance[active], least) / np.maximum(
            length[active], 1e-300
        )
        part[active[fraction[active] >= 1]] = 1.0
        active = active[fraction[active] < 1]
        if not len(active):
            break
        distance[active] = distances_to(shapes, x[active] + fraction[active, None] * step[active])[0]
        outside = active[distance[active] >= initial_depth[active] - PENETRATION_TOLERANCE * least]
        part[outside] = fraction[outside]
        active = active[distance[active] >= initial_depth[active] - least]
    return part
