"""Times as text, and forecasts of remaining time."""

import math

import pytest

from supple.cli.console import parse_seconds
from supple.cli.progress_bars import TimeEstimate
from supple.config.stop_criteria import StopCriteria


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2), ("2 s", 2), ("500 ms", 0.5), ("1.5min", 90), ("1e1 s", 10), (" 2 h ", 7200)],
)
def test_times_have_an_optional_unit(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "2 days", "e", "1.2.3", "inf"])
def test_invalid_times_are_refused(text):
    with pytest.raises(ValueError, match="a time must be a number of seconds"):
        parse_seconds(text)


def forecast(stop: StopCriteria, rate: float, until: int) -> TimeEstimate:
    """Forecast for a relative residual exp(-rate t), observed once a second."""
    made = TimeEstimate(stop)
    for second in range(until + 1):
        made.record(10 * second, math.exp(-rate * second), float(second))
    return made


def test_exponential_convergence_is_forecast():
    made = forecast(StopCriteria(tolerance=math.exp(-20)), rate=0.5, until=10)
    assert made.seconds_left == pytest.approx(30)
    assert made.fraction == pytest.approx(0.25)


def test_forecast_uses_the_earliest_limit():
    assert forecast(
        StopCriteria(tolerance=math.exp(-20), max_iterations=150), 0.5, 10
    ).seconds_left == pytest.approx(5)
    assert forecast(
        StopCriteria(tolerance=math.exp(-20), time_limit=12), 0.5, 10
    ).seconds_left == pytest.approx(2)


def test_constant_residual_gives_no_forecast():
    stuck = forecast(StopCriteria(tolerance=1e-4), rate=0.0, until=10)
    assert (stuck.seconds_left, stuck.fraction) == (None, 0.0)
