"""Dirichlet conditions of several pins, merged at shared vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_PARALLEL_ANGLE = 1e-6
"""Angle [rad] below which two directions count as the same."""

MAX_MISMATCH = 1e-9
"""Tolerated mismatch of pin targets at a shared vertex, relative to the size of the pinned region."""


@dataclass(frozen=True, eq=False)
class PinConstraint:
    """Vertices constrained by one pin.

    Attributes:
        vertices: (k,) vertex ids.
        rest: (k, 3) rest positions [m].
        directions: (d, 3) or (k, d, 3) constrained directions; None for full constraints, which take
            precedence.
        name: Name of the pin.
    """

    vertices: np.ndarray
    rest: np.ndarray
    directions: np.ndarray | None
    name: str = ""


class DirichletConditions:
    """Merged Dirichlet conditions.

    Directions are processed one after the other. The remainder of each, r = n - N n, moves a vertex without a
    change of the coordinates constrained before: x += r n·(target - x)/|r|². If the remainder vanishes, the
    target must agree with the earlier ones.

    Attributes:
        parts: The pins.
        vertices: (k,) sorted ids of the constrained vertices.
        constraint_projection: (k, 3, 3) projections N = Σ n nᵀ onto the constrained directions; None if all
            vertices are fully constrained.
        overlapping: True if several pins constrain the same direction of a vertex.
    """

    def __init__(self, parts: Sequence[PinConstraint]) -> None:
        self.parts = parts
        numbers = [part.vertices for part in parts]
        self.vertices, first = np.unique(np.concatenate([np.empty(0, np.int64), *numbers]), return_index=True)
        self._rest = np.concatenate([np.empty((0, 3)), *(part.rest for part in parts)])[first]
        N = np.zeros((len(self.vertices), 3, 3))
        self._steps: list[tuple[int, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]] = []
        self.overlapping = False
        for number in sorted(range(len(parts)), key=lambda i: parts[i].directions is not None):
            part = parts[number]
            indices = np.searchsorted(self.vertices, part.vertices)
            directions = np.eye(3) if part.directions is None else part.directions
            directions = np.broadcast_to(directions, (len(indices), *directions.shape[-2:]))
            if part.directions is not None:
                directions = _order_unconstrained_first(directions, N[indices])
            lifts = [(n, self._hold(N, indices, n)) for n in np.moveaxis(directions, 1, 0)]
            self._steps.append((number, indices, lifts))
        self.constraint_projection = None if np.all(np.eye(3) == N) else N

    def _hold(self, N: np.ndarray, indices: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Constrain vertices along n (k, 3); return r/|r|², 0 for directions already constrained."""
        left = n - np.einsum("kij,kj->ki", N[indices], n)
        length = np.linalg.norm(left, axis=1, keepdims=True)
        new = length[:, 0] > MAX_PARALLEL_ANGLE
        self.overlapping |= not new.all()
        unit = left[new] / length[new]
        N[indices[new]] += unit[:, :, None] * unit[:, None, :]
        is_full = np.trace(N[indices], axis1=1, axis2=2) > 2.5
        N[indices[is_full]] = np.eye(3)
        return np.where(new[:, None], left / np.where(length > 0, length**2, 1.0), 0.0)

    def positions(self, targets: Sequence[np.ndarray], when: str | None = None) -> np.ndarray:
        """Positions that satisfy the conditions; free directions are at rest.

        Args:
            targets: (..., k, 3) target positions of each pin [m].
            when: Text for the error message that names the time of the targets. None to let the first of
                contradicting targets count.

        Returns:
            (..., k, 3) positions [m].

        Raises:
            ValueError: `when` is given and targets contradict each other.
        """
        batch_shape = np.broadcast_shapes((), *(target.shape[:-2] for target in targets))
        x = np.array(np.broadcast_to(self._rest, (*batch_shape, *self._rest.shape)))
        for number, indices, lifts in self._steps:
            target, is_full = targets[number], self.parts[number].directions is None
            if is_full and not self.overlapping:
                x[..., indices, :] = target
                continue
            for n, lift in lifts:
                gap = np.einsum("ki,...ki->...k", n, target - x[..., indices, :])
                x[..., indices, :] += lift * gap[..., None]
                if when is not None and self.overlapping:
                    self._check_agreement(number, indices, n, np.where(lift.any(axis=1), 0.0, gap), when)
            if is_full:
                first = self._is_first_full_constraint(number)
                x[..., indices[first], :] = target[..., first, :]
        return x

    def distribute_reactions(self, forces: np.ndarray) -> list[np.ndarray]:
        """Distribute reaction forces over the pins.

        The share of a pin is Σ λ n over its directions, and all shares of a vertex add up to its force. A
        direction shared by several pins belongs to the first, or to a fully constraining one. Only the last
        direction contains its remainder r, so λ = r·f/|r|², and the rest of the force is distributed over the
        earlier directions.

        Args:
            forces: (k, 3) reaction forces at the constrained vertices [N].

        Returns:
            Forces (k, 3) of each pin [N].
        """
        left, shares = forces.copy(), {}
        for number, indices, lifts in reversed(self._steps):
            share = np.zeros((len(indices), 3))
            for n, lift in reversed(lifts):
                along = n * np.einsum("ki,ki->k", lift, left[indices])[:, None]
                left[indices] -= along
                share += along
            shares[number] = share
        return [shares[number] for number in range(len(self.parts))]

    def _is_first_full_constraint(self, number: int) -> np.ndarray:
        """(k,) bool: True for vertices of pin `number` that no earlier pin constrains fully."""
        before = [part.vertices for part in self.parts[:number] if part.directions is None]
        return ~np.isin(self.parts[number].vertices, np.concatenate([np.empty(0, np.int64), *before]))

    def _check_agreement(
        self, number: int, indices: np.ndarray, n: np.ndarray, gap: np.ndarray, when: str
    ) -> None:
        part = self.parts[number]
        size = np.ptp(self._rest, axis=0).max() + np.abs(part.rest).max()
        if not np.abs(gap).max(initial=0.0) > MAX_MISMATCH * size:
            return
        gap = np.abs(gap).reshape(-1, len(indices)).max(axis=0)
        worst = int(gap.argmax())
        raise ValueError(
            f"Pins of {part.name!r} contradict each other: {when} the vertex with rest position "
            f"{self._rest[indices[worst]].tolist()} has two prescribed positions, {gap[worst]:.3g} m "
            f"apart along {n[worst].round(6).tolist()}. Remove one of the pins there, or give both "
            "the same motion."
        )


def _order_unconstrained_first(directions: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Rotate directions so that unconstrained ones come first.

    The shares of the pins then do not depend on the basis in which the directions are given.

    Args:
        directions: (k, d, 3) orthonormal directions.
        N: (k, 3, 3) projections onto directions already constrained.

    Returns:
        (k, d, 3) directions with the same span; unchanged where N is 0. Directions with a remainder n - N n
        come first, orthogonal to those that N already constrains.
    """
    rotated, shared = directions.copy(), N.any(axis=(1, 2))
    turn, _, _ = np.linalg.svd((directions - directions @ N)[shared])
    rotated[shared] = np.swapaxes(turn, 1, 2) @ directions[shared]
    return rotated
