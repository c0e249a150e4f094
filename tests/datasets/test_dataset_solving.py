"""Samples are equilibria of their scenes, for any varied quantity and initial guess."""

from pathlib import Path

import numpy as np
import pytest
from dataset_scenes import SCENE, VARY, sample_bytes, solved, spec_of

import supple
from supple.datasets.run.create import make_store
from supple.datasets.run.shard import Shards
from supple.datasets.run.warm_start import Neighbors
from supple.datasets.spec.dataset_spec import load_spec

SIZE = 1.0
VARIED_PATHS = [
    ("gravity", [[-3, -9, -3], [3, -1, 3]]),
    ("solid.bar.material.young", [5e3, 5e4]),
    ("solid.bar.material.poisson", [0.1, 0.45]),
    ("solid.bar.density", [10, 200]),
    ("pin.end.motion.rotate.angle", [-1, 1]),
    ("pin.end.motion.translate.offset", [[0, 0, 0], [0.2, 0.1, 0.1]]),
    ("force[0].force", [[-3, -3, -3], [3, 3, 3]]),
    ("solid.bar.mesh.scale.y", [0.8, 1.2]),
]


def text_with(store, sample):
    """Complete scene file of a sample, without reference to data sets."""
    import tomli_w

    from supple.datasets.spec.parametric_scene import Source

    source = Source.load(store.path / "scene.toml", Path(store.facts["folder"]))
    tables = source.tables
    for varied in store.facts["varied"]:
        for key_path in source.vary(varied["label"], varied["paths"]):
            tables = key_path.with_value(tables, store.inputs[varied["label"]][sample].tolist())
    return tomli_w.dumps(tables)


@pytest.mark.parametrize(("path", "between"), VARIED_PATHS)
def test_every_quantity_gives_the_equilibrium_of_its_scene(tmp_path, path, between):
    store = solved(tmp_path, count=3, shard=3, vary=[{"path": path, "range": between}])
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1, 2]
    for sample in (0, 2):
        scene = tmp_path / "alone.toml"
        scene.write_text(text_with(store, sample))
        expected = supple.equilibrium(supple.load_scene(scene))
        assert np.abs(expected.positions - data["positions"][sample]).max() < 3e-4 * SIZE
    moved = np.abs(data["positions"][0] - data["positions"][2]).max()
    assert moved > 1e-5, "the quantity makes a difference"


LOADS = """
[[body_force]]
force = [0, -500, 0]

[[traction]]
where = { side = "y+" }
traction = -300.0
following = true

[[traction]]
where = { side = "y+" }
traction = [0, -20, 0]

[[traction]]
where = { side = "z+" }
traction = [0, 0, 30]
"""


def changed(folder, text, **changes):
    """Spec of a modified scene."""
    (folder / "other.toml").write_text(text)
    return load_spec(spec_of(folder, scene=str(folder / "other.toml"), **changes))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("traction[1].traction.y", [-1000.0, -20.0]),
        ("traction[2].traction.z", [-70.0, 30.0]),
        ("force[0].force", [[-3.0, 0.0, -1.0], [0.0, 0.0, 1.0]]),
    ],
)
def test_named_load_varies(tmp_path, path, values):
    spec = changed(tmp_path, SCENE + LOADS, vary=[{"path": path, "range": values}])
    source = spec.source
    assert not source.rebuilds
    for value in values:
        model = source.make_model({path: value})
        assert np.allclose(source.conditions({path: value}).force, model.force_at(np.inf), atol=1e-12)


def test_follower_traction_varies(tmp_path):
    (tmp_path / "other.toml").write_text(SCENE + LOADS)
    vary = [{"path": "traction[0].traction", "values": [-600, -100]}]
    store = solved(tmp_path, count=2, shard=2, seed=3, vary=vary, scene=str(tmp_path / "other.toml"))
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1]
    (tmp_path / "alone.toml").write_text(text_with(store, 1))
    scene_file = supple.equilibrium(supple.load_scene(tmp_path / "alone.toml"))
    assert np.abs(scene_file.positions - data["positions"][1]).max() < 3e-4 * SIZE


@pytest.mark.parametrize("rest", ["swelling = 0.1", "rest_deformation = [[1.1, 0, 0], [0, 1, 0], [0, 0, 1]]"])
def test_growth_is_kept_when_the_material_varies(tmp_path, rest):
    path = "solid.bar.material.young"
    text = SCENE.replace("density = 100", f"density = 100\n{rest}")
    source = changed(tmp_path, text, vary=[{"path": path, "range": [1e4, 2e4]}]).source
    (material,) = source.conditions({path: 2e4}).materials
    (term,) = [term for term in source.make_model({path: 2e4}).terms if term.material is not None]
    assert type(material) is type(term.material)
    for mine, own in zip(material, term.material, strict=True):
        assert np.allclose(mine, own)


def test_cloth_keeps_its_density_when_another_density_varies(tmp_path):
    cloth = """
[[cloth]]
name = "flag"
mesh = { sheet = { cells = 2, size = [1, 1] } }
membrane = { stvk = { young = 1e4, poisson = 0.3 } }

[[pin]]
cloth = "flag"
where = { side = "x-" }
"""
    text = SCENE.replace("where", 'solid = "bar"\nwhere') + cloth
    paths = ["solid.bar.density", "cloth.flag.membrane.young"]
    source = changed(
        tmp_path, text, vary=[{"path": paths[0], "range": [10, 20]}, {"path": paths[1], "range": [1e4, 2e4]}]
    ).source
    values = {paths[0]: 20.0, paths[1]: 1e4}
    assert np.allclose(source.conditions(values).force, source.make_model(values).force_at(np.inf))


def test_stored_quantities_equal_evaluate(tmp_path):
    names = ["positions", "displacements", "cauchy", "F", "forces", "energies", "reactions", "von_mises"]
    store = solved(tmp_path, count=3, shard=3, store={"quantities": names})
    data = supple.data.open(store.path)
    scene = tmp_path / "alone.toml"
    scene.write_text(text_with(store, 1))
    evaluation = supple.evaluate(supple.load_scene(scene), data["positions"][1])
    assert np.allclose(data["displacements"][1], data["positions"][1] - data["points"])
    assert np.allclose(data["stresses"][1], evaluation.cauchy, rtol=1e-6, atol=1e-6)
    assert np.allclose(data["F"][1], evaluation.deformation_gradient)
    assert np.allclose(data["von_mises"][1], evaluation.von_mises, rtol=1e-6, atol=1e-6)
    assert np.allclose(data["forces"][1], evaluation.reaction_force, atol=1e-6)
    assert np.allclose(data["energies"][1], [*evaluation.body_energies.values()])
    assert np.allclose(data["reactions"][1][1, :3], evaluation.reactions["end"].force, atol=1e-6)


def test_contact_forces_of_obstacles_are_stored(tmp_path):
    """Only the two lowest vertices above the beam can touch it."""
    log = "point0 = [0.55, -0.451, -0.5], point1 = [0.55, -0.451, 1], radius = 0.45"
    beam = f"[[obstacle]]\nshape = {{ cylinder = {{ {log} }} }}\n"
    (tmp_path / "beam.toml").write_text(SCENE.replace("[[force]]", beam + "[[force]]"))
    changes = {"vary": VARY[:1], "store": {"quantities": ["positions", "contact"]}}
    changes["scene"] = str(tmp_path / "beam.toml")
    store = solved(tmp_path, count=3, shard=3, **changes)
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1, 2]
    heavy, light = int(data["g"].argmin()), int(data["g"].argmax())
    total = data["contact"][:].sum(axis=1)
    assert total[heavy, 1] > total[light, 1] >= 0
    scene_file = tmp_path / "alone.toml"
    scene_file.write_text(text_with(store, heavy))
    evaluation = supple.evaluate(supple.load_scene(scene_file), data["positions"][heavy])
    assert np.allclose(data["contact"][heavy], evaluation.contact_force, atol=1e-6)
    below = (data["points"][:, 0] == 0.5) & (data["points"][:, 1] == 0)
    assert not np.any(data["contact"][heavy][~below])


@pytest.mark.parametrize("start", ["neighbor", "predicted"])
def test_result_is_independent_of_the_start(tmp_path, start):
    stores = [
        solved(tmp_path, f"{name}.zarr", count=24, shard=12, solve={"initial": name, "check": 0.5})
        for name in (start, "cold")
    ]
    warm, cold = (supple.data.open(store.path) for store in stores)
    assert np.abs(warm["positions"][:] - cold["positions"][:]).max() < 3e-4 * SIZE
    assert warm["warm"].sum() > 20
    assert not cold["warm"].any()
    assert warm["iterations"].sum() < 0.7 * cold["iterations"].sum()
    checks = [check for shard in (0, 1) for check in stores[0].manifest(shard)["checks"]]
    assert len(checks) > 5
    assert not any(check["cold_is_lower"] for check in checks)


def test_sample_is_independent_of_earlier_work(tmp_path):
    store = solved(tmp_path, count=12, shard=4)
    other = make_store(load_spec(spec_of(tmp_path)), tmp_path / "other.zarr")
    Shards(other).run(1)
    shards = Shards(other)
    shards.sampler.solve(shards.values(7), [None])
    for shard in (2, 0):
        shards.run(shard)
    assert sample_bytes(other) == sample_bytes(store)


def test_failed_samples_are_recorded_without_positions(tmp_path):
    store = solved(
        tmp_path, count=6, shard=3, solve={"max_iterations": 1, "initial": "cold", "tolerance": 1e-9}
    )
    data = supple.data.open(store.path)
    assert not len(data.ids)
    assert np.isnan(data["positions"][:]).all()
    assert set(data.outcomes) == {"max_iterations"}
    assert (data["relative_residual"] > 1e-9).all()
    assert len(store.manifest(0)["failures"]) == 3
    assert "allowed iterations" in store.manifest(0)["failures"]["0"]
    assert not any(len(data.split(part)) for part in ("train", "valid", "test"))


def test_impossible_values_are_recorded_with_their_message(tmp_path):
    store = make_store(load_spec(spec_of(tmp_path)), tmp_path / "set.zarr")
    shards = Shards(store)
    solution = shards.sampler.solve({"young": -1.0}, [None])
    assert solution.report_row()["outcome"] == store.facts["outcomes"].index("invalid")
    assert "young" in solution.sentence


def test_prediction_is_exact_for_linear_samples():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(30, 4)), rng.normal(size=30)
    neighbors = Neighbors()
    for point in rng.random((20, 4)):
        neighbors.add(point, (A @ point + b).reshape(10, 3))
    point = rng.random(4)
    assert np.allclose(neighbors.predict(point), (A @ point + b).reshape(10, 3))
    assert Neighbors().predict(point) is None
    assert Neighbors().nearest(point) is None


def test_prediction_interpolates_known_samples():
    rng = np.random.default_rng(1)
    neighbors, points = Neighbors(), rng.random((15, 2))
    shapes = [np.sin(9 * point).sum() * rng.normal(size=(5, 3)) for point in points]
    for point, shape in zip(points, shapes, strict=True):
        neighbors.add(point, shape)
    for point, shape in zip(points, shapes, strict=True):
        assert np.allclose(neighbors.predict(point), shape, atol=1e-8)


def test_varied_quantities_may_have_several_key_paths(tmp_path):
    both = ["force[0].force.x", "force[0].force.z"]
    store = solved(tmp_path, count=2, shard=2, vary=[VARY[0], {"path": both, "name": "f", "range": [1, 2]}])
    assert store.facts["varied"][1]["paths"] == both
    assert len(supple.data.open(store.path).ids) == 2


def test_error_estimates_are_computed_by_default(tmp_path):
    """Both stores reach the residual tolerance; only the default estimates the position error."""
    with_them = solved(tmp_path, "with.zarr", count=4)
    without = solved(tmp_path, "without.zarr", count=4, solve={"position_tolerance": False})
    stored_reports = [supple.data.open(store.path).report for store in (with_them, without)]
    assert (stored_reports[0]["position_error"] <= 1e-4).all()
    assert np.isnan(stored_reports[1]["position_error"]).all()
    assert all((reports["relative_residual"] <= 1e-4).all() for reports in stored_reports)
