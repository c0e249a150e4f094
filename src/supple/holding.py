"""What pins hold together: where several of them meet at a vertex, all directions of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PARALLEL = 1e-6
"""Directions that differ by less than this angle [rad] count as the same."""

AGREEING = 1e-9
"""How far apart, in parts of the size of what is held, pins may want a vertex that they both hold."""


@dataclass(frozen=True, eq=False)
class Part:
    """Vertices (k,) that move together, their rest positions (k, 3) [m], and the directions (d, 3) or
    (k, d, 3) along which they are held; None: wholly, before all others. name: whose they are."""

    vertices: np.ndarray
    rest: np.ndarray
    directions: np.ndarray | None
    name: str = ""


class Holding:
    """Parts that hold vertices, together: sorted `vertices` (k,); held (k, 3, 3), the projections N = Σ n nᵀ
    onto the directions along which each is held, None where all are held wholly; and where that puts them.

    Directions are taken one after the other. What is left of each, r = n - N n, moves a vertex without
    changing what is held already: x += r n·(target - x)/|r|². Where nothing is left, the target has to agree.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        numbers = [part.vertices for part in parts]
        self.vertices, first = np.unique(np.concatenate([np.empty(0, np.int64), *numbers]), return_index=True)
        self._rest = np.concatenate([np.empty((0, 3)), *(part.rest for part in parts)])[first]
        N = np.zeros((len(self.vertices), 3, 3))
        self._steps: list[tuple[int, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]] = []
        self.overlapping = False
        for number in sorted(range(len(parts)), key=lambda i: parts[i].directions is not None):
            part = parts[number]
            place = np.searchsorted(self.vertices, part.vertices)
            directions = np.eye(3) if part.directions is None else part.directions
            directions = np.broadcast_to(directions, (len(place), *directions.shape[-2:]))
            if part.directions is not None:
                directions = _new_ones_first(directions, N[place])
            lifts = [(n, self._hold(N, place, n)) for n in np.moveaxis(directions, 1, 0)]
            self._steps.append((number, place, lifts))
        self.held = None if np.all(np.eye(3) == N) else N

    def _hold(self, N: np.ndarray, place: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Hold vertices along n (k, 3); returns r/|r|², 0 where they are held along n already."""
        left = n - np.einsum("kij,kj->ki", N[place], n)
        length = np.linalg.norm(left, axis=1, keepdims=True)
        new = length[:, 0] > PARALLEL
        self.overlapping |= not new.all()
        unit = left[new] / length[new]
        N[place[new]] += unit[:, :, None] * unit[:, None, :]
        whole = np.trace(N[place], axis1=1, axis2=2) > 2.5
        N[place[whole]] = np.eye(3)
        return np.where(new[:, None], left / np.where(length > 0, length**2, 1.0), 0.0)

    def positions(self, targets: Sequence[np.ndarray], when: str | None = None) -> np.ndarray:
        """(..., k, 3) [m] for targets (..., k, 3) of each part: at rest, but for what is held. when: refuse
        targets that contradict each other, in a sentence with these words; else the first counts."""
        several = np.broadcast_shapes((), *(target.shape[:-2] for target in targets))
        x = np.array(np.broadcast_to(self._rest, (*several, *self._rest.shape)))
        for number, place, lifts in self._steps:
            target, wholly = targets[number], self.parts[number].directions is None
            if wholly and not self.overlapping:
                x[..., place, :] = target
                continue
            for n, lift in lifts:
                gap = np.einsum("ki,...ki->...k", n, target - x[..., place, :])
                x[..., place, :] += lift * gap[..., None]
                if when is not None and self.overlapping:
                    self._refuse_contradiction(number, place, n, np.where(lift.any(axis=1), 0.0, gap), when)
            if wholly:
                first = self._first(number)
                x[..., place[first], :] = target[..., first, :]
        return x

    def shares(self, forces: np.ndarray) -> list[np.ndarray]:
        """What each part does of the forces (k, 3) at the vertices that hold them where they are: λ n along
        each of its directions, with Σ λ n the whole force at a vertex. Where several parts hold along the
        same direction it is the first, or one that holds wholly. The last direction has r to itself, so that
        λ = r·f/|r|², and what is left of the force is up to those before it."""
        left, found = forces.copy(), {}
        for number, place, lifts in reversed(self._steps):
            share = np.zeros((len(place), 3))
            for n, lift in reversed(lifts):
                along = n * np.einsum("ki,ki->k", lift, left[place])[:, None]
                left[place] -= along
                share += along
            found[number] = share
        return [found[number] for number in range(len(self.parts))]

    def _first(self, number: int) -> np.ndarray:
        """(k,) bool: which vertices of a part that holds them wholly no such part before it has."""
        before = [part.vertices for part in self.parts[:number] if part.directions is None]
        return ~np.isin(self.parts[number].vertices, np.concatenate([np.empty(0, np.int64), *before]))

    def _refuse_contradiction(
        self, number: int, place: np.ndarray, n: np.ndarray, gap: np.ndarray, when: str
    ) -> None:
        part = self.parts[number]
        size = np.ptp(self._rest, axis=0).max() + np.abs(part.rest).max()
        if not np.abs(gap).max(initial=0.0) > AGREEING * size:
            return
        gap = np.abs(gap).reshape(-1, len(place)).max(axis=0)
        worst = int(gap.argmax())
        raise ValueError(
            f"Pins of {part.name!r} contradict each other: {when} the vertex that is at "
            f"{self._rest[place[worst]].tolist()} at rest is to be in two places, "
            f"{gap[worst]:.3g} m apart along {n[worst].round(6).tolist()}. Let only one pin hold it "
            "there, or give both the same motion."
        )


def _new_ones_first(directions: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Orthonormal directions (k, d, 3), where N (k, 3, 3) holds something already as others of the same span:
    first those of which it leaves something, at right angles to those that it holds. Which part does what of
    a force then does not depend on how directions are written."""
    found, shared = directions.copy(), N.any(axis=(1, 2))
    turn, _, _ = np.linalg.svd((directions - directions @ N)[shared])
    found[shared] = np.swapaxes(turn, 1, 2) @ directions[shared]
    return found
