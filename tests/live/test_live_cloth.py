"""Cloth on the live page: precision of fabrics, unsupported materials, and saved scenes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fabrics import invented_fabric
from live_scenes import simulation

import supple
from supple.live.save import save_scene
from supple.live.settings import change_material

FLAG = """
quasistatic = false
dt = 0.01

[[cloth]]
name = "flag"
mesh = { sheet = { cells = [3, 3], size = [0.06, 0.06], plane = "zx" } }
fabric = "twill.json"
rest = { uv = {} }

[[pin]]
where = { side = "z-" }

[[wind]]
velocity = [2, 8, 1]
"""


@pytest.fixture
def flag(tmp_path):
    (tmp_path / "twill.json").write_text(json.dumps(invented_fabric()), encoding="utf-8")
    made = simulation(tmp_path, FLAG)
    made.prepare()
    return made


def test_fabrics_use_float64(flag):
    assert flag.settings.precision == "float64"
    before = flag.tracks[0].positions
    for _ in range(3):
        flag.update()
    moved = np.abs(flag.tracks[0].positions - before).max()
    assert 1e-5 < moved < 0.06


def test_wind_equals_that_of_simulate(flag):
    *_, last = supple.simulate(flag.file, solver="pbng", dt=0.01, frames=3, max_iterations=20, tolerance=None)
    flag.change(replace(flag.settings, solvers=(supple.PBNG(),), sweeps=20))
    flag.prepare()
    for _ in range(3):
        flag.update()
    np.testing.assert_allclose(flag.tracks[0].positions, last.positions, atol=1e-6)
    assert last.positions[:, 1].max() > 1e-4, "against its weight"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"precision": "float32"}, "fabrics need precision='float64'"),
        ({"materials": (supple.StVK(young=1e5, poisson=0.3),)}, "flag has the fabric twill"),
    ],
)
def test_unsupported_fabric_settings_are_refused_and_undone(flag, change, sentence):
    before = flag.settings
    flag.change(replace(before, **change))
    with pytest.raises(ValueError, match=sentence):
        flag.prepare()
    assert flag.settings == before
    flag.prepare()
    flag.update()


def test_stiffened_fabric_cannot_be_saved(flag, tmp_path):
    pytest.importorskip("tomli_w", reason="saving needs tomli-w: pip install 'supple[view]'")
    (soft,) = flag.settings.materials
    stiff = change_material(soft, "FabricMembrane", {"stiffness": "3"})
    flag.change(replace(flag.settings, materials=(stiff,)))
    flag.prepare()
    flag.update()
    with pytest.raises(ValueError, match="cannot store another stiffness of flag"):
        save_scene(flag, tmp_path)
    flag.change(replace(flag.settings, materials=(soft,)))
    flag.prepare()
    again = supple.load_scene(save_scene(flag, tmp_path))
    assert again.scene.bodies[0].fabric.name == "twill"
