"""Primitives of surfaces, closest points and normals."""
