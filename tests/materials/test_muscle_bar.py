"""A bar of muscle between two walls: what it pulls with, by its length and its activation."""

import numpy as np
import pytest
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
    assert result.report.ok
    return result.evaluate().reactions["wall"].force


@pytest.mark.parametrize("length", [0.55, 0.8, 1.0, 1.2, 1.45])
@pytest.mark.parametrize("optimal", [1.0, 1.1])
def test_force_and_length_are_the_closed_form_of_one_fibre(length, optimal):
    scene, body = bar(length, optimal)
    for activation in (0.0, 0.5, 1.0):
        found = pulled(scene, body, activation, tolerance=1e-8)
        np.testing.assert_allclose(
            found, (-force(length, activation, optimal), 0, 0), atol=1e-4 * AREA * YOUNG
        )


def test_isometric_force_rises_with_activation_as_its_strength_says():
    scene, body = bar()
    for activation in (0.0, 0.25, 0.5, 1.0):
        found = pulled(scene, body, activation, tolerance=1e-8)
        assert -found[0] == pytest.approx(activation * STRENGTH * AREA, abs=1e-3)


@pytest.mark.parametrize("solver", ["pbng", "descent", "fpxpbd"])
def test_solvers_find_it(solver):
    scene, body = bar(1.2)
    found = pulled(scene, body, 1.0, solver, tolerance=1e-4, max_iterations=20_000)
    assert -found[0] == pytest.approx(force(1.2, 1.0), rel=2e-3)
