"""The system H d = r of a problem at its present u, solved as far as H allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.linear import Assembly, Multilevel, NotPositive, pcg
from supple.problem import Problem

LINEAR_ITERATIONS = 1000
"""Allowed to one linear solve."""

PROBED = 1e-2
"""How far a random right-hand side is followed to find negative curvature."""


class Direction(NamedTuple):
    """d (f, 3) [m] with H d = r; filtered: whether H had directions along which the energy is concave, so
    that the positive part of every element stands for it; concave (f, 3): such a direction p where one was
    seen; slope = r · d [J]; curvature: the smallest seen, p · H p / |p|² [N/m] of p or d, where that was
    asked for; None where H was refused for what it has on its diagonal or on a coarse level."""

    d: np.ndarray
    filtered: bool
    concave: np.ndarray | None
    slope: float
    curvature: float | None


class Linearisation:
    """Makes Newton's directions for a problem in float64; free (f,): the vertices they are of."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.assembly: Assembly = problem.shared("assembly", lambda: Assembly(problem))
        self._hierarchy: Multilevel = problem.shared("multilevel", lambda: Multilevel(self.assembly))
        self.free = self.assembly.free
        terms = problem.model.terms
        self.quadratic = all(t.ties if t.material is None else t.material.quadratic for t in terms)
        """Whether H is the same everywhere, so that one step is all there is to do."""
        self.iterations = self.filtered = 0
        self._known: tuple[tuple[np.ndarray, ...], float, Direction] | None = None

    def force(self) -> np.ndarray:
        """The net forces r (f, 3) [N] that the problem evaluated last."""
        return self.problem.states.net[self.free, :3].astype(float)

    def unheld(self, moves: np.ndarray) -> np.ndarray:
        """Moves (f, 3) without what they have along directions in which vertices are held."""
        return self.assembly.unheld(moves.ravel()).reshape(-1, 3)

    def direction(self, accuracy: float, floor: float, probe: bool = False) -> Direction:
        """d at the problem's u, whose net forces have been evaluated: with the exact H where that is positive
        definite as far as can be seen, else with its filtered one. accuracy: relative, in the norm of the
        energy; floor [N]: a residual that is small enough in any case. probe: look for negative curvature
        also where r does not lead. What a probe has found for the same system is taken
        where it is accurate enough."""
        if self._known is not None and not probe:
            system, known, direction = self._known
            if known <= accuracy and all(map(np.array_equal, system, self._system())):
                return direction
        direction = self._direction(accuracy, floor, probe)
        self._known = (tuple(map(np.copy, self._system())), accuracy, direction) if probe else None
        return direction

    def _system(self) -> tuple[np.ndarray, ...]:
        """What H and r depend on: displacements, net forces and inertia."""
        return self.problem.u, self.problem.states.net, self.problem.loads.inertia

    def _direction(self, accuracy: float, floor: float, probe: bool) -> Direction:
        concave = curvature = None
        try:
            exact = self._solve("exact", accuracy, floor, probe)
            if exact.concave is None:
                return exact
            concave, curvature = exact.concave, exact.curvature
        except NotPositive:
            if probe:
                concave, curvature = self._concave()
        self.filtered += 1
        return self.convex(accuracy, floor)._replace(concave=concave, curvature=curvature)

    def _concave(self) -> tuple[np.ndarray | None, float | None]:
        """A direction p along which the energy is concave, and its curvature, where no preconditioner of H is
        to be had: found with that of its positive part."""
        H = self.assembly.hessian("exact")
        for kind in ("projected", "bound"):
            try:
                M = self._hierarchy.at(self.assembly.hessian(kind), self.assembly.positions)
            except NotPositive:
                continue
            p = pcg(H, _noise(H.shape[0]), M, PROBED, 0.0, LINEAR_ITERATIONS).negative
            return (None, None) if p is None else (self._moves(p), _curvature(H, p))
        return None, None

    def _moves(self, x: np.ndarray) -> np.ndarray:
        """A vector of the system as moves (f, 3) that vertices can make."""
        return self.assembly.unheld(x).reshape(-1, 3)

    def convex(self, accuracy: float, floor: float) -> Direction:
        """d with the positive semi-definite part of every element; that may be singular, and then with the
        bound that sweeps have; 0, with the slope 0, where not even that is positive definite, or is not
        finite."""
        for kind in ("projected", "bound"):
            try:
                found = self._solve(kind, accuracy, floor)
            except NotPositive:
                continue
            if kind == "bound" or (found.concave is None and found.slope > 0):
                return found._replace(filtered=True, concave=None)
        return Direction(np.zeros((len(self.free), 3)), True, None, 0.0, None)

    def _solve(self, kind: str, accuracy: float, floor: float, probe: bool = False) -> Direction:
        H = self.assembly.hessian(kind)
        r = self.force().ravel()
        M = self._hierarchy.at(H, self.assembly.positions)
        found = pcg(H, r, M, accuracy, floor, LINEAR_ITERATIONS)
        self.iterations += found.iterations
        d, concave = self.assembly.unheld(found.x), found.negative
        if probe and concave is None:
            concave = pcg(H, _noise(len(r)), M, PROBED, 0.0, LINEAR_ITERATIONS).negative
        curvature = _curvature(H, d if concave is None else concave) if probe else None
        p = None if concave is None else self._moves(concave)
        return Direction(d.reshape(-1, 3), False, p, _dot(r, d), curvature)


def _noise(size: int) -> np.ndarray:
    """A right-hand side that has something of every direction, always the same."""
    return np.random.default_rng(0).normal(size=size)


def _curvature(H: bsr_matrix, p: np.ndarray) -> float:
    """p · H p / |p|² [N/m]."""
    return _dot(p, H @ p) / max(_dot(p, p), 1e-300)


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """a · b without BLAS, whose threads stall on a busy machine."""
    return float((a * b).sum())
