"""Derived cell quantities other than stress: fiber stretch, and folds and thread strains of cloth."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from supple.cloth_figures import of_cells
from supple.fibre_figures import carried_fibres
from supple.model import Model


class CellFigures:
    """Derived quantities of all cells of a model at positions (n, 3) [m]."""

    model: Model
    positions: np.ndarray

    @cached_property
    def fibre_stretch(self) -> np.ndarray:
        """(m,) fiber stretch |F a|; NaN for materials without fibers."""
        return np.linalg.norm(carried_fibres(self.model, self.positions), axis=1)

    @cached_property
    def fibres(self) -> np.ndarray:
        """(m, 3) unit fiber directions in the deformed configuration; NaN for materials without fibers."""
        return carried_fibres(self.model, self.positions) / self.fibre_stretch[:, None]

    @cached_property
    def bending_angle(self) -> np.ndarray:
        """(m,) largest angle between normals of neighboring triangles [degrees]; NaN for tetrahedra."""
        return of_cells(self.model, self.positions, "bending_angle")

    @cached_property
    def weft_strain(self) -> np.ndarray:
        """(m,) relative elongation of threads along u; NaN for tetrahedra and cloth without uv."""
        return of_cells(self.model, self.positions, "weft_strain")

    @cached_property
    def warp_strain(self) -> np.ndarray:
        """(m,) relative elongation of threads along v; NaN for tetrahedra and cloth without uv."""
        return of_cells(self.model, self.positions, "warp_strain")

    @cached_property
    def area_ratio(self) -> np.ndarray:
        """(m,) triangle area relative to rest area, for all cloth; NaN for tetrahedra."""
        return of_cells(self.model, self.positions, "area_ratio")
