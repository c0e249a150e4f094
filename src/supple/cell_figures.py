"""What is known of cells beside their stresses: fibres of materials, folds and threads of cloth."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from supple.cloth_figures import of_cells
from supple.fibre_figures import carried_fibres
from supple.model import Model


class CellFigures:
    """Of all cells of a model at positions (n, 3) [m]."""

    model: Model
    positions: np.ndarray

    @cached_property
    def fibre_stretch(self) -> np.ndarray:
        """(m,) how far fibres are stretched; NaN where a material has none."""
        return np.linalg.norm(carried_fibres(self.model, self.positions), axis=1)

    @cached_property
    def fibres(self) -> np.ndarray:
        """(m, 3) along which fibres run now, of length 1; NaN where a material has none."""
        return carried_fibres(self.model, self.positions) / self.fibre_stretch[:, None]

    @cached_property
    def bending_angle(self) -> np.ndarray:
        """(m,) the largest angle of each triangle to a neighbour [degrees]; NaN for tetrahedra."""
        return of_cells(self.model, self.positions, "bending_angle")

    @cached_property
    def weft_strain(self) -> np.ndarray:
        """(m,) by what part threads along u are longer than at rest; NaN where there is no cloth with uv."""
        return of_cells(self.model, self.positions, "weft_strain")

    @cached_property
    def warp_strain(self) -> np.ndarray:
        """(m,) by what part threads along v are longer than at rest; NaN where there is no cloth with uv."""
        return of_cells(self.model, self.positions, "warp_strain")

    @cached_property
    def area_ratio(self) -> np.ndarray:
        """(m,) area of each triangle over that at rest, of any cloth; NaN for tetrahedra."""
        return of_cells(self.model, self.positions, "area_ratio")
