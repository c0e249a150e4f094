"""Newton steps of several copies of a state at once, as parts of one problem, each as far as its E falls.

    d = PCG(H, r, M) of all copies, each to the same accuracy of its own
    t = 1 of each, halved where its own energy does not fall by Armijo's rule
    x = x(t) along the path that turns elements, made of the d of each times its t

Those that do not arrive so, at saddles or behind barriers, are for `NewtonPCG`, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.problem import Problem
from supple.problem.measures import rounding_of
from supple.solvers.newton_steps.certificate import distances_of_copies
from supple.solvers.newton_steps.gathered import gather, size_for
from supple.solvers.newton_steps.line_search import ARMIJO
from supple.solvers.newton_steps.linearisation import Linearisation
from supple.solvers.newton_steps.moves import present
from supple.solvers.newton_steps.rotation_path import RotationPath

STEPS = 30
"""After which copies that have not arrived are left to steps of their own; most take 3 to 15."""

CONCAVE = 3
"""Steps that meet negative curvature, after which the same: all copies then go as slowly as one of them."""

HALVINGS = 12
"""Of the step of a copy, after which it is left where it is."""

CLOSER = 0.3
"""Part of the imbalance and of the distance that are asked for at which a copy is left alone: what tells the
distance is less accurate than a certificate, and either may be larger once rounded."""


class NewtonTogether:
    """Copies of a problem's state on their way to an imbalance of at most the tolerance, and to a distance of
    the equilibrium that is relative to their size, in float64. turn: how far nearly all elements may turn in
    one step [rad]; steps: how many were made."""

    def __init__(
        self, problem: Problem, copies: Sequence[int], tolerance: float, distance: float | None, turn: float
    ) -> None:
        self._problem, self._copies, self._turn = problem, list(copies), turn
        self._tolerance, self._distance = (
            CLOSER * tolerance,
            np.inf if distance is None else CLOSER * distance,
        )
        self._room = size_for(problem, len(copies))
        fill = [copies[-1]] * (self._room - len(copies))
        self.gathered = gather(problem, [*copies, *fill])
        self._linear: Linearisation = self.gathered.shared(
            "linearisation", lambda: Linearisation(self.gathered, each=False)
        )
        self._paths: RotationPath = self.gathered.shared("rotation path", lambda: RotationPath(self.gathered))
        self.steps = self._concave = 0
        self._before: float | None = None
        self._arrived = np.zeros(self._room, bool)

    @property
    def arrived(self) -> list[int]:
        """Those of the problem's copies that have the imbalance and the distance, as far as can be told."""
        return [copy for copy, there in zip(self._copies, self._arrived, strict=False) if there]

    def run(self) -> None:
        """Until all have arrived, or those are left that steps of their own will bring there sooner; the
        problem's copies are then where these are."""
        while self.steps < STEPS and self._concave < CONCAVE and self._step():
            self.steps += 1
        self._bring_back()

    def _step(self) -> bool:
        """Whether any copy was moved."""
        gathered, linear, states = self.gathered, self._linear, self.gathered.states
        balance = gathered.balance()
        if not balance.finite:
            return False
        accuracy = linear.accuracy(balance.residual, self._before, self._tolerance)
        self._before = balance.residual
        imbalance, residual = self._imbalance(), self._residual()
        direction = linear.direction(accuracy, 0.0)
        self._concave += direction.filtered
        d, net, u = (
            self._each(states.vectors(records)[0]) for records in (direction.d, states.net, states.u)
        )
        forces = np.where(self._problem.model.free[:, None], net, 0)
        known = distances_of_copies(self._problem.model, d, forces, u)
        far = np.array([max(body.of_size for body in bodies) for bodies in known])
        self._arrived = (imbalance <= self._tolerance) & (far <= self._distance)
        slope = np.einsum("cni,cni->c", d, forces)
        goes = ~self._arrived & (slope > 0)
        return bool(goes.any()) and self._go(direction.d, slope, goes, residual)

    def _go(self, d: np.ndarray, slope: np.ndarray, goes: np.ndarray, residual: np.ndarray) -> bool:
        """Each copy that goes as far along its part of d as its energy falls; whether any did."""
        start = present(self.gathered)
        energy, rounding = self._energies()
        whole = min(1.0, self._turn / max(self._paths.along(d).turn, 1e-9))
        t, open_ = np.where(goes, whole, 0.0), goes.copy()
        for _ in range(HALVINGS):
            self._put(start, d, t)
            change = self._energies()[0] - energy
            falls = (change <= -ARMIJO * t * slope) & (change < -rounding)
            same = np.abs(change) <= rounding
            if (open_ & same & ~falls).any():
                self.gathered.balance()
                falls |= same & (self._residual() < residual)
            open_ &= ~falls
            if not open_.any():
                break
            t[open_] *= 0.5
        t[open_] = 0.0
        if open_.any():
            self._put(start, d, t)
        return bool(t.any())

    def _put(self, start: np.ndarray, d: np.ndarray, t: np.ndarray) -> None:
        """Each copy at its t on the path from u = start along d."""
        device = self.gathered.device
        device.assign(self.gathered.u, start)
        device.pull(d)
        part = d.copy()
        part[:-1] *= np.repeat(t, self._problem.model.vertices)[:, None]
        self._paths.along(part).go(1.0)

    def _each(self, vectors: np.ndarray) -> np.ndarray:
        """(copies, n, 3) of vectors of all vertices."""
        return vectors.reshape(self._room, self._problem.model.vertices, 3)

    def _imbalance(self) -> np.ndarray:
        """(copies,) of the worst body of each."""
        bodies = self.gathered.balance().bodies
        return np.array([body.imbalance for body in bodies]).reshape(self._room, -1).max(axis=1)

    def _residual(self) -> np.ndarray:
        """(copies,) |r| [N]."""
        bodies = self.gathered.balance().bodies
        return np.sqrt(np.square([body.residual for body in bodies]).reshape(self._room, -1).sum(axis=1))

    def _energies(self) -> tuple[np.ndarray, np.ndarray]:
        """(copies,) E [J], and what rounding may have changed in each."""
        gathered, measures = self.gathered, self.gathered.measures
        by_term = (measures.element_energies(k) for k in range(len(gathered.model.terms)))
        stored = [energies.reshape(self._room, -1).sum(axis=1) for energies in by_term]
        u, anchor = (self._each(gathered.states.vectors(a)[0]) for a in (gathered.u, gathered.states.anchor))
        stored.append(-np.einsum("cni,cni->c", self._each(gathered.loads.force), u))
        inertia = gathered.loads.inertia.reshape(self._room, -1)
        stored.append(0.5 * np.einsum("cn,cni,cni->c", inertia, u - anchor, u - anchor))
        scale = np.sum(np.abs(stored), axis=0)
        return np.sum(stored, axis=0), rounding_of(measures, scale, 1 / np.sqrt(self._room))

    def _bring_back(self) -> None:
        problem, states = self._problem, self._problem.states
        found = self._each(self.gathered.states.vectors(self.gathered.u)[0])[: len(self._copies)]
        states.vectors(states.u)[self._copies] = found
        problem.device.push(states.u)
        problem.room.stale = True
