"""Words of sentences."""

from supple.words import counted


def test_one_is_singular():
    assert counted(1, "iteration") == "1 iteration"
    assert counted(0, "iteration") == "0 iterations"
    assert counted(1234, "vertex", "vertices") == "1,234 vertices"
