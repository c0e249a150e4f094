"""What every method provides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol

from supple.model import Model
from supple.problem import Balance, Problem


class Solver(Protocol):
    """A method and its options."""

    name: ClassVar[str]
    only_with: ClassVar[dict[str, tuple[str, str]]]
    """Options that do nothing unless another has some value: option → (the other, its value)."""

    batches: ClassVar[bool]
    """Whether several copies of the state can be worked on at once, on a device that can."""

    def remembers(self, model: Model) -> int:
        """Numbers that are kept in memory for each copy of the state."""

    @property
    def iterations(self) -> int | None:
        """Iterations per step when a call sets no other limit."""

    def begin(self, problem: Problem) -> Run:
        """Put the method to work on a problem, from the problem's present u."""


def idle_options(kind: type[Solver], options: Mapping[str, Any]) -> dict[str, str]:
    """Those of the options given to a kind of solver that do nothing, with what is to be said of each."""
    defaults = {option.name: option.default for option in fields(kind)}  # type: ignore[arg-type]
    found = {}
    for name, (other, value) in kind.only_with.items():
        chosen = options.get(other, defaults[other])
        if name in options and chosen != value:
            found[name] = f'does nothing with {other} = "{chosen}"; it is for {other} = "{value}"'
    return found


class Run(Protocol):
    """A method at work. It owns whatever private state it needs; u lives in the problem."""

    check_every: int
    """Iterations between looks at the residual when nobody asks for more."""

    patience: int
    """Iterations without progress after which a run is asked whether at least its energy falls."""

    @property
    def colours(self) -> int:
        """Groups of vertices or elements that a sweep goes through one after the other; 0 if none."""

    @property
    def recovers(self) -> bool:
        """Whether the method unfolds inverted elements of materials with a barrier, where forces are
        infinite."""

    @property
    def guarded(self) -> bool:
        """Whether the method must observe the residual to stay stable."""

    def rejected(self) -> list[int]:
        """Moves that were not finite and therefore not made, of every copy of the state, since this was last
        asked of a run on the same problem."""

    def notes(self, copy: int = 0) -> list[str]:
        """Sentences for the report."""

    def advance(self, iterations: int) -> None:
        """Do that many iterations."""

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """See how far the residual has come; True when that led the method to change u."""
