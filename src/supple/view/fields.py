"""Fields that color the surface, such as stress, fold angles and thread strains, and lines along fibers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from supple.meshes.measures import area_vectors, means_at_vertices
from supple.model.model import Model, Step
from supple.postprocess.cell_quantities import CLOTH_QUANTITIES, deformed_fibers, folds_at_vertices
from supple.postprocess.evaluate import evaluate_model, evaluate_net_force, vertex_means
from supple.view.renderers.surface import select_spaced
from supple.view.style import (
    COOL_TO_HOT,
    LABEL_COLORS,
    NEUTRAL,
    PALE_TO_DEEP,
    PALE_TO_FIRE,
    RED_TO_BLUE,
)


def bending_angle(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Largest dihedral angle at the edges of each vertex [degrees]; NaN on solids."""
    angles = np.full(model.vertices, np.nan)
    for body in model.bodies:
        if body.mesh.corners == 3:
            angles[body.vertices] = folds_at_vertices(body.mesh.cells, positions[body.vertices])
    return angles


def weft_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Strain of the threads along u, averaged over the triangles of each vertex; NaN without cloth or uv."""
    return means(model, positions, "weft_strain")


def warp_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Strain of the threads along v, averaged over the triangles of each vertex; NaN without cloth or uv."""
    return means(model, positions, "warp_strain")


def means(model: Model, positions: np.ndarray, figure: str) -> np.ndarray:
    """Average a `CLOTH_QUANTITIES` quantity over the triangles of each vertex, by rest area; (n,)."""
    averages = np.full(model.vertices, np.nan)
    for body in model.bodies:
        x = positions[body.vertices]
        values = CLOTH_QUANTITIES[figure](body, x) if body.mesh.corners == 3 else None
        if values is not None:
            averages[body.vertices] = means_at_vertices(values, body.mesh.cells, body.rest_measures, len(x))
    return averages


LINE_SPACING = 0.02
"""Smallest distance, and the length, of lines at rest, relative to the model's size."""

MIN_LINE_SPACING = 0.6
"""Smallest distance of lines relative to the mean edge length."""

MIN_TANGENTIAL = 0.3
"""Smallest tangential component of a fiber for a line."""


def fiber_lines(model: Model, positions: np.ndarray) -> np.ndarray:
    """(l, 2, 3) ends of lines along the fibers just below the surface [m].

    Fibers that are nearly normal to the surface are omitted.
    """
    faces, cells = _faces(model)
    along = deformed_fibers(model, positions)[cells]
    length = np.linalg.norm(along, axis=1)
    normals = area_vectors(positions, faces)
    with np.errstate(all="ignore"):
        along, normals = along / length[:, None], normals / np.linalg.norm(normals, axis=1, keepdims=True)
    flat = along - np.einsum("ti,ti->t", along, normals)[:, None] * normals
    seen = np.linalg.norm(flat, axis=1) > MIN_TANGENTIAL
    centers = positions[faces].mean(axis=1)
    reach = 0.45 * _width(model) * length[:, None] * flat
    return np.stack([centers - reach, centers + reach], axis=1)[seen]


@lru_cache(maxsize=2)
def _faces(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Surface triangles (t, 3) of cells with fibers, thinned to the line spacing, and the cells behind."""
    fibrous = np.flatnonzero(np.isfinite(deformed_fibers(model, model.rest)[:, 0]))
    tets = model.cells[fibrous] if len(fibrous) else np.empty((0, 4), int)
    faces = tets[:, [(0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0)]].reshape(-1, 3)
    _, first, counts = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    outer = first[counts == 1]
    chosen = select_spaced(model.rest[faces].mean(axis=1), outer, _width(model))
    return faces[chosen], fibrous[chosen // 4]


def _width(model: Model) -> float:
    """Spacing and length of lines [m]."""
    return max(
        LINE_SPACING * float(np.linalg.norm(np.ptp(model.rest, axis=0))), MIN_LINE_SPACING * model.mean_edge
    )


DECADES = 4
"""Number of decades of a logarithmic color bar."""


NO_LAST_STEP = (
    "with substeps > 1, saved frames do not contain the start of the last substep. Use another field, "
    "or substeps=1"
)

Values = Callable[[Model, np.ndarray, Step | None], np.ndarray]


@dataclass(frozen=True)
class Field:
    """A number per vertex, with its color scale.

    Attributes:
        label: Label with unit.
        colors: Colors of the scale.
        values: Function (model, positions, step) -> (n,).
        center: Central value of a diverging scale; None for a scale from the lowest to the highest value.
        beyond: Fraction of the vertices whose values may exceed the scale, so that single peaks do not
            dominate it.
        logarithmic: True for colors by order of magnitude.
        separate: True for integer labels.
        names: Function model -> names of integer labels.
        lines: Function (model, positions) -> (l, 2, 3), end points of lines drawn on the surface [m].
    """

    label: str
    colors: tuple[str, ...]
    values: Values
    center: float | None = None
    beyond: float = 0.0
    logarithmic: bool = False
    separate: bool = False
    names: Callable[[Model], dict[int, str]] | None = None
    lines: Callable[[Model, np.ndarray], np.ndarray] | None = None

    @property
    def color_map(self) -> Any:
        """Matplotlib Colormap of these colors; a ListedColormap for integer labels."""
        from matplotlib.colors import LinearSegmentedColormap, ListedColormap

        if self.separate:
            return ListedColormap(list(self.colors))
        return LinearSegmentedColormap.from_list("supple", list(self.colors))

    def limits(self, values: np.ndarray) -> tuple[float, float]:
        """Values at both ends of the color bar, never equal."""
        values = values[np.isfinite(values)]
        if not len(values):
            values = np.zeros(1)
        low, high = float(values.min()), float(np.quantile(values, 1 - self.beyond))
        if self.separate:
            return low - 0.5, high + 0.5
        if self.logarithmic:
            high = high if high > 0 else 1.0
            return high / 10**DECADES, high
        if self.center is not None:
            reach = max(high - self.center, self.center - low, 1e-3)
            return self.center - reach, self.center + reach
        low = min(low, 0.0)
        return low, high if high > low else low + 1.0

    def scale(self, limits: tuple[float, float]) -> Any:
        """Matplotlib Normalize between these limits."""
        from matplotlib.colors import LogNorm, Normalize

        return LogNorm(*limits, clip=True) if self.logarithmic else Normalize(*limits, clip=True)

    def paint(self, values: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
        """(n, 3) colors, 0 to 1, of values (n,); gray for NaN."""
        from matplotlib.colors import to_rgb

        if self.separate:
            return self.color_map(np.mod(np.round(values).astype(int), len(self.colors)))[:, :3]
        colors = self.color_map(self.scale(limits)(np.nan_to_num(values)))[:, :3]
        colors[np.isnan(values)] = to_rgb(NEUTRAL)
        return colors


def displacement(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """|x - X| [m]."""
    return np.linalg.norm(positions - model.rest, axis=1)


def volume_ratio(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Cell volume, or cloth area, around each vertex relative to the rest value."""
    values = vertex_means(model, positions, "volume_ratio")
    of_data = np.isnan(values)  # data-driven cloth has no deformation gradient
    return np.where(of_data, means(model, positions, "area_ratio"), values) if of_data.any() else values


def energy_density(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Elastic energy of the cells of each vertex over their rest volume [J/m³]."""
    return vertex_means(model, positions, "energy", step)


def von_mises(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """√(3/2 s:s) of the deviator s of the Cauchy stress [Pa], averaged over the cells of each vertex."""
    return vertex_means(model, positions, "von_mises", step)


def pressure(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """-tr(σ)/3 [Pa], averaged over the cells of each vertex."""
    return vertex_means(model, positions, "pressure", step)


def principal_stress(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Largest eigenvalue of the Cauchy stress [Pa], averaged over the cells of each vertex."""
    return vertex_means(model, positions, "principal_stresses", step)[:, 0]


def stretch(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Largest principal stretch, averaged over the cells of each vertex."""
    return vertex_means(model, positions, "principal_stretches", step)[:, 0]


def plastic_strain(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Equivalent plastic strain, averaged over the cells of each vertex; NaN without plasticity."""
    return _of_cells(model, evaluate_model(model, positions, step).plastic_strain)


def fiber_stretch(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Fiber stretch, averaged over the cells of each vertex; NaN without fibers."""
    return _of_cells(model, np.linalg.norm(deformed_fibers(model, positions), axis=1))


def _of_cells(model: Model, values: np.ndarray) -> np.ndarray:
    """(n,) averages of cell values (m,) over the cells of each vertex."""
    sizes = [body.rest_measures for body in model.bodies] or [np.ones(len(values))]
    return means_at_vertices(values, model.cells, np.concatenate(sizes), model.vertices)


def residual(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """|r| [N] of the net force on each vertex, with inertia for a time step; NaN for pinned vertices."""
    step = step or Step(np.inf, positions)
    if step.anchor is None:
        raise ValueError(f"the residual of this frame is not available: {NO_LAST_STEP}")
    net_force = evaluate_net_force(model, positions, step)
    return np.where(model.free, np.linalg.norm(net_force, axis=1), np.nan)


def ordering(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Vertex colors of the ordering; vertices of equal color move simultaneously, -1 is pinned."""
    return _colors(model)


def body(model: Model, positions: np.ndarray, step: Step | None = None) -> np.ndarray:
    """Body number of each vertex."""
    return np.repeat(np.arange(len(model.bodies)), [body.mesh.n_vertices for body in model.bodies])


def _color_names(model: Model) -> dict[int, str]:
    return {-1: "pinned"} | {color: str(color + 1) for color in range(_colors(model).max() + 1)}


def _body_names(model: Model) -> dict[int, str]:
    return {number: body.name for number, body in enumerate(model.bodies)}


FIELDS = {
    "displacement": Field("displacement [m]", PALE_TO_DEEP, displacement),
    "energy_density": Field("strain energy density [J/m³]", PALE_TO_FIRE, energy_density, beyond=0.01),
    "volume_ratio": Field("volume (or area) ratio J", RED_TO_BLUE, volume_ratio, center=1.0),
    "von_mises": Field("von Mises stress [Pa]", PALE_TO_FIRE, von_mises, beyond=0.01),
    "pressure": Field("pressure [Pa]", RED_TO_BLUE[::-1], pressure, center=0.0, beyond=0.01),
    "principal_stress": Field(
        "largest principal stress [Pa]", RED_TO_BLUE, principal_stress, center=0.0, beyond=0.01
    ),
    "stretch": Field("largest principal stretch", RED_TO_BLUE, stretch, center=1.0),
    "plastic_strain": Field("plastic strain", PALE_TO_FIRE, plastic_strain, beyond=0.01),
    "fiber_stretch": Field(
        "stretch along the fibers", RED_TO_BLUE, fiber_stretch, center=1.0, lines=fiber_lines
    ),
    "bending_angle": Field("angle between triangles [degrees]", PALE_TO_DEEP, bending_angle, beyond=0.01),
    "weft_strain": Field("strain along the weft", RED_TO_BLUE, weft_strain, center=0.0, beyond=0.01),
    "warp_strain": Field("strain along the warp", RED_TO_BLUE, warp_strain, center=0.0, beyond=0.01),
    "residual": Field("residual [N]", COOL_TO_HOT, residual, logarithmic=True),
    "ordering": Field("color of the ordering", LABEL_COLORS, ordering, separate=True, names=_color_names),
    "body": Field("body", LABEL_COLORS, body, separate=True, names=_body_names),
}
"""Fields by their names on the command line."""


def field_named(name: str) -> Field:
    """Return a field by its name."""
    if not isinstance(name, str) or name not in FIELDS:
        raise ValueError(f"field must be one of {', '.join(FIELDS)}, got {name!r}")
    return FIELDS[name]


@lru_cache(maxsize=2)
def _colors(model: Model) -> np.ndarray:
    from supple.ordering import color_vertices

    return color_vertices([t.vertices for t in model.terms], np.flatnonzero(model.free), model.vertices)
