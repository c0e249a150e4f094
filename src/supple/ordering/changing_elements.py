"""Packed elements of a dynamic term, whose stencils change during a solve."""

from __future__ import annotations

import numpy as np

from supple.kernels import Runner
from supple.ordering.batches import batch_elements
from supple.ordering.moving import Fill, fill_rows, tables_of
from supple.ordering.rows import row_arrays
from supple.terms import Term


class ChangingElements:
    """Packed elements of a dynamic term, as in `batch_elements`, with room for its capacity.

    Attributes:
        elements: Packed elements; empty lanes refer to the vertex `padding`.
    """

    def __init__(self, term: Term, dtype: np.dtype, padding: int, lanes: int) -> None:
        self.elements = batch_elements(term, dtype, padding, lanes)
        self._taken, self._dtype, self._padding = term, dtype, padding
        element = self.elements.element
        self._start, self._slot = np.arange(len(element) + 1), np.zeros(element.shape, np.int8)

    def take(self, term: Term, device: Runner) -> None:
        """Adopt the stencils of a new term; no effect for the current term."""
        if term is self._taken:
            return
        own, element, rows = self.elements.own, self.elements.element, self.elements.rows
        now, before = len(term.vertices), len(self._taken.vertices)
        self._taken = term
        own.ravel()[:now], own.ravel()[now:before] = term.vertices[:, 0], self._padding
        element.ravel()[:now], element.ravel()[now:before] = np.arange(now), -1
        batches = np.arange(-(-max(now, before) // element.shape[1]), dtype=np.int32)
        if len(batches):
            device.push(own, len(batches))
            device.push(element, len(batches))
            tables = tables_of(term, self._dtype)
            work = Fill(row_arrays(rows), tables, self._start, own, element, self._slot, batches)
            device.run(fill_rows, 1, work)
