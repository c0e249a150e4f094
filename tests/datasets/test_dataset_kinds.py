"""Every quantity of a scene may vary, and a sample is the equilibrium of its scene."""

import numpy as np
import pytest
import tomli_w
from dataset_scenes import SCENE, solved, spec_of

import supple
from supple.datasets.errors import SpecError
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.spec.key_path import VARIABLE_TABLES
from supple.datasets.spec.parametric_scene import Source

HOLLOW = """
gravity = [0, 0, 0]

[[solid]]
name = "box"
material = { stvk = { young = 2e5, poisson = 0.3 } }

[solid.mesh]
block = { cells = [3, 3, 3], size = [1, 1, 1] }
without = [{ min = [0.34, 0.34, 0.34], max = [0.66, 0.66, 0.66] }]

[[pin]]
where = { side = "x-" }

[[cavity]]
where = { box = { min = [0.3, 0.3, 0.3], max = [0.7, 0.7, 0.7] } }
pressure = 2e4

[[cable]]
points = [[0, 1, 0], [1, 1, 0]]
tension = 50

[[pressure]]
pressure = 100.0
"""
STANDING_SCENE = """
gravity = [0, -9.8, 0]

[contact]
method = "weak"
friction = 0.3
thickness = 0.01

[[solid]]
name = "below"
mesh = { block = { cells = [2, 1, 2], size = [1, 0.5, 1] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }

[[solid]]
name = "above"
mesh = { block = { cells = [1, 1, 1], size = [0.5, 0.5, 0.5], origin = [0.27, 0.51, 0.24] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }

[[pin]]
solid = "below"
where = { side = "y-" }

[[pin]]
solid = "above"
where = { side = "y+" }
motion = [{ translate = { offset = [0.02, -0.05, 0] } }]
"""
MORE_LOADS = """
[[body_force]]
force = [0, -500, 0]

[[traction]]
where = { side = "y+" }
traction = -300.0

[[spring]]
where = { side = "y+" }
to = { points = [[0.5, 1, 0.25]] }
stiffness = 50

[[attach]]
where = { side = "y-" }
stiffness = 100
"""
CREASED = """
gravity = [0, -9.8, 0]

[[cloth]]
name = "strip"
mesh = { sheet = { cells = [3, 2], size = [0.3, 0.2], plane = "xz", origin = [0, 0, 0] } }
membrane = { plane_stress_stvk = { young = 1e4, poisson = 0.3 } }
bending = { creased = { rigidity = 1e-3, yield_angle = 0.3 } }
density = 0.1

[[pin]]
where = { side = "x-" }

[[pin]]
where = { side = "x+" }
motion = [{ translate = { offset = [0.03, 0, 0] } }]
"""
KEYED = SCENE.replace(
    "motion = [",
    "motion = [\n  { keyframes = { times = [0, 1], offsets = [[0, 0, 0], [0.1, 0.1, 0]] } },",
)
REGIONS = SCENE.replace(
    "[[pin]]",
    """
[[solid.region]]
name = "tip"
where = { box = { min = [0.5, -inf, -inf], max = [inf, inf, inf] } }
material = { corotated = { young = 2e4, poisson = 0.3 } }

[[pin]]""",
    1,
)
MUSCLE = SCENE.replace(
    "corotated = { young = 1e4, poisson = 0.3 }",
    "muscle = { young = 1e4, poisson = 0.3, activation = 0.5, strength = 1e4, fiber = [1, 0, 0] }",
)
TISSUE = SCENE.replace(
    "corotated = { young = 1e4, poisson = 0.3 }",
    'preset = { name = "muscle", poisson = 0.3, activation = 0, strength = 10000, '
    'fiber = { between = ["x-", "x+"] } }',
)
SILICONE = SCENE.replace("corotated = { young = 1e4, poisson = 0.3 }", 'preset = { name = "ecoflex_0010" }')
PRESTRAINED = SCENE.replace(
    "density = 100", "density = 100\nswelling = 0.1\nrest_deformation = [[1.1, 0, 0], [0, 1, 0], [0, 0, 1]]"
)
OBSTACLE_SCENE = SCENE + "\n[[obstacle]]\nshape = { plane = { normal = [0, 1, 0], point = [0, -0.02, 0] } }\n"

CASES = {
    "keyframed pose": (KEYED, "pin.end.motion.keyframes.offsets.1.y", [-0.2, 0.2]),
    "body force": (SCENE + MORE_LOADS, "body_force[0].force.y", [-2000.0, 500.0]),
    "traction": (SCENE + MORE_LOADS, "traction[0].traction", [-800.0, 100.0]),
    "spring": (SCENE + MORE_LOADS, "spring[0].stiffness", [10.0, 500.0]),
    "attachment": (SCENE + MORE_LOADS, "attach[0].stiffness", [10.0, 1000.0]),
    "chamber": (HOLLOW, "cavity[0].pressure", [1e3, 3e4]),
    "cable": (HOLLOW, "cable[0].tension", [10.0, 500.0]),
    "pressure": (HOLLOW, "pressure[0].pressure", [-2000.0, 2000.0]),
    "region": (REGIONS, "solid.bar.region.tip.material.young", [5e3, 1e5]),
    "activation": (MUSCLE, "solid.bar.material.activation", [0.1, 0.9]),
    "activation of tissue": (TISSUE, "solid.bar.material.preset.activation", [0.1, 0.9]),
    "stiffness of silicone": (SILICONE, "solid.bar.material.poisson", [0.1, 0.4]),
    "swelling": (PRESTRAINED, "solid.bar.swelling", [-0.1, 0.2]),
    "rest shape": (PRESTRAINED, "solid.bar.rest_deformation.0.0", [0.9, 1.2]),
    "creased cloth": (CREASED, "cloth.strip.membrane.young", [2e3, 5e4]),
    "obstacle": (OBSTACLE_SCENE, "obstacle[0].shape.plane.point.y", [-0.1, -0.01]),
    "friction": (STANDING_SCENE, "contact.friction", [0.0, 0.8]),
    "thickness": (STANDING_SCENE, "contact.thickness", [0.02, 0.05]),
}


@pytest.mark.parametrize("kind", CASES)
def test_varied_quantity_gives_the_equilibrium_of_its_scene(tmp_path, kind):
    text, path, between = CASES[kind]
    file = tmp_path / "scene.toml"
    file.write_text(text)
    changes = {"vary": [{"path": path, "name": "value", "values": between}], "design": "grid", "count": None}
    store = solved(tmp_path, scene=str(file), shard=2, solve={"tolerance": 1e-6}, **changes)
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1], store.manifest(0)["failures"]
    source = Source.load(file)
    (key_path,) = source.vary("value", [path])
    scene_file = tmp_path / "alone.toml"
    scene_file.write_text(tomli_w.dumps(key_path.with_value(source.tables, float(data.inputs["value"][1]))))
    result = supple.equilibrium(supple.load_scene(scene_file), tolerance=1e-6)
    assert np.abs(result.positions - data["positions"][1]).max() < 1e-4
    assert np.abs(data["positions"][0] - data["positions"][1]).max() > 1e-4, "it makes a difference"


def test_fields_of_meshes_vary(tmp_path):
    """Young's modulus of every tetrahedron comes from a table and from a function."""
    mesh = supple.block((2, 1, 1), size=(1, 0.5, 0.5))
    supple.meshes.save_mesh(mesh.with_data({"stiffness": np.full(mesh.n_tets, 1e4)}), tmp_path / "bar.vtu")
    file = tmp_path / "scene.toml"
    text = SCENE.replace("block = { cells = [2, 1, 1], size = [1, 0.5, 0.5] }", 'file = "bar.vtu"')
    file.write_text(text.replace("young = 1e4", 'young = { field = "stiffness" }'))
    values = np.random.default_rng(0).uniform(5e3, 5e4, (3, mesh.n_tets))
    vary = [{"path": "solid.bar.field.stiffness", "name": "E"}]
    np.savez(tmp_path / "fields.npz", E=values)
    table = {"design": "table", "table": str(tmp_path / "fields.npz"), "count": None}
    store = solved(tmp_path, scene=str(file), shard=3, vary=vary, **table)
    data = supple.data.open(store.path)
    assert data.inputs["E"].shape == (3, mesh.n_tets)
    for sample in range(3):
        scene = supple.load_scene(file).scene
        (body,) = scene.bodies
        kind = supple.Corotated(young=data.inputs["E"][sample], poisson=0.3)
        (result,) = supple.equilibria(scene, [supple.Variation(materials={body: kind})])
        assert np.abs(result.positions - data["positions"][sample]).max() < 3e-4
    spec = spec_of(tmp_path, scene=str(file), vary=[{"path": vary[0]["path"], "range": [1e3, 1e4]}])
    with pytest.raises(SpecError, match="as from design = 'table' or 'function'"):
        load_spec(spec)
    for path in ("solid.bar.field.stiff", "solid.rod.field.stiffness"):
        with pytest.raises(SpecError, match="has no"):
            load_spec(spec | {"vary": [{"path": path, "range": [1e3, 1e4]}]})


def test_parameters_of_presets_vary(tmp_path):
    """Parameters that the file does not override, and one component of a direction."""
    file = tmp_path / "scene.toml"
    file.write_text(
        SCENE.replace("corotated = { young = 1e4, poisson = 0.3 }", 'preset = { name = "muscle" }')
    )
    source = Source.load(file)
    (key_path,) = source.vary("across", ["solid.bar.material.preset.fiber.y"])
    assert key_path.value == 0
    assert source.conditions({"across": 1.0}).materials[0].fiber == pytest.approx((0.5**0.5, 0.5**0.5, 0))
    assert source.key_path("solid.bar.material.strength").value == 2.25e5
    with pytest.raises(ValueError, match="has no 'activaton'; did you mean 'activation'"):
        source.key_path("solid.bar.material.preset.activaton")
    with pytest.raises(ValueError, match="only numbers can vary"):
        source.key_path("solid.bar.material.preset.name")
    source.vary("pull", ["solid.bar.material.activation"])
    with pytest.raises(supple.SceneError, match="activation must lie between 0 and 1"):
        source.conditions({"pull": 2.0})


def test_every_table_of_the_schema_is_tested():
    tried = {path.partition(".")[0].partition("[")[0] for _, path, _ in CASES.values()}
    tested_tables = {"gravity", "solid", "cloth", "pin", "force"}  # in test_dataset_solving
    assert tried | tested_tables | {"wind"} >= set(VARIABLE_TABLES)


def test_wind_is_refused(tmp_path):
    file = tmp_path / "scene.toml"
    file.write_text(SCENE + "\n[[wind]]\nvelocity = [1.0, 0, 0]\n")
    vary = [{"path": "wind[0].velocity.x", "range": [0, 1]}]
    with pytest.raises(SpecError, match="not supported in equilibria"):
        load_spec(spec_of(tmp_path, scene=str(file), vary=vary))


QUICK = {
    "all at once": (
        SCENE + MORE_LOADS,
        [
            ("gravity", [[-3, -9, -3], [3, -1, 3]]),
            ("force[0].force.z", [-3, 3]),
            ("body_force[0].force", [[0, -500, 0], [10, 500, 20]]),
            ("traction[0].traction", [-300, 300]),
            ("pin.end.motion.rotate.angle", [-1, 1]),
            ("pin.end.motion.rotate.center.y", [0, 0.5]),
            ("pin.end.motion.translate.offset", [[0, 0, 0], [0.2, 0.1, 0.1]]),
            ("solid.bar.material.young", [5e3, 5e4]),
            ("solid.bar.material.poisson", [0.1, 0.45]),
        ],
    ),
    "components": (
        SCENE,
        [
            ("gravity.y", [-9, 0]),
            ("pin.end.motion.translate.offset.x", [0, 0.2]),
            ("pin.end.motion.translate.offset.z", [0, 0.2]),
        ],
    ),
    "preset": (
        SCENE.replace(
            "corotated = { young = 1e4, poisson = 0.3 }", 'preset = { name = "muscle", activation = 0 }'
        ),
        [("solid.bar.material.preset.activation", [0, 1]), ("solid.bar.material.young", [5e3, 5e4])],
    ),
    "twisted and stretched": (
        SCENE.replace("rotate = {", "twist = {")
        .replace("angle =", "rate =")
        .replace("translate = { offset", "scale = { factor"),
        [("pin.end.motion.twist.rate", [0.1, 1]), ("pin.end.motion.scale.factor.y", [0.5, 1.5])],
    ),
    "rollers": (
        SCENE.replace('side = "x-" }', 'side = "x-" }\naxes = "x"\nname = "wall"'),
        [("pin.end.motion.rotate.angle", [-1, 1]), ("solid.bar.material.young", [5e3, 5e4])],
    ),
}


@pytest.mark.parametrize("name", QUICK)
def test_vectorized_conditions_equal_single_ones(tmp_path, name):
    text, paths = QUICK[name]
    text = text.replace("factor = [0.1, 0, 0]", "factor = [1.1, 1, 1]")
    file = tmp_path / "scene.toml"
    file.write_text(text)
    source = Source.load(file)
    rng = np.random.default_rng(0)
    every = [{} for _ in range(5)]
    for path, (low, high) in paths:
        source.vary(path, [path])
        for values in every:
            drawn = rng.uniform(low, high)
            values[path] = drawn.tolist() if np.ndim(drawn) else float(drawn)
    assert source._vectorized.is_supported
    for values, quick in zip(every, source.conditions_of(every), strict=True):
        slow = source.conditions(values)
        assert np.allclose(quick.pinned, slow.pinned, rtol=1e-13, atol=1e-14)
        assert np.allclose(quick.force, slow.force, rtol=1e-13, atol=1e-13)
        assert (quick.materials is None) == (slow.materials is None)
        for mine, own in zip(quick.materials or (), slow.materials or (), strict=True):
            assert type(mine) is type(own)
            for value, expected in zip(mine, own, strict=True):
                assert np.allclose(value, expected, rtol=1e-13)
    (single,) = source.conditions_of(every[:1])
    assert np.array_equal(single.force, source.conditions_of(every)[0].force), (
        "independent of other conditions"
    )


def test_zero_forces_are_exactly_zero(tmp_path):
    file = tmp_path / "scene.toml"
    file.write_text(SCENE.replace("force = [0, 0, 1]", "force = [0, 0, 0]"))
    source = Source.load(file)
    source.vary("g", ["gravity"])
    conditions = source.conditions_of([{"g": [0.0, 0.0, 0.0]}, {"g": [0.0, -9.8, 0.0]}])
    assert not conditions[0].force.any()
    assert conditions[1].force.any()


@pytest.mark.parametrize(
    ("path", "wrong", "sentence"),
    [
        ("solid.bar.material.young", -1.0, "young"),
        ("gravity.y", 1e40, "gravity"),
        ("pin.end.motion.translate.offset.x", 1e20, "offset"),
    ],
)
def test_one_wrong_sample_is_reported_among_others(tmp_path, path, wrong, sentence):
    file = tmp_path / "scene.toml"
    file.write_text(SCENE)
    source = Source.load(file)
    (key_path,) = source.vary("value", [path])
    first, second = source.conditions_of([{"value": key_path.value}, {"value": wrong}])
    assert np.allclose(first.pinned, source.conditions({"value": key_path.value}).pinned)
    assert isinstance(second, supple.SceneError)
    assert sentence in str(second)
