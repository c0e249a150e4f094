"""USD with time samples: surface Mesh of each body, and volume TetMesh of solids."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.formats.interface import AddFrame, ExportContext, Format, FrameData, distinct, linear
from supple.io.replace_file import replacing
from supple.meshes.measures import means_at_vertices
from supple.meshes.skinning import Part, Skin, skin_of


@contextmanager
def write(path: Path, context: ExportContext) -> Iterator[AddFrame]:
    """Write a USD file, in meters and y up; time codes are frame numbers.

    Prims are /World/<body>/<body> and /World/<body>/<body>_volume, because programs show the last name only.
    Saving after each frame frees its samples, so memory does not grow with the number of frames.
    """
    from pxr import Tf, Usd

    names = distinct((body.name for body in context.bodies), Tf.MakeValidIdentifier)
    skins = [skin_of(body) for body in context.bodies]
    with replacing(path) as temporary, _convert_disk_error(path):
        stage = Usd.Stage.CreateNew(str(temporary))
        _set_stage(stage, context.dt)
        surfaces = [_surface(stage, f"/World/{n}/{n}", s) for n, s in zip(names, skins, strict=True)]
        for surface, body in zip(surfaces, context.bodies, strict=True):
            surface.CreateDoubleSidedAttr(body.mesh.corners == 3)
        volumes = [
            _volume(stage, f"/World/{n}/{n}_volume", b.mesh) if b.mesh.corners == 4 else None
            for n, b in zip(names, context.bodies, strict=True)
        ]
        for number, surface in enumerate(surfaces):
            surface.CreateDisplayColorAttr([tuple(linear(number).tolist())])

        cells = np.cumsum([0, *(body.mesh.n_cells for body in context.bodies)])
        parts = [slice(first, last) for first, last in pairwise(cells)]

        def add(frame: FrameData) -> None:
            for body, skin, surface, volume, mine in zip(
                context.bodies, skins, surfaces, volumes, parts, strict=True
            ):
                positions = frame.positions[body.vertices]
                _set_points(surface, skin.deform(positions), frame.index)
                if volume is not None:
                    _set_points(volume, positions, frame.index)
                _set_fields(volume, surface, skin, body, mine, frame)
            if not stage.HasAuthoredTimeCodeRange():
                stage.SetStartTimeCode(frame.index)
            stage.SetEndTimeCode(frame.index)
            stage.Save()

        yield add


@contextmanager
def _convert_disk_error(path: Path) -> Iterator[None]:
    """Convert USD's error about a full disk to an OSError."""
    from pxr import Tf

    try:
        yield
    except Tf.ErrorException as error:
        full = os.strerror(errno.ENOSPC)
        if full not in str(error):
            raise
        raise OSError(errno.ENOSPC, full, str(path)) from error


def _set_stage(stage: Any, dt: float) -> None:
    from pxr import UsdGeom

    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    rate = float(f"{1 / dt:.9g}")  # 30 rather than 29.999999999999996
    stage.SetTimeCodesPerSecond(rate)
    stage.SetFramesPerSecond(rate)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())


def _surface(stage: Any, path: str, skin: Skin) -> Any:
    from pxr import Sdf, UsdGeom, Vt

    UsdGeom.Xform.Define(stage, path.rpartition("/")[0])
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray(len(skin.triangles), 3))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(skin.triangles.astype(np.int32).ravel()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    if skin.uv is not None:
        kind, each = Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.faceVarying
        uv = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", kind, each)
        uv.Set(Vt.Vec2fArray.FromNumpy(skin.uv.astype(np.float32).reshape(-1, 2)))
    return mesh


def _volume(stage: Any, path: str, body: Any) -> Any:
    """Define the volume; the purpose 'guide' prevents viewers from drawing it over the surface."""
    from pxr import UsdGeom, Vt

    mesh = UsdGeom.TetMesh.Define(stage, path)
    mesh.CreateTetVertexIndicesAttr(Vt.Vec4iArray.FromNumpy(np.ascontiguousarray(body.cells)))
    mesh.CreateSurfaceFaceVertexIndicesAttr(Vt.Vec3iArray.FromNumpy(np.ascontiguousarray(body.surface)))
    mesh.CreatePurposeAttr(UsdGeom.Tokens.guide)
    return mesh


def _set_points(prim: Any, points: np.ndarray, time_code: int) -> None:
    from pxr import Vt

    single = np.ascontiguousarray(points, np.float32)
    box = np.stack([single.min(axis=0), single.max(axis=0)])
    prim.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(single), time_code)
    prim.GetExtentAttr().Set(Vt.Vec3fArray.FromNumpy(box), time_code)


def _set_fields(volume: Any, surface: Any, skin: Skin, body: Part, cells: slice, frame: FrameData) -> None:
    """Write fields unchanged to the volume, and scalars and vectors to the surface.

    Cell fields are averaged to vertices on the surface, so that programs can color by them.
    """
    mesh, time = body.mesh, frame.index
    for name, values in frame.fields.cells.items():
        mine = values[cells]
        if volume is not None:
            _set_primvar(volume, name, "uniform", mine, time)
        if mine.ndim < 3:
            means = means_at_vertices(mine, mesh.cells, mesh.measures, mesh.n_vertices)
            _set_primvar(surface, name, "vertex", skin.interpolate(means), time)
    for name, values in frame.fields.vertices.items():
        mine = values[body.vertices]
        if volume is not None:
            _set_primvar(volume, name, "vertex", mine, time)
        _set_primvar(surface, name, "vertex", skin.interpolate(mine), time)


def _set_primvar(prim: Any, name: str, each: str, values: np.ndarray, time_code: int) -> None:
    """Write scalars (k,), vectors (k, 3) or matrices (k, 3, 3)."""
    from pxr import Sdf, UsdGeom, Vt

    names = Sdf.ValueTypeNames
    kind, of, dtype = {
        1: (names.FloatArray, Vt.FloatArray, np.float32),
        2: (names.Float3Array, Vt.Vec3fArray, np.float32),
        3: (names.Matrix3dArray, Vt.Matrix3dArray, np.float64),
    }[values.ndim]
    primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar(name, kind, each)
    primvar.Set(of.FromNumpy(np.ascontiguousarray(values, dtype)), time_code)


USD = Format(
    "usd", "USD with time samples: surfaces and volumes", "animation.usdc", write, "pxr", "usd", fields=True
)
