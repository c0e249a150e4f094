"""Errors about results on disk."""


class ResultsError(ValueError):
    """A results folder cannot be used as requested."""


class FrameError(ResultsError):
    """A frame's file is missing or damaged."""
