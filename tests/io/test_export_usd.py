"""USD files, reopened with Pixar's library."""

import numpy as np
import pytest
from exports import BALL, FRAMES, SCENE, boundary_points, positions, skin_points

from supple.io.frame_export import export_frames


def test_usd_opens_with_its_units_times_and_prims(results):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    stage = usd.Stage.Open(str(export_frames(results, "usd")["usd"]))
    assert geometry.GetStageMetersPerUnit(stage) == 1
    assert geometry.GetStageUpAxis(stage) == "Y"
    assert stage.GetTimeCodesPerSecond() == stage.GetFramesPerSecond() == 30
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0, FRAMES)
    bodies = [prim.GetName() for prim in stage.GetDefaultPrim().GetChildren()]
    assert bodies == ["W__rfel_1", "ball"]
    surfaces = [geometry.Mesh(prim) for prim in stage.Traverse() if prim.IsA(geometry.Mesh)]
    assert [surface.GetPrim().GetName() for surface in surfaces] == bodies
    for index in range(FRAMES + 1):
        for surface, expected in zip(surfaces, (boundary_points(index), skin_points(index)), strict=True):
            np.testing.assert_allclose(surface.GetPointsAttr().Get(index), expected, rtol=1e-6, atol=1e-9)
            low, high = np.array(surface.GetExtentAttr().Get(index))
            np.testing.assert_allclose([low, high], [expected.min(axis=0), expected.max(axis=0)], rtol=1e-6)
    triangles = np.reshape(surfaces[1].GetFaceVertexIndicesAttr().Get(), (-1, 3))
    assert (triangles == BALL.skin.triangles).all()
    assert set(surfaces[1].GetFaceVertexCountsAttr().Get()) == {3}
    colors = {tuple(surface.GetDisplayColorAttr().Get()[0]) for surface in surfaces}
    assert len(colors) == 2
    assert not geometry.PrimvarsAPI(surfaces[0]).HasPrimvar("st")
    uv = geometry.PrimvarsAPI(surfaces[1]).GetPrimvar("st")
    assert uv.GetInterpolation() == "faceVarying"
    np.testing.assert_allclose(uv.Get(), BALL.skin.uv.reshape(-1, 2), atol=1e-6)


def test_usd_volumes_are_right_handed(results):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    stage = usd.Stage.Open(str(export_frames(results, "usd")["usd"]))
    volumes = [geometry.TetMesh(prim) for prim in stage.Traverse() if prim.IsA(geometry.TetMesh)]
    assert [volume.GetPrim().GetName() for volume in volumes] == ["W__rfel_1_volume", "ball_volume"]
    for volume, body in zip(volumes, SCENE.bodies, strict=True):
        np.testing.assert_array_equal(volume.GetTetVertexIndicesAttr().Get(), body.mesh.tets)
        assert len(geometry.TetMesh.FindInvertedElements(volume, usd.TimeCode(2))) == 0
        ours = {tuple(sorted(face)) for face in volume.GetSurfaceFaceVertexIndicesAttr().Get()}
        assert ours == {
            tuple(sorted(f)) for f in geometry.TetMesh.ComputeSurfaceFaces(volume, usd.TimeCode(2))
        }
        np.testing.assert_array_equal(
            volume.GetPointsAttr().Get(2), positions(2)[body.vertices].astype(np.float32)
        )
