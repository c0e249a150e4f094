"""The progress bar of a run."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, Progress, TextColumn

from supple.cli.forecast import Forecast
from supple.cli.speech import errors, say_seconds

if TYPE_CHECKING:
    from supple.report import Report
    from supple.simulate import Stop


class RunProgress:
    """Shows frame, iteration, imbalance and time left on a terminal; elsewhere one line per frame.

    done: frames that were complete before this run.
    """

    def __init__(self, frames: int, done: int, stop: Stop, quiet: bool) -> None:
        self.frames, self.done, self.stop, self.quiet = frames, done, stop, quiet
        self._first, self._seconds = done, 0.0
        self._forecast = Forecast(stop)
        self._bar = Progress(
            TextColumn("frame {task.fields[frame]}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[figures]}"),
            console=errors,
            transient=True,
            disable=quiet or not errors.is_terminal,
        )
        self._task = self._bar.add_task("run", total=1.0, frame=self._frame, figures="setting up")

    @property
    def _frame(self) -> str:
        return f"{min(self.done + 1, self.frames)}/{self.frames}"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def watch(self, iteration: int, imbalance: float, seconds: float) -> None:
        if iteration == 0:
            self._forecast = Forecast(self.stop)
        self._forecast.see(iteration, imbalance, seconds)
        figures = f"iteration {iteration}  imbalance {imbalance:.1e}"
        left = self._forecast.left
        if left is not None:
            figures += f"  {self._time_left(left)}"
        completed = (self.done + self._forecast.fraction) / self.frames
        self._bar.update(self._task, completed=completed, frame=self._frame, figures=figures)

    def finish_frame(self, report: Report) -> None:
        self.done += 1
        self._seconds += report.seconds
        if not (self.quiet or errors.is_terminal) and self.frames > 1:
            errors.print(
                f"frame {self.done}/{self.frames}: {report.outcome.name.lower().replace('_', ' ')}, "
                f"{report.iterations} iterations, imbalance {report.imbalance:.1e}, "
                f"{say_seconds(report.seconds)}"
            )

    def _time_left(self, in_frame: float) -> str:
        frames_left = self.frames - self.done - 1
        finished = self.done - self._first
        per_frame = self._seconds / finished if finished else self._forecast.seconds + in_frame
        if not frames_left:
            return f"{_whole(in_frame)} left"
        return f"{_whole(in_frame)} left in frame, {_whole(in_frame + frames_left * per_frame)} in all"


def _whole(seconds: float) -> str:
    return say_seconds(max(1.0, round(seconds)))
