"""Wavefront OBJ text of surfaces."""

from __future__ import annotations

import numpy as np

from supple.meshes.skinning import Skin


def about(name: str) -> str:
    """Comment for formats without metadata for units and axes."""
    return f"{name}, by supple: metres, y is up"


def obj_text(skin: Skin, points: np.ndarray, name: str) -> str:
    """OBJ text of a surface at points (n, 3) [m], with texture coordinates if present."""
    lines = [f"# {about(name)}", f"o {name}", *(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in points)]
    if skin.uv is None:
        lines += [f"f {a} {b} {c}" for a, b, c in skin.triangles + 1]
    else:
        uv, corners = np.unique(skin.uv.reshape(-1, 2), axis=0, return_inverse=True)
        lines += [f"vt {u:.9g} {v:.9g}" for u, v in uv]
        pairs = np.stack([skin.triangles, corners.reshape(-1, 3)], axis=2).reshape(-1, 6) + 1
        lines += ["f {}/{} {}/{} {}/{}".format(*pair) for pair in pairs]
    return "\n".join(lines) + "\n"
