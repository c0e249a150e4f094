"""supple report: one self-contained page."""

import json
import re
from html.parser import HTMLParser

import pytest
from cli_scenes import SAG, SWING, supple, supple_json, write_scene

from supple.view import html_page


class Reader(HTMLParser):
    """Collects text, open tags and every resource that a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.tags, self.loaded = "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "srcset", "href")]

    def handle_data(self, data):
        self.text += data


def read(path) -> Reader:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|http-equiv", text)
    reader = Reader(text)
    assert all(loaded.startswith("data:") for loaded in reader.loaded)
    assert "script" not in reader.tags
    return reader


def test_page_of_one_frame(tmp_path):
    title = 'A <b>bold</b> & "quoted" title'
    text = SAG.replace("'Sagging block'", json.dumps(title))
    supple_json("run", write_scene(tmp_path, text), "--output", "out", "--record-history", "--no-picture")
    assert supple("report", "out").stdout == "out/report.html\n"
    page = read(tmp_path / "out" / "report.html")
    assert title in page.text
    assert "b" not in page.tags
    for words in (
        "Converged",
        "relative_residual",
        "Scene file",
        "density = 100",
        "numba",
        "Energy against seconds",
    ):
        assert words in page.text
    assert page.tags.count("img") == 2 * 5
    assert "video" not in page.tags


def test_page_of_several_frames_has_film_and_table(tmp_path):
    supple_json("run", write_scene(tmp_path, SWING), "--output", "out")
    printed = supple_json("report", "out", "--output", "pages/swing.html")
    assert printed["bytes"] == (tmp_path / "pages" / "swing.html").stat().st_size
    assert "--record-history" in printed["remarks"][0]
    page = read(tmp_path / "pages" / "swing.html")
    assert page.tags.count("video") == 1
    assert page.text.count("converged") == 6
    assert "Relative residual of each frame" in page.text


def test_large_film_is_linked_not_embedded(tmp_path, monkeypatch):
    supple_json("run", write_scene(tmp_path, SWING), "--output", "out")
    monkeypatch.setattr(html_page, "FILM_LIMIT", 100)
    remarks = supple_json("report", "out")["remarks"]
    assert any("film.mp4" in remark for remark in remarks)
    assert "video" not in read(tmp_path / "out" / "report.html").tags


def test_page_of_a_comparison(tmp_path):
    scene = write_scene(tmp_path, SAG)
    solvers = "pbng,newton,xpbd:ordering=clusters"
    supple_json("compare", scene, "--solver", solvers, "--output", "out", "--max-iterations", "5")
    supple_json("report", "out")
    page = read(tmp_path / "out" / "report.html")
    for words in ("3 solvers compared", "xpbd clusters", "ms/iteration", "Residual against seconds", "pin"):
        assert words in page.text
    assert page.tags.count("img") == 2 * 4 + 3


def test_page_shows_failed_convergence(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--max-iterations", "1", "--no-picture", exit_code=1)
    supple_json("report", "results/scene")
    text = (tmp_path / "results" / "scene" / "report.html").read_text(encoding="utf-8")
    assert '<p class="verdict">Stopped after the allowed iterations' in text


@pytest.mark.parametrize("name", ["report.json", "comparison.json"])
def test_folders_without_results_are_refused(tmp_path, name):
    assert "there is no results folder nowhere" in supple("report", "nowhere").stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("{}")
    result = supple("report", "out")
    assert result.exit_code == 2
    assert "of supple" in result.stderr
