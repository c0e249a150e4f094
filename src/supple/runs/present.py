"""Pictures, films, exports and result pages from Python; graphics libraries are imported on first use."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.api.simulate import Frame, Result
from supple.model.model import Model
from supple.scene import Scene, SceneFile, build_model
from supple.support.arguments import (
    check_flag,
    check_number,
    check_path,
    check_vectors,
    format_value,
    iterate_argument,
)
from supple.support.keywords import suggest_keywords
from supple.support.progress import Progress

if TYPE_CHECKING:
    from supple.runs.saved import SavedRun
    from supple.view.camera import Angles
    from supple.view.fields import Field
    from supple.view.picture import Shape

PathLike = str | os.PathLike[str]
"""Path as text or path object."""


@suggest_keywords
def render(
    result: Any,
    path: PathLike | None = None,
    *,
    field: str | Field | None = None,
    camera: str | Angles | None = None,
    theme: str = "light",
    size: tuple[int, int] | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    thickness: float | None = None,
    names: bool | None = None,
    model: Scene | Model | None = None,
) -> Path | np.ndarray:
    """Draw a result or frame and write a PNG file, or return an image array.

    For a run of `load_run`, its scene file provides the defaults of field, camera, title, thickness and
    names.

    Args:
        result: Result of `equilibrium`, frame of `simulate` or of a stepper; a run of `load_run`, whose last
            frame is drawn; a scene in its rest configuration; or positions (n, 3) [m] of a `model`.
        path: PNG file to write; None returns the image instead.
        field: Quantity for colors, displacement by default: displacement, energy_density, volume_ratio,
            von_mises, pressure, principal_stress, stretch, plastic_strain, fiber_stretch, bending_angle,
            weft_strain, warp_strain, residual, ordering, body, or a field of your own.
        camera: corner (default), front, side, back, top, or azimuth and elevation [degrees].
        theme: "light" or "dark".
        size: Width and height [pixels].
        title: Title.
        subtitle: Subtitle; by default a summary of the solve.
        thickness: Factor by which the thickness of cloth is drawn; 0 (default) draws an infinitely thin
            surface.
        names: Label bodies with their names, False by default.
        model: Scene or model of the given positions.

    Returns:
        Path of the file, or the image (height, width, 3) as uint8.

    Raises:
        ValueError: An argument is unknown or out of range, or the folder does not exist.
        TypeError: An argument has the wrong type.
    """
    from supple.io.replace_file import replacing
    from supple.view.picture import SIZE, Artist, save_image, shared_view

    file = None if path is None else _check_output_path(path, (".png",), "a picture")
    appearance, size = (
        _appearance(result, field, camera, title, thickness, names),
        _check_size(SIZE if size is None else size),
    )
    subtitle = _check_text("subtitle", subtitle)
    shape, of = _shape_and_model(result, model)
    shape = shape if subtitle is None else replace(shape, caption=subtitle)
    name = appearance.pop("title")
    view = shared_view(of, [shape], size=size, **appearance)
    with Artist(of, view, appearance["field"], name, size, theme) as artist:
        image = artist.draw(shape)
        _warn(artist.note)
    if file is None:
        return image
    with replacing(file) as unfinished:
        save_image(unfinished, image)
    return file


@suggest_keywords
def animate(
    frames: Any,
    path: PathLike,
    *,
    field: str | Field | None = None,
    camera: str | Angles | None = None,
    theme: str = "light",
    size: tuple[int, int] | None = None,
    title: str | None = None,
    thickness: float | None = None,
    names: bool | None = None,
    fps: float | None = None,
    turntable: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Draw frames as an MP4, GIF or WebP film.

    Args:
        frames: Frames of `simulate`, a list of results, or a run of `load_run`.
        path: File to write; its suffix selects the format.
        field, camera, theme, size, title, thickness, names: As in `render`.
        fps: Pictures per second; by default the rate of the frames, from 8 to 50.
        turntable: Move the camera once around the scene.
        progress: Called as progress(done, total) before the first picture and after each.

    Returns:
        Path of the file.

    Raises:
        ValueError: An argument is unknown or out of range, there are no frames, or the folder does not exist.
        TypeError: An argument has the wrong type.
    """
    from supple.io.replace_file import replacing
    from supple.view.film import ENCODINGS, SIZE, frame_rate
    from supple.view.film import film as draw

    file = _check_output_path(path, tuple(ENCODINGS), "a film")
    appearance, size = (
        _appearance(frames, field, camera, title, thickness, names),
        _check_size(SIZE if size is None else size),
    )
    fps = None if fps is None else check_number("fps", fps, at_least=0.1, at_most=240)
    check_flag("turntable", turntable)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function to call, got {format_value(progress)}")
    shapes, model, dt = _shapes(frames)
    with replacing(file) as unfinished:
        options: dict[str, Any] = {"size": size, "theme": theme, "turntable": turntable, "progress": progress}
        _warn(draw(unfinished, model, shapes, fps=fps or frame_rate(dt), **appearance, **options))
    return file


def load_run(path: PathLike) -> SavedRun:
    """Open the results folder of `supple run` without simulating.

    Args:
        path: Results folder.

    Returns:
        The run with its report, scene, and `frames`, which are read on access.
    """
    from supple.runs.saved import load_run as load

    return load(check_path(path, "a results folder"))


@suggest_keywords
def export(
    results: Any,
    formats: str | Iterable[str],
    output: PathLike | None = None,
    progress: Progress | None = None,
    *,
    fields: str | Iterable[str] | None = None,
) -> dict[str, Path]:
    """Export initial state (frame 0) and all frames from a results folder.

    Nothing is simulated. For an unfinished run, the complete frames are exported.

    Args:
        results: Results folder, or a run of `load_run`.
        formats: Formats such as "usd,glb".
        output: Output folder; by default the results folder.
        progress: Called as progress(done, total) after each frame.
        fields: Additional fields of every frame, such as "von_mises,cauchy", see `evaluate`; for USD, VTU,
            NPZ and Zarr.

    Returns:
        File or folder of each format, by its name.
    """
    from supple.io.frame_export import export_frames
    from supple.postprocess.evaluation import parse_quantities

    run, names = _run(results), parse_quantities(fields)
    folder = check_path(results, "a results folder") if run is None else run.folder.path
    from supple.runs.saved import fields_of, obstacles_in

    if not names:
        return export_frames(folder, formats, output, progress, obstacles=obstacles_in(folder))
    run = run or load_run(folder)
    return export_frames(folder, formats, output, progress, fields_of(run, names), run.model.obstacles)


def write_report(results: Any, path: PathLike | None = None) -> Path:
    """Write the result page of a folder as a single HTML file without external resources.

    Args:
        results: Results folder of `supple run` or `supple compare`, or a run of `load_run`.
        path: File to write; report.html in the results folder by default.

    Returns:
        Path of the page.
    """
    from supple.runs.pages import write_page

    file = None if path is None else check_path(path, "the path of a page")
    run = _run(results)
    folder = check_path(results, "a results folder") if run is None else run.folder.path
    return write_page(folder, file)[0]


def _run(source: Any) -> SavedRun | None:
    """Return `source` if it is a `SavedRun`, otherwise None.

    Avoids the import of `supple.runs.saved`: before that import, no SavedRun can exist.
    """
    saved = sys.modules.get("supple.runs.saved")
    return source if saved is not None and isinstance(source, saved.SavedRun) else None


def _appearance(
    source: Any, field: Any, camera: Any, title: str | None, thickness: Any, names: Any
) -> dict[str, Any]:
    """Check options of a picture; a run's scene file provides their defaults."""
    from supple.view.camera import CAMERAS, check_angles, parse_camera
    from supple.view.picture import check_thickness

    run = _run(source)
    if camera is None:
        camera = CAMERAS["corner"] if run is None else tuple(run.file.view.camera)
    if isinstance(camera, str):
        angles = parse_camera(camera)
    else:
        try:
            azimuth, elevation = (float(angle) for angle in camera)
        except (TypeError, ValueError):
            raise ValueError(
                f"camera must be one of {', '.join(CAMERAS)}, or azimuth and elevation [degrees] such as "
                f"(45, 30); got {format_value(camera)}"
            ) from None
        angles = check_angles((azimuth, elevation))
    if field is None:
        field = "displacement" if run is None else run.file.view.field
    if thickness is None:
        thickness = 0.0 if run is None else run.file.view.thickness
    return {
        "field": field,
        "camera": angles,
        "thickness": check_thickness(thickness),
        "names": check_flag("names", (run is not None and run.file.view.names) if names is None else names),
        "title": _check_text("title", title) or ("" if run is None else run.title),
    }


def _shape_and_model(result: Any, model: Scene | Model | None) -> tuple[Shape, Model]:
    """Shape to draw, and its model."""
    from supple.view.picture import Shape

    if (run := _run(result)) is not None:
        return run.shapes()[-1], run.model
    if isinstance(result, Result):
        return _shape(result), result.model
    if isinstance(result, Scene | SceneFile):
        of = build_model(result, quasistatic=False)
        return Shape(of.rest), of
    if model is None:
        raise ValueError(
            "render needs a result, a frame, a run, a scene, or positions with model=scene; got "
            f"{format_value(result)}"
        )
    of = model if isinstance(model, Model) else build_model(model, quasistatic=False)
    return Shape(check_vectors("positions", result, of.vertices)), of


def _shape(result: Result) -> Shape:
    """Shape of a result."""
    from supple.view.picture import Shape

    when = getattr(result, "time", np.inf)
    return Shape(np.asarray(result.positions, float), _caption(result), result.step, time=when)


def _caption(result: Result) -> str:
    """Caption of a result: pbng · 110 iterations · relative residual 7.6e-05 · 0.3 s"""
    report = result.report
    parts = [report.solver, f"{report.iterations:,} iteration" + ("s" if report.iterations != 1 else "")]
    parts += [f"relative residual {report.relative_residual:.1e}"]
    parts += [f"{result.time:.3g} s"] if isinstance(result, Frame) else []
    parts += [] if report.ok else [report.short_outcome]
    return " · ".join(parts)


class _Shapes(Sequence[Any]):
    """Shapes of frames, created on access."""

    def __init__(self, frames: Sequence[Result]) -> None:
        self._frames = frames

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:
        return _shape(self._frames[index])


def _shapes(frames: Iterable[Any]) -> tuple[Sequence[Shape], Model, float]:
    """Film shapes, their model, and the time step between them [s]."""
    if (run := _run(frames)) is not None:
        return run.shapes(), run.model, run.file.scene.dt
    message = "a film needs at least one frame, such as those of supple.simulate(scene)"
    results = frames if isinstance(frames, Sequence) else list(iterate_argument(frames, message))
    if not results or not all(isinstance(frame, Result) for frame in results):
        raise ValueError(f"{message}; got {format_value(frames)}")
    if any(len(frame.positions) != len(results[0].positions) for frame in results):
        raise ValueError("all frames of a film must be of the same scene")
    times = [frame.time for frame in results[:2] if isinstance(frame, Frame)]
    dt = times[1] - times[0] if len(times) == 2 else 0.0
    return _Shapes(results), results[0].model, dt if dt > 0 else 1 / 25


def _check_size(size: Any) -> tuple[int, int]:
    """Check the size of a picture."""
    from supple.view.picture import check_size

    return check_size(size)


def _check_output_path(path: PathLike, suffixes: tuple[str, ...], what: str) -> Path:
    """Check the path of an output file."""
    file = check_path(path, f"the path of {what}")
    if file.suffix.lower() not in suffixes:
        raise ValueError(f"{what} must be a file that ends with {' or '.join(suffixes)}, got {str(path)!r}")
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent} for {what}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file for {what}")
    return file


def _check_text(name: str, value: Any) -> str | None:
    """Check a text argument; None is accepted."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {format_value(value)}")
    return value


def _warn(sentence: str | None) -> None:
    """Issue a warning unless the sentence is empty."""
    if sentence:
        warnings.warn(sentence, stacklevel=3)
