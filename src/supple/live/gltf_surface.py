"""Colored surfaces for browsers: glTF with a color per corner."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.io.formats.interface import to_linear
from supple.view.fields import Field
from supple.view.renderers.drawing import Paint
from supple.view.renderers.surface import Surface


def encode_surface(
    surface: Surface, corners: np.ndarray, colors: np.ndarray, separate: bool = False
) -> bytes:
    """Binary glTF of a colored surface.

    Args:
        surface: The surface.
        corners: (c, 3) corner positions [m].
        colors: (c, 3) corner colors in [0, 1].
        separate: Keep colors separate instead of interpolating between corners.
    """
    import trimesh
    from trimesh.exchange.gltf import export_glb

    paint = Paint(corners, surface.triangles, surface.normals(corners), colors)
    paint = paint.separate_corners() if separate else paint
    shades = np.round(255 * to_linear(paint.colors)).astype(np.uint8)
    mesh = trimesh.Trimesh(
        paint.points,
        paint.triangles,
        vertex_normals=paint.normals,
        vertex_colors=np.column_stack([shades, np.full(len(shades), 255, np.uint8)]),
        process=False,
    )
    return export_glb(trimesh.Scene(mesh), include_normals=True, tree_postprocessor=_set_matte_material)


def _set_matte_material(tree: dict[str, Any]) -> None:
    """Add a matte material; the default material of glTF is polished metal."""
    tree["materials"] = [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.85}}]
    for mesh in tree["meshes"]:
        for primitive in mesh["primitives"]:
            primitive["material"] = 0


class Scale:
    """Color scale whose limits only grow, which avoids flicker.

    Args:
        field: Displayed field.
        smallest: Lower bound on the upper limit, which hides rounding errors.

    Attributes:
        limits: Values at the ends of the color bar; None before the first update.
    """

    def __init__(self, field: Field, smallest: float) -> None:
        self.field, self._smallest = field, smallest
        self.limits: tuple[float, float] | None = None

    def colors(self, values: np.ndarray) -> np.ndarray:
        """Colors (c, 3) in [0, 1] of values; constant values do not change the limits."""
        low, high = self.field.limits(values)
        if len(np.unique(values[np.isfinite(values)])) > 1:
            self.limits = self._widen_limits(low, max(high, self._smallest))
        return self.field.paint(values, self.limits or (low, high))

    def _widen_limits(self, low: float, high: float) -> tuple[float, float]:
        if self.limits is None or self.field.logarithmic:
            return low, high
        return min(low, self.limits[0]), max(high, self.limits[1])
