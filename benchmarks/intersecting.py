"""Intersection test of surfaces by ipctk, independent of supple."""

from __future__ import annotations

import ipctk
import numpy as np

import supple


def intersects(scene: supple.Scene, positions: np.ndarray) -> bool:
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    used, faces = np.unique(triangles, return_inverse=True)
    faces = faces.reshape(-1, 3)
    mesh = ipctk.CollisionMesh(positions[used], np.asarray(ipctk.edges(faces)), faces)
    return bool(ipctk.has_intersections(mesh, positions[used]))
