"""Meshes of simple shapes, and tetrahedralization of closed surfaces."""
