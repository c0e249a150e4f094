"""Formatting of counts and durations in messages."""

from supple.support.text import format_duration, pluralize


def test_one_is_singular():
    assert pluralize(1, "iteration") == "1 iteration"
    assert pluralize(0, "iteration") == "0 iterations"
    assert pluralize(1234, "vertex", "vertices") == "1,234 vertices"


def test_durations_are_short():
    message = [format_duration(s) for s in (0.0371, 2.345, 42.4, 200, 9000)]
    assert message == ["0.037 s", "2.3 s", "42 s", "3 min", "2.5 h"]
