"""Validation of new scene bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.materials import MATERIALS, Material, Preset, is_per_element
from supple.materials.preset_library import material_of
from supple.meshes import Mesh, TetMesh, TriMesh
from supple.meshes.cloth_checks import find_problems, rest_corners
from supple.meshes.skinning import Embedding, embed
from supple.scene.bodies import Body
from supple.scene.cloth import Cloth
from supple.scene.errors import SceneError
from supple.scene.regions import resolve_regions
from supple.scene.value_checks import Vector, check_name, format_value, number, vector
from supple.scene.viscosity import check_viscosity
from supple.support.arguments import MAX_LENGTH, MIN_LENGTH
from supple.terms import Bending, Fabric, FabricMembrane
from supple.terms.shells.triangle import check_membrane_material
from supple.terms.tet import refuse_sheets


def solid(
    bodies: Sequence[Body],
    mesh: Any,
    material: Any,
    density: Any,
    name: Any,
    render: Any,
    *motion: Any,
    regions: Any = (),
    viscosity: Any = (),
) -> Body:
    """Build the body that `Scene.add_solid` adds.

    Args:
        bodies: Bodies that the scene has already.
        motion: Velocity [m/s] and angular velocity [rad/s].
    """
    if not isinstance(mesh, TetMesh):
        raise SceneError(
            f"add_solid needs a TetMesh, for example supple.block(...); got {format_value(mesh)}."
        )
    if density is None:
        density = material.density if isinstance(material, Preset) else 1000.0
    material = material_of(material)
    _check_material("add_solid", material)
    _check_size(mesh)
    check_parameters(material, mesh)
    density = number(density, "density [kg/m³]", above=0)
    first_and_name = _first_and_name(bodies, "solid", name)
    body = Body(
        mesh,
        material,
        density,
        *first_and_name,
        _skin(render, mesh),
        *_motion(motion),
        regions=resolve_regions(regions, mesh, first_and_name[0]),
        viscosity=check_viscosity(viscosity),
    )
    for part in body.parts:
        refuse_sheets(part.material)
    return body


def cloth(
    bodies: Sequence[Body],
    mesh: Any,
    membrane: Any,
    bending: Any,
    density: Any,
    thickness: Any,
    name: Any,
    rest: Any,
    render: Any,
    *motion: Any,
    regions: Any = (),
) -> Cloth:
    """Build the cloth that `Scene.add_cloth` adds; one error reports all invalid arguments."""
    if not isinstance(mesh, TriMesh):
        raise SceneError(
            f"add_cloth needs a TriMesh, for example supple.sheet(...); got {format_value(mesh)}."
        )
    fabric = membrane if isinstance(membrane, Fabric) else None
    membrane = FabricMembrane() if fabric else material_of(membrane)
    density = (fabric.density if fabric else 0.2) if density is None else density
    _check_material("add_cloth", membrane)
    wrong = [*find_problems(mesh)]
    corners: np.ndarray | None = None
    numbers: dict[str, float] = {}

    def attempt(what: Any) -> Any:
        try:
            return what()
        except ValueError as error:
            wrong.append(str(error))
            return None

    attempt(lambda: _check_size(mesh))
    attempt(lambda: check_membrane_material(membrane))
    attempt(lambda: check_parameters(membrane, mesh))
    for key, value, unit in (("density", density, "kg/m²"), ("thickness", thickness, "m")):
        numbers[key] = attempt(lambda k=key, v=value, u=unit: number(v, f"{k} [{u}] of cloth", above=0))
    if not isinstance(bending, Bending | None):
        wrong.append(
            f"bending must be for example supple.HingeBending(rigidity=1e-5); got {format_value(bending)}."
        )
    if rest is not None:
        corners = attempt(lambda: rest_corners(mesh, rest))
    parts = attempt(lambda: resolve_regions(regions, mesh, str(name or "cloth"))) or ()
    for region in parts:
        attempt(lambda r=region: check_membrane_material(r.material))
    if fabric and parts:
        wrong.append("a fabric has one material; use a membrane for cloth with regions.")
    if fabric:
        wrong += _not_woven(bending, mesh.points[mesh.triangles] if rest is None else corners)
    if wrong:
        raise SceneError(" ".join(_sentence(line) for line in wrong))
    first_and_name = _first_and_name(bodies, "cloth", name)
    return Cloth(
        mesh,
        membrane,
        numbers["density"],
        *first_and_name,
        _skin(render, mesh),
        *_motion(motion),
        numbers["thickness"],
        bending,
        corners,
        fabric,
        regions=parts,
    )


def _not_woven(bending: Any, corners: np.ndarray | None) -> list[str]:
    """List errors of fabric cloth with triangle corners (m, 3, 3) [m] at rest."""
    wrong = []
    if bending is not None:
        wrong.append("a fabric includes its bending resistance; omit bending.")
    if corners is not None and np.abs(corners[:, :, 2]).max() > 1e-9 * np.ptp(corners):
        wrong.append("a fabric is flat at rest, with its threads along x and y; give rest, such as 'uv'.")
    elif corners is not None:
        (x, y), (z, w) = np.moveaxis((corners[:, 1:, :2] - corners[:, :1, :2]), 0, 2)
        if not (x * w > y * z).all():
            wrong.append("triangles of a fabric must be counter-clockwise in its plane; turn the mesh over.")
    return wrong


def check_parameters(material: Any, body: Any) -> None:
    """Check array parameters for one value per cell.

    Args:
        material: Material of the body.
        body: A body, its mesh, or a portion of it.

    Raises:
        SceneError: A parameter has another number of values than there are cells.
    """
    mesh = body if isinstance(body, Mesh) else getattr(body, "body", body).mesh
    for parameter, value in zip(material.stored, material, strict=True):
        if is_per_element(value) and len(value) != body.n_cells:
            cells = {"tet": "tetrahedra"}.get(mesh.cell, f"{mesh.cell}s")
            raise SceneError(
                "A material parameter must be one number for the body, or one for each of its "
                f"{body.n_cells} {cells}; {parameter.name} has shape {np.shape(value)}."
            )


def _check_material(method: str, material: Any) -> None:
    if not isinstance(material, Material):
        raise SceneError(
            f"{method} needs a material with its parameters, for example "
            f"{format_value(MATERIALS['corotated'].example())}; got {format_value(material)}."
        )


def _check_size(mesh: Mesh) -> None:
    reach = float(np.abs(mesh.points).max())
    if reach > MAX_LENGTH or float(mesh.size.max()) < MIN_LENGTH:
        raise SceneError(
            f"A body must be at least {MIN_LENGTH:g} m large and within {MAX_LENGTH:g} m of the "
            f"origin; this mesh is {mesh.size.max():.3g} m large and reaches {reach:.3g} m. Lengths "
            "are in meters."
        )


def _first_and_name(bodies: Sequence[Body], kind: str, name: Any) -> tuple[str, int]:
    """Return name and first vertex number of a new body."""
    name = f"{kind}{len(bodies)}" if name is None else check_name(name)
    if name in (body.name for body in bodies):
        raise SceneError(f"There is already a body named {name!r}; names must differ.")
    return name, bodies[-1].vertices.stop if bodies else 0


def _skin(render: Any, mesh: Mesh) -> Embedding | None:
    if not isinstance(render, TriMesh | None):
        raise SceneError(
            "render must be a TriMesh, for example supple.meshes.load_surface('body.obj'); got "
            f"{format_value(render)}."
        )
    return None if render is None else embed(render, mesh)


def _motion(motion: tuple[Any, ...]) -> tuple[Vector, Vector]:
    velocity, angular = motion
    return vector(velocity, "velocity [m/s]"), vector(angular, "angular_velocity [rad/s]")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
