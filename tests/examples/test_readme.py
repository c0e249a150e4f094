"""Code of the README runs, at a small size."""

import re
from pathlib import Path

import supple

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def code_blocks(language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL))


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = (
        code_blocks("python")
        .replace("cells=(31, 31, 31)", "cells=(4, 4, 4)")
        .replace("frames=90", "frames=2")
    )
    assert "(4, 4, 4)" in code
    names: dict = {}
    exec(code, names)
    assert names["result"].report.outcome is supple.Outcome.CONVERGED
    assert names["frame"].index == 3
    assert {path.name for path in tmp_path.iterdir()} == {"twisted.png", "film.mp4"}


def test_scene_file(tmp_path):
    path = tmp_path / "bar.toml"
    path.write_text(code_blocks("toml"))
    file = supple.load_scene(path)
    assert [body.name for body in file.scene.bodies] == ["bar"]
    assert file.stop.tolerance == 1e-4
