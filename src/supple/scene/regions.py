"""Regions with different materials, and body portions with separate elasticity terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.materials import Material, Preset, is_per_element
from supple.materials.preset_library import material_of
from supple.meshes import Mesh
from supple.scene.errors import SceneError
from supple.scene.value_checks import check_name, format_value, number
from supple.support.arguments import suggest_name
from supple.support.keywords import suggest_keywords
from supple.terms import Term

if TYPE_CHECKING:
    from supple.scene.bodies import Body


@suggest_keywords
@dataclass(frozen=True, eq=False)
class Region:
    """Body cells with a different material: tetrahedra of solids, triangles of cloth.

    Args:
        name: Name of the region.
        where: A function of the cell centroids (m, 3) [m] at rest that returns a mask; a mask (m,); cell
            numbers; or a field of the mesh with its value or values in the region, `{"region": 3}`.
        material: Material or preset of the region. Array parameters have one entry per cell of the region,
            or per cell of the body.
        density: Mass density [kg/m³], for cloth [kg/m²]. Default: density of the preset in solids, of the
            body otherwise.
    """

    name: str
    where: Any
    material: Any
    density: float | None = None


@dataclass(frozen=True, eq=False)
class Portion:
    """Body cells with one material.

    Attributes:
        body: The body.
        name: Name of the body, followed by a slash and the name of the region.
        material: Material of these cells.
        numbers: (k,) cell numbers.
        branch: 0 for elasticity, from 1 on for viscous branches.
    """

    body: Body
    name: str
    material: Any
    numbers: np.ndarray
    branch: int = 0

    @property
    def n_cells(self) -> int:
        return len(self.numbers)

    @property
    def cells(self) -> np.ndarray:
        """(k, 4) scene vertices of the cells, (k, 3) for cloth."""
        return self.body.cells[self.numbers]

    @property
    def group(self) -> Any:
        """Key of the elasticity term; portions and bodies with equal keys share a term."""
        same = type(self.body), type(self.material)
        return (*same, self.branch) if self.branch else same

    def elasticity(self, parts: Sequence[Any], rest: np.ndarray, material: Any) -> Term:
        """Build the elasticity term of portions with equal `group`."""
        return self.body.elasticity(parts, rest, material)

    def __repr__(self) -> str:
        return f"<Portion {self.name!r}: {self.n_cells} cells, {format_value(self.material)}>"


def portions_of(body: Body) -> tuple[Portion, ...]:
    """Split a body into portions: cells outside all regions, regions, then their viscous branches."""
    left = np.ones(body.mesh.n_cells, bool)
    for region in body.regions:
        left[region.where] = False
    rest = np.flatnonzero(left)
    base = [Portion(body, body.name, _rows(body.material, rest), rest)] if len(rest) else []
    portions = base + [Portion(body, f"{body.name}/{r.name}", r.material, r.where) for r in body.regions]
    branches = [
        replace(part, name=f"{part.name} viscosity {k}", material=material, branch=k)
        for k, each in enumerate(body.viscosity, 1)
        for part in portions
        if (material := each.branch(part.material, part.name)) is not None
    ]
    return (*portions, *branches)


def resolve_regions(regions: Any, mesh: Mesh, known: str) -> tuple[Region, ...]:
    """Validate regions; restrict materials to region cells.

    Args:
        regions: Regions as the user gave them.
        mesh: Mesh of the body.
        known: Name of the body.

    Returns:
        Regions with sorted cell numbers in `where`.

    Raises:
        SceneError: A region is invalid, or regions overlap.
    """
    if isinstance(regions, Region) or not isinstance(regions, Sequence):
        raise SceneError(
            "regions must be a list of supple.scene.Region(name, where, material); got "
            f"{format_value(regions)}."
        )
    owner = np.full(mesh.n_cells, -1)
    accepted: list[Region] = []
    for region in regions:
        if not isinstance(region, Region):
            raise SceneError(
                "regions must be a list of supple.scene.Region(name, where, material); got "
                f"{format_value(region)}."
            )
        name = check_name(region.name, "region")
        if name in (other.name for other in accepted):
            raise SceneError(f"There is already a region named {name!r} of {known!r}; names must differ.")
        material = material_of(region.material)
        if not isinstance(material, Material):
            raise SceneError(f"Region {name!r} needs a material; got {format_value(material)}.")
        cells = _cells(region, mesh)
        shared = cells[owner[cells] >= 0]
        if len(shared):
            raise SceneError(
                f"Regions {accepted[owner[shared[0]]].name!r} and {name!r} of {known!r} share "
                f"{len(shared)} {cells_of(mesh)}, for example {shared[0]}; each must have one "
                "material."
            )
        owner[cells] = len(accepted)
        density = region.density
        if density is None and mesh.corners == 4 and isinstance(region.material, Preset):
            density = region.material.density
        if density is not None:
            unit = "kg/m³" if mesh.corners == 4 else "kg/m²"
            density = number(density, f"density [{unit}] of region {name!r}", above=0)
        material = of_cells(material, name, cells, mesh.n_cells, cells_of(mesh))
        accepted.append(replace(region, where=cells, density=density, material=material))
    return tuple(accepted)


def densities(regions: Sequence[Region], density: float, count: int) -> Any:
    """Return the density [kg/m³], for cloth [kg/m²]: one number, or (count,) if regions differ."""
    if all(region.density is None for region in regions):
        return density
    values = np.full(count, density)
    for region in regions:
        values[region.where] = density if region.density is None else region.density
    return values


def region_named(body: Body, name: Any) -> Portion:
    """Return a named body region."""
    parts = [part for part in body.parts if isinstance(part, Portion) and not part.branch]
    known = {part.name.removeprefix(f"{body.name}/"): part for part in parts if part.name != body.name}
    if name not in known:
        hint = suggest_name(str(name), known) if known else "it has none"
        raise SceneError(f"{body.name!r} has no region {format_value(name)}; {hint}")
    return known[name]


def _cells(region: Region, mesh: Mesh) -> np.ndarray:
    """Return the sorted cell numbers (k,) of a region."""
    name, where = region.name, region.where
    if isinstance(where, Mapping):
        mask = np.ones(mesh.n_cells, bool)
        for field, values in where.items():
            mask &= _has(mesh, field, values, name)
        chosen = mask
    else:
        centers = mesh.points[mesh.cells].mean(axis=1)
        chosen = np.asarray(where(centers) if callable(where) else where)
    if chosen.dtype == bool and chosen.shape == (mesh.n_cells,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise SceneError(
            f"where of region {name!r} must be a field with its value such as {{'region': 3}}, a function of "
            f"centers (m, 3), a mask for each of the {mesh.n_cells} {cells_of(mesh)} or their numbers; "
            f"got {format_value(where)}."
        )
    if not chosen.size:
        raise SceneError(f"Region {name!r} has no {cells_of(mesh)}.")
    if chosen.min() < 0 or chosen.max() >= mesh.n_cells:
        raise SceneError(
            f"{cells_of(mesh).capitalize()} are numbered from 0 to {mesh.n_cells - 1}; region {name!r} names "
            f"{chosen.min()} to {chosen.max()}."
        )
    return np.unique(chosen.astype(np.int64))


def _has(mesh: Mesh, field: Any, values: Any, name: str) -> np.ndarray:
    """Return a cell mask (m,): True where field values match."""
    field_values, values = mesh.field(field), np.atleast_1d(np.asarray(values))
    if field_values.ndim > 1:
        raise SceneError(
            f"Region {name!r} needs a field of numbers; {field!r} has rows of {field_values.shape[1:]}."
        )
    known = np.unique(field_values)
    missing = values[~np.isin(values, known)]
    if len(missing):
        values_text = ", ".join(f"{value:g}" for value in known[:10]) + (", ..." if len(known) > 10 else "")
        raise SceneError(
            f"There is no region {missing[0]:g} in the field {field!r} of the mesh, which has {values_text}."
        )
    return np.isin(field_values, values)


def cells_of(mesh: Mesh) -> str:
    """Name of mesh cells in messages."""
    return "tetrahedra" if mesh.corners == 4 else "triangles"


def of_cells(material: Any, name: str, cells: np.ndarray, count: int, called: str = "tetrahedra") -> Any:
    """Restrict array parameters of a material to region cells.

    Args:
        material: Material with arrays for the cells of the region or for all cells of the body.
        name: Name of the region.
        cells: (k,) cell numbers of the region.
        count: Number of cells of the body.
        called: Name of the cells in messages.

    Raises:
        SceneError: An array has another length.
    """
    lengths = {len(value) for value in material if is_per_element(value)} - {len(cells)}
    if not lengths <= {count}:
        raise SceneError(
            f"A material parameter of region {name!r} must be one number, or one for each of its "
            f"{len(cells)} {called} or of the {count} of the whole body; it has "
            f"{min(lengths - {count})}."
        )
    return _rows(material, cells) if lengths else material


def _rows(material: Any, numbers: np.ndarray) -> Any:
    """Restrict array parameters of a material to selected cells."""
    return type(material)._make(value[numbers] if is_per_element(value) else value for value in material)
