"""Balance of momentum in time steps: residual forces along the free rigid motions of bodies.

The relative residual compares net forces with the magnitudes of all forces, including those that elements
exert on each other. In a prestressed body, such as an inflated balloon, these are much larger than weight and
inertia, so that a small relative residual does not mean that the body moves as it should. Internal forces do
no work along rigid motions, which therefore show the balance of loads and inertia alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from supple.problem import Balance, Problem
from supple.problem.initial_guess import owners

Sums = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Sums by component of values (n, ...) of the vertices of a mask (n,)."""

FREE_MOTION = 1e-6
"""A rigid motion is free if it moves supports by less than this fraction (squared) of the largest motion."""

MAX_ROUNDINGS = 3.0
"""Multiple of the estimated rounding below which a residual counts as zero; as in `solve.termination`."""

FORCE_ROUNDINGS = 8
"""Multiple of the rounding of all forces below which a residual along rigid motions counts as zero."""


class MomentumBalance:
    """Momentum error of the free rigid motions in a time step.

    Bodies that connectors join move together. Components in contact are left out, since contact forces, like
    pins, may resist their motion.

    Args:
        problem: Problem of the solve, in which a step has begun.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def applies(self) -> bool:
        """True in time steps of bodies with vertices of their own, not on a background grid."""
        p = self._problem
        on_grid = any(term.node_interpolation is not None for term in p.model.terms)
        return bool(p.loads.inertia.any()) and not on_grid

    @cached_property
    def _components(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Number of components, component (n,) of each vertex, and mask (n,) of vertices tied to points."""
        model, owner = self._problem.model, owners(self._problem)
        fixed = np.zeros(model.vertices, bool)
        pairs = [np.zeros((2, 0), int)]
        for term in model.terms:
            if not term.ties:
                continue
            stencils = np.asarray(term.vertices)
            real: np.ndarray = (stencils >= 0) & (stencils < model.vertices)
            bodies: np.ndarray = np.where(real, owner[np.where(real, stencils, 0)], -1)
            first = bodies.max(axis=1, initial=-1)
            pairs += [np.stack([first[real[:, k]], bodies[real[:, k], k]]) for k in range(stencils.shape[1])]
            fixed[stencils[real & ~np.all(real, axis=1, keepdims=True)]] = True
        left, right = np.concatenate(pairs, axis=1)
        size = len(model.body_vertices)
        graph = coo_array((np.ones(len(left)), (left, right)), shape=(size, size))
        count, label = connected_components(graph, directed=False)
        return int(count), label[owner], fixed

    def error(
        self, tolerance: float, balance: Balance, problem: Problem | None = None, member: int = 0
    ) -> float:
        """Largest momentum error of all components, relative to what a tolerance allows.

        With the rigid motions Φ that supports leave free, the residual r, external forces f, the magnitudes e
        of external and inertial forces, and norms of forces weighted by the inverse masses, it is
        |Φᵀ r| / (√tolerance |Φᵀ f| + tolerance |e|). The root keeps steps of stiff bodies affordable: at a
        tolerance of 1e-4, weight and inertia of a body balance to 1 %.

        Args:
            tolerance: Tolerance of the relative residual.
            balance: Residual of the state, just evaluated, so that the net forces belong to it.
            problem: Problem in float64 with the same model, if the solver keeps its state there.
            member: Batch member.

        Returns:
            The error, at most 1 if the tolerance is met; 0 if all rigid motions are prevented, and where only
            rounding is left.
        """
        if not self.applies or balance.is_rounding(MAX_ROUNDINGS):
            return 0.0
        p = problem or self._problem
        states, loads = p.states, p.loads
        u = states.vectors(p.u)[member].astype(float)
        x, r = p.model.rest + u, states.vectors(states.net)[member].astype(float)
        k = np.where(p.model.free, loads.inertia, 0.0)
        force = loads.force if loads.force.ndim == 2 else loads.force[member]
        inertial = loads.inertia[:, None] * (states.vectors(states.anchor)[member].astype(float) - u)
        e = np.linalg.norm(force, axis=1) + np.linalg.norm(inertial, axis=1)
        with np.errstate(all="ignore"):
            rigid, applied, loads_and_inertia, mass = self._norms(x, r, force, k, e, member)
            floor = FORCE_ROUNDINGS * np.finfo(p.dtype).eps * balance.scale / np.sqrt(mass)
            allowed = tolerance**0.5 * applied + tolerance * loads_and_inertia
            ratio = np.where(rigid > floor, rigid / allowed, 0.0)
        return float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max(initial=0.0))

    def _norms(
        self, x: np.ndarray, r: np.ndarray, f: np.ndarray, k: np.ndarray, e: np.ndarray, member: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Norms of Φᵀ r, Φᵀ f and e [√(N m)] and the sums of k [N/m], by component."""
        count, component, _ = self._components
        moves = k > 0

        def sums(values: np.ndarray, where: np.ndarray) -> np.ndarray:
            flat = values.reshape(len(values), -1)
            columns = [np.bincount(component[where], c, minlength=count) for c in flat[where].T]
            return np.stack(columns, axis=1).reshape(count, *values.shape[1:])

        mass = sums(k, moves)
        everywhere = np.ones(len(x), bool)
        size = np.maximum(sums(np.ones(len(x)), everywhere), 1)
        offset = x - (sums(x, everywhere) / size[:, None])[component]
        reach = np.zeros(count)
        np.maximum.at(reach, component, np.linalg.norm(offset, axis=1))
        offset /= np.where(reach > 0, reach, 1.0)[component, None]
        motions = np.zeros((len(x), 3, 6))
        motions[:, :, :3] = np.eye(3)
        for axis in range(3):
            motions[:, :, 3 + axis] = np.cross(np.eye(3)[axis], offset)
        gram = sums(np.einsum("n,nia,nib->nab", k, motions, motions), moves)
        free = self._free_motions(motions, sums)
        gram = np.einsum("cab,cad,cde->cbe", free, gram, free)
        compliance = np.linalg.pinv(gram, rcond=1e-12, hermitian=True)
        along = [sums(np.einsum("nia,ni->na", motions, forces), moves) for forces in (r, f)]
        along = [np.einsum("cab,ca->cb", free, work) for work in along]
        rigid, applied = (np.sqrt(np.einsum("ca,cab,cb->c", work, compliance, work)) for work in along)
        rigid[self._touching(member)] = 0.0
        magnitude = np.sqrt(sums(np.where(moves, e * e / np.where(moves, k, 1.0), 0.0), moves))
        return rigid, applied, magnitude, mass

    def _free_motions(self, motions: np.ndarray, sums: Sums) -> np.ndarray:
        """(components, 6, 6) combinations of rigid motions that do not move supports; the others are 0."""
        model, (_, _, fixed) = self._problem.model, self._components
        held = fixed.copy()
        held[model.pinned] = True
        normals = np.zeros((model.vertices, 3, 3))
        normals[fixed] = np.eye(3)
        constrained = model.constraint_projection
        normals[model.pinned] = np.eye(3) if constrained is None else constrained
        resisted = np.einsum("nij,nja->nia", normals, motions)
        gram = sums(np.einsum("nia,nib->nab", resisted, resisted), held)
        values, vectors = np.linalg.eigh(gram)
        is_free = values <= FREE_MOTION * np.maximum(values.max(axis=1, keepdims=True), 1.0)
        return np.asarray(np.where(is_free[:, None, :], vectors, 0.0))

    def _touching(self, member: int) -> np.ndarray:
        """Components in contact with obstacles or with other bodies."""
        p, n = self._problem, self._problem.model.vertices
        touched = np.zeros(n, bool)
        if p.contacts.planes:
            p.device.download(p.contacts.planes.reaction)
            reaction = p.contacts.planes.reaction.reshape(len(p.contacts.planes.reaction), -1, n + 1, 4)
            touched |= reaction[:, member, :-1].any(axis=(0, 2))
        for number, dynamic_term in p.model.dynamic_terms:
            if not dynamic_term.is_follower_load and not p.model.terms[number].loads:
                stencils = np.asarray(p.model.terms[number].vertices).ravel()
                touched[stencils[(stencils >= 0) & (stencils < n)]] = True
        return np.unique(self._components[1][touched])
