"""Colors and font sizes of pictures, films and plots, in a light and a dark theme."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colors of everything except fields. shadow: darkness of the ground shadow, 0 to 1."""

    name: str
    background: str
    ink: str
    faded: str
    edges: str
    pins: str
    rim: str
    links: str
    contacts: str
    shadow: float
    accent: str
    curves: tuple[str, ...]

    def curve(self, solver: str) -> str:
        """Plot color of a solver, consistent across plots."""
        from supple.solvers import SOLVERS

        i = list(SOLVERS).index(solver) if solver in SOLVERS else len(self.curves)
        return self.curves[i] if i < len(self.curves) else self.accent


LIGHT = Theme(
    name="light",
    background="#f4f4f1",
    ink="#22262b",
    faded="#6d737b",
    edges="#1b2733",
    pins="#15181c",
    rim="#ffffff",
    links="#e0661f",
    contacts="#c2314b",
    shadow=0.42,
    accent="#2a6f97",
    curves=(
        "#1f6fb2",
        "#22262b",
        "#d97706",
        "#8a4b12",
        "#2a9d6f",
        "#7a4fb5",
        "#c2314b",
        "#8a9099",
        "#0f8b8d",
        "#b5468f",
        "#6b7a1e",
    ),
)

DARK = Theme(
    name="dark",
    background="#16191d",
    ink="#eceae4",
    faded="#949aa3",
    edges="#0b0e12",
    pins="#f4f4f1",
    rim="#0b0e12",
    links="#ff9a4d",
    contacts="#f06a80",
    shadow=0.75,
    accent="#62b0d9",
    curves=(
        "#5aaeee",
        "#eceae4",
        "#f5a03c",
        "#c98b52",
        "#4fcb9a",
        "#b391ec",
        "#f06a80",
        "#8a9099",
        "#4cc9c9",
        "#e184c1",
        "#b7c455",
    ),
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def theme_named(name: str) -> Theme:
    """Return a theme by its name."""
    if not isinstance(name, str) or name not in THEMES:
        raise ValueError(f"theme must be {' or '.join(THEMES)}, got {name!r}")
    return THEMES[name]


DPI = 200
"""Dots per inch for which the font sizes below suit pictures 1600 pixels wide."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 13, 9, 7.5

PALE_TO_DEEP = ("#f6f0dc", "#b5dcc0", "#5bb7b0", "#2b85a8", "#2f5596", "#4b3a86")
RED_TO_BLUE = ("#9d1c2f", "#e58267", "#f7f5f0", "#6fadd1", "#1c5c9c")
PALE_TO_FIRE = ("#f3efe2", "#f7d694", "#f3a35c", "#dd6a52", "#a83a62", "#5c2a68")
COOL_TO_HOT = ("#33507d", "#4f8fa8", "#a8cfb4", "#f2e3a4", "#ec9b57", "#c43f43")
NEUTRAL = "#9aa3ad"
LABEL_COLORS = (
    "#5b8fc7",
    "#e9a15b",
    "#6fb58a",
    "#d0707f",
    "#a58ac9",
    "#d9c25c",
    "#63b5bd",
    "#b98a6c",
    "#c98bb5",
    NEUTRAL,
)
"""Colors of integer labels, such as bodies."""

DASHES = ("solid", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))
"""Line styles of the first, second, ... variant of a solver."""
