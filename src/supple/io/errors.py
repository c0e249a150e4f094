"""What can be wrong with results on disk, in sentences."""


class ResultsError(ValueError):
    """A results folder cannot be used as asked."""


class FrameError(ResultsError):
    """The file of a frame is missing or damaged."""
