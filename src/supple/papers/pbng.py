"""PBNG's figures and tables; those of sections 11.1 to 11.6 have modules of their own."""

from __future__ import annotations

from supple.papers import bundle, cloths, dropping, muscles, pbng_budgets, pbng_rest
from supple.papers.falling import falling
from supple.papers.measuring import PLAIN
from supple.papers.record import Record
from supple.papers.registry import shows
from supple.public import XPBD

PARTS = pbng_budgets, pbng_rest, muscles, bundle, dropping, cloths
"""Which register theirs when they are imported."""


@shows("pbng-fig3")
def residuals(record: Record) -> str:
    pbng = record.part("pbng", lambda: falling(record, PLAIN))["200"]
    xpbd = record.part("xpbd", lambda: falling(record, XPBD()))["200"]
    word = "agrees" if pbng < 1e-3 * xpbd and xpbd > 0.01 else "differs"
    return f"{word}: after 200 iterations PBNG has left {pbng:.1e} of the residual, XPBD {xpbd:.2g}."
