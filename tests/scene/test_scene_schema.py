"""The JSON Schema of scene files for editors."""

import json
import tomllib
from typing import get_args, get_type_hints

import jsonschema
import pytest
from scene_mistakes import MISTAKES
from scene_texts import PINNED

from supple.materials import MATERIALS
from supple.scene import load_scene, scene_schema
from supple.solvers import SOLVERS


def test_schema_describes_every_field():
    schema = scene_schema()
    json.dumps(schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    tables = {"scene": schema, **schema["$defs"]}
    undescribed = [
        f"{table}.{name}"
        for table, content in tables.items()
        for name, field in content["properties"].items()
        if not field.get("description")
    ]
    assert undescribed == []
    assert set(schema["$defs"]["Material"]["properties"]) == {*MATERIALS, "preset"}


@pytest.mark.parametrize(
    "name",
    [
        "unknown key",
        "two meshes",
        "incompressible",
        "wrong count",
        "zero dt",
        "no solids",
        "no camera of this name",
    ],
)
def test_schema_rejects_the_mistakes(name):
    wrong = tomllib.loads(MISTAKES[name][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(scene_schema()).validate(wrong)
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(PINNED))


@pytest.mark.parametrize(("camera", "angles"), [("front", (0, 4)), ([80, 10], (80, 10)), (None, (32, 20))])
def test_camera_is_a_name_or_two_angles(tmp_path, camera, angles):
    text = PINNED + ("" if camera is None else f"[view]\ncamera = {json.dumps(camera)}\n")
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(text))
    (tmp_path / "scene.toml").write_text(text)
    assert tuple(load_scene(tmp_path / "scene.toml").view.camera) == angles


@pytest.mark.parametrize("kind", SOLVERS.values(), ids=SOLVERS)
def test_dependent_options_refer_to_existing_options_and_values(kind):
    hints = get_type_hints(kind)
    for option, (other, value) in kind.only_with.items():
        assert option in hints
        assert value in get_args(hints[other])
