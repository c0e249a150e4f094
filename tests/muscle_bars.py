"""A muscle bar between two walls, and its force in closed form."""

import numpy as np
from problems import face

import supple

YOUNG, STRENGTH, AREA = 1e5, 3e4, 0.25

SOLVERS = {
    "newton": supple.Newton(),
    "hybrid": supple.Hybrid(),
    "pbng": supple.PBNG(),
    "fpxpbd": supple.FPXPBD(),
    "bpxpbd": supple.BPXPBD(pseudo_dt=5e-4),
    "gpbd": supple.GPBD(pseudo_dt=5e-4),
}
"""The last two start every step of pseudo-time without forces and build them up in ten sweeps: with longer
steps, in which sound crosses several cells (10 ms by default), they come to rest elsewhere."""


def bar(length=1.0, optimal=1.0):
    """A bar along x with fixed sides (ν = 0), so that every cross section is stretched equally."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = supple.materials.Muscle(
        young=YOUNG, poisson=0.0, strength=STRENGTH, optimal=optimal, fiber=(1, 0, 0), activation=1.0
    )
    body = scene.add_solid(supple.block((3, 1, 1), size=(1, 0.5, 0.5)), kind, density=10)
    scene.pin(body.where(face(0, 0)), name="wall")
    scene.pin(body.where(face(0, 1)), supple.Translate((length - 1, 0, 0)))
    return scene, body


def curves(x):
    """fₚ' and fₐ' of Blemker et al. 2005, as in PXPBD eq. 7 and 8."""
    passive = 0.05 * (np.exp(6.6 * (x - 1)) - 1) if x > 1 else 0.0
    if x <= 0.6:
        return passive, 9 * (x - 0.4) ** 2
    return passive, 9 * (x - 1.6) ** 2 if x > 1.4 else 1 - 4 * (1 - x) ** 2


def force(length, activation, optimal=1.0):
    passive, active = curves(length / optimal)
    return AREA * (YOUNG * (length - 1) + STRENGTH / optimal * (passive + activation * active))


def pulled(scene, body, activation, solver="newton", **limits):
    kind = body.material
    varied = type(kind)(**(kind.given() | {"activation": activation}))
    (result,) = supple.equilibria(
        scene, [supple.Variation(materials={body: varied})], solver=solver, **limits
    )
    return result.evaluate().reactions["wall"].force, result.report


def falling(solver, dt=0.005, **limits):
    """Heights of the middle of a bar that falls for 0.1 s and is then activated for as long [PXPBD Fig.
    4]."""
    scene = supple.Scene(quasistatic=False, dt=dt, frames=round(0.2 / dt))
    kind = supple.materials.Muscle(young=1.2e4, poisson=0.4, strength=6e4, fiber=(1, 0, 0), activation=1.0)
    body = scene.add_solid(supple.block((8, 2, 2), size=(0.4, 0.1, 0.1)), kind, density=1060)
    scene.vary(body, "activation", supple.loads.Ramp(times=(0, 0.1, 0.12), fractions=(0, 0, 1)))
    for side in (0, 0.4):
        scene.pin(body.where(face(0, side)))
    middle = body.where(face(0, 0.2)).indices
    frames = supple.simulate(scene, solver=solver, **limits)
    return np.array([frame.positions[middle, 1].mean() - 0.05 for frame in frames])
