"""Block that is stretched, compressed and twisted [PBNG Fig. 7].

PBNG is compared with Newton with few conjugate-gradient iterations, for both Hessians.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from supple import PBNG, Newton
from supple import _public as supple
from supple_papers.measurements import Measurements, Quantities
from supple_papers.measuring import SOFT, cells_of, elastic_energy, face

NEWTONS: dict[str, tuple[Any, int]] = {
    "pbng, 6 sweeps": (PBNG(acceleration="paper_sor", tied_groups=False), 6),
    "newton, projected, 2 x 7 CG": (
        Newton("projected", linear_solver="cg", linear_iterations=7, line_search=False),
        2,
    ),
    "newton, exact, 2 x 7 CG": (
        Newton(rescue=False, linear_solver="cg", linear_iterations=7, line_search=False),
        2,
    ),
    "newton, exact, 11 x 10 CG": (
        Newton(rescue=False, linear_solver="cg", linear_iterations=10, line_search=False),
        11,
    ),
}
"""Methods and iteration counts that are followed while the block is twisted and compressed."""


def squeeze(cells: int) -> supple.Scene:
    """Block stretched to 1.3 times its length, then compressed to 0.6 with a twist, in 20 frames."""
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.05, frames=20)
    body = scene.add_solid(supple.block(cells), SOFT, density=10)
    for x, sign in ((0.0, -1.0), (1.0, 1.0)):
        compression = supple.Keyframes(supple.Translate((sign, 0, 0)), (0, 0.3, 1.0), (0, 0.15, -0.2))
        turn = supple.Rotate(axis=(1, 0, 0), center=(x, 0.5, 0.5), angle=0.8 * sign)
        scene.pin(face(body, 0, x), motion=turn + compression)
    return scene


def measure_squeeze(measurements: Measurements, solver: Any, count: int) -> Quantities:
    """Largest elastic energy over 20 frames, relative to converged frames."""
    scene = squeeze(cells_of(measurements))
    energy = elastic_energy(supple.scene.build_model(scene))
    frames = supple.simulate(scene, solver=solver, max_iterations=count)
    states = [(energy(frame.positions), frame.report.inverted) for frame in frames]
    largest, most = (max(values) for values in zip(*states, strict=True))
    return {
        "energy over the converged one's": largest / converged_energy(cells_of(measurements)),
        "most inverted": most,
    }


@cache
def converged_energy(cells: int) -> float:
    scene = squeeze(cells)
    energy = elastic_energy(supple.scene.build_model(scene))
    return max(
        energy(frame.positions) for frame in supple.simulate(scene, tolerance=1e-4, position_tolerance=None)
    )
