"""Preset materials against their sources, in Python, scene files and the command line."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.materials import findings, preset, presets, prestrained, stress
from supple.materials.preset_library import PRESETS
from supple.scene import load_scene


def pulled(kind, stretch):
    """Nominal stress [Pa] at a stretch along x with free sides."""

    def at(side):
        return stress(kind, (stretch, 0.0, 0.0, 0.0, side, 0.0, 0.0, 0.0, side))

    side = brentq(lambda s: at(s)[4], 0.5 * stretch**-0.5, 1.5)
    return at(side)[0]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_a_source_and_are_valid_at_rest(name):
    entry = preset(name)
    assert entry == presets()[name]
    assert isinstance(entry.material, PRESETS[name].kind)
    assert findings(entry.material) == []
    assert 100 < entry.density < 2000
    assert any(year in entry.source for year in ("19", "20", "technical bulletin"))


@pytest.mark.parametrize(
    ("name", "psi"),
    [("ecoflex_0030", 10), ("ecoflex_0050", 12), ("dragon_skin_10", 22), ("dragon_skin_30", 86)],
)
def test_silicones_have_the_datasheet_stress_at_stretch_two(name, psi):
    assert pulled(preset(name).material, 2.0) == pytest.approx(psi * 6894.757, rel=0.02)


@pytest.mark.parametrize(("stretch", "megapascals"), [(1.61, 0.41), (2.17, 0.58), (4.03, 1.21), (6.16, 2.67)])
def test_treloars_rubber_is_close_to_his_measurements(stretch, megapascals):
    """His uniaxial data of 1944 as in Steinmann et al. 2012."""
    assert pulled(preset("rubber_treloar").material, stretch) == pytest.approx(1e6 * megapascals, rel=0.15)


def test_parameters_may_be_changed_and_names_are_suggested():
    assert preset("artery_media", fiber=(0, 0, 1)).material.fiber == (0, 0, 1)
    assert preset("Ecoflex_0030", E=1e5).material.young == pytest.approx(1e5)
    assert preset("Ecoflex_0030").name == "ecoflex_0030"
    with pytest.raises(ValueError, match=r"no preset 'ecoflex_0031'; .*ecoflex_0030"):
        preset("ecoflex_0031")


def test_preset_as_material_sets_the_density():
    silicone, mesh = preset("dragon_skin_30"), supple.block((2, 1, 1))
    scene = supple.Scene()
    assert scene.add_solid(mesh, silicone).density == silicone.density
    assert scene.add_solid(mesh, silicone, density=900).density == 900
    assert scene.add_solid(mesh, silicone.material).density == 1000
    swollen = scene.add_solid(mesh, prestrained(silicone, swelling=0.1))
    assert swollen.density == silicone.density
    assert swollen.material.base_material.young == pytest.approx(silicone.material.young)
    fat = supple.scene.Region("fat", lambda X: X[:, 0] > 0.5, preset("fat"))
    mixed = scene.add_solid(mesh, silicone, regions=[fat])
    assert mixed.material == silicone.material
    assert (mixed.regions[0].material, mixed.regions[0].density) == (preset("fat").material, 920)
    assert scene.add_cloth(supple.sheet(2), silicone).material == silicone.material


SCENE = """
[[solid]]
mesh = { block = { cells = [1, 1, 1] } }
material = { preset = { name = "dragon_skin_30" } }
[[pin]]
where = { side = "x-" }
"""


def test_presets_in_scene_files_and_the_list(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE, encoding="utf-8")
    assert load_scene(path).scene.bodies[0].material == preset("dragon_skin_30").material
    path.write_text(SCENE.replace("dragon_skin_30", "dragon"), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match=r"preset\.name"):
        load_scene(path)
    entries = json.loads(CliRunner().invoke(app, ["list", "presets", "--json"]).stdout)["presets"]
    assert [entry["name"] for entry in entries] == list(presets())
    assert "Holzapfel" in next(e for e in entries if e["name"] == "artery_media")["description"]


def test_scene_file_preset_has_density_and_changed_parameters(tmp_path):
    path = tmp_path / "scene.toml"

    def made(table):
        path.write_text(SCENE.replace('{ name = "dragon_skin_30" }', table), encoding="utf-8")
        return load_scene(path).scene.bodies[0]

    body = made('{ name = "muscle", fiber = { between = ["x-", { side = "x+" }] }, activation = 0.5 }')
    np.testing.assert_allclose(body.material.fiber, np.tile([1, 0, 0], (6, 1))[: body.mesh.n_tets], atol=1e-9)
    assert body.material.activation == 0.5
    assert body.density == preset("muscle").density == 1060
    assert made('{ name = "artery_media", fiber = [0, 0, 2] }').material.fiber == (0, 0, 1)
    for table, sentence in (
        ('{ name = "muscle", activaton = 0.5 }', "muscle is a Muscle without activaton; did you mean"),
        ('{ name = "muscle", activation = 1.5 }', "activation must lie between 0 and 1"),
        ('{ name = "muscle", fiber = [0, 0, 0] }', "fiber is a direction and must not be zero"),
        ('{ name = "muscle", fiber = { between = ["x-", "left"] } }', r"between\[1\].side: got 'left'"),
        (
            '{ name = "muscle", fiber = { between = ["x-", { sphere = { center = [9, 0, 0], radius = 1 }}]}}',
            r"solid\[0\]\.material: fiber\.between\[1\] selects no vertex of the mesh; move or enlarge it\.",
        ),
        (
            '{ name = "muscle", fiber = { between = [{ vertices = [] }, "x+"] } }',
            r"fiber\.between\[0\] selects no",
        ),
        ('{ name = "muscle", fiber = { between = ["x-"] } }', r"between: got .* it should have 2 items"),
    ):
        with pytest.raises(supple.scene.SceneFileError, match=sentence):
            made(table)


def test_rubber_is_nearly_incompressible():
    kind = preset("rubber_treloar").material
    P = np.array(stress(kind, (1.001, 0, 0, 0, 1.001, 0, 0, 0, 1.001)))
    assert P[0] == pytest.approx(kind.bulk_modulus * 0.003, rel=0.01)
