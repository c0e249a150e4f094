"""supple render: pictures and films of existing results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supple.cli.console import errors, folder, handle_errors, interruption, note, print_json, say
from supple.cli.shared_options import Json, Quiet

if TYPE_CHECKING:
    from supple.runs.saved import SavedRun


def render(
    results: Annotated[Path, typer.Argument(help="Results folder of `supple run`.", show_default=False)],
    field: Annotated[
        str | None,
        typer.Option(help="Field for the colors, see `supple list fields`; default: the scene file's."),
    ] = None,
    theme: Annotated[str, typer.Option(help="Theme: light or dark.")] = "light",
    size: Annotated[str | None, typer.Option(help="Width and height in pixels, such as 1920x1080.")] = None,
    camera: Annotated[
        str | None,
        typer.Option(
            help="Camera: corner, front, side, back, top, or azimuth,elevation in degrees, such as 45,30."
        ),
    ] = None,
    thickness: Annotated[
        float | None,
        typer.Option(
            help="Factor on the drawn thickness of cloth, 0 for an infinitely thin surface; default: the "
            "scene file's."
        ),
    ] = None,
    names: Annotated[
        bool | None,
        typer.Option(
            "--names/--no-names",
            help="Label bodies with their names; default: the scene file's setting.",
            show_default=False,
        ),
    ] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            help="Frame numbers: 10:60, 10:, :60 or a single one such as 30; 0 is the initial state."
        ),
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Film frames per second.")] = None,
    turntable: Annotated[
        bool, typer.Option("--turntable", help="Move the camera once around the scene.")
    ] = False,
    film: Annotated[
        bool, typer.Option("--film/--no-film", help="Write a film if there are several frames.")
    ] = True,
    gif: Annotated[bool, typer.Option("--gif", help="Also write the film as GIF.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(parser=folder, help="Folder for picture.png and film.mp4; default: the results folder."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Render existing results: a picture of the last selected frame and a film of several frames."""
    with handle_errors(json):
        from supple.cli.progress_bars import FilmProgress
        from supple.io.checksums import compact_checksums
        from supple.io.lock import hold_lock
        from supple.runs.pictures import draw_film, draw_picture, make_appearance
        from supple.runs.saved import load_run

        if fps is not None and not 0.1 <= fps <= 240:
            raise ValueError(f"--fps must lie between 0.1 and 240, got {fps:g}.")
        run = load_run(results)
        dots = None if size is None else parse_size(size)
        appearance = make_appearance(run.file, field, camera, theme, dots, thickness, names)
        chosen = _parse_frames(frames, run)
        target = results if output is None else output
        target.mkdir(parents=True, exist_ok=True)
        written = [target / "picture.png"]
        try:
            with hold_lock(target):
                problem = draw_picture(run, appearance, chosen[-1], written[0])
                if film and (turntable or len(chosen) > 1):
                    films = [target / "film.mp4", target / "film.gif"] if gif else [target / "film.mp4"]
                    with FilmProgress(quiet) as progress:
                        problem = draw_film(
                            run, appearance, chosen, films, fps, turntable, progress.show_pictures
                        )
                    written += films
                compact_checksums(target)
        except KeyboardInterrupt as error:
            code, word = interruption(error)
            errors.print(f"{word}; films in {target} are unchanged.")
            raise typer.Exit(code) from None
        if problem and not quiet:
            note(problem)
        if json:
            print_json({"files": [str(path) for path in written], "frames": chosen, "note": problem})
        elif not quiet:
            for path in written:
                say(path)


def parse_size(text: str) -> tuple[int, int]:
    """Parse a picture size such as 1920x1080 into width and height in pixels."""
    from supple.view.picture import check_size

    parts = text.lower().split("x")
    if len(parts) == 2 and all(part.strip().isdecimal() for part in parts):
        return check_size([int(part) for part in parts], text)
    return check_size(text)


def _parse_frames(text: str | None, run: SavedRun) -> Sequence[int]:
    """Frame numbers selected by text such as 10:60, 10:, :60 or 30.

    Without text, all frames; for a single equilibrium, the equilibrium only.
    """
    lowest, last = run.indices[0], run.indices[-1]
    if text is None:
        return [1] if last == 1 else list(run.indices)
    first_text, colon, last_text = text.partition(":")
    try:
        first = int(first_text) if first_text else lowest
        end = (int(last_text) if last_text else last) if colon else first
    except ValueError:
        first = end = -1
    if not lowest <= first <= end <= last:
        raise ValueError(
            f"--frames must have the form 10:60, 10:, :60 or 30, within {lowest} to {last}, the "
            f"complete frames of {run.folder.path}; got {text!r}."
        )
    return list(range(first, end + 1))
