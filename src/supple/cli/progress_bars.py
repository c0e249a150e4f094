"""Progress bars of runs, comparisons and films, with the remaining time of a solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TextColumn

from supple.cli.console import errors
from supple.support.text import format_duration, pluralize

if TYPE_CHECKING:
    from supple.config.stop_criteria import StopCriteria
    from supple.solve.report import IterationInfo, Report


SETUP_SECONDS_PER_CELL = 6e-6
"""Setup time per cell on one core [s]."""


def setup_seconds(cells: int) -> float:
    """Approximate setup time of a mesh with the given number of tetrahedra and triangles [s]."""
    return SETUP_SECONDS_PER_CELL * cells


class TimeEstimate:
    """Remaining time of one solve, extrapolated from callback data.

    The relative residual is assumed to decay exponentially.
    """

    def __init__(self, stop: StopCriteria) -> None:
        self.stop = stop
        self._samples: list[tuple[float, float]] = []
        self._iteration = 0

    def record(self, iteration: int, relative_residual: float, seconds: float) -> None:
        self._iteration = iteration
        if 0 < relative_residual < math.inf:
            self._samples.append((seconds, math.log(relative_residual)))

    @property
    def seconds(self) -> float:
        return self._samples[-1][0] if self._samples else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until termination; None without enough data."""
        limits = [self._to_tolerance(), self._to_iterations(), self._to_budget()]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def fraction(self) -> float:
        """Completed fraction, between 0 and 1."""
        seconds_left = self.seconds_left
        return (
            0.0 if seconds_left is None or self.seconds == 0 else self.seconds / (self.seconds + seconds_left)
        )

    def _to_tolerance(self) -> float | None:
        """Estimated seconds until the tolerance, from recent convergence.

        The rate covers the second half of the elapsed time, since early iterations converge much faster.
        """
        if self.stop.tolerance is None or len(self._samples) < 3:
            return None
        now, level = self._samples[-1]
        then, before = next(point for point in self._samples if point[0] >= now / 2)
        if now <= then or level >= before:
            return None
        return max(0.0, level - math.log(self.stop.tolerance)) * (now - then) / (before - level)

    def _to_iterations(self) -> float | None:
        if self.stop.max_iterations is None or not self._iteration:
            return None
        return self.seconds / self._iteration * (self.stop.max_iterations - self._iteration)

    def _to_budget(self) -> float | None:
        return None if self.stop.time_limit is None else max(0.0, self.stop.time_limit - self.seconds)


LINE_INTERVAL = 30.0
"""Seconds between progress lines without a progress bar."""


class _Bar:
    """Name, progress bar and status on a terminal; nothing elsewhere.

    Args:
        name: Name of the task.
        quiet: Show nothing.
        threaded: Refresh from a separate thread; otherwise only on calls of `show`.
    """

    def __init__(self, name: str, quiet: bool = False, threaded: bool = True) -> None:
        self._threaded = threaded
        self._bar = Progress(
            TextColumn("{task.fields[name]}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[status]}", markup=False),
            console=errors,
            transient=True,
            auto_refresh=threaded,
            disable=quiet or not errors.is_terminal,
        )
        self._task = self._bar.add_task("", total=1.0, name=name, status="setting up")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, name: str, completed: float, status: str) -> None:
        self._bar.update(
            self._task, name=name, completed=completed, status=status, refresh=not self._threaded
        )


class RunProgress(_Bar):
    """Frame, iteration, relative residual and remaining time on a terminal; one line per frame elsewhere.

    Args:
        frames: Number of frames.
        done: Number of frames completed before this run.
        stop: Termination criteria.
        quiet: Show nothing.
    """

    def __init__(self, frames: int, done: int, stop: StopCriteria, quiet: bool) -> None:
        self.frames, self.done, self.stop, self.quiet = frames, done, stop, quiet
        self._first, self._seconds = done, 0.0
        self._in_lines, self._last_line_time = not (quiet or errors.is_terminal), perf_counter()
        self._estimate = TimeEstimate(stop)
        super().__init__(self._frame, quiet)

    @property
    def _frame(self) -> str:
        return f"frame {min(self.done + 1, self.frames)}/{self.frames}"

    def show_iteration(self, info: IterationInfo) -> None:
        if info.iteration == 0:
            self._estimate = TimeEstimate(self.stop)
        self._estimate.record(info.iteration, info.relative_residual, info.seconds)
        status = _format_iteration(info)
        seconds_left = self._estimate.seconds_left
        if seconds_left is not None:
            status += f"  {self._time_left(seconds_left)}"
        self.show(self._frame, (self.done + self._estimate.fraction) / self.frames, status)
        if self._in_lines and perf_counter() > self._last_line_time + LINE_INTERVAL:
            self._last_line_time = perf_counter()
            errors.print(f"{self._frame}: {status}")

    def finish_frame(self, report: Report) -> None:
        self.done += 1
        self._seconds += report.seconds
        if self._in_lines and self.frames > 1:
            self._last_line_time = perf_counter()
            errors.print(f"frame {self.done}/{self.frames}: {_brief(report)}{self._estimated_time_left()}")

    def _estimated_time_left(self) -> str:
        """Estimated remaining time after the first frame, if it is long."""
        seconds_left = (self.frames - self.done) * self._seconds
        return (
            f"; {_format_seconds(seconds_left)} left, about"
            if self.done == self._first + 1 and seconds_left > LINE_INTERVAL
            else ""
        )

    def _time_left(self, in_frame: float) -> str:
        frames_left = self.frames - self.done - 1
        finished = self.done - self._first
        per_frame = self._seconds / finished if finished else self._estimate.seconds + in_frame
        if not frames_left:
            return f"{_format_seconds(in_frame)} left"
        in_all = _format_seconds(in_frame + frames_left * per_frame)
        return f"{_format_seconds(in_frame)} left in frame, {in_all} in all"


class TrialProgress(_Bar):
    """Solver, iteration and relative residual on a terminal; one line per solver elsewhere.

    The bar is drawn within `show_iteration`, outside the timed region, not by a separate thread.
    """

    def __init__(self, labels: Sequence[str], stop: StopCriteria) -> None:
        self.labels, self.stop = labels, stop
        self._estimate = TimeEstimate(stop)
        self._latest: IterationInfo | None = None
        self._label, self._drawn = "", 0.0
        super().__init__("", threaded=False)

    def show_trials(self, done: int, trials: int) -> None:
        """Report the end of a trial and the start of the next."""
        if done and not errors.is_terminal:
            latest = self._latest
            status = "not run"
            if latest is not None:
                status = f"{_format_iteration(latest)}, {format_duration(latest.seconds)}"
            errors.print(f"{self.labels[done - 1]}: {status}")
        self._latest = None
        if done < trials:
            self._label = f"{self.labels[done]} {done + 1}/{trials}"
            self.show(self._label, 0.0, "setting up")

    def show_iteration(self, info: IterationInfo) -> None:
        self._latest = info
        if info.iteration == 0:
            self._estimate = TimeEstimate(self.stop)
        self._estimate.record(info.iteration, info.relative_residual, info.seconds)
        if perf_counter() > self._drawn + 0.1:
            self._drawn = perf_counter()
            self.show(self._label, self._estimate.fraction, _format_iteration(info))


class FilmProgress(_Bar):
    """Number of rendered pictures and remaining time on a terminal; a single line elsewhere."""

    def __init__(self, quiet: bool) -> None:
        super().__init__("drawing", quiet)
        self.quiet, self._began = quiet, perf_counter()

    def show_pictures(self, done: int, pictures: int) -> None:
        if done == 0:
            self._began = perf_counter()
            if not (self.quiet or errors.is_terminal):
                errors.print(f"drawing a film of {pictures} pictures")
            return
        seconds_left = (perf_counter() - self._began) / done * (pictures - done)
        self.show(
            f"drawing {done}/{pictures}",
            done / pictures,
            f"{_format_seconds(seconds_left)} left" if seconds_left else "",
        )


def _format_iteration(info: IterationInfo) -> str:
    return f"iteration {info.iteration}  relative residual {info.relative_residual:.1e}"


def _brief(report: Report) -> str:
    """One-line result: converged, 12 iterations, relative residual 8.1e-05, 0.3 s"""
    return (
        f"{report.short_outcome}, {pluralize(report.iterations, 'iteration')}, "
        f"relative residual {report.relative_residual:.1e}, {format_duration(report.seconds)}"
    )


def _format_seconds(seconds: float) -> str:
    return format_duration(max(1.0, round(seconds)))
