"""Pictures, films, pages and saved runs from Python."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from problems import cantilever, material
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.view.fields import FIELDS, Field

SMALL = (320, 240)


@pytest.fixture(scope="module")
def swing():
    scene = cantilever(material("corotated"), cells=2)
    scene.quasistatic, scene.dt = False, 0.02
    return scene, list(supple.simulate(scene, solver=supple.Newton(), frames=3, max_iterations=2))


SCENE = """
quasistatic = false
dt = 0.05
frames = 3
title = "Swing"

[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
density = 10
velocity = [0, 0.5, 0]

[[force]]
force = [0, 1, 0]
ramp = { times = [0, 0.1], fractions = [0, 1] }

[[pin]]
where = { side = "x-" }

[solver]
method = "newton"

[view]
field = "volume_ratio"
camera = [10, 5]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    (path / "swing.toml").write_text(SCENE)
    arguments = [
        "run",
        str(path / "swing.toml"),
        "--output",
        str(path / "results"),
        "--no-picture",
        "--quiet",
    ]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return path / "results"


def test_picture_is_a_file_or_an_image(swing, tmp_path):
    scene, frames = swing
    path = supple.render(
        frames[-1], tmp_path / "frame.png", size=SMALL, camera="front", theme="dark", title="A"
    )
    assert path == tmp_path / "frame.png"
    stored = np.asarray(Image.open(path).convert("RGB"))
    image = supple.render(frames[-1], size=SMALL, camera=(0, 4), theme="dark", title="A")
    assert image.shape == (240, 320, 3)
    np.testing.assert_array_equal(stored, image)
    light = supple.render(frames[-1].positions, size=SMALL, model=scene, camera=(0, 4))
    assert light.mean() > image.mean() + 50
    rest = supple.render(scene, size=SMALL, field="body")
    assert np.ptp(rest) > 50


def test_residual_pictures_include_inertia_and_loads(swing):
    """A moving, loaded frame solved to rounding shows only rounding."""
    scene = cantilever(material("corotated"), cells=2)
    scene.quasistatic, scene.dt, scene.substeps = False, 0.02, 2
    scene.add_force(scene.bodies[0], (0, 0, 3.0), ramp=supple.loads.Ramp((0, 0.1), (0, 1)))
    (frame,) = supple.simulate(scene, solver=supple.Newton(), frames=1, tolerance=1e-12)
    r = FIELDS["residual"].values(frame.model, frame.positions, frame.step)
    assert np.nanmax(r) < 1e-9
    assert np.nanmax(FIELDS["residual"].values(frame.model, frame.positions, None)) > 1e-2
    scene.quasistatic = True
    result = supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-12)
    r = FIELDS["residual"].values(result.model, result.positions, result.step)
    assert np.nanmax(r) < 1e-9


def test_custom_field(swing):
    height = Field("y [m]", ("#ffffff", "#000000"), lambda model, positions, step: positions[:, 1])
    assert supple.render(swing[1][0], size=SMALL, field=height).shape == (240, 320, 3)


def test_film_of_lazy_frames(swing, tmp_path):
    frames, messages = swing[1], []
    path = supple.animate(
        iter(frames),
        tmp_path / "swing.gif",
        size=SMALL,
        progress=lambda done, pictures: messages.append((done, pictures)),
    )
    with Image.open(path) as film:
        assert film.n_frames == 3
    assert messages[-1] == (3, 3)
    turned = supple.animate(frames[:1] * 2, tmp_path / "turned.webp", size=SMALL, turntable=True, fps=10)
    assert turned.stat().st_size > 1000


def test_saved_run_gives_frames_pictures_and_films(folder, tmp_path):
    run = supple.load_run(folder)
    assert len(run.frames) == 3
    scene = supple.load_scene(folder / "scene.toml").scene
    for saved, frame in zip(
        run.frames, supple.simulate(scene, solver=supple.Newton(), tolerance=1e-4), strict=True
    ):
        np.testing.assert_allclose(saved.positions, frame.positions, atol=1e-12)
        assert (saved.index, saved.report.outcome) == (frame.index, frame.report.outcome)
        assert saved.report.iterations == frame.report.iterations
        np.testing.assert_allclose(saved.step.anchor, frame.step.anchor, atol=1e-12)
        np.testing.assert_allclose(saved.step.force, frame.step.force, atol=1e-12)
    assert [frame.index for frame in run.frames[1:]] == [2, 3]
    as_the_file_says = supple.render(run, size=SMALL)
    given = supple.render(
        run, size=SMALL, field="volume_ratio", camera=(10, 5), title="Swing", subtitle=run.caption(3)
    )
    np.testing.assert_array_equal(as_the_file_says, given)
    assert supple.animate(run, tmp_path / "run.mp4", size=SMALL).stat().st_size > 1000


def test_repr_of_a_saved_run_is_one_line(folder):
    text = str(supple.load_run(folder))
    assert text.startswith(f"<SavedRun {str(folder)!r}: 3 of 3 frames, newton, <Scene: dynamic, ")
    assert "\n" not in text
    assert len(text) < 200 + len(str(folder))


def test_saved_frame_resumes_exactly(folder):
    """Bitwise, as from an unsaved frame: its state is read with it."""
    run, how = supple.load_run(folder), {"solver": supple.Newton(), "tolerance": 1e-4}
    scene = run.file.scene
    *_, last = supple.simulate(scene, initial=run.frames[1].state, first_frame=3, **how)
    np.testing.assert_array_equal(last.positions, run.frames[2].positions)
    np.testing.assert_array_equal(last.velocities, run.frames[2].velocities)


def test_page_of_a_run(folder, tmp_path):
    path = supple.write_report(folder, tmp_path / "page.html")
    assert "<title>Swing" in path.read_text(encoding="utf-8")
    assert supple.write_report(supple.load_run(folder)) == folder / "report.html"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda f, p: supple.render(None), "render needs a result, a frame, a run, a scene"),
        (lambda f, p: supple.render(f[0], field="color"), "field must be one of displacement"),
        (lambda f, p: supple.render(f[0], field=0), "field must be one of displacement"),
        (lambda f, p: supple.render(f[0], camera="above"), "camera must be one of corner"),
        (lambda f, p: supple.render(f[0], camera=3), "camera must be one of corner"),
        (lambda f, p: supple.render(f[0], field=["body"]), "field must be one of displacement"),
        (lambda f, p: supple.render(f[0], theme="blue"), "theme"),
        (lambda f, p: supple.render(f[0], theme=["dark"]), "theme must be light or dark"),
        (lambda f, p: supple.render(f[0], size=(10, 10)), "size must be width and height in pixels, such as"),
        (lambda f, p: supple.render(f[0], size="big"), "size must be width and height in pixels"),
        (lambda f, p: supple.render(f[0], p / "a.jpg"), "a picture must be a file that ends with .png"),
        (lambda f, p: supple.render(f[0], p / "no" / "a.png"), "there is no folder"),
        (lambda f, p: supple.render(f[0].positions[1:], model=f[0].model), "positions must have shape"),
        (lambda f, p: supple.render("hello", model=f[0].model), "positions must have shape .* got 'hello'"),
        (lambda f, p: supple.render(f[0].positions * np.nan, model=f[0].model), "positions has NaN"),
        (lambda f, p: supple.render(f[0].positions, model=5), "needs a scene.* got 5"),
        (lambda f, p: supple.render(f[0], 5), "the path of a picture must be text .* got 5"),
        (lambda f, p: supple.render(None, p / "a.jpg"), "a picture must be a file that ends with .png"),
        (lambda f, p: supple.render(f[0], camera=(np.nan, 3)), "azimuth of a camera must be a finite number"),
        (lambda f, p: supple.render(f[0], camera=(3, np.nan)), "elevation of a camera must lie between"),
        (lambda f, p: supple.render(f[0], size=0), "size must be width and height in pixels"),
        (lambda f, p: supple.render(f[0], title=5), "title must be text, got 5"),
        (lambda f, p: supple.render(f[0], subtitle=5), "subtitle must be text, got 5"),
        (lambda f, p: supple.animate(5, p / "a.mp4"), "a film needs at least one frame.* got 5"),
        (lambda f, p: supple.animate(f, 5), "the path of a film must be text .* got 5"),
        (lambda f, p: supple.animate(f, p / "a.mp4", size=0), "size must be width and height in pixels"),
        (lambda f, p: supple.animate(f, p / "a.mp4", fps="x"), "fps must lie between 0.1 and 240, got 'x'"),
        (
            lambda f, p: supple.animate(f, p / "a.mp4", progress=5),
            "progress must be a function to call, got 5",
        ),
        (lambda f, p: supple.animate(f, p / "a.mp4", turntable=5), "turntable must be True or False, got 5"),
        (lambda f, p: supple.load_run(5), "a results folder must be text .* got 5"),
        (lambda f, p: supple.write_report(None), "a results folder must be text .* got None"),
        (lambda f, p: supple.write_report(p, 5), "the path of a page must be text .* got 5"),
        (lambda f, p: supple.animate([], p / "a.mp4"), "a film needs at least one frame"),
        (lambda f, p: supple.animate([1, 2], p / "a.mp4"), "a film needs at least one frame"),
        (lambda f, p: supple.animate(f, p / "a.avi"), "a film must be a file that ends with .mp4 or .gif"),
        (lambda f, p: supple.animate(f, p / "a.mp4", fps=0), "fps must lie between"),
        (lambda f, p: supple.load_run(p / "nowhere"), "there is no results folder"),
        (lambda f, p: supple.write_report(p), "has no report.json"),
    ],
)
def test_wrong_calls_are_refused(swing, tmp_path, wrong, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        wrong(swing[1], tmp_path)
    assert not list(tmp_path.iterdir())


def test_folder_at_the_film_path_is_refused_before_drawing(swing, tmp_path):
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(ValueError, match=r"a\.mp4 is a folder; name a file for a film"):
        supple.animate(swing[1], tmp_path / "a.mp4")


def test_residual_field_is_refused_for_substeps_before_the_run(tmp_path):
    (tmp_path / "swing.toml").write_text(SCENE.replace("dt = 0.05", "dt = 0.05\nsubsteps = 2"))
    arguments = [
        "run",
        str(tmp_path / "swing.toml"),
        "--output",
        str(tmp_path / "out"),
        "--field",
        "residual",
    ]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 2
    assert "field='residual' is not available" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_importing_supple_imports_no_drawing_library():
    drawing = ("vtk", "pyvista", "matplotlib", "PIL", "jinja2", "typer")
    drawing += ("supple.cli", "supple.runs", "supple.view")
    code = f"import sys, supple; print([name for name in {drawing!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
