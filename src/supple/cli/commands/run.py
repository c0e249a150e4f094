"""supple run: solve a scene file and write the results, or repair results with --resume."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supple.cli.console import (
    DONE,
    NOT_CONVERGED,
    announce_compilation,
    collect_limits,
    errors,
    folder,
    handle_errors,
    interruption,
    note,
    print_json,
)
from supple.cli.shared_options import (
    Device,
    Json,
    MaxIterations,
    Overwrite,
    PositionTolerance,
    Precision,
    Quiet,
    ScenePath,
    Threads,
    TimeLimit,
    Tolerance,
)
from supple.support.text import format_duration, pluralize

if TYPE_CHECKING:
    from supple.cli.job import Job
    from supple.io import ResultsFolder, SavedFrame
    from supple.runs.pictures import Appearance
    from supple.runs.saved import SavedRun
    from supple.solve.report import IterationInfo


def run(
    scene: ScenePath,
    output: Annotated[
        Path | None,
        typer.Option(parser=folder, help="Results folder; default: results/<scene name>."),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(help="Solver, such as newton or xpbd:ordering=clusters; default: the scene file's."),
    ] = None,
    tolerance: Tolerance = None,
    max_iterations: MaxIterations = None,
    time_limit: TimeLimit = None,
    position_tolerance: PositionTolerance = None,
    frames: Annotated[int | None, typer.Option(help="Number of frames; default: the scene file's.")] = None,
    device: Device = "cpu",
    precision: Precision = "float64",
    threads: Threads = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Overwrite = False,
    record_history: Annotated[
        bool,
        typer.Option("--record-history", help="Record and plot residual and energy of every iteration."),
    ] = False,
    picture: Annotated[
        bool,
        typer.Option("--picture/--no-picture", help="Draw the last frame and the film."),
    ] = True,
    film: Annotated[
        bool, typer.Option("--film/--no-film", help="Write a film if there are several frames.")
    ] = True,
    gif: Annotated[bool, typer.Option("--gif", help="Also write the film as GIF.")] = False,
    field: Annotated[
        str | None,
        typer.Option(help="Field for the colors, see `supple list fields`; default: the scene file's."),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated fields to write with every frame, such as von_mises,cauchy, see `supple "
            "list quantities`; default: the scene file's."
        ),
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Comma-separated formats to export to, such as usd,glb, see `supple list exports`.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve a scene and write frames, a report, a picture and, for several frames, a film.

    Exit codes: 0 done; 1 some frame did not reach its tolerance, ended far from equilibrium or has inverted
    elements (results are written); 2 bad input, or a file that cannot be read or written; 70 a defect of
    supple; 71 out of memory; 130 interrupted; 143 terminated by SIGTERM. After an interruption, the same
    command with --resume continues.
    """
    with handle_errors(json):
        from supple.cli.job import Job, load_file, solver_for
        from supple.config.backend import Backend
        from supple.io import ResultsFolder
        from supple.io.checksums import compact_checksums
        from supple.io.frame_export import export_own, parse_formats
        from supple.postprocess.evaluation import parse_quantities
        from supple.runs.manifest import new_run_manifest
        from supple.runs.pictures import make_appearance
        from supple.runs.saved import fields_of
        from supple.solve.call_options import add_position_tolerance, resolve_stop

        written = [f.name for f in parse_formats(formats)] if formats else []
        backend = Backend(device, precision, threads)
        backend.check_available()
        file = load_file(scene)
        method = solver_for(file, solver)
        method.check_support(device, precision)
        limits = collect_limits(tolerance, max_iterations, time_limit, position_tolerance)
        count = file.scene.frames if frames is None else frames
        if count < 1:
            raise ValueError(f"--frames must be at least 1, got {count}.")
        stop = resolve_stop(limits, file, method, count == 1 and file.scene.quasistatic)
        if file.scene.quasistatic:
            stop = add_position_tolerance(stop, limits, file)
        appearance = make_appearance(file, field)
        chosen = parse_quantities(file.output.fields if fields is None else fields)
        job = Job(file, method, stop, count, backend, record_history, chosen)
        results = ResultsFolder(output or Path("results") / scene.stem)
        manifest = new_run_manifest(file, count, job.settings)
        results.create()
        with results.hold_lock():
            last = _prepare(results, manifest, resume, overwrite)
            try:
                if last is not None:
                    repair_results(job, results, manifest, note)
                saved = _compute_frames(job, results, manifest, last, quiet)
                if written:
                    export_own(results.path, written, fields_of(saved, chosen), saved.model.obstacles)
                _draw_results(saved, appearance, picture, film and count > 1, gif, quiet)
                code = DONE if manifest["totals"]["ok"] else NOT_CONVERGED
            except KeyboardInterrupt as error:
                code, word = interruption(error)
                _print_interruption(word, len(manifest["frames"]), count, results.path)
            compact_checksums(results.path, keep_missing=False)
        _report(manifest, results, code, json, quiet)
    raise typer.Exit(code)


def _prepare(
    folder: ResultsFolder, manifest: dict[str, Any], resume: bool, overwrite: bool
) -> SavedFrame | None:
    """Check the results folder and load the complete frames of a run to resume into the manifest.

    Returns:
        The last complete frame, or None.
    """
    from supple.io import ResultsError, read_frame
    from supple.runs.manifest import complete_frames, set_totals

    if resume and overwrite:
        raise ResultsError("--resume keeps existing frames and --overwrite deletes them; give only one.")
    if folder.has_results and not (resume or overwrite):
        raise ResultsError(
            f"{folder.path} has results already. Continue them with --resume, replace them with --overwrite, "
            "or name another folder with --output."
        )
    if resume and folder.has_results:
        manifest["frames"] = complete_frames(folder, manifest, note)
        set_totals(manifest)
    done, scene = len(manifest["frames"]), manifest["scene"]
    folder.check_disk_space(scene["frames"] - done, scene["vertices"])
    return read_frame(folder.path, done) if done else None


def _compute_frames(
    job: Job, folder: ResultsFolder, manifest: dict[str, Any], last: SavedFrame | None, quiet: bool
) -> SavedRun:
    """Compute and write the missing frames."""
    import numpy as np

    from supple.cli.progress_bars import RunProgress
    from supple.io import SavedFrame, concatenate_bodies, write_frame, write_pvd
    from supple.io.frames import frame_path
    from supple.runs.manifest import CurveRecorder, add_frame
    from supple.runs.saved import SavedRun

    _note_long_setup(manifest["scene"], quiet)
    rest = concatenate_bodies(job.file.scene.bodies)
    recorder, model = CurveRecorder(), None
    loaded_frames = {} if last is None else {last.index: last}
    with ExitStack() as stack:
        progress = stack.enter_context(RunProgress(job.frames, len(manifest["frames"]), job.stop, quiet))
        if not quiet:
            stack.enter_context(announce_compilation())

        def show_and_record(info: IterationInfo) -> None:
            recorder.record(info)
            progress.show_iteration(info)

        for frame in job.solve(last, show_and_record):
            if not manifest["frames"]:  # keep old results until the first new frame
                _start_results(job, folder, manifest)
            if not frame_path(folder.path, 0, ".npz").exists():
                write_frame(folder.path, job.initial, rest, job.fields_at_start(frame.model))
            velocities = np.zeros_like(frame.positions) if frame.velocities is None else frame.velocities
            saved = SavedFrame(frame.positions, velocities, frame.index, frame.time, frame.state)
            values = frame.evaluate().fields(job.fields) if job.fields else None
            write_frame(folder.path, saved, rest, values)
            add_frame(manifest, frame, recorder)
            folder.write_report(manifest)
            write_pvd(folder.path, [0.0, *(entry["time"] for entry in manifest["frames"])], first=0)
            progress.finish_frame(frame.report)
            before = {index: known for index, known in loaded_frames.items() if index == saved.index - 1}
            model, loaded_frames = frame.model, {**before, saved.index: saved}
    return SavedRun(folder, manifest, job.file, model, loaded_frames)


def _note_long_setup(scene: dict[str, Any], quiet: bool) -> None:
    from supple.cli.progress_bars import setup_seconds
    from supple.support.text import format_cell_counts

    seconds = setup_seconds(scene["tets"] + scene["triangles"])
    if seconds > 10 and not quiet:
        note(
            f"{format_cell_counts(scene)} need about {format_duration(seconds)} of set-up before the "
            "solve begins."
        )


def _start_results(job: Job, folder: ResultsFolder, manifest: dict[str, Any]) -> None:
    """Replace old results by the scene, its render surfaces, mesh data and a report without frames."""
    from supple.io import write_data, write_skins
    from supple.runs.saved import begin_results

    begin_results(folder, job.file)
    write_skins(folder.path, job.file.scene.bodies)
    write_data(folder.path, job.file.scene.bodies)
    folder.write_report(manifest)


def _draw_results(
    run: SavedRun, appearance: Appearance, picture: bool, film: bool, gif: bool, quiet: bool
) -> None:
    """Draw the picture of the last frame, the film and, if recorded, the plots of residual histories."""
    from supple.cli.progress_bars import FilmProgress
    from supple.runs.pictures import draw_film, draw_picture, draw_plots

    manifest, path = run.manifest, run.folder.path
    frames = run.indices
    manifest["plots"] = draw_plots(manifest, path)
    problem = None
    if picture:
        problem = draw_picture(run, appearance, frames[-1], path / "picture.png")
        manifest["picture"] = {"file": "picture.png", "note": problem}
    run.folder.write_report(manifest)
    if picture and film:
        names = ["film.mp4", "film.gif"] if gif else ["film.mp4"]
        films = [path / name for name in names]
        with FilmProgress(quiet) as progress:
            problem = draw_film(run, appearance, frames, films, progress=progress.show_pictures)
        manifest["film"] = {"files": names, "note": problem}
        run.folder.write_report(manifest)
    if problem and not quiet:
        note(problem)


def _print_interruption(word: str, done: int, frames: int, folder: Path) -> None:

    if done == frames:
        errors.print(
            f"{word} while drawing: all frames are complete in {folder}. `supple render {folder}` draws them."
        )
    elif done:
        errors.print(
            f"{word}: {done} of {pluralize(frames, 'frame')} are complete in {folder}. "
            "The same command with --resume continues."
        )
    else:
        errors.print(f"{word} before the first frame was complete; nothing was written to {folder}.")


def _report(manifest: dict[str, Any], folder: ResultsFolder, code: int, as_json: bool, quiet: bool) -> None:
    from supple.cli.result_tables import print_summary
    from supple.runs.result_text import inversion_warning

    if as_json:
        print_json({**manifest, "output": str(folder.path), "exit_code": code})
    elif not quiet and code in (DONE, NOT_CONVERGED):
        print_summary(manifest, folder.path)
    warning = inversion_warning(manifest["frames"])
    if warning and not quiet:
        note(warning)


def repair_results(
    job: Job, folder: ResultsFolder, manifest: dict[str, Any], note: Callable[[str], None]
) -> None:
    """Repair missing or damaged files from the scene.

    These are the initial frame, scene.toml, skins.npz, mesh_data.npz and animation.pvd.

    Args:
        job: Scene and options that the folder was written with.
        folder: Results folder, whose frames from 1 on are intact.
        manifest: Report of these frames.
        note: Called with a sentence for each repaired file.
    """
    from supple.io import concatenate_bodies, write_data, write_frame, write_pvd, write_skins
    from supple.io.frames import PVD, pvd_text
    from supple.io.replace_file import replacing
    from supple.io.saved_bodies import DATA, SKINS
    from supple.runs.saved import SCENE_COPY
    from supple.scene import build_model

    bodies, path = job.file.scene.bodies, folder.path
    damage = folder.start_damage(manifest["scene"]["vertices"])
    if damage is not None:
        note(f"{damage} It is written again from the scene.")
        fields = job.fields_at_start(build_model(job.file.scene)) if job.fields else None
        write_frame(path, job.initial, concatenate_bodies(bodies), fields)
    text = job.file.path.read_bytes()
    if not (path / SCENE_COPY).is_file() or (path / SCENE_COPY).read_bytes() != text:
        _note_rewrite(note, path / SCENE_COPY)
        with replacing(path / SCENE_COPY) as copy:
            copy.write_bytes(text)
    for name, write in ((SKINS, write_skins), (DATA, write_data)):
        if _is_damaged(path / name):
            _note_rewrite(note, path / name)
            write(path, bodies)
    times = [0.0, *(frame["time"] for frame in manifest["frames"])]
    if not _has_text(path / PVD, pvd_text(path, times, first=0)):
        _note_rewrite(note, path / PVD)
        write_pvd(path, times, first=0)


def _note_rewrite(note: Callable[[str], None], path: Path) -> None:
    note(f"{path} is {'damaged' if path.exists() else 'missing'} and is written again.")


def _has_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode("utf-8")


def _is_damaged(path: Path) -> bool:
    """True if an existing array file is unreadable or fails its checksum."""
    from supple.io.checksums import read_checksums
    from supple.support.input_files import open_arrays

    checksums = read_checksums(path.parent)
    if checksums is not None and path.name in checksums.digests:
        return not checksums.is_intact(path.name)
    if not path.exists():
        return False
    try:
        with open_arrays(path) as arrays:
            for name in arrays:
                arrays[name]
    except (ValueError, OSError, KeyError):
        return True
    return False
