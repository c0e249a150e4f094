"""A bar of muscle between two walls, and what it pulls with in closed form."""

import numpy as np
from problems import face

import supple

YOUNG, STRENGTH, AREA = 1e5, 3e4, 0.25


def bar(length=1.0, optimal=1.0):
    """Along x, with sides that stay (ν = 0), so that every cross section is stretched alike."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = supple.Muscle(
        young=YOUNG, poisson=0.0, strength=STRENGTH, optimal=optimal, fibre=(1, 0, 0), activation=1.0
    )
    body = scene.add_solid(supple.block((3, 1, 1), size=(1, 0.5, 0.5)), kind, density=10)
    scene.pin(body.where(face(0, 0)), name="wall")
    scene.pin(body.where(face(0, 1)), supple.Translate((length - 1, 0, 0)))
    return scene, body


def curves(x):
    """fₚ' and fₐ' of Blemker et al. 2005, as PXPBD eq. 7 and 8 have them."""
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
    (result,) = supple.equilibria(scene, [supple.Variation(materials={body: varied})], solver, **limits)
    return result.evaluate().reactions["wall"].force, result.report
