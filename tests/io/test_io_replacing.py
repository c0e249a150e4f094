"""Files that are complete whenever they exist, and what is said where they cannot be."""

import os

import pytest

from supple.io.replacing import replacing, replacing_folder


def test_a_folder_in_the_way_is_named_and_nothing_is_left(tmp_path):
    film = tmp_path / "film.mp4"
    film.mkdir()
    with pytest.raises(OSError, match=r"film\.mp4'$") as caught, replacing(film) as unfinished:
        unfinished.touch()
    assert caught.value.filename == str(film)
    assert ".unfinished" not in str(caught.value)
    assert os.listdir(tmp_path) == ["film.mp4"]


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "missing" / "film.mp4"
    with pytest.raises(FileNotFoundError) as caught, replacing(path) as unfinished:
        unfinished.write_text("frames")
    assert caught.value.filename == str(path)


def test_files_in_a_folder_are_named(tmp_path):
    path = tmp_path / "frames.zarr"
    with pytest.raises(FileNotFoundError) as caught, replacing_folder(path) as unfinished:
        (unfinished / "chunk").write_text("numbers")
    assert caught.value.filename == str(path / "chunk")


def test_other_files_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "film.mp4"):
        (tmp_path / "mesh.obj").read_text()
    assert caught.value.filename == str(tmp_path / "mesh.obj")
