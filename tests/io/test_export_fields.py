"""Exported fields equal those of `evaluate`, in every format with fields."""

import numpy as np
import pytest
import pyvista
from exports import DT, make_scene

import supple
from supple.io import ResultsError, save_frames

FIELDS = ["von_mises", "cauchy", "principal_stretches", "reaction_force"]


def evaluated(frames):
    return [frame.evaluate() for frame in frames]


@pytest.fixture(scope="module")
def moved():
    """A scene of two bodies, one of them pinned, with frames under a growing load."""
    scene = make_scene()
    cube, ball = scene.bodies
    scene.pin(cube.where(lambda X: X[:, 0] <= 0))
    scene.pin(ball.where(lambda X: X[:, 1] <= 0))
    scene.gravity_ramp = supple.loads.Ramp(times=(0, 2 * DT), fractions=(0, 1))
    return scene, list(supple.simulate(scene, frames=2))


def test_npz_and_zarr_have_the_fields_of_evaluate(moved, tmp_path):
    zarr = pytest.importorskip("zarr")
    scene, frames = moved
    paths = save_frames(scene, frames, "npz,zarr", tmp_path, fields=FIELDS)
    assert {path.name for path in tmp_path.iterdir()} == {"positions.npz", "positions.zarr"}
    group = zarr.open_group(paths["zarr"], mode="r")
    with np.load(paths["npz"]) as saved:
        for k, evaluation in enumerate(evaluated(frames), start=1):
            for name in FIELDS:
                np.testing.assert_array_equal(saved[name][k], getattr(evaluation, name))
                np.testing.assert_array_equal(group[name][k], getattr(evaluation, name))
        np.testing.assert_allclose(saved["cauchy"][0], 0, atol=1e-9)
        np.testing.assert_allclose(saved["reaction_force"][0], 0, atol=1e-9)
    assert np.abs(evaluation.reaction_force).max() > 1


def test_vtu_has_the_fields_of_evaluate(moved, tmp_path):
    scene, frames = moved
    folder = save_frames(scene, frames, "vtu", tmp_path, fields=FIELDS)["vtu"]
    grid, evaluation = pyvista.read(folder / "frame_0002.vtu"), frames[1].evaluate()
    np.testing.assert_allclose(grid.cell_data["von_mises"], evaluation.von_mises)
    np.testing.assert_allclose(grid.cell_data["cauchy"], evaluation.cauchy.reshape(-1, 9))
    np.testing.assert_allclose(grid.point_data["reaction_force"], evaluation.reaction_force)
    assert "von_mises" not in grid.point_data


def test_usd_has_the_fields_of_evaluate(moved, tmp_path):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    scene, frames = moved
    stage = usd.Stage.Open(str(save_frames(scene, frames, "usd", tmp_path, fields=FIELDS)["usd"]))
    evaluation, first = frames[1].evaluate(), 0
    for body, name in zip(scene.bodies, ["W__rfel_1", "ball"], strict=True):
        last = first + body.mesh.n_tets
        volume, surface = (
            geometry.PrimvarsAPI(stage.GetPrimAtPath(f"/World/{name}/{name}{end}")) for end in ("_volume", "")
        )
        stress = volume.GetPrimvar("cauchy")
        assert stress.GetInterpolation() == "uniform"
        np.testing.assert_allclose(
            np.array(stress.Get(2)), evaluation.cauchy[first:last], rtol=1e-6, atol=1e-6
        )
        values = np.array(volume.GetPrimvar("von_mises").Get(2))
        np.testing.assert_allclose(values, evaluation.von_mises[first:last], rtol=1e-5)
        mean = evaluation.at_vertices(evaluation.von_mises)[body.vertices]
        skin = body.skin.interpolate(mean) if body.skin else mean[body.mesh.surface_vertices]
        primvar = surface.GetPrimvar("von_mises")
        assert primvar.GetInterpolation() == "vertex"
        np.testing.assert_allclose(np.array(primvar.Get(2)), skin, rtol=1e-5, atol=1e-5)
        assert not surface.HasPrimvar("cauchy")
        forces = np.array(volume.GetPrimvar("reaction_force").Get(2))
        np.testing.assert_allclose(forces, evaluation.reaction_force[body.vertices], rtol=1e-5, atol=1e-5)
        first = last


def test_results_and_positions_export_fields(moved, tmp_path):
    scene, frames = moved
    (result,) = supple.equilibria(scene, [supple.Variation(gravity=(0, -2, 0))])
    path = save_frames(scene, [result], "npz", tmp_path, fields="net_force")["npz"]
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["net_force"][1], result.evaluate().net_force)
    path = save_frames(scene, [frames[1].positions], "npz", tmp_path, fields="net_force", dt=2 * DT)["npz"]
    with np.load(path) as saved:
        np.testing.assert_allclose(saved["net_force"][1], frames[1].evaluate().net_force, atol=1e-9)


def test_unsupported_fields_are_refused(moved, tmp_path):
    scene, frames = moved
    with pytest.raises(ResultsError, match="obj, glb cannot hold fields; usd, npz, zarr, vtu can"):
        save_frames(scene, frames, "obj,glb", tmp_path, fields="cauchy")
    with pytest.raises(ValueError, match="no field 'von_mizes' for files; did you mean 'von_mises'"):
        save_frames(scene, frames, "npz", tmp_path, fields="von_mizes")
    with pytest.raises(ValueError, match="fields must be names such as 'von_mises,cauchy'"):
        save_frames(scene, frames, "npz", tmp_path, fields=[3])
    assert not list(tmp_path.iterdir())


def test_vtu_has_the_folds_and_threads_of_cloth(tmp_path):
    """Solids in the same file have NaN."""
    from supple.io.frames import write_vtu
    from supple.io.saved_bodies import concatenate_bodies

    scene = supple.Scene()
    cloth = scene.add_cloth(
        supple.sheet((2, 1), (2, 1)), supple.materials.PlaneStressStVK(young=1e3, poisson=0.3)
    )
    block = scene.add_solid(supple.block(1, origin=(0, 0, 3)), supple.Corotated(young=1e3, poisson=0.3))
    folded = np.concatenate([cloth.points, block.points])
    folded_part = np.flatnonzero(cloth.points[:, 0] > 1.5)
    folded[folded_part] = cloth.points[folded_part] * [0, 1, 0] + [1, 0, 1]
    write_vtu(tmp_path, 1, folded, concatenate_bodies(scene.bodies))
    data = pyvista.read(tmp_path / "frame_0001.vtu").cell_data
    np.testing.assert_allclose(np.nanmax(data["bending_angle"]), 90)
    assert np.isnan(data["bending_angle"]).sum() == block.mesh.n_cells
    sheet = ~np.isnan(data["bending_angle"])
    np.testing.assert_allclose(np.abs(data["weft"][sheet]), np.tile([1.0, 0, 0], (4, 1)), atol=1e-12)
    np.testing.assert_allclose(np.abs(data["warp"][sheet]), np.tile([0, 1.0, 0], (4, 1)), atol=1e-12)
