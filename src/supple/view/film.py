"""Films: sequences of pictures, encoded by the ffmpeg of imageio-ffmpeg."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from supple.model.model import Model
from supple.support.progress import Progress
from supple.view.camera import CAMERAS, Angles, Camera, turntable_cameras
from supple.view.fields import Field
from supple.view.picture import Artist, Shape, View, shared_view

SIZE = (1280, 960)
"""Default width and height [pixels]."""

SLOWEST, FASTEST = 8.0, 50.0
"""Frame rates between which a film runs in real time [1/s]."""

GIF_WIDTH = 640
"""Largest width of GIF files [pixels], which limits their size."""

_MP4 = {
    "codec": "libx264",
    "output_params": ["-crf", "20", "-preset", "veryfast", "-movflags", "+faststart"],
}
_GIF = {
    "codec": "gif",
    "pix_fmt_out": "pal8",
    "output_params": [
        "-filter_complex",
        f"scale='min(iw,{GIF_WIDTH})':-1:flags=lanczos,split[a][b];[a]palettegen=stats_mode=full[p];"
        "[b][p]paletteuse=dither=sierra2_4a:diff_mode=rectangle",
    ],
}
_WEBP = {"codec": "libwebp", "output_params": ["-q:v", "55", "-compression_level", "6", "-loop", "0"]}
ENCODINGS: dict[str, dict[str, Any]] = {".mp4": _MP4, ".gif": _GIF, ".webp": _WEBP}


def film(
    paths: str | os.PathLike[str] | Sequence[Path],
    model: Model,
    shapes: Sequence[Shape],
    *,
    title: str = "",
    field: str | Field = "displacement",
    size: tuple[int, int] = SIZE,
    theme: str = "light",
    camera: Angles = CAMERAS["corner"],
    turntable: bool = False,
    fps: float = 25.0,
    thickness: float = 0.0,
    names: bool = False,
    view: View | None = None,
    renderer: str | None = None,
    progress: Progress | None = None,
) -> str | None:
    """Draw a model in several shapes into one or more MP4, GIF or WebP files.

    Camera, colors and ground are the same in all pictures, and every body stays in view.

    Args:
        paths: File, or several files with different formats.
        model: Model.
        shapes: Sequence of shapes; elements may be loaded on access.
        title: Title.
        field: Name in `FIELDS`, or a field.
        size: Width and height [pixels].
        theme: "light" or "dark".
        camera: Azimuth and elevation [degrees].
        turntable: Move the camera on a full circle.
        fps: Pictures per second.
        thickness: Factor by which cloth thickness is drawn.
        names: Label bodies with their names.
        view: Shared view; by default one that fits all shapes.
        renderer: "vtk" or "matplotlib"; by default VTK if it is available.
        progress: Called as progress(done, total) before the first picture and after each.

    Returns:
        A sentence if VTK was not available, otherwise None.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    size = (size[0] - size[0] % 2, size[1] - size[1] % 2)  # MP4 stores colors for squares of four dots
    view = view or shared_view(model, shapes, field, size, camera, thickness, names)
    cameras = _cameras(view, camera, len(shapes)) if turntable else [view.camera] * len(shapes)
    with Artist(model, view, field, title, size, theme, renderer) as artist, ExitStack() as stack:
        writers = [stack.enter_context(closing(_writer(file, size, fps))) for file in files]
        for done, (shape, camera_k) in enumerate(zip(shapes, cameras, strict=True)):
            if progress is not None:
                progress(done, len(shapes))
            image = artist.draw(shape, camera_k)
            for writer in writers:
                writer.send(image)
        if progress is not None:
            progress(len(shapes), len(shapes))
        return artist.note


def frame_rate(dt: float) -> float:
    """Pictures per second of a film of frames dt [s] apart."""
    return min(max(1 / dt, SLOWEST), FASTEST)


def _cameras(view: View, angles: Angles, count: int) -> list[Camera]:
    return turntable_cameras(view.seen, view.camera.aspect, angles, count)


def _writer(path: Path, size: tuple[int, int], fps: float) -> Generator[None, np.ndarray, None]:
    """Generator that accepts images and writes them to a file; closing it completes the file."""
    if path.suffix not in ENCODINGS:
        raise ValueError(f"a film must be a file of {', '.join(ENCODINGS)}, got {path.name!r}")
    from imageio_ffmpeg import write_frames

    options = ENCODINGS[path.suffix]
    writer = write_frames(
        str(path), size, fps=fps, quality=None, macro_block_size=1, ffmpeg_log_level="error", **options
    )
    writer.send(None)
    return writer
