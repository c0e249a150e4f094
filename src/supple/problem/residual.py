"""Force residuals, relative and absolute, of single states and batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MAX_REST_ROUNDINGS = 4
"""Forces that would move a vertex by fewer than this many roundings of its displacement count as zero."""


@dataclass(frozen=True)
class Balance:
    """Force residual of one state.

    Attributes:
        residual: |r| [N].
        scale: |s| [N], where s are the sums of force magnitudes per vertex.
        rounding: Net force that rounding alone explains in the working precision [N].
        at_rest: True if there are no loads and no vertex force exceeds rounding.
        bodies: The same for each body, if there are several.
    """

    residual: float
    scale: float
    rounding: float
    at_rest: bool
    bodies: tuple[Balance, ...] = ()

    @property
    def finite(self) -> bool:
        return math.isfinite(self.residual) and math.isfinite(self.scale)

    @property
    def relative_residual(self) -> float:
        """Relative residual |r| / |s|, between 0 and 1; 0 at rest and inf for a state that is not finite.

        With several bodies it is the maximum over the bodies: the large forces in a stiff body would hide the
        residual of a soft one.
        """
        if not self.finite:
            return math.inf
        if self.bodies:
            return max(body.relative_residual for body in self.bodies)
        return 0.0 if self.at_rest or self.scale == 0 else self.residual / self.scale

    @property
    def smallest_scale(self) -> float:
        """Smallest |s| over bodies not at rest [N]."""
        awake = [body.scale for body in self.bodies if not body.at_rest and body.scale > 0]
        return min(awake, default=self.scale)

    def is_rounding(self, factor: float) -> bool:
        """True if every body is at rest or its residual is at most `factor` times rounding."""
        if self.bodies:
            return all(body.is_rounding(factor) for body in self.bodies)
        return self.at_rest or self.residual <= factor * self.rounding


class Balances(Mapping[int, Balance]):
    """Residuals of the active batch members, created on access.

    Its arrays `residual`, `relative_residual` and `finite`, with one entry per batch member, are computed for
    the whole batch at once, since convergence checks read them for thousands of members.

    Args:
        statistics: (batch, bodies, 5) statistics, see `reduce_statistics`.
        acts: (batch or 1, bodies) True if loads act on the body.
        edge: Mean edge length [m].
        eps: Machine epsilon of the working precision.
        active: Active batch members.
    """

    def __init__(
        self, statistics: np.ndarray, acts: np.ndarray, edge: float, eps: float, active: np.ndarray
    ) -> None:
        self._statistics, self._acts, self._edge, self._eps = statistics.copy(), acts, edge, eps
        self._active = active.tolist()
        self._balances: dict[int, Balance] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self._active)

    def __len__(self) -> int:
        return len(self._active)

    def __getitem__(self, member: int) -> Balance:
        """Residual of a batch member; for an inactive member, the last one evaluated."""
        if member not in self._balances:
            acts = self._acts[member if len(self._acts) > 1 else 0].tolist()
            bodies = zip(self._statistics[member].tolist(), acts, strict=True)
            self._balances[member] = _combine(
                tuple(_body_balance(o, a, self._edge, self._eps) for o, a in bodies)
            )
        return self._balances[member]

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """(batch, bodies) residual and scale of each body [N]."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self._statistics[..., 0]), np.sqrt(self._statistics[..., 1])

    @cached_property
    def residual(self) -> np.ndarray:
        """(batch,) |r| [N]."""
        return _length(self._sizes[0])

    @cached_property
    def finite(self) -> np.ndarray:
        """(batch,) True if residual and scale are finite."""
        return np.isfinite(self.residual) & np.isfinite(_length(self._sizes[1]))

    @cached_property
    def relative_residual(self) -> np.ndarray:
        """(batch,) relative residual, see `Balance.relative_residual`."""
        residual, scale = self._sizes
        resting = MAX_REST_ROUNDINGS * (self._eps * (self._statistics[..., 3] + self._edge))
        with np.errstate(all="ignore"):
            still = (~self._acts & (self._statistics[..., 4] <= resting)) | (scale == 0)
            worst = np.where(still, 0.0, residual / scale).max(axis=1)
        return np.where(self.finite, worst, np.inf)


def _length(sizes: np.ndarray) -> np.ndarray:
    """(batch,) norms of values (batch, bodies)."""
    if sizes.shape[1] == 1:
        return sizes[:, 0]
    with np.errstate(all="ignore"):
        total: np.ndarray = np.sqrt((sizes**2).sum(axis=1))
    return total


def _body_balance(statistics: list[float], loaded: bool, edge: float, eps: float) -> Balance:
    r2, s2, a2, reach, ratio = statistics
    length = eps * (reach + edge)
    at_rest = not loaded and ratio <= MAX_REST_ROUNDINGS * length
    return Balance(math.sqrt(r2), math.sqrt(s2), length * math.sqrt(a2), at_rest)


def _combine(bodies: tuple[Balance, ...]) -> Balance:
    """Combine the residuals of all bodies."""
    if len(bodies) == 1:
        return bodies[0]
    residual, scale, rounding = (
        math.sqrt(sum(getattr(body, name) ** 2 for body in bodies))
        for name in ("residual", "scale", "rounding")
    )
    return Balance(residual, scale, rounding, all(body.at_rest for body in bodies), bodies)
