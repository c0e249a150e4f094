"""What is known of a state that nobody has moved: solvers and those who watch them ask for the same again and
again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.problem.balance import Balances

if TYPE_CHECKING:
    from supple.problem.problem import Problem


@dataclass
class Memo:
    """What was found where a problem's u was so, under what acted then: balances of all copies, and energies
    with the sums of their magnitudes."""

    u: np.ndarray
    terms: tuple[Any, ...]
    changes: int
    balances: Balances | None = None
    energies: tuple[np.ndarray, np.ndarray] | None = None


def memo_here(problem: Problem, known: Memo | None) -> tuple[Memo, bool]:
    """What is known of the present state, or a memo of it that knows nothing; and whether it may be kept: of
    states that are easy to tell from others, where forces are all that is evaluated."""
    p, u, loads = problem, problem.u, problem.loads
    plain = p.device.name == "cpu" and not (p.contacts or p.room or p.model.followers)
    if not plain or p.model.held is not None or loads.inertia.any():
        return Memo(u, (), 0), False
    same = known is not None and known.terms is p.layout.terms and known.changes == loads.changes
    if known is None or not same or not np.array_equal(known.u, u):
        known = Memo(u.copy(), p.layout.terms, loads.changes)
    return known, True
