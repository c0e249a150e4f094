"""Tetrahedralization of surfaces: size, quality, cache and errors."""

import logging
import os
import sys

import numpy as np
import pytest
from real_meshes import real_mesh

from supple.meshes import MeshError, TriMesh, ball, block, load_mesh, load_surface, tetrahedralize
from supple.meshes.generators import tetrahedralize as filling
from supple.meshes.measures import squared_edges

pytest.importorskip("pytetwild", reason="needs pytetwild: pip install 'supple[tetrahedralize]'")


def sphere(resolution=6):
    mesh = ball(1.0, resolution)
    return TriMesh(mesh.points[mesh.surface_vertices], np.searchsorted(mesh.surface_vertices, mesh.surface))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(filling, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def no_filling(monkeypatch):
    def refuse(*_):
        raise AssertionError("the tetrahedra should have come from the cache")

    monkeypatch.setattr(filling, "_fill", refuse)


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """A ball with edges of 0.5, and the folder that caches it."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filling, "cache_folder", lambda: folder)
        progress = []
        mesh = tetrahedralize(sphere(), 0.5, progress=lambda *counts: progress.append(counts))
        return mesh, folder, progress


def test_filled_surface_has_good_tetrahedra_of_the_requested_size(coarse):
    mesh, _, _ = coarse
    assert mesh.volume == pytest.approx(sphere().enclosed_volume, rel=0.05)
    assert np.abs(np.linalg.norm(mesh.points[mesh.surface_vertices], axis=1) - 1).max() < 0.1
    assert mesh.quality.min() > 0.1
    edges = np.sqrt(squared_edges(mesh.points, mesh.tets))
    assert 0.5 / 2 < np.median(edges) < 0.5 * 1.5
    assert mesh.n_components == 1


def test_progress_is_reported(coarse):
    _, _, progress = coarse
    assert progress == [(1, 2), (2, 2)]


def test_stages_are_logged(cache, caplog):
    with caplog.at_level(logging.INFO, "supple.meshes"):
        tetrahedralize(sphere(), 0.6)
    message = caplog.messages
    assert message[0].startswith("simplifying 720 triangles to ")
    assert message[1].startswith("tetrahedralizing ")
    assert any("pass 0: " in sentence for sentence in message)


def test_same_surface_is_filled_once(coarse, monkeypatch, no_filling):
    mesh, folder, _ = coarse
    monkeypatch.setattr(filling, "cache_folder", lambda: folder)
    message = []
    again = tetrahedralize(sphere(), 0.5, progress=lambda *counts: message.append(counts))
    assert message == [(2, 2)]
    np.testing.assert_array_equal(again.points, mesh.points)
    np.testing.assert_array_equal(again.tets, mesh.tets)
    for surface, length in ((sphere(), 0.51), (sphere().translated((0, 0, 1e-9)), 0.5)):
        with pytest.raises(AssertionError, match="from the cache"):
            tetrahedralize(surface, length)


def test_damaged_cache_is_replaced(coarse, monkeypatch, cache):
    mesh, folder, _ = coarse
    (file,) = folder.iterdir()
    cache.mkdir()
    (cache / file.name).write_bytes(file.read_bytes()[:100])
    monkeypatch.setattr(filling, "_fill", lambda *_: (mesh.points, mesh.tets))
    assert tetrahedralize(sphere(), 0.5).n_tets == mesh.n_tets
    assert [path.name for path in cache.iterdir()] == [file.name]
    with np.load(cache / file.name) as saved:
        np.testing.assert_array_equal(saved["tets"], mesh.tets)


def test_unwritable_cache_is_ignored(coarse, monkeypatch, tmp_path, caplog):
    mesh, _, _ = coarse
    (tmp_path / "file").touch()
    monkeypatch.setattr(filling, "cache_folder", lambda: tmp_path / "file" / "cache")
    monkeypatch.setattr(filling, "_fill", lambda *_: (mesh.points, mesh.tets))
    with caplog.at_level(logging.WARNING):
        assert tetrahedralize(sphere(), 0.5).n_tets == mesh.n_tets
    assert "could not be saved" in caplog.text


def test_fine_surfaces_are_coarsened_and_inverted_ones_turned(monkeypatch, cache):
    seen = []

    def fill(surface, length, message):
        seen.append(surface)
        mesh = block(2)
        return mesh.points, mesh.tets

    monkeypatch.setattr(filling, "_fill", fill)
    fine = sphere(20)
    tetrahedralize(TriMesh(fine.points, fine.triangles[:, ::-1]), 0.5)
    tetrahedralize(sphere(4), 0.5)
    coarsened, unchanged = seen
    assert coarsened.n_triangles < 0.1 * fine.n_triangles
    assert coarsened.enclosed_volume == pytest.approx(fine.enclosed_volume, rel=0.05)
    assert unchanged.n_triangles == sphere(4).n_triangles


def test_volume_mismatch_is_warned_about(monkeypatch, cache, caplog):
    mesh = block(2)
    monkeypatch.setattr(filling, "_fill", lambda *_: (mesh.points, mesh.tets))
    with caplog.at_level(logging.WARNING):
        tetrahedralize(sphere(), 0.5)
    assert "fill 24 % of the volume" in caplog.text


@pytest.mark.parametrize(
    ("surface", "length", "sentence"),
    [
        (TriMesh(sphere().points, sphere().triangles[1:]), 0.5, "not closed: 3 of"),
        (sphere(), 0.0, "edge_length must be positive"),
        (sphere(), np.nan, "edge_length must be positive"),
        (sphere(), 1e-3, r"edge_length = 0\.001 m gives about .* million tetrahedra .* 2 × 2 × 2 m"),
        (sphere().scaled(1000), 0.5, r"is 2000 × 2000 × 2000 m; .* Scale the surface"),
        (sphere(), 2.0, r"edge_length = 2 m is too large .* 2 × 2 × 2 m: it may be 1\.73 m at most"),
        (sphere(), 1e9, r"0\.173 m, a twentieth, is usual"),
        (sphere().scaled(1e-9), 0.5, r"too large for a surface that is 2e-09 × 2e-09 × 2e-09 m"),
        (sphere().scaled([1, 1, 1e-4]), 1e-3, r"would give about 100,000\."),
        (TriMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [2, 1, 0]]), 0.5, "encloses no volume"),
    ],
)
def test_unfillable_surfaces_are_refused(surface, length, sentence, cache, no_filling):
    with pytest.raises(MeshError, match=sentence):
        tetrahedralize(surface, length)


def test_large_meshes_are_warned_about(monkeypatch, cache, caplog):
    mesh = ball(1.0, 2)
    monkeypatch.setattr(filling, "_fill", lambda *_: (mesh.points, mesh.tets))
    with caplog.at_level(logging.WARNING):
        tetrahedralize(sphere(), 0.05)
        assert not caplog.text
        tetrahedralize(sphere(), 0.03)
    assert "gives about 1.3 million tetrahedra" in caplog.text
    assert "0.07 m would give about 100,000" in caplog.text


def test_crash_of_the_mesher_is_reported(monkeypatch, cache, tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho out of luck\nkill -ABRT $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(MeshError, match=r"fTetWild ended with: out of luck \(signal 6\)"):
        tetrahedralize(sphere(), 0.5)


def test_interrupt_ends_the_process(monkeypatch, cache, tmp_path):
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\necho '#t = 5'\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))

    def interrupt(sentence):
        if "pass" in sentence:
            raise KeyboardInterrupt

    monkeypatch.setattr(filling.log, "info", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tetrahedralize(sphere(), 0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_missing_packages_are_named(monkeypatch, cache):
    monkeypatch.setattr(filling, "find_spec", lambda name: None)
    with pytest.raises(MeshError, match=r"pip install 'supple\[tetrahedralize\]'"):
        tetrahedralize(sphere(), 0.5)


def test_files_are_named_in_mistakes_and_messages(monkeypatch, cache, tmp_path, caplog):
    import meshio

    given = sphere()
    meshio.Mesh(given.points, [("triangle", given.triangles[1:])]).write(tmp_path / "open.ply")
    with pytest.raises(MeshError, match=r"open\.ply: The surface is not closed"):
        load_mesh(tmp_path / "open.ply")
    meshio.Mesh(given.points, [("triangle", given.triangles)]).write(tmp_path / "ball.ply")
    sizes = []

    def fill(surface, length, message):
        message("working")
        sizes.append((surface.diagonal, length))
        return block(1).points, block(1).tets

    monkeypatch.setattr(filling, "_fill", fill)
    with caplog.at_level(logging.INFO, "supple.meshes"):
        load_mesh(tmp_path / "ball.ply", scale=0.1, edge_length=0.04)
    assert caplog.messages[0] == "ball.ply: working"
    assert sizes == [(pytest.approx(0.346, rel=0.02), 0.04)]


def test_armadillo_is_filled(cache, tmp_path, monkeypatch, caplog):
    path = real_mesh("armadillo.obj")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with caplog.at_level(logging.INFO, "supple.meshes"):
        mesh = load_mesh(path, edge_length=0.2)
    surface = load_surface(path)
    assert caplog.messages[0].startswith("armadillo.obj: simplifying 86,482 triangles to ")
    assert mesh.n_components == 1
    assert mesh.volume == pytest.approx(surface.enclosed_volume, rel=0.15)
    np.testing.assert_allclose(mesh.size, surface.size, rtol=0.3)
    assert mesh.quality.min() > 0.05
    assert not list((tmp_path / "here").iterdir())
