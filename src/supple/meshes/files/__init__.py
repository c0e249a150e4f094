"""Mesh files: Medit, VTU, legacy VTK, Gmsh, TetGen and surfaces."""
