"""Specs: key paths, designs, and error messages that list all mistakes."""

from pathlib import Path

import pytest
from dataset_scenes import VARY, scene_file, spec_of

from supple.datasets.errors import DatasetError, SpecError
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.spec.key_path import resolve_key_path
from supple.datasets.spec.parametric_scene import Source


def source(folder):
    return Source.load(Path(scene_file(folder)))


@pytest.mark.parametrize(
    ("path", "keys", "now"),
    [
        ("gravity", ("gravity",), [0, -9.8, 0]),
        ("gravity.y", ("gravity", 1), -9.8),
        ("solid.bar.material.young", ("solid", 0, "material", "corotated", "young"), 1e4),
        ("solid[0].material.corotated.young", ("solid", 0, "material", "corotated", "young"), 1e4),
        ("solid.bar.density", ("solid", 0, "density"), 100),
        ("solid.bar.mesh.scale.x", ("solid", 0, "mesh", "scale", 0), 1.0),
        ("pin.end.motion.rotate.angle", ("pin", 1, "motion", 0, "rotate", "angle"), 0.5),
        ("pin.end.motion[1].translate.offset.x", ("pin", 1, "motion", 1, "translate", "offset", 0), 0.1),
        ("pin.end.motion.offset", ("pin", 1, "motion", 1, "translate", "offset"), [0.1, 0, 0]),
        ("force[0].force.z", ("force", 0, "force", 2), 1),
    ],
)
def test_key_paths_are_resolved_and_replaced(tmp_path, path, keys, now):
    tables = source(tmp_path)
    key_path = resolve_key_path(tables.table, path)
    assert key_path.keys == keys
    assert key_path.value == now
    other = [7.0] * key_path.size if isinstance(now, list) else 7.0
    changed = key_path.with_value(tables.tables, other)
    assert resolve_key_path(type(tables.table).model_validate(changed), path).value == other
    assert resolve_key_path(type(tables.table).model_validate(tables.tables), path).value == now, (
        "the file's stay"
    )


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("solid.bar.material.yung", "did you mean 'young'"),
        ("solid.beam.density", "solid has no 'beam'; known here: 'bar'"),
        ("gravty.y", "did you mean 'gravity'"),
        ("solid.bar.material", "is a table of the scene; name a number in it"),
        ("solid.bar.name", "only numbers can vary"),
        ("stop.tolerance", "nothing to vary at"),
        ("pin.end.motion.twist.angle", "has no 'twist'"),
        ("gravity.w", "known here: 'x', 'y', 'z'"),
        ("contact.friction", r"the scene has no \[contact\], .*; add \[contact\] to the scene\."),
        ("wind.velocity", r"the scene has no \[\[wind\]\], .*; add \[\[wind\]\] to the scene\."),
    ],
)
def test_unknown_key_paths_are_refused(tmp_path, path, sentence):
    with pytest.raises(SpecError, match=sentence):
        load_spec(spec_of(tmp_path, vary=[{"path": path, "range": [0, 1]}]))


def test_all_mistakes_are_reported_with_their_fields(tmp_path):
    wrong = spec_of(tmp_path, count=0, seed=-1, splits={"train": 0.9, "valid": 0.9, "test": 0})
    wrong |= {"desing": "grid", "vary": [{"path": "gravity.y", "range": [1, 0]}], "scene": "nowhere.toml"}
    with pytest.raises(SpecError) as error:
        load_spec(wrong)
    text = str(error.value)
    for field in ("count", "seed", "splits", "desing", "vary[0]", "scene"):
        assert f"dataset: {field}" in text, text
    assert "did you mean 'design'" in text


def test_samples_is_corrected_to_count(tmp_path):
    with pytest.raises(SpecError, match=r"samples: unknown key; did you mean 'count'\?"):
        load_spec(spec_of(tmp_path, count=None, samples=6))


@pytest.mark.parametrize(
    "wrong", [float("inf"), float("nan"), -1e31, "1", True, [0.0, float("nan")], [[1.0]]]
)
@pytest.mark.parametrize("key", ["range", "values"])
def test_non_finite_values_are_refused(tmp_path, key, wrong):
    with pytest.raises(SpecError) as error:
        load_spec(spec_of(tmp_path, vary=[{"path": "gravity.y", key: [0, wrong]}]))
    assert str(error.value).splitlines() == [
        f"dataset: vary[0].{key}[1]: must be a finite number up to 1e+30, or a list of them for a vector; "
        f"got {wrong!r}."
    ]


@pytest.mark.parametrize(
    ("vary", "sentence"),
    [
        (
            {"path": "solid.bar.material.poisson", "range": [0.1, 0.7]},
            "vary.0..range: 0.7 is not a valid value",
        ),
        (
            {"path": "solid.bar.material.young", "values": [1e4, -1.0]},
            "vary.0..values: -1.0 is not a valid value",
        ),
        ({"path": "solid.bar.mesh.cells.x", "values": [2, 3]}, "is a count and cannot vary"),
        ({"path": "solid.bar.density", "range": [0, 1]}, "range: 0.0 is not a valid value"),
        ({"path": "gravity", "range": [0, 1]}, "takes 3 numbers, or name one of them as gravity.x"),
        ({"path": "gravity.y", "range": [[0, 0, 0], [1, 1, 1]]}, "takes one number"),
        ({"path": "gravity.y", "range": [0, 1], "scale": "log"}, "must begin above 0"),
        ({"path": "gravity.y"}, "needs a range or values"),
        ({"path": "gravity.y", "range": [0, 1], "steps": 3}, "is only for design = 'grid'"),
    ],
)
def test_invalid_ranges_are_refused(tmp_path, vary, sentence):
    with pytest.raises(SpecError, match=sentence):
        load_spec(spec_of(tmp_path, vary=[vary]))


def test_missing_keys_of_designs_are_reported(tmp_path):
    with pytest.raises(SpecError, match="a grid has its own number"):
        load_spec(spec_of(tmp_path, design="grid", vary=[VARY[0] | {"steps": 2}]))
    with pytest.raises(SpecError, match=r"vary.0..steps: is missing"):
        load_spec(spec_of(tmp_path, count=None, design="grid", vary=[VARY[0]]))
    with pytest.raises(SpecError, match="count: is missing"):
        load_spec(spec_of(tmp_path, count=None))
    with pytest.raises(SpecError, match="there is no quantity 'positons'"):
        load_spec(spec_of(tmp_path, store={"quantities": ["positons"]}))
    with pytest.raises(SpecError, match="two quantities called 'g'"):
        load_spec(spec_of(tmp_path, vary=[VARY[0], VARY[0]]))
    with pytest.raises(DatasetError, match="no such spec"):
        load_spec(tmp_path / "nothing.toml")


def test_example_is_a_valid_spec():
    spec = load_spec(Path(__file__).parents[2] / "examples" / "bar_dataset.toml")
    assert spec.sizes == {"young": 1, "poisson": 1, "gravity": 3}
    assert not spec.source.rebuilds
