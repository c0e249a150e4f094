"""Cloth in every command."""

import json

import numpy as np
import pytest
from cli_scenes import supple, supple_json, write_scene
from matplotlib.image import imread
from test_cli_resume import interrupted_after

import supple as library
from supple.io import read_frame

FLAG = """
title = "Flag"
quasistatic = false
dt = 0.02
frames = 4

[[cloth]]
name = "flag"
mesh = { sheet = { cells = [3, 2], size = [0.6, 0.4] } }
membrane = { woven_stvk = { young_weft = 2e5, young_warp = 1e5, shear_modulus = 2e4, \
poisson_weft = 0.2, poisson_warp = 0.1, direction = { field = "u" } } }
bending = { hinge = { rigidity = 1e-4 } }
rest = { uv = { scale = 1.02 } }
density = 0.15
thickness = 1e-3

[[pin]]
cloth = "flag"
where = { side = "x-" }

[[wind]]
velocity = [5, 0, 2]

[solver]
method = "pbng"

[stop]
tolerance = 1e-5
max_iterations = 200

[output]
fields = ["volume_ratio", "cauchy"]
"""


def test_flag_is_run_resumed_rendered_exported_and_inspected(tmp_path):
    scene = write_scene(tmp_path, FLAG)
    options = ("--no-picture",)
    uninterrupted = supple_json("run", scene, "--output", "whole", *options)
    assert (uninterrupted["scene"]["tets"], uninterrupted["scene"]["triangles"]) == (0, 12)
    with interrupted_after(2):
        assert supple("run", scene, "--output", "parts", *options).exit_code == 130
    supple_json("run", scene, "--output", "parts", *options, "--resume")
    for index in range(1, 5):
        expected, frame = read_frame(tmp_path / "whole", index), read_frame(tmp_path / "parts", index)
        np.testing.assert_array_equal(frame.positions, expected.positions)
        np.testing.assert_array_equal(frame.velocities, expected.velocities)
    with np.load(tmp_path / "whole" / "frame_0004.npz") as saved:
        assert saved["volume_ratio"].shape == (12,)
        assert saved["cauchy"].shape == (12, 3, 3)

    frame = supple("render", "whole", "--field", "bending_angle", "--size", "320x240")
    assert frame.exit_code == 0, frame.output
    _check_exports(tmp_path)
    facts = supple_json("inspect", scene)
    (body,) = facts["bodies"]
    assert (body["kind"], body["material"]) == ("cloth", "woven_stvk")
    assert body["mass"] == pytest.approx(0.15 * 0.24 * 1.02**2)
    assert "triangles" in supple("inspect", scene).output


def _check_exports(folder):
    written = library.export("whole", "obj,glb,npz,vtu,usd")
    text = (written["obj"] / "flag_0004.obj").read_text()
    assert text.count("\nf ") == 12
    assert "\nvt 0.6 0.4" in text
    data = written["glb"].read_bytes()
    tree = json.loads(data[20 : 20 + int.from_bytes(data[12:16], "little")])
    assert tree["materials"][0]["doubleSided"] is True
    assert "TEXCOORD_0" in tree["meshes"][0]["primitives"][0]["attributes"]
    with np.load(written["npz"]) as saved:
        assert saved["triangles"].shape == (12, 3)
        assert "tets" not in saved
    mesh = library.meshes.load_surface(written["vtu"] / "frame_0000.vtu")
    np.testing.assert_allclose(mesh.cell_data["volume_ratio"], 1 / 1.02**2, rtol=1e-6)


def test_bad_cloth_is_refused_field_by_field(tmp_path):
    text = (
        FLAG.replace("rest = { uv = { scale = 1.02 } }", 'rest = { file = "none.obj" }')
        .replace("density = 0.15", "density = -1")
        .replace('cloth = "flag"', 'cloth = "sail"')
    )
    outcome = supple("inspect", write_scene(tmp_path, text))
    assert outcome.exit_code == 2
    assert "cloth[0].density: got -1; it should be greater than 0" in outcome.output
    text = text.replace("density = -1", "density = 1").replace("rigidity = 1e-4", "young = 1e5")
    outcome = supple("inspect", write_scene(tmp_path, text))
    assert "must have either rigidity, or young and poisson; it has young" in outcome.output
    outcome = supple("inspect", write_scene(tmp_path, text.replace("young = 1e5", "rigidity = 0")))
    assert "pin[0].cloth: there is no cloth 'sail'; the scene has 'flag'" in outcome.output
    assert "none.obj" in outcome.output


def test_lists_contain_cloth():
    output = supple_json("list")
    assert {"sheet", "disc", "tube", "sphere", "pillow"} == {entry["name"] for entry in output["surfaces"]}
    assert {"hinge", "isometric"} <= {entry["name"] for entry in output["bending"]}
    assert "woven_stvk" in {entry["name"] for entry in output["membranes"]}


def test_solvers_are_compared_on_cloth(tmp_path):
    """Solvers start equally, unsupported ones are reported, and pictures have the thickness of the file."""
    text = FLAG.replace("[output]", "[view]\nthickness = 3\n\n[output]").replace("max_iterations = 200\n", "")
    solvers = "pbng,mpbng,newton,block_xpbd"
    output = supple_json(
        "compare", write_scene(tmp_path, text), "--solver", solvers, "--warmup", "1", exit_code=1
    )
    trials = {trial["label"]: trial for trial in output["trials"]}
    assert "block_xpbd needs a material" in trials.pop("block_xpbd")["error"]
    energies = [trial["energy"] for trial in trials.values()]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-6)
    for trial in trials.values():
        assert (tmp_path / "results" / "scene_compare" / trial["picture"]).is_file()


def test_cloth_is_drawn_with_its_thickness(tmp_path):
    scene = write_scene(tmp_path, FLAG.replace("frames = 4", "frames = 1"))
    supple_json("run", scene, "--output", "out", "--no-picture")
    options = ("--size", "320x240", "--no-film")
    for thickness in ("0", "20"):
        outcome = supple("render", "out", *options, "--thickness", thickness, "--output", f"thick{thickness}")
        assert outcome.exit_code == 0, outcome.output
    images = [imread(tmp_path / f"thick{t}" / "picture.png") for t in (0, 20)]
    assert np.abs(images[0] - images[1]).max() > 0.1
    refused = supple("render", "out", "--thickness", "-1")
    assert refused.exit_code == 2
    assert "--thickness must" in refused.output
