"""Initial positions of barrier contact: separation of intersections, rest gaps and their warnings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.collision.ccd.intersections import MAX_DEPTH, find_crossings
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity_bounds import (
    ProximityPairs,
    proximity_pairs,
)
from supple.contact.state.friction_state import no_contacts
from supple.contact.weak_contact import STIFFNESS, WeakContact
from supple.kernels import HOST, Runner
from supple.model.model import Model
from supple.problem import Problem
from supple.solvers import PBNG

SWEEPS_PER_CHECK, MAX_CHECKS = 20, 100
"""Sweeps between two intersection checks, and maximum number of checks."""

SEPARATION_FACTOR = 2.0
"""Separation distance in units of the barrier thickness."""

ZERO_GAP = 1e-6
"""Relative gap, in units of the thickness, that counts as zero; barrier forces there would be unbounded."""


def separate_bodies(
    model: Model, surfaces: Surfaces, x: np.ndarray, thickness: float, young: float, threads: int = 1
) -> np.ndarray:
    """Separate intersecting surfaces, with fixed pinned vertices.

    Intersections may remain if pins or lack of space prevent the separation.

    Args:
        model: Model.
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        thickness: Barrier thickness [m].
        young: Young's modulus for the contact stiffness [Pa].
        threads: Number of threads.

    Returns:
        (n, 3) positions [m].
    """
    clear = Surfaces(
        surfaces.triangles, surfaces.body, surfaces.rest, 2 * SEPARATION_FACTOR * thickness, surfaces.flat
    )
    bodies = len(model.body_vertices)
    stiffness, nothing = STIFFNESS * young * surfaces.edge, np.zeros((2, bodies, bodies))
    contact = WeakContact(
        clear,
        SEPARATION_FACTOR * thickness,
        stiffness,
        MAX_DEPTH * surfaces.edge,
        model.rest,
        nothing,
        SWEEPS_PER_CHECK,
        relaxed_at_rest=False,
    )
    pinned = x[model.pinned]
    intersection_free = {k for k, dynamic_term in model.dynamic_terms if dynamic_term.intersection_free}
    isolated = replace(
        model,
        force=np.zeros_like(model.rest),
        varying=(),
        velocities=None,
        obstacles=None,
        winds=(),
        prescribed=lambda time: pinned,
        terms=(*(t for k, t in enumerate(model.terms) if k not in intersection_free), no_contacts(64, False)),
        dynamic_terms=((len(model.terms) - len(intersection_free), contact),),
        changing=(),
    )
    problem = Problem(isolated, "float64", threads)
    problem.positions = x
    problem.begin_step(np.inf)
    run = PBNG().begin(problem)
    for _ in range(MAX_CHECKS):
        run.advance(SWEEPS_PER_CHECK)
        exchanged = problem.dynamic_terms.count_and_update(SWEEPS_PER_CHECK)
        run.observe(problem.balance())
        y = problem.positions
        finder = problem.device
        free = not find_crossings(surfaces, y, finder) and not find_touching_bodies(
            surfaces, y, thickness, finder
        )
        if free and not exchanged:
            break
    return problem.positions.copy()


def find_touching_bodies(
    surfaces: Surfaces, x: np.ndarray, thickness: float, runner: Runner = HOST
) -> list[tuple[int, int]]:
    """Find pairs of bodies with a zero gap, relative to a barrier thickness [m]; no self-contact."""
    pairs = proximity_pairs(surfaces, x, ZERO_GAP * thickness, runner)
    bodies = surfaces.body[pairs.vertices[pairs.distance <= ZERO_GAP * thickness][:, [0, -1]]]
    return sorted({(int(a), int(b)) for a, b in np.sort(bodies, axis=1) if a != b})


def rest_gaps(surfaces: Surfaces, thickness: float) -> np.ndarray:
    """Smallest rest gap of each pair of bodies.

    Args:
        surfaces: Surfaces of all bodies.
        thickness: Upper limit of the gaps, and value within a body [m].

    Returns:
        (bodies, bodies) gaps [m].
    """
    pairs = proximity_pairs(surfaces, surfaces.rest, thickness)
    body = surfaces.body[pairs.vertices[:, [0, -1]]]
    gap = np.full((len(surfaces.flat), len(surfaces.flat)), thickness)
    others = body[:, 0] != body[:, 1]
    np.minimum.at(gap, tuple(body[others].T), pairs.distance[others])
    return np.minimum(gap, gap.T)


def start_notes(
    surfaces: Surfaces,
    pairs: ProximityPairs,
    reach: np.ndarray,
    stiffness: np.ndarray,
    thickness: np.ndarray,
    names: tuple[str, ...],
) -> list[str]:
    """Warnings about initial gaps below the thickness, at which the barrier accelerates bodies.

    Args:
        surfaces: Surfaces of all bodies.
        pairs: Proximity pairs at rest.
        reach: (m,) barrier distances [m].
        stiffness: (bodies,) k [N/m].
        thickness: (bodies, bodies) thickness of each pair of bodies [m].
        names: Names of the bodies.
    """
    body = np.sort(surfaces.body[pairs.vertices[:, [0, -1]]], axis=1)
    ratio = np.clip(pairs.distance / reach, 1e-300, 1.0)
    stored = -stiffness[body].min(axis=1) * (reach * (1 - ratio)) ** 2 * np.log(ratio)
    sentences = []
    for one, other in np.argwhere(np.triu(np.ones_like(thickness, bool), 1)):
        between = (body == (one, other)).all(axis=1)
        gap = pairs.distance[between].min(initial=np.inf)
        if gap < thickness[one, other]:
            sentences.append(
                f"{names[one]!r} and {names[other]!r} start {gap:.2g} m apart, which is less than the "
                f"thickness of their contact, {thickness[one, other]:.2g} m: the barrier pushes them "
                f"apart with up to {stored[between].sum():.2g} J; use a larger gap or a smaller thickness "
                "to avoid this"
            )
    return sentences
