"""supple run: solve a scene file and write what was found."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supple.cli.speech import Json, announcing_compilation, errors, note, parse_seconds, refusing

if TYPE_CHECKING:
    from supple.cli.job import Job
    from supple.io import ResultsFolder, SavedFrame

DID_NOT_CONVERGE, INTERRUPTED = 1, 130


def run(
    scene: Annotated[Path, typer.Argument(help="A scene file (TOML).", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="Folder for results; results/<scene name> unless given.")
    ] = None,
    solver: Annotated[
        str | None, typer.Option(help="Another solver than the file's, e.g. newton or pbng:omega=1.5.")
    ] = None,
    tolerance: Annotated[float | None, typer.Option(help="Stop when the imbalance is below this.")] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Iterations allowed to each frame.")] = None,
    time_budget: Annotated[str | None, typer.Option(help="Time allowed to each frame, e.g. '2 s'.")] = None,
    frames: Annotated[int | None, typer.Option(help="How many frames, instead of the file's.")] = None,
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float64",
    device: Annotated[str, typer.Option(help="Where to compute: cpu or cuda.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="Threads; all cores unless given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Record every iteration and plot it in residual.png.")
    ] = False,
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="Draw the last frame.")] = True,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Solve a scene and write frames, a report and a picture.

    Exit code 0: done. 1: some frame did not converge; results are written. 2: bad input.
    """
    with refusing(json):
        from supple.cli.job import Job, check_threads, load_file, make_solver, make_stop
        from supple.cli.record import new_record
        from supple.io import ResultsFolder

        file = load_file(scene)
        method = make_solver(file, solver)
        budget = None if time_budget is None else parse_seconds(time_budget)
        stop = make_stop(file, method, tolerance, max_iterations, budget)
        count = file.scene.frames if frames is None else frames
        if count < 1:
            raise ValueError(f"--frames must be at least 1, got {count}.")
        check_threads(threads)
        job = Job(file, method, stop, count, precision, device, threads, history)
        folder = ResultsFolder(output or Path("results") / scene.stem)
        record = new_record(job)
        last = _prepare(folder, record, resume, overwrite)
        try:
            _perform(job, folder, record, last, quiet)
            _illustrate(job, folder, record, picture, quiet)
            code = 0 if record["totals"]["ok"] else DID_NOT_CONVERGE
        except KeyboardInterrupt:
            _say_interrupted(len(record["frames"]), count, folder.path)
            code = INTERRUPTED
    _report(record, folder, code, json, quiet)
    raise typer.Exit(code)


def _prepare(
    folder: ResultsFolder, record: dict[str, Any], resume: bool, overwrite: bool
) -> SavedFrame | None:
    """Make the folder ready; the last complete frame of a run to be resumed, which goes into the record."""
    from supple.cli.record import complete_frames, set_totals
    from supple.io import ResultsError, read_frame

    if resume and overwrite:
        raise ResultsError(
            "--resume keeps the frames that are there and --overwrite deletes them; give only one."
        )
    if folder.has_results and not (resume or overwrite):
        raise ResultsError(
            f"{folder.path} has results already. Continue them with --resume, replace them with --overwrite, "
            "or name another folder with --output."
        )
    if not (resume and folder.has_results):
        folder.create()
        return None
    record["frames"] = complete_frames(folder, record)
    set_totals(record)
    return read_frame(folder.path, len(record["frames"])) if record["frames"] else None


def _perform(
    job: Job, folder: ResultsFolder, record: dict[str, Any], last: SavedFrame | None, quiet: bool
) -> None:
    """Compute and write the frames that are missing."""
    import numpy as np

    from supple.cli.progress import RunProgress
    from supple.cli.record import add_frame
    from supple.io import SavedFrame, write_frame, write_pvd
    from supple.meshes import TetMesh

    bodies = job.file.scene.bodies
    mesh = TetMesh(
        np.concatenate([body.points for body in bodies]),
        np.concatenate([body.mesh.tets + body.first for body in bodies]),
    )
    body = np.repeat(np.arange(len(bodies), dtype=np.int32), [b.mesh.n_tets for b in bodies])
    with ExitStack() as stack:
        progress = stack.enter_context(RunProgress(job.frames, len(record["frames"]), job.stop, quiet))
        if not quiet:
            stack.enter_context(announcing_compilation())
        for frame in job.solve(last, None if quiet else progress.watch):
            if not record["frames"]:  # what is replaced stays until there is something better
                folder.clear()
                folder.write_report(record)
            velocities = np.zeros_like(frame.positions) if frame.velocities is None else frame.velocities
            saved = SavedFrame(frame.positions, velocities, frame.index, frame.time)
            write_frame(folder.path, saved, mesh, body)
            add_frame(record, frame)
            folder.write_report(record)
            write_pvd(folder.path, [entry["time"] for entry in record["frames"]])
            progress.finish_frame(frame.report)


def _illustrate(job: Job, folder: ResultsFolder, record: dict[str, Any], picture: bool, quiet: bool) -> None:
    """Draw picture.png of the last frame and, where a history was recorded, residual.png."""
    from supple.io import read_frame
    from supple.io.replacing import replacing
    from supple.report import History
    from supple.scene import build_model
    from supple.view import picture as draw
    from supple.view import residual_plot

    last = record["frames"][-1]
    if picture:
        saved = read_frame(folder.path, last["index"])
        with replacing(folder.path / "picture.png") as path:
            problem = draw(
                path,
                build_model(job.file.scene),
                saved.positions,
                title=record["scene"]["title"],
                subtitle=_caption(record, saved),
            )
        record["picture"] = {"file": "picture.png", "note": problem}
        if problem and not quiet:
            note(problem)
    histories = {f"frame {f['index']}": History(**f["history"]) for f in record["frames"] if f["history"]}
    if histories:
        with replacing(folder.path / "residual.png") as path:
            residual_plot(path, histories, title=record["scene"]["title"], tolerance=job.stop.tolerance)
    folder.write_report(record)


def _caption(record: dict[str, Any], saved: SavedFrame) -> str:
    """pbng (chebyshev) · 110 iterations · imbalance 7.6e-05"""
    from supple.cli.summary import solver_name

    last, frames = record["frames"][-1], record["scene"]["frames"]
    parts = [
        solver_name(record),
        f"{last['iterations']} iterations",
        f"imbalance {last['imbalance']:.1e}",
    ]
    if frames > 1:
        parts.append(f"frame {saved.index} of {frames}, {saved.time:.3g} s")
    if not last["ok"]:
        parts.append(last["outcome"].replace("_", " "))
    return " · ".join(parts)


def _say_interrupted(done: int, frames: int, folder: Path) -> None:
    if done:
        errors.print(
            f"Interrupted: {done} of {frames} frames are complete in {folder}. "
            "The same command with --resume continues."
        )
    else:
        errors.print(f"Interrupted before the first frame was complete; nothing was written to {folder}.")


def _report(record: dict[str, Any], folder: ResultsFolder, code: int, as_json: bool, quiet: bool) -> None:
    from supple.cli.summary import print_summary
    from supple.io.results import to_json

    if as_json:
        typer.echo(to_json({**record, "output": str(folder.path), "exit_code": code}))
    elif not quiet and code != INTERRUPTED:
        print_summary(record, folder.path)
