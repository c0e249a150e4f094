"""Figures and tables of PBNG; sections 11.1 to 11.6 have modules of their own."""

from __future__ import annotations

from supple import XPBD
from supple_papers import bundle, cloths, falling_bodies, muscles, pbng_budgets, pbng_rest, pbng_times
from supple_papers.common import PLAIN
from supple_papers.falling_block import measure_residuals
from supple_papers.measurements import Claim, Measurements
from supple_papers.registry import shows

PARTS = pbng_budgets, pbng_times, pbng_rest, muscles, bundle, falling_bodies, cloths
"""Modules that register further experiments on import."""


@shows("pbng-fig3")
def residuals(measurements: Measurements) -> str:
    pbng = measurements.part("pbng", lambda: measure_residuals(measurements, PLAIN))["200"]
    xpbd = measurements.part("xpbd", lambda: measure_residuals(measurements, XPBD()))["200"]
    return measurements.judge(
        f"after 200 iterations PBNG has left {pbng:.1e} of the residual, XPBD {xpbd:.2g}.",
        Claim("PBNG leaves less than a thousandth of XPBD's residual", pbng < 1e-3 * xpbd),
        Claim("XPBD keeps more than a hundredth of the residual", xpbd > 0.01),
    )
