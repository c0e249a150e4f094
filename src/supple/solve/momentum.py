"""Balance of momentum in time steps: residual forces along the free rigid motions of bodies.

The relative residual compares net forces with the magnitudes of all forces, including those that elements
exert on each other. In a prestressed body, such as an inflated balloon, these are much larger than weight and
inertia, so that a small relative residual does not mean that the body moves as it should. Internal forces do
no work along rigid motions, which therefore show the balance of loads and inertia alone.

Supports resist rigid motions. In supported bodies the free vertices move rigidly instead: the sum of the
residual forces there has to be small compared with the sum of the loads. Otherwise a taut sheet, whose
tension is much larger than its weight, would hover.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from supple.problem import Balance, Problem
from supple.problem.initial_guess import joined_bodies, owners
from supple.problem.states import vectors_of

FREE_MOTION = 1e-6
"""A rigid motion is free if it moves supports by less than this fraction (squared) of the largest motion."""

MIN_NET_LOAD = 1e-9
"""Fraction of the magnitude of loads and inertia above which a supported body has a net load."""

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
        return int(self._groups.max(initial=-1)) + 1, self._groups[owners(self._problem)], self._tied

    @cached_property
    def _groups(self) -> np.ndarray:
        """(bodies,) component of each body."""
        return joined_bodies(self._problem)[0]

    @cached_property
    def _tied(self) -> np.ndarray:
        """(n,) True for vertices tied to points."""
        model = self._problem.model
        tied = np.zeros(model.vertices, bool)
        for term in model.terms:
            if term.ties and term.family != "contact":
                stencils = np.asarray(term.vertices)[~term.translatable]
                tied[stencils[stencils >= 0]] = True
        return tied

    def error(
        self,
        tolerance: float,
        balance: Balance,
        problem: Problem | None = None,
        member: int = 0,
        supported: bool = False,
    ) -> float:
        """Largest momentum error of all components, relative to what a tolerance allows.

        With the rigid motions Φ that supports leave free, the residual r, external forces f, the magnitudes e
        of external and inertial forces, and norms of forces weighted by the inverse masses, it is
        |Φᵀ r| / (√tolerance |Φᵀ f| + tolerance |e|). The root keeps steps of stiff bodies affordable: at a
        tolerance of 1e-4, weight and inertia of a body balance to 1 %.

        Supported components are those with supports that resist a rigid motion. Their Φ are all rigid motions
        of their free vertices, and the bound has a third term: tolerance² |s|, with the magnitudes s of all
        forces. Loads that cancel give no error.

        Args:
            tolerance: Tolerance of the relative residual.
            balance: Residual of the state, just evaluated, so that the net forces belong to it.
            problem: Problem in float64 with the same model, if the solver keeps its state there.
            member: Batch member.
            supported: True to include supported components.

        Returns:
            The error, at most 1 if the tolerance is met; 0 if all rigid motions are prevented, and where only
            rounding is left; infinite for states that are not finite.
        """
        if not self.applies or balance.relative_residual == 0:
            return 0.0
        if not balance.finite:
            return np.inf
        p = problem or self._problem
        u, r, anchor = (
            vectors_of(p.states, records, [member])[0].astype(float)
            for records in (p.u, p.states.net, p.states.anchor)
        )
        offset = self._scaled_offsets(p.model.rest + u)
        free = self._free_motions(offset)
        if not (supported or free.any()):
            return 0.0
        k = np.where(p.model.free, p.loads.inertia, 0.0)
        moving = (k > 0)[:, None]
        f = p.loads.force if p.loads.force.ndim == 2 else p.loads.force[member]
        inertial = k[:, None] * (anchor - u)
        e = np.linalg.norm(f, axis=1) + np.linalg.norm(inertial, axis=1)
        with np.errstate(all="ignore"):
            gram, vectors = self._gram(k, offset), (r, self._unconstrained(f))
            wrenches = [
                self._sums(np.where(moving, np.hstack([v, np.cross(offset, v)]), 0.0)) for v in vectors
            ]
            mass = self._sums(k[:, None])[:, 0]
            scale = self._scales(balance) / np.sqrt(mass)
            floor = FORCE_ROUNDINGS * np.finfo(p.dtype).eps * scale
            magnitude = np.sqrt(self._sums(np.where(k > 0, e * e / k, 0.0)[:, None])[:, 0])
            rigid, applied = _inverse_mass_norms(free, gram, wrenches)
            ratio = _ratio(rigid, tolerance**0.5 * applied + tolerance * magnitude, floor)
            if supported:
                rigid, applied = _inverse_mass_norms(np.broadcast_to(np.eye(6), gram.shape), gram, wrenches)
                allowed = tolerance**0.5 * applied + tolerance * magnitude + tolerance**2 * scale
                other = _ratio(rigid, allowed, floor)
                has_net_load = applied > MIN_NET_LOAD * magnitude
                resisted = ~np.all(np.any(free, axis=1), axis=1) & has_net_load
                ratio = np.where(resisted, np.maximum(ratio, other), ratio)
            ratio[self._touching(member)] = 0.0
        return float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max(initial=0.0))

    def _scales(self, balance: Balance) -> np.ndarray:
        """(components,) norm of the magnitudes of all forces [N]."""
        if not balance.bodies:
            return np.full(self._components[0], balance.scale)
        squares = np.array([body.scale**2 for body in balance.bodies])
        return np.sqrt(np.bincount(self._groups, squares, minlength=self._components[0]))

    def _unconstrained(self, forces: np.ndarray) -> np.ndarray:
        """Forces (n, 3) without their parts along constrained directions."""
        model = self._problem.model
        if model.constraint_projection is None:
            return forces
        forces = forces.copy()
        forces[model.pinned] -= np.einsum("nij,nj->ni", model.constraint_projection, forces[model.pinned])
        return forces

    def _sums(self, values: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(components, c) sums of values (k, c) of all vertices, or of some."""
        count, component, _ = self._components
        if count == 1:
            return values.sum(axis=0)[None]
        component = component if vertices is None else component[vertices]
        return np.stack([np.bincount(component, column, minlength=count) for column in values.T], axis=1)

    def _scaled_offsets(self, x: np.ndarray) -> np.ndarray:
        """(n, 3) offsets from the centers of the components, at most 1 long."""
        count, component, _ = self._components
        size = np.maximum(np.bincount(component, minlength=count), 1)
        offset = x - (self._sums(x) / size[:, None])[component]
        reach = np.zeros(count)
        length = np.linalg.norm(offset, axis=1)
        if count == 1:
            reach[:] = length.max(initial=0.0)
        else:
            np.maximum.at(reach, component, length)
        return np.asarray(offset / np.where(reach > 0, reach, 1.0)[component, None])

    def _gram(self, k: np.ndarray, offset: np.ndarray, vertices: np.ndarray | None = None) -> np.ndarray:
        """(components, 6, 6) matrices Σ k Φᵀ Φ, Φ = (I, [o]×ᵀ): three translations and three rotations."""
        pairs = [offset[:, i] * offset[:, j] for i in range(3) for j in range(3)]
        moments = self._sums(k[:, None] * np.column_stack([np.ones(len(k)), offset, *pairs]), vertices)
        mass, first, second = moments[:, 0], moments[:, 1:4], moments[:, 4:].reshape(-1, 3, 3)
        gram = np.zeros((len(mass), 6, 6))
        gram[:, :3, :3] = mass[:, None, None] * np.eye(3)
        gram[:, 3:, 3:] = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
        gram[:, :3, 3:] = -np.cross(np.eye(3), first[:, None])
        gram[:, 3:, :3] = gram[:, :3, 3:].transpose(0, 2, 1)
        return gram

    def _free_motions(self, offset: np.ndarray) -> np.ndarray:
        """(components, 6, 6) combinations of rigid motions that do not move supports; the others are 0."""
        model, (_, _, tied) = self._problem.model, self._components
        supported = tied.copy()
        supported[model.pinned] = True
        if model.constraint_projection is None:
            supports = np.flatnonzero(supported)
            gram = self._gram(np.ones(len(supports)), offset[supports], supports)
        else:
            tied_vertices = np.flatnonzero(tied)
            gram = self._gram(np.ones(len(tied_vertices)), offset[tied_vertices], tied_vertices)
            motions = np.zeros((len(model.pinned), 3, 6))
            motions[:, :, :3] = np.eye(3)
            motions[:, :, 3:] = -np.cross(np.eye(3), offset[model.pinned][:, None])
            resisted = np.einsum("nij,nja->nia", model.constraint_projection, motions)
            products = np.einsum("nia,nib->nab", resisted, resisted).reshape(-1, 36)
            gram = gram + self._sums(products, model.pinned).reshape(-1, 6, 6)
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


def _inverse_mass_norms(
    motions: np.ndarray, gram: np.ndarray, wrenches: list[np.ndarray]
) -> list[np.ndarray]:
    """Norms (components,) of wrenches (components, 6) along rigid motions, weighted by the inverse mass.

    Args:
        motions: (components, 6, 6) combinations of rigid motions, one per column.
        gram: (components, 6, 6) masses of the rigid motions.
        wrenches: Sums of forces and of their moments.
    """
    mass = np.einsum("cab,cad,cde->cbe", motions, gram, motions)
    compliance = np.linalg.pinv(mass, rcond=1e-12, hermitian=True)
    work = [np.einsum("cab,ca->cb", motions, wrench) for wrench in wrenches]
    return [np.sqrt(np.einsum("ca,cab,cb->c", w, compliance, w)) for w in work]


def _ratio(rigid: np.ndarray, allowed: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """rigid / allowed; 0 where `rigid` is rounding."""
    return np.where(rigid > floor, rigid / allowed, 0.0)
