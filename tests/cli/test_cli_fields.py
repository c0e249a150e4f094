"""Fields of runs and exports equal those of `evaluate`."""

import numpy as np
import pytest
import pyvista
from cli_scenes import SAG, SWING, supple, supple_json, write_scene

import supple as library


def test_frames_have_the_requested_fields(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2", "--fields", "von_mises,cauchy,reaction_force")
    folder = tmp_path / "results" / "scene"
    for frame in library.load_run(folder).frames:
        evaluation = frame.evaluate()
        with np.load(folder / f"frame_000{frame.index}.npz") as saved:
            for name in ("von_mises", "cauchy", "reaction_force"):
                size = np.abs(getattr(evaluation, name)).max()
                np.testing.assert_allclose(saved[name], getattr(evaluation, name), atol=1e-7 * size)
        grid = pyvista.read(folder / f"frame_000{frame.index}.vtu")
        np.testing.assert_allclose(grid.cell_data["von_mises"], evaluation.von_mises, rtol=1e-6)
    with np.load(folder / "frame_0000.npz") as saved:
        np.testing.assert_allclose(saved["von_mises"], 0, atol=1e-6)


def test_resumed_runs_keep_the_fields_of_the_scene_file(tmp_path):
    text = SWING + '\n[output]\nfields = ["volume_ratio"]\n'
    scene = write_scene(tmp_path, text)
    supple_json("run", scene, "--no-picture", "--format", "npz")
    with np.load(tmp_path / "results" / "scene" / "positions.npz") as saved:
        assert saved["volume_ratio"].shape == (7, 135)
    last = tmp_path / "results" / "scene" / "frame_0006.npz"
    with np.load(last) as saved:
        before = saved["volume_ratio"]
    last.unlink()
    supple_json("run", scene, "--no-picture", "--resume")
    with np.load(last) as saved:
        np.testing.assert_array_equal(saved["volume_ratio"], before)


def test_exports_compute_fields_missing_in_frames(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    folder = tmp_path / "results" / "scene"
    supple_json("export", str(folder), "--format", "npz", "--fields", "principal_stretches,net_force")
    run = library.load_run(folder)
    with np.load(folder / "positions.npz") as saved:
        evaluation = run.frames[-1].evaluate()
        np.testing.assert_allclose(saved["principal_stretches"][1], evaluation.principal_stretches)
        assert np.abs(saved["net_force"][1][run.model.free]).max() < 1e-3
    library.export(run, "npz", tmp_path / "again", fields=["cauchy"])
    with np.load(tmp_path / "again" / "positions.npz") as saved:
        np.testing.assert_array_equal(saved["cauchy"][1], evaluation.cauchy)


def test_pictures_are_colored_by_stress(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--field", "von_mises")
    folder = tmp_path / "results" / "scene"
    before = (folder / "picture.png").read_bytes()
    supple_json("render", str(folder), "--field", "principal_stress")
    assert (folder / "picture.png").read_bytes() != before


@pytest.mark.parametrize("arguments", [("--fields", "von_mizes"), ("--format", "npz", "--fields", "stress")])
def test_unknown_fields_are_refused_before_any_output(arguments, tmp_path):
    result = supple("run", write_scene(tmp_path, SAG), *arguments)
    assert result.exit_code == 2
    assert "there is no field" in result.output
    assert not (tmp_path / "results").exists()


def test_unknown_fields_in_scene_files_are_refused(tmp_path):
    scene = write_scene(tmp_path, SAG + '\n[output]\nfields = ["cauchy_stress"]\n')
    result = supple("run", scene)
    assert result.exit_code == 2
    assert "output.fields" in result.output
    assert "cauchy" in result.output
