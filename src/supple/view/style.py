"""The house look: what all pictures and plots share."""

from __future__ import annotations

BACKGROUND = "#f4f4f1"
INK = "#22262b"
FADED = "#6d737b"
EDGES = "#1b2733"
PINS = "#15181c"
ACCENT = "#2a6f97"

DPI = 200
"""Dots per inch; with it the sizes of type below are right for pictures 1600 dots wide."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 13, 9, 7.5

PALE_TO_DEEP = ("#f6f0dc", "#b5dcc0", "#5bb7b0", "#2b85a8", "#2f5596", "#4b3a86")
RED_TO_BLUE = ("#9d1c2f", "#e58267", "#f7f5f0", "#6fadd1", "#1c5c9c")

CURVES = {
    "pbng": "#1f6fb2",
    "newton": INK,
    "xpbd": "#d97706",
    "block_xpbd": "#8a4b12",
    "bpxpbd": "#2a9d6f",
    "fpxpbd": "#7a4fb5",
    "gpbd": "#c2314b",
    "pbd": "#8a9099",
}
"""Colours of solvers, the same in all plots."""

DASHES = ("solid", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))
"""Lines of the first, second, ... variant of a solver."""
