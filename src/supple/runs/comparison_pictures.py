"""Plots and pictures of a comparison."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from supple.compare import Comparison
from supple.io.replacing import replacing
from supple.runs.comparison_account import picture_name
from supple.runs.comparison_text import caption, setting
from supple.runs.pictures import AGAINST, make_appearance
from supple.scene import SceneFile
from supple.view import comparison_plot, picture, shared_view

QUANTITIES: tuple[Literal["residual", "energy"], ...] = ("residual", "energy")


def draw_plots(comparison: Comparison, account: dict[str, Any], folder: Path) -> None:
    """Draw residual_iterations.png, residual_seconds.png, energy_iterations.png and energy_seconds.png."""
    for quantity, against in product(QUANTITIES, AGAINST):
        name = f"{quantity}_{against}.png"
        with replacing(folder / name) as path:
            comparison_plot(
                path,
                comparison.trials,
                against,
                title=account["scene"]["title"],
                subtitle=setting(account),
                quantity=quantity,
            )
        account["plots"][f"{quantity}_{against}"] = name


def draw_pictures(
    comparison: Comparison, file: SceneFile, account: dict[str, Any], folder: Path
) -> str | None:
    """Draw a picture per solver with common camera and colors.

    Diverged bodies are drawn to their own scale, with a remark in the subtitle.

    Returns:
        A sentence if VTK could not draw, otherwise None.
    """
    ran = [trial for trial in comparison.trials if trial.report is not None]
    shapes: dict[str, np.ndarray] = {trial.label: trial.positions for trial in ran}  # type: ignore[misc]
    best = min(ran, key=lambda trial: trial.report.imbalance)  # type: ignore[union-attr]
    near = _near(shapes, shapes[best.label])
    appearance = make_appearance(file)
    view = shared_view(comparison.model, [shapes[label] for label in near], **appearance.options)
    for entry in account["trials"]:
        if entry["error"] is None:
            label, entry["picture"] = entry["label"], picture_name(entry["label"])
            with replacing(folder / entry["picture"]) as path:
                account["note"] = picture(
                    path,
                    comparison.model,
                    shapes[label],
                    title=f"{account['scene']['title']}: {label}",
                    subtitle=caption(entry) + ("" if label in near else " · to its own scale"),
                    view=view if label in near else None,
                    **appearance.options,
                )
    return account["note"]


def _near(shapes: dict[str, np.ndarray], best: np.ndarray) -> list[str]:
    """Labels of shapes within one body size of the best shape."""
    reach = float(np.linalg.norm(np.ptp(best, axis=0)))
    return [label for label, x in shapes.items() if np.linalg.norm(x - best, axis=1).max() <= reach]
