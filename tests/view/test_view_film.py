"""Films have the requested number of pictures, and they move."""

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image
from view_models import bar_and_ball, bent

import supple
from supple.view import Shape, film, shared_view
from supple.view.camera import turntable_cameras

SIZE = (321, 240)


@pytest.fixture(scope="module")
def model():
    return supple.scene.build_model(bar_and_ball())


@pytest.fixture(scope="module")
def shapes(model):
    directions = np.linspace(0, 1, 5)
    return [Shape(model.rest + way * (bent(model.rest) - model.rest), f"picture {way}") for way in directions]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # read_frames leaves pipes open
def test_film_is_written_in_several_formats_at_once(tmp_path, model, shapes):
    paths = [tmp_path / f"film.{kind}" for kind in ("mp4", "gif", "webp")]
    seen = []
    film(paths, model, shapes, size=SIZE, fps=10, progress=lambda *at: seen.append(at), renderer="matplotlib")
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(paths[0]))
    assert (count, seconds) == (5, pytest.approx(0.5))
    reader = imageio_ffmpeg.read_frames(str(paths[0]))
    assert next(reader)["size"] == (320, 240)
    first, *_, last = (np.frombuffer(frame, np.uint8).astype(int) for frame in reader)
    assert (abs(first - last) > 40).mean() > 0.01
    for path in paths[1:]:
        with Image.open(path) as image:
            assert image.n_frames == 5
    assert seen == [(i, 5) for i in range(6)]


def test_interrupted_film_ends_its_encoder(tmp_path, model, shapes):
    def interrupt(done, pictures):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film(tmp_path / "film.mp4", model, shapes, size=SIZE, progress=interrupt, renderer="matplotlib")


def test_other_kinds_of_film_are_refused(tmp_path, model, shapes):
    with pytest.raises(ValueError, match=r"\.mp4, \.gif, \.webp"):
        film(tmp_path / "film.avi", model, shapes, size=SIZE, renderer="matplotlib")


def test_turntable_never_crops_the_body(model, shapes):
    view = shared_view(model, shapes)
    cameras = turntable_cameras(view.seen, 1.3, (32.0, 20.0), 7)
    points = np.concatenate([shape.positions for shape in shapes])
    for camera in cameras:
        image_points, distance = camera.project(points)
        assert (distance > 0).all()
        assert abs(image_points).max() < 1
    heights = [camera.position[1] for camera in cameras]
    assert heights == pytest.approx([heights[0]] * 7)
    assert np.linalg.norm(cameras[0].position - cameras[3].position) > 1
