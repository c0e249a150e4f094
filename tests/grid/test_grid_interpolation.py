"""Conservation properties of transfers between vertices and grid nodes."""

import numpy as np
import pytest

from supple.grid.grid_model import embed_elements
from supple.grid.interpolation import MIN_FACE_DISTANCE, ORIGIN, interpolate
from supple.materials import Corotated
from supple.meshes import block
from supple.terms import TetElasticity

RNG = np.random.default_rng(4)


def sample_points(count=200, away=0.0, spacing=0.3):
    """Random points in cells, away from their faces."""
    cells = RNG.integers(-5, 5, (count, 3))
    return (
        cells + RNG.uniform(2 * MIN_FACE_DISTANCE, 1 - 2 * MIN_FACE_DISTANCE, (count, 3)) + ORIGIN
    ) * spacing + away


@pytest.mark.parametrize("away", [0.0, 300.0])
def test_affine_motions_are_exact(away):
    """Positions and gradients survive interpolation and the round trip."""
    x = sample_points(away=away)
    at = interpolate(x, 0.3)
    A, b = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    size = np.abs(x).max()
    np.testing.assert_allclose(at.weights.sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(at.gather(at.nodes), x, atol=1e-13 * size)
    np.testing.assert_allclose(at.gather(at.nodes @ A.T + b), x @ A.T + b, atol=1e-12 * size)
    gradient = at.gradient(at.nodes @ A.T + b)
    np.testing.assert_allclose(gradient, np.broadcast_to(A, gradient.shape), atol=1e-11 * size)
    mass = RNG.uniform(0.1, 1, len(x))
    nodes = at.transfer(mass, x @ A.T + b, gradient)
    np.testing.assert_allclose(nodes, at.nodes @ A.T + b, atol=1e-11 * size)


def test_mass_and_momentum_are_conserved():
    """Vertices may lie on nodes, edges and faces of cells."""
    x = np.concatenate([sample_points(), (RNG.integers(-3, 3, (50, 3)) + ORIGIN) * 0.3])
    at = interpolate(x, 0.3)
    mass, v = RNG.uniform(0.1, 1, len(x)), RNG.normal(size=(len(x), 3))
    C = RNG.normal(size=(len(x), 3, 3))
    m = at.spread(mass)
    assert m.min() > 0
    np.testing.assert_allclose(m.sum(), mass.sum(), rtol=1e-13)
    np.testing.assert_allclose(m @ at.transfer(mass, v, C), mass @ v, atol=1e-10)
    back = at.gather(at.transfer(mass, v, C))
    np.testing.assert_allclose(mass @ back, mass @ v, atol=1e-10)


def test_angular_momentum_is_conserved():
    """Σ m x × v + Σ m w (xᵢ - x) × C (xᵢ - x), which APIC conserves."""
    x = sample_points()
    at = interpolate(x, 0.3)
    mass, v = RNG.uniform(0.1, 1, len(x)), RNG.normal(size=(len(x), 3))
    C = RNG.normal(size=(len(x), 3, 3))
    whirl = np.cross(at.offsets, np.einsum("pij,pkj->pki", C, at.offsets))
    own = np.cross(x, v) + np.einsum("pk,pki->pi", at.weights, whirl)
    on_grid = np.cross(at.nodes, at.transfer(mass, v, C))
    np.testing.assert_allclose(at.spread(mass) @ on_grid, mass @ own, atol=1e-9)


def test_bodies_too_distant_for_a_grid_are_refused():
    with pytest.raises(ValueError, match="use a larger spacing than 1e-07 m"):
        interpolate(np.array([[0.0, 0, 0], [1e3, 1e3, 1e3]]), 1e-7)


@pytest.mark.parametrize("spacing", [0.12, 0.4, 3.0])
def test_elements_deform_as_in_the_mesh(spacing):
    """F from nodes equals F from the moved vertices; an element has at most 32 distinct nodes."""
    mesh = block(cells=(2, 2, 2), size=(1, 0.7, 0.5))
    material = Corotated(young=1e4, poisson=0.3)
    term = TetElasticity.from_mesh(mesh.points, mesh.cells, material)
    u = RNG.normal(size=mesh.points.shape) * 0.02
    at = interpolate(mesh.points + u, spacing)
    embedded_cells = embed_elements(term, at, u, material)
    moved = RNG.normal(size=at.nodes.shape) * 0.1
    expected = term.deformations(u + at.gather(moved))
    np.testing.assert_allclose(embedded_cells.deformations(moved), expected, atol=1e-12)
    assert embedded_cells.vertices.shape[1] <= 32
    np.testing.assert_allclose(embedded_cells.gradients.sum(axis=1), 0, atol=1e-12)
    for ids, gradients in zip(embedded_cells.vertices, embedded_cells.gradients, strict=True):
        assert len(np.unique(ids)) == (ids != ids[0]).sum() + 1
        assert not gradients[1:][ids[1:] == ids[0]].any()
