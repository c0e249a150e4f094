"""Broad phase: a hash grid of vertices, edges and triangles, and candidate pairs."""
