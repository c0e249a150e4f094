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
