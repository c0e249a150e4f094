"""Words of sentences."""

from supple.support.text import counted, say_seconds


def test_one_is_singular():
    assert counted(1, "iteration") == "1 iteration"
    assert counted(0, "iteration") == "0 iterations"
    assert counted(1234, "vertex", "vertices") == "1,234 vertices"


def test_times_are_said_briefly():
    said = [say_seconds(s) for s in (0.0371, 2.345, 42.4, 200, 9000)]
    assert said == ["0.037 s", "2.3 s", "42 s", "3 min", "2.5 h"]
