"""supple compare: several solvers on one step of a scene."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supple.cli.console import (
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
    ScenePath,
    Threads,
    TimeLimit,
    Tolerance,
)

if TYPE_CHECKING:
    import numpy as np

    from supple.api.compare import Comparison
    from supple.config.backend import Backend
    from supple.config.stop_criteria import StopCriteria
    from supple.io import ComparisonFolder
    from supple.scene import SceneFile


WARMUP_TOLERANCE = 1e-5
"""Tolerance of the warm-up frames, chosen so that all trials start from an accurate state."""


def compare(
    scene: ScenePath,
    solvers: Annotated[
        str | None,
        typer.Option(
            "--solver",
            help="Comma-separated solvers with options, such as pbng:acceleration=chebyshev,newton. "
            "Default: all solvers.",
        ),
    ] = None,
    tolerance: Tolerance = None,
    max_iterations: MaxIterations = None,
    time_limit: TimeLimit = None,
    position_tolerance: PositionTolerance = None,
    warmup: Annotated[
        int, typer.Option(help="Frames of a dynamic scene to simulate before the compared step.")
    ] = 0,
    device: Device = "cpu",
    precision: Precision = "float64",
    threads: Threads = None,
    output: Annotated[
        Path | None,
        typer.Option(parser=folder, help="Results folder; default: results/<scene name>_compare."),
    ] = None,
    overwrite: Overwrite = False,
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Draw the result of each solver.")
    ] = True,
    json: Json = False,
) -> None:
    """Run several solvers from the same initial state and compare residual, energy and time.

    Missing limits come from the scene file; without any limit, each solver runs 40 iterations. A solver that
    does not support the device or precision runs on one that it supports.

    Exit codes: 0 done; 1 no solver reached the tolerance, or a solver given by name could not be run (results
    are written). Others as for `supple run`.
    """
    with handle_errors(json):
        from supple.api.solver_syntax import split_names
        from supple.cli.job import load_file, solver_for
        from supple.cli.result_tables import print_comparison
        from supple.config.backend import Backend
        from supple.io import ComparisonFolder
        from supple.runs.comparison import new_comparison_manifest
        from supple.runs.saved import begin_results
        from supple.solve.call_options import get_limits
        from supple.solvers import SOLVERS

        backend = Backend(device, precision, threads)
        backend.check_available()
        file = load_file(scene)
        methods = [solver_for(file, word) for word in (SOLVERS if solvers is None else split_names(solvers))]
        stop = get_limits(collect_limits(tolerance, max_iterations, time_limit, position_tolerance), file)
        _check_warmup(warmup, file)
        results = ComparisonFolder(output or Path("results") / f"{scene.stem}_compare")
        results.create()
        with results.hold_lock():
            _refuse_results(results, overwrite)
            try:
                with announce_compilation():
                    initial, velocities, warmup_converged = _warm_up(file, warmup, threads)
                    comparison = _run(file, methods, stop, backend, initial, velocities, warmup + 1)
            except KeyboardInterrupt as error:
                code, word = interruption(error)
                errors.print(f"{word}; nothing was written.")
                raise typer.Exit(code) from None
            manifest = new_comparison_manifest(file, comparison, stop, backend, warmup, warmup_converged)
            begin_results(results, file)
            _draw_results(comparison, file, manifest, results, picture)
            results.write_report(manifest)
        code = _exit_code(comparison, stop.tolerance, named=solvers is not None)
        if json:
            print_json({**manifest, "output": str(results.path), "exit_code": code})
        else:
            print_comparison(manifest, results.path)
    raise typer.Exit(code)


def _check_warmup(warmup: int, file: SceneFile) -> None:
    if warmup < 0:
        raise ValueError(f"--warmup must not be negative, got {warmup}.")
    if warmup and file.scene.quasistatic:
        raise ValueError(f"--warmup is for dynamic scenes, and {file.path} is quasistatic; omit it.")


def _refuse_results(folder: ComparisonFolder, overwrite: bool) -> None:
    from supple.io import ResultsError

    if folder.has_results and not overwrite:
        raise ResultsError(
            f"{folder.path} has results already. Replace them with --overwrite, "
            "or name another folder with --output."
        )


def _warm_up(
    file: SceneFile, frames: int, threads: int | None
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """Simulate the warm-up frames.

    Returns:
        Positions and velocities after the frames, and True if all frames converged.
    """
    from supple.api.simulate import simulate
    from supple.cli.progress_bars import RunProgress
    from supple.config.stop_criteria import StopCriteria
    from supple.scene import build_model

    initial = velocities = None
    if file.initial is not None:
        model = build_model(file.scene)
        initial, velocities = file.initial_positions(model), file.initial_velocities(model)
    if not frames:
        return initial, velocities, True
    warmup_converged = True
    stop = StopCriteria(WARMUP_TOLERANCE)
    with RunProgress(frames, 0, stop, quiet=False) as progress:
        for frame in simulate(
            file.scene,
            frames=frames,
            stop=stop,
            initial=initial,
            velocities=velocities,
            threads=threads,
            callback=progress.show_iteration,
        ):
            progress.finish_frame(frame.report)
            warmup_converged = warmup_converged and frame.report.ok
    if not warmup_converged:
        note("Some frames of the warm-up did not converge; all solvers still begin from the same state.")
    return frame.positions, frame.velocities, warmup_converged


def _run(
    file: SceneFile,
    methods: list[Any],
    stop: StopCriteria,
    backend: Backend,
    initial: np.ndarray | None,
    velocities: np.ndarray | None,
    frame: int,
) -> Comparison:
    from supple.api.compare import compare as run
    from supple.api.compare import trial_labels
    from supple.cli.progress_bars import TrialProgress

    with TrialProgress(trial_labels(methods), stop) as progress:
        return run(
            file.scene,
            methods,
            stop=stop,
            backend=backend,
            initial=initial,
            velocities=velocities,
            frame=frame,
            progress=progress.show_trials,
            callback=progress.show_iteration,
        )


def _draw_results(
    comparison: Comparison,
    file: SceneFile,
    manifest: dict[str, Any],
    folder: ComparisonFolder,
    pictures: bool,
) -> None:
    """Draw four plots and, if requested, a picture per solver; the manifest records their file names."""
    from supple.runs.comparison import draw_pictures, draw_plots

    if not any(trial.report for trial in comparison.trials):
        return
    draw_plots(comparison, manifest, folder.path)
    if pictures:
        problem = draw_pictures(comparison, file, manifest, folder.path)
        if problem:
            note(problem)


def _exit_code(comparison: Comparison, tolerance: float | None, named: bool) -> int:
    from supple.solve.report import Outcome

    reports = [trial.report for trial in comparison.trials if trial.report is not None]
    missing = len(reports) < len(comparison.trials) and (named or not reports)
    reached = any(report.outcome is Outcome.CONVERGED for report in reports)
    return NOT_CONVERGED if missing or (tolerance is not None and not reached) else 0
