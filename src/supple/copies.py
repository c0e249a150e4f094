"""Copies of one scene that move on together, or one after the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from supple.equilibria import bytes_per_copy
from supple.model import Model, Step
from supple.problem import Problem
from supple.problem.remembered import evolving_parameters
from supple.report import Report
from supple.simulate import Frame
from supple.solvers import Solver
from supple.solving import on_device
from supple.state import State
from supple.stepping import Stepping
from supple.words import counted

MOST_COPIES = 65_535
"""Rows that a grid of a CUDA device may have, one for each copy."""


@dataclass(frozen=True, eq=False, repr=False)
class Frames:
    """One frame of several copies: positions and velocities (copies, n, 3) [m, m/s], and a report, a state,
    the step that led there and the model with its contacts there for each. [k] is the `Frame` of the k-th
    copy, and a slice a list of them."""

    positions: np.ndarray
    velocities: np.ndarray
    reports: list[Report]
    model: Model
    index: int
    time: float
    states: list[State]
    steps: list[Step | None]
    models: list[Model]

    def __len__(self) -> int:
        return len(self.reports)

    @overload
    def __getitem__(self, copy: int) -> Frame: ...

    @overload
    def __getitem__(self, copy: slice) -> list[Frame]: ...

    def __getitem__(self, copy: int | slice) -> Frame | list[Frame]:
        if isinstance(copy, slice):
            return [self[k] for k in range(len(self))[copy]]
        x, v, report = self.positions[copy], self.velocities[copy], self.reports[copy]
        state, step, model = self.states[copy], self.steps[copy], self.models[copy]
        return Frame(x, report, model, v, self.index, self.time, state=state, step=step)

    def __repr__(self) -> str:
        outcomes = Counter(report.outcome.name.lower() for report in self.reports)
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
        title = f"Frames {self.index} at {self.time:.6g} s"
        return (
            f"<{title}: {counted(len(self), 'copy', 'copies')} of {self.model.vertices:,} vertices, {ended}>"
        )


class Together:
    """All copies, or the only one, in one problem, whose states are theirs."""

    def __init__(self, stepping: Stepping) -> None:
        self._stepping = stepping

    @property
    def positions(self) -> np.ndarray:
        """(copies, n, 3) [m]."""
        return self._stepping.problem.states.positions

    @property
    def velocities(self) -> np.ndarray:
        """(copies, n, 3) [m/s]."""
        return self._stepping.settle()

    def on_device(self) -> Any:
        """The displacements where they are, if that is a device."""
        return self._stepping.problem.states.on_device()

    def take(self) -> list[State]:
        self._stepping.settle()
        return self._stepping.problem.states.take()

    def put(self, states: list[State]) -> None:
        self._stepping.stand()
        self._stepping.problem.states.put(states)
        self._stepping.begin()

    def advance(self, forces: np.ndarray | None, pins: np.ndarray | None) -> list[Report]:
        return self._stepping.advance(forces, pins)

    def last_steps(self) -> list[Step | None]:
        """What led to the frame, for each copy."""
        return self._stepping.last_steps()

    @property
    def models(self) -> list[Model]:
        """What the frame is of, for each copy: contacts are their own."""
        return [self._stepping.model] * self._stepping.problem.copies


class OneByOne:
    """One copy after the other through the same problem; the states of all are kept here."""

    def __init__(self, stepping: Stepping) -> None:
        self._stepping = stepping
        self._states: list[State] = []
        self._steps: list[Step | None] = []
        self.models: list[Model] = []
        """What the frame is of, for each copy: contacts are their own."""

    @property
    def positions(self) -> np.ndarray:
        """(copies, n, 3) [m]."""
        return self._stepping.problem.model.rest + np.stack([state.displacements for state in self._states])

    @property
    def velocities(self) -> np.ndarray:
        """(copies, n, 3) [m/s]."""
        return np.stack([state.velocities for state in self._states]).astype(float)

    def on_device(self) -> None:
        """They are not on a device all at once."""

    def take(self) -> list[State]:
        return list(self._states)

    def put(self, states: list[State]) -> None:
        self._states = list(states)
        self._stepping.begin()

    def advance(self, forces: np.ndarray | None, pins: np.ndarray | None) -> list[Report]:
        stepping, reports, index = self._stepping, [], self._stepping.index
        self._steps, self.models = [], []
        for k, state in enumerate(self._states):
            stepping.index = index
            stepping.stand()
            stepping.problem.state = state
            stepping.begin()
            reports += stepping.advance(*of_copy(k, forces, pins))
            stepping.settle()
            self._states[k] = stepping.problem.state
            self._steps += stepping.last_steps()
            self.models.append(stepping.model)
        return reports

    def last_steps(self) -> list[Step | None]:
        """What led to the frame, for each copy."""
        return self._steps


def of_copy(k: int, *arrays: np.ndarray | None) -> list[Any]:
    """What the k-th copy has of arrays that may have a leading axis of copies."""
    return [a[k] if a is not None and a.ndim == 3 else a for a in arrays]


def problem_of_copies(model: Model, precision: str, copies: int, solver: Solver) -> Problem:
    """Copies on a CUDA device, which must have room for them."""
    from supple.kernels.cuda import free_memory, require_device

    require_device()
    needed, free = copies * bytes_per_copy(model, precision, solver), free_memory()
    if needed > free:
        raise ValueError(
            f"{copies:,} copies need about {needed / 1e9:.1f} GB on the device, which has "
            f"{free / 1e9:.1f} GB free; take fewer, or precision='float32'"
        )
    evolves = any(evolving_parameters(model))
    problem = Problem(model, precision, device=on_device("cuda", model, copies), varied=evolves)
    problem.hold(copies)
    return problem
