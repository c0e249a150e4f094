"""Mistakes in scene files: messages have the file, the field and a correction."""

import pytest
from scene_mistakes import MISTAKES
from scene_texts import SOLID

from supple.scene import SceneFileError, load_scene


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_named_with_file_field_and_correction(write, name):
    text, sentence = MISTAKES[name]
    path = write(text)
    with pytest.raises(SceneFileError) as caught:
        load_scene(path)
    assert caught.value.mistakes == [str(caught.value)], "one mistake, one line"
    assert str(caught.value).startswith(f"{path}: {sentence}")


def test_toml_errors_name_the_line(write):
    with pytest.raises(SceneFileError, match="line 3"):
        load_scene(write("title = 'x'\n\n[[solid]\n"))


def test_missing_file_is_named(tmp_path):
    with pytest.raises(SceneFileError, match=r"nowhere\.toml: there is no such scene file"):
        load_scene(tmp_path / "nowhere.toml")


def test_all_mistakes_are_reported_at_once_with_their_indices(write):
    path = write(
        """
dt = -1
[[solid]]
name = "bad"
mesh = { file = "no.mesh" }
material = { stvk = { young = 1, poisson = 0.3 } }
density = "light"
[[solid]]
name = "gone"
mesh = { file = "no.mesh" }
material = { stvk = { young = 1, poisson = 0.3 } }
"""
        + SOLID
        + """
[[pin]]
solid = "bad"
[[pin]]
solid = "cube"
were = {}
[[pin]]
solid = "cube"
where = { vertices = [999] }
[[pin]]
solid = "gone"
[[force]]
solid = "unknown"
force = [1, 1, 1]
"""
    )
    with pytest.raises(SceneFileError) as caught:
        load_scene(path)
    fields = {line.removeprefix(f"{path}: ").split(": ")[0] for line in caught.value.mistakes}
    assert fields == {
        "dt",
        "solid[0].density",
        "solid[1].mesh",
        "pin[1].were",
        "pin[2].where",
        "force[0].solid",
    }
