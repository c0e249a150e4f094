"""Progress bars of runs, comparisons and films."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TextColumn

from supple.cli.forecast import Forecast
from supple.cli.speech import errors
from supple.words import counted, say_seconds

if TYPE_CHECKING:
    from supple.compare import Trial
    from supple.report import Report
    from supple.stop import Stop


SILENCE = 30.0
"""Seconds between progress lines without a progress bar."""


class _Bar:
    """Name, progress bar and figures on a terminal; nothing elsewhere.

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
            TextColumn("{task.fields[figures]}", markup=False),
            console=errors,
            transient=True,
            auto_refresh=threaded,
            disable=quiet or not errors.is_terminal,
        )
        self._task = self._bar.add_task("", total=1.0, name=name, figures="setting up")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, name: str, completed: float, figures: str) -> None:
        self._bar.update(
            self._task, name=name, completed=completed, figures=figures, refresh=not self._threaded
        )


class RunProgress(_Bar):
    """Frame, iteration, relative residual and remaining time on a terminal; one line per frame elsewhere.

    Args:
        frames: Number of frames.
        done: Number of frames completed before this run.
        stop: Termination criteria.
        quiet: Show nothing.
    """

    def __init__(self, frames: int, done: int, stop: Stop, quiet: bool) -> None:
        self.frames, self.done, self.stop, self.quiet = frames, done, stop, quiet
        self._first, self._seconds = done, 0.0
        self._in_lines, self._said = not (quiet or errors.is_terminal), perf_counter()
        self._forecast = Forecast(stop)
        super().__init__(self._frame, quiet)

    @property
    def _frame(self) -> str:
        return f"frame {min(self.done + 1, self.frames)}/{self.frames}"

    def watch(self, iteration: int, imbalance: float, seconds: float) -> None:
        if iteration == 0:
            self._forecast = Forecast(self.stop)
        self._forecast.see(iteration, imbalance, seconds)
        figures = _figures(iteration, imbalance)
        left = self._forecast.left
        if left is not None:
            figures += f"  {self._time_left(left)}"
        self.show(self._frame, (self.done + self._forecast.fraction) / self.frames, figures)
        if self._in_lines and perf_counter() > self._said + SILENCE:
            self._said = perf_counter()
            errors.print(f"{self._frame}: {figures}")

    def finish_frame(self, report: Report) -> None:
        self.done += 1
        self._seconds += report.seconds
        if self._in_lines and self.frames > 1:
            self._said = perf_counter()
            errors.print(f"frame {self.done}/{self.frames}: {_brief(report)}{self._outlook()}")

    def _outlook(self) -> str:
        """Estimated remaining time after the first frame, if it is long."""
        left = (self.frames - self.done) * self._seconds
        return f"; {_whole(left)} left, about" if self.done == self._first + 1 and left > SILENCE else ""

    def _time_left(self, in_frame: float) -> str:
        frames_left = self.frames - self.done - 1
        finished = self.done - self._first
        per_frame = self._seconds / finished if finished else self._forecast.seconds + in_frame
        if not frames_left:
            return f"{_whole(in_frame)} left"
        return f"{_whole(in_frame)} left in frame, {_whole(in_frame + frames_left * per_frame)} in all"


class TrialProgress(_Bar):
    """Solver, iteration and relative residual on a terminal; one line per solver elsewhere.

    The bar is drawn within `watch`, outside the timed region, not by a separate thread.
    """

    def __init__(self, trials: int, stop: Stop) -> None:
        self.trials, self.stop, self.done = trials, stop, 0
        self._forecast = Forecast(stop)
        self._label, self._drawn = "", 0.0
        super().__init__("", threaded=False)

    def see(self, trial: Trial) -> None:
        """Report start or end of a trial."""
        if trial.report is None and trial.error is None:
            self._label = f"{trial.label} {self.done + 1}/{self.trials}"
            self.show(self._label, 0.0, "setting up")
            return
        self.done += 1
        if not errors.is_terminal:
            errors.print(f"{trial.label}: {_brief(trial.report) if trial.report else 'not run'}")

    def watch(self, iteration: int, imbalance: float, seconds: float) -> None:
        if iteration == 0:
            self._forecast = Forecast(self.stop)
        self._forecast.see(iteration, imbalance, seconds)
        if perf_counter() > self._drawn + 0.1:
            self._drawn = perf_counter()
            self.show(self._label, self._forecast.fraction, _figures(iteration, imbalance))


class FilmProgress(_Bar):
    """Number of rendered pictures and remaining time on a terminal; a single line elsewhere."""

    def __init__(self, quiet: bool) -> None:
        super().__init__("drawing", quiet)
        self.quiet, self._began = quiet, perf_counter()

    def watch(self, done: int, pictures: int) -> None:
        if done == 0:
            self._began = perf_counter()
            if not (self.quiet or errors.is_terminal):
                errors.print(f"drawing a film of {pictures} pictures")
            return
        left = (perf_counter() - self._began) / done * (pictures - done)
        self.show(f"drawing {done}/{pictures}", done / pictures, f"{_whole(left)} left" if left else "")


def _figures(iteration: int, imbalance: float) -> str:
    return f"iteration {iteration}  imbalance {imbalance:.1e}"


def _brief(report: Report) -> str:
    """One-line result: converged, 12 iterations, imbalance 8.1e-05, 0.3 s"""
    return (
        f"{report.ending}, {counted(report.iterations, 'iteration')}, "
        f"imbalance {report.imbalance:.1e}, {say_seconds(report.seconds)}"
    )


def _whole(seconds: float) -> str:
    return say_seconds(max(1.0, round(seconds)))
