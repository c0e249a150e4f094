"""Connected components of the free vertices, and whether Dirichlet conditions prevent their rigid motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from supple.linear.assembly.hessian import Assembly

ON_A_LINE = 1e-6
"""Points count as collinear if the sum of squared distances from their best line is below this fraction of
the sum of squares along it."""


class Parts:
    """Disconnected bodies of a problem: connected components of its Hessian.

    Attributes:
        count: Number of components.
        number: (f,) component of each free vertex.
        loose: (count,) True if a component may move as a whole according to its pins: its elements contain no
            three pinned vertices off a common line. Springs, ties and directional constraints may still
            prevent rigid motion; only the Hessian shows that.
    """

    def __init__(self, assembly: Assembly) -> None:
        pattern, f = assembly.pattern, len(assembly.free)
        self.count, self.number = 0, np.zeros(0, np.int32)
        if f:
            ones = np.ones(len(pattern.indices), np.int8)
            graph = csr_array((ones, pattern.indices, pattern.indptr), shape=(f, f))
            self.count, self.number = connected_components(
                graph, connection="strong"
            )  # the graph is symmetric
        self.loose = self._unpinned(assembly)

    def _unpinned(self, assembly: Assembly) -> np.ndarray:
        """(count,) True if the elements of a component contain fewer than three pinned vertices, or only
        collinear ones."""
        model = assembly.problem.model
        part_of = np.full(model.vertices, -1, np.int32)
        part_of[assembly.free] = self.number
        pairs = [np.zeros((0, 2), np.int64)]
        terms: Any = model.terms
        for term in terms:
            if term.deforms and term.node_interpolation is None:
                stencils = term.vertices[(part_of[term.vertices] < 0).any(axis=1)]
                part = part_of[stencils].max(axis=1, initial=-1)  # component of the free corners
                of_part = np.where(part_of[stencils] < 0, part[:, None], -1)
                pairs.append(np.stack([of_part.ravel(), stencils.ravel()], axis=1))
        part, pinned = np.unique(np.concatenate(pairs), axis=0).T
        part, points = part[part >= 0], model.rest[pinned[part >= 0]]
        pins = np.bincount(part, minlength=self.count)
        offset = points - (self.sums(points, part) / np.maximum(pins, 1)[:, None])[part]
        spread = np.linalg.eigvalsh(self.sums(np.einsum("ki,kj->kij", offset, offset), part))
        loose: np.ndarray = spread[:, 1] <= ON_A_LINE * spread[:, 2]
        return loose

    def sums(self, values: np.ndarray, number: np.ndarray | None = None) -> np.ndarray:
        """Sum values over each component.

        Args:
            values: (k, ...) values.
            number: (k,) component of each value; by default that of each free vertex.

        Returns:
            (count, ...) sums.
        """
        sums = np.zeros((self.count, *values.shape[1:]))
        np.add.at(sums, self.number if number is None else number, values)
        return sums

    def most(self, values: np.ndarray) -> np.ndarray:
        """(count,) largest of values (f,) in each component, at least 0."""
        most = np.zeros(self.count)
        np.maximum.at(most, self.number, values)
        return most
