"""Fabrics in scene files: by path and by name, in every command, and error messages."""

import json

import numpy as np
import pytest
from fabrics import invented_fabric

import supple

SCENE = """
quasistatic = false
dt = 0.005
frames = 2

[[cloth]]
name = "cloth"
mesh = { sheet = { cells = [3, 3], size = [0.06, 0.06], plane = "zx" } }
fabric = "FABRIC"
rest = { uv = {} }

[[pin]]
where = { side = "z-" }

[stop]
tolerance = 1e-6
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Fixture that writes a scene next to its fabric file, which is also found by name."""
    (tmp_path / "hylc" / "materials").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "hylc" / "materials"):
        (folder / "twill.json").write_text(json.dumps(invented_fabric()), encoding="utf-8")
    monkeypatch.setenv("SUPPLE_DATA", str(tmp_path))

    def write(fabric, text=SCENE):
        path = tmp_path / "scene.toml"
        path.write_text(text.replace("FABRIC", fabric), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("fabric", ["twill.json", "twill", "$SUPPLE_DATA/twill.json"])
def test_fabrics_are_selected_by_path_and_by_name(written, fabric):
    (body,) = supple.load_scene(written(fabric)).scene.bodies
    assert body.fabric.name == "twill"
    assert body.density == body.fabric.density


def test_fabric_file_moves_as_a_fabric_from_python(written):
    file = supple.load_scene(written("twill"))
    scene = supple.Scene(quasistatic=False, dt=0.005)
    mesh = supple.sheet((3, 3), (0.06, 0.06), plane="zx")
    cloth = scene.add_cloth(mesh, supple.load_fabric("twill"), rest="uv")
    scene.pin(cloth.where(lambda X: X[:, 2] <= 0))
    frames = [
        list(supple.simulate(s, solver="pbng", frames=2, tolerance=1e-6))[-1].positions for s in (file, scene)
    ]
    np.testing.assert_array_equal(*frames)
    assert frames[0][:, 1].min() < -1e-5


def broken(**changes):
    return json.dumps(invented_fabric() | changes)


WRONG = {
    "missing": ("linen", None, "there is no fabric 'linen'"),
    "no file": ("linen.json", None, "linen.json"),
    "no JSON": ("linen", "{", "cannot be read as JSON"),
    "no density": ("linen", broken(density=-1), "density must be positive"),
    "scale": ("linen", broken(**{"strain scale": [1, 1, 1]}), "strain scale must have 5 numbers, got 3"),
    "splines": (
        "linen",
        broken(coeffs={"const": 0, "1D": [], "2D": []}),
        "the 1D splines must be those of strains 0",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_broken_fabrics_are_refused(written, tmp_path, case):
    fabric, content, sentence = WRONG[case]
    if content is not None:
        (tmp_path / "linen.json").write_text(content)
    with pytest.raises(supple.scene.SceneFileError) as refused:
        supple.load_scene(written(fabric))
    message = str(refused.value)
    assert "cloth[0].fabric" in message
    assert sentence in message


def test_all_mistakes_of_cloth_are_reported_at_once(written):
    text = SCENE.replace("rest = { uv = {} }", "bending = { hinge = { rigidity = 1e-5 } }")
    with pytest.raises(supple.scene.SceneFileError) as refused:
        supple.load_scene(written("twill", text))
    message = str(refused.value)
    assert "a fabric includes its bending resistance" in message.lower()
    assert "flat at rest, with its threads along x and y" in message
    text = SCENE.replace("fabric =", "membrane = { stvk = { young = 1e5, poisson = 0.3 } }\nfabric =")
    with pytest.raises(supple.scene.SceneFileError, match="it has both"):
        supple.load_scene(written("twill", text))
