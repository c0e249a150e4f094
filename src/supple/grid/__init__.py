"""Bodies embedded in a regular grid whose nodes are the unknowns [PXPBD section 5.5, Jiang et al. 2015]."""

from supple.grid.grid_model import Forces, GridModel, make_grid_model
from supple.grid.interpolation import Interpolation, interpolate
from supple.grid.node_planes import NodePlanes

__all__ = ["Forces", "GridModel", "Interpolation", "NodePlanes", "interpolate", "make_grid_model"]
