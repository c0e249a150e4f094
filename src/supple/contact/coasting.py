"""Conservative advancement of whole bodies to the first contact.

All bodies start at the same time on straight paths. A body that gets too close to another surface stops as a
whole; the others continue. Long paths are divided into stages with a new broad phase each.
"""

from __future__ import annotations

import math

import numpy as np

from supple.contact.approaching import approach
from supple.contact.candidates import Candidates
from supple.contact.gaps import Gaps, Neighbours, gaps
from supple.contact.pairs import Surfaces
from supple.contact.passing import touch_times
from supple.kernels import HOST, Runner

STATION, STATIONS = 0.5, 200
"""Largest approach of surfaces in a stage, in mean edge lengths, and largest number of stages."""

KEPT = 0.5
"""Smallest remaining distance of a stopped pair, relative to the lesser of its distance at the start of the
stage and the thickness."""


def flown(
    surfaces: Surfaces,
    x: np.ndarray,
    step: np.ndarray,
    thickness: float,
    runner: Runner = HOST,
    known: Neighbours | None = None,
    candidates: Candidates | None = None,
) -> np.ndarray:
    """Advance bodies along their steps to the first contact.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        step: (n, 3) steps [m].
        thickness: Contact thickness [m].
        runner: Device of the search.
        known: Proximity pairs at x, if available.
        candidates: Cache of the broad phase.

    Returns:
        (bodies,) admissible fraction of the step of each body.
    """
    bodies, body = len(surfaces.flat), surfaces.body
    nearer, part, going = approach(surfaces, x, step, thickness), np.zeros(bodies), np.ones(bodies, bool)
    longest = STATION * surfaces.edge
    count = min(STATIONS, max(1, math.ceil(nearer / longest)))
    length = min(1.0, count * longest / max(nearer, 1e-300)) / count
    for _ in range(count):
        here = x + part[body, None] * step
        if count > 1 or known is None or known.radius < nearer + thickness:
            pairs = gaps(surfaces, here, length * nearer + thickness, runner, candidates)
        else:
            pairs = known.pairs
        reached = _reached(surfaces, here, np.where(going[body, None], length * step, 0.0), pairs, thickness)
        part += np.where(going, length * reached, 0.0)
        going &= reached >= 1
        if not going.any():
            break
    ends = going & (count * length > 1 - 1e-9)
    return np.where(ends, 1.0, part)


def _reached(surfaces: Surfaces, x: np.ndarray, way: np.ndarray, pairs: Gaps, thickness: float) -> np.ndarray:
    """(bodies,) time of impact of each body on its way (n, 3), 1 without contact."""
    reached = np.ones(len(surfaces.flat))
    own = surfaces.body[pairs.vertices]
    corners, ways = x[pairs.vertices], way[pairs.vertices]
    least = KEPT * np.minimum(pairs.distance, thickness)
    times = touch_times(corners, ways, pairs.crossing, least)
    while times.min(initial=1.0) < 1:
        first = times.argmin()
        now = times[first]
        reached[own[first]] = np.minimum(reached[own[first]], now)
        some = np.flatnonzero(np.isin(own[:, [0, -1]], own[first]).any(axis=1))
        stands = (reached[own[some]] <= now)[:, :, None]
        there = corners[some] + np.minimum(reached[own[some]], now)[:, :, None] * ways[some]
        rest = np.where(stands, 0.0, (1 - now) * ways[some])
        times[some] = now + (1 - now) * touch_times(there, rest, pairs.crossing[some], least[some])
    return reached
