"""Batches of states of one scene, advanced together or sequentially."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from supple.api.equilibria import bytes_per_member
from supple.api.simulate import Frame
from supple.model.model import Model, Step
from supple.model.state import State
from supple.problem import Problem
from supple.problem.history_variables import evolving_parameters
from supple.solve.batch_solve import make_device
from supple.solve.report import Report
from supple.solve.time_loop import TimeLoop
from supple.solvers import Solver
from supple.support.text import pluralize

MAX_BATCH_SIZE = 65_535
"""Largest batch size: rows of a CUDA grid, one per batch member."""


@dataclass(frozen=True, eq=False, repr=False)
class BatchFrame:
    """One frame of a `Stepper` batch.

    `len` is the batch size. Indexing returns the `Frame` of one batch member, and a slice returns a list of
    them.

    Attributes:
        positions: (batch, n, 3) vertex positions [m].
        velocities: (batch, n, 3) vertex velocities [m/s].
        reports: Report of each batch member.
        model: Model of the stepper.
        index: Number of the frame.
        time: Time [s].
        states: State of each batch member.
        steps: Last step of each batch member, or None.
        models: Model of each batch member with its contacts at this frame.
    """

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
    def __getitem__(self, member: int) -> Frame: ...

    @overload
    def __getitem__(self, member: slice) -> list[Frame]: ...

    def __getitem__(self, member: int | slice) -> Frame | list[Frame]:
        if isinstance(member, slice):
            return [self[k] for k in range(len(self))[member]]
        x, v, report = self.positions[member], self.velocities[member], self.reports[member]
        state, step, model = self.states[member], self.steps[member], self.models[member]
        return Frame(x, report, model, v, self.index, self.time, state=state, step=step)

    def __repr__(self) -> str:
        outcomes = Counter(report.outcome.name.lower() for report in self.reports)
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
        title = f"BatchFrame {self.index} at {self.time:.6g} s"
        return (
            f"<{title}: {pluralize(len(self), 'batch member')} of {self.model.vertices:,} vertices, {ended}>"
        )


class BatchedStates:
    """Batch advanced at once in one problem; also a single state."""

    def __init__(self, time_loop: TimeLoop) -> None:
        self._time_loop = time_loop

    @property
    def positions(self) -> np.ndarray:
        """(batch, n, 3) positions [m]."""
        return self._time_loop.problem.states.positions

    @property
    def velocities(self) -> np.ndarray:
        """(batch, n, 3) velocities [m/s]."""
        return self._time_loop.finish_frame()

    def on_device(self) -> Any:
        """Displacements in device memory; None on the CPU."""
        return self._time_loop.problem.states.on_device()

    def get_states(self) -> list[State]:
        """Return the states of all batch members."""
        self._time_loop.finish_frame()
        return self._time_loop.problem.states.get_states()

    def set_states(self, states: list[State]) -> None:
        """Set the states of all batch members."""
        self._time_loop.move_obstacles()
        self._time_loop.problem.states.set_states(states)
        self._time_loop.begin()

    def advance(self, forces: np.ndarray | None, pins: np.ndarray | None) -> list[Report]:
        """Advance by one frame under additional forces [N], with pins at given positions [m]."""
        return self._time_loop.advance(forces, pins)

    def last_steps(self) -> list[Step | None]:
        """`Step` of the last time step of each batch member; None before the first step."""
        return self._time_loop.last_steps()

    @property
    def models(self) -> list[Model]:
        """Frame model per batch member, including contacts."""
        return [self._time_loop.model] * self._time_loop.problem.batch_size


class SequentialStates:
    """Batch members advanced sequentially in one problem; their states are stored here."""

    def __init__(self, time_loop: TimeLoop) -> None:
        self._time_loop = time_loop
        self._states: list[State] = []
        self._steps: list[Step | None] = []
        self.models: list[Model] = []
        """Model of the frame for each batch member, with its contacts."""

    @property
    def positions(self) -> np.ndarray:
        """(batch, n, 3) positions [m]."""
        return self._time_loop.problem.model.rest + np.stack([state.displacements for state in self._states])

    @property
    def velocities(self) -> np.ndarray:
        """(batch, n, 3) velocities [m/s]."""
        return np.stack([state.velocities for state in self._states]).astype(float)

    def on_device(self) -> None:
        """None: a sequential batch has no common device array."""

    def get_states(self) -> list[State]:
        """Return the states of all batch members."""
        return list(self._states)

    def set_states(self, states: list[State]) -> None:
        """Set the states of all batch members."""
        self._states = list(states)
        self._time_loop.begin()

    def advance(self, forces: np.ndarray | None, pins: np.ndarray | None) -> list[Report]:
        """Advance all batch members sequentially, each one frame further."""
        time_loop, reports, index = self._time_loop, [], self._time_loop.index
        self._steps, self.models = [], []
        for k, state in enumerate(self._states):
            time_loop.index = index
            time_loop.move_obstacles()
            time_loop.problem.state = state
            time_loop.begin()
            reports += time_loop.advance(*select_member(k, forces, pins))
            time_loop.finish_frame()
            self._states[k] = time_loop.problem.state
            self._steps += time_loop.last_steps()
            self.models.append(time_loop.model)
        return reports

    def last_steps(self) -> list[Step | None]:
        """`Step` of the last time step of each batch member; None before the first step."""
        return self._steps


def select_member(k: int, *arrays: np.ndarray | None) -> list[Any]:
    """Select batch member k of arrays with an optional leading batch axis."""
    return [a[k] if a is not None and a.ndim == 3 else a for a in arrays]


def make_batch_problem(model: Model, precision: str, batch_size: int, solver: Solver) -> Problem:
    """Create a problem for a batch on a CUDA device; insufficient device memory raises a `ValueError`."""
    from supple.kernels.cuda import free_memory, require_device

    require_device()
    needed, free = batch_size * bytes_per_member(model, precision, solver), free_memory()
    if needed > free:
        raise ValueError(
            f"batch_size={batch_size:,} needs about {needed / 1e9:.1f} GB on the device, which has "
            f"{free / 1e9:.1f} GB free; use a smaller batch_size, or precision='float32'"
        )
    evolves = any(evolving_parameters(model))
    problem = Problem(model, precision, device=make_device("cuda", model, batch_size), varied=evolves)
    problem.set_batch_size(batch_size)
    return problem
