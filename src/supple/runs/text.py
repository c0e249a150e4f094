"""Text of run results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from supple.solve.report import Outcome
from supple.support.text import counted


def solver_name(account: dict[str, Any]) -> str:
    """Solver and acceleration: pbng (chebyshev)"""
    solver = account["solver"]
    acceleration = solver["options"].get("acceleration", "none")
    kind = acceleration if isinstance(acceleration, str) else acceleration["kind"]  # name in older runs
    return solver["method"] + (f" ({kind})" if kind != "none" else "")


def outcome(frames: list[dict[str, Any]]) -> str:
    """Outcome sentence, or frame counts per outcome."""
    if len(frames) == 1:
        return frames[0]["sentence"]
    kinds = [(frame["outcome"], frame["sentence"], frame["inverted"]) for frame in frames]
    most = {name: max(n for other, _, n in kinds if other == name) for name, *_ in kinds}
    counts = Counter(_of_several(name, sentence, n > 0, most[name]) for name, sentence, n in kinds)
    if len(counts) == 1:
        return next(iter(counts))
    return "\n".join(f"{counted(count, 'frame')}: {sentence}" for sentence, count in counts.most_common())


def _of_several(name: str, sentence: str, is_inverted: bool, most: int) -> str:
    """Outcome sentence of a frame, with the largest number of inverted elements of all frames."""
    if not is_inverted:
        return sentence
    return Outcome[name.upper()].sentence(f"up to {counted(most, 'inverted element')}")


def has_inverted(frames: list[dict[str, Any]]) -> bool:
    return any(frame["inverted"] for frame in frames)


def inverted(frames: list[dict[str, Any]]) -> str:
    """Number of inverted elements in words.

    For one frame "14 elements", for several frames "up to 14 elements, in 3 of 12 frames (the last has
    none)".
    """
    counts = [frame["inverted"] for frame in frames]
    if len(counts) == 1:
        return counted(counts[0], "element")
    some = sum(count > 0 for count in counts)
    last = f"{counts[-1]:,}" if counts[-1] else "none"
    return f"up to {counted(max(counts), 'element')}, in {some} of {len(counts)} frames (the last has {last})"


def inversion_warning(frames: list[dict[str, Any]]) -> str | None:
    """Warning about inverted elements; None without inverted elements."""
    if not has_inverted(frames):
        return None
    return (
        f"Elements are turned inside out: {inverted(frames)}. The forces may balance, but no body can take "
        "that shape; look at the picture, use a finer mesh, smaller steps or another material."
    )
