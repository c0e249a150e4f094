"""File formats of animations, one module each."""

from supple.io.formats.glb import GLB
from supple.io.formats.interface import ExportContext, Format, FrameData
from supple.io.formats.npz import NPZ
from supple.io.formats.pc2 import PC2
from supple.io.formats.sequences import OBJ, PLY
from supple.io.formats.usd import USD
from supple.io.formats.vtu import VTU
from supple.io.formats.zarr import ZARR

FORMATS = {format.name: format for format in (USD, GLB, PLY, OBJ, PC2, NPZ, ZARR, VTU)}
"""Formats by their names on the command line."""

__all__ = ["FORMATS", "ExportContext", "Format", "FrameData"]
