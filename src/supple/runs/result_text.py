"""Text of run results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from supple.solve.report import Outcome
from supple.support.text import pluralize


def solver_name(manifest: dict[str, Any]) -> str:
    """Solver and acceleration: pbng (chebyshev)"""
    solver = manifest["solver"]
    acceleration = solver["options"].get("acceleration", "none")
    acceleration_name = (
        acceleration if isinstance(acceleration, str) else acceleration["kind"]
    )  # name in older runs
    return solver["method"] + (f" ({acceleration_name})" if acceleration_name != "none" else "")


def outcome(frames: list[dict[str, Any]]) -> str:
    """Outcome sentence, or frame counts per outcome."""
    if len(frames) == 1:
        return frames[0]["sentence"]
    outcomes = [(frame["outcome"], frame["sentence"], frame["inverted"]) for frame in frames]
    most = {name: max(n for other, _, n in outcomes if other == name) for name, *_ in outcomes}
    counts = Counter(_frame_outcome(name, sentence, n > 0, most[name]) for name, sentence, n in outcomes)
    if len(counts) == 1:
        return next(iter(counts))
    return "\n".join(f"{pluralize(count, 'frame')}: {sentence}" for sentence, count in counts.most_common())


def _frame_outcome(name: str, sentence: str, is_inverted: bool, most: int) -> str:
    """Outcome sentence of a frame, with the largest number of inverted elements of all frames."""
    if not is_inverted:
        return sentence
    return Outcome[name.upper()].sentence(f"up to {pluralize(most, 'inverted element')}")


def has_inverted(frames: list[dict[str, Any]]) -> bool:
    return any(frame["inverted"] for frame in frames)


def inverted(frames: list[dict[str, Any]]) -> str:
    """Number of inverted elements in words.

    For one frame "14 elements", for several frames "up to 14 elements, in 3 of 12 frames (the last has
    none)".
    """
    counts = [frame["inverted"] for frame in frames]
    if len(counts) == 1:
        return pluralize(counts[0], "element")
    n_inverted = sum(count > 0 for count in counts)
    last = f"{counts[-1]:,}" if counts[-1] else "none"
    most = pluralize(max(counts), "element")
    return f"up to {most}, in {n_inverted} of {len(counts)} frames (the last has {last})"


def inversion_warning(frames: list[dict[str, Any]]) -> str | None:
    """Warning about inverted elements; None without inverted elements."""
    if not has_inverted(frames):
        return None
    return (
        f"Elements are inverted: {inverted(frames)}. The forces may balance, but no real body can "
        "have this shape; inspect the picture, and use a finer mesh, smaller steps or another "
        "material."
    )
