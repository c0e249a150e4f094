"""Stresses of elements against those of the material, closed forms and symmetries."""

import numpy as np
import pytest
from closed_forms import uniaxial
from evaluated_bodies import NAMES, OBJECTIVE, TET, body_of, piola
from problems import (
    BARRIERS,
    PRECISIONS,
    deformations,
    face,
    material,
    rotations,
)

import supple


@NAMES
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("mesh", [TET, supple.block(2)], ids=["one tetrahedron", "a block"])
def test_stresses_equal_those_of_the_material(name, precision, mesh):
    """In every element of a uniformly deformed body, including simple shear."""
    rtol = 1e-10 if precision == "float64" else 2e-4
    shear = np.eye(3)
    shear[0, 1] = 0.4
    model = supple.scene.build_model(body_of(name, mesh))
    for F in [shear, *deformations(3)]:
        evaluation = supple.evaluate(model, mesh.points @ F.T + [1, 2, 3], precision=precision)
        P, J = piola(name, F), np.linalg.det(F)
        sigma = P if name == "linear_elastic" else P @ F.T / J
        size = np.abs(sigma).max()
        deviator = sigma - np.trace(sigma) / 3 * np.eye(3)
        expected = {
            "deformation_gradient": F,
            "volume_ratio": J,
            "piola": P,
            "cauchy": sigma,
            "von_mises": np.sqrt(1.5 * (deviator**2).sum()),
            "pressure": -np.trace(sigma) / 3,
            "principal_stresses": np.sort(np.linalg.eigvalsh(sigma))[::-1],
            "principal_stretches": np.linalg.svd(F)[1],
        }
        for field, value in expected.items():
            values = getattr(evaluation, field)
            assert values.shape == (mesh.n_tets, *np.shape(value))
            scale = 1 if field in ("deformation_gradient", "volume_ratio", "principal_stretches") else size
            np.testing.assert_allclose(values, np.broadcast_to(value, values.shape), atol=rtol * scale)


@NAMES
def test_pulled_bar_has_uniaxial_stress(name):
    """With free sides: the nominal stress of closed_forms.py over the present area."""
    kind, stretch = material(name), 1.2
    lateral, nominal = uniaxial(name, stretch, kind.mu, kind.lam)
    scene = body_of(name, supple.block((3, 1, 1), (3, 1, 1)))
    (bar,) = scene.bodies
    for end in (0, 3):
        scene.pin(bar.where(face(0, end)), name=f"end{end}")
    evaluation = supple.evaluate(scene, bar.points * [stretch, lateral, lateral])
    area = 1 if name == "linear_elastic" else lateral**2
    np.testing.assert_allclose(evaluation.von_mises, nominal / area, rtol=1e-9)
    np.testing.assert_allclose(evaluation.principal_stresses[:, 0], nominal / area, rtol=1e-9)
    assert list(evaluation.reactions) == ["end0", "end3"]
    np.testing.assert_allclose(evaluation.reactions["end3"].force, [nominal, 0, 0], atol=1e-9 * nominal)
    np.testing.assert_allclose(evaluation.reactions["end0"].force, [-nominal, 0, 0], atol=1e-9 * nominal)
    np.testing.assert_allclose(evaluation.reactions["end3"].moment, 0, atol=1e-9 * nominal)
    np.testing.assert_allclose(evaluation.reactions["end3"].center, [3 * stretch, lateral / 2, lateral / 2])


@pytest.mark.parametrize("name", OBJECTIVE)
def test_stress_rotates_with_the_body(name):
    model = supple.scene.build_model(body_of(name, supple.block(1)))
    x = model.rest + np.random.default_rng(3).uniform(-0.1, 0.1, model.rest.shape)
    before = supple.evaluate(model, x)
    size = np.abs(before.cauchy).max()
    np.testing.assert_allclose(before.cauchy, before.cauchy.transpose(0, 2, 1), atol=1e-11 * size)
    for Q in rotations(3):
        after = supple.evaluate(model, x @ Q.T + [5, 6, 7])
        np.testing.assert_allclose(after.cauchy, Q @ before.cauchy @ Q.T, atol=1e-10 * size)
        np.testing.assert_allclose(after.net_force, before.net_force @ Q.T, atol=1e-10 * size)
        for same in ("von_mises", "volume_ratio", "element_energy", "principal_stretches"):
            np.testing.assert_allclose(getattr(after, same), getattr(before, same), atol=1e-9 * size)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_evaluation_is_accurate_far_from_the_origin(precision):
    """Kernels use displacements, so that only their rounding in float64 is lost."""
    near, distant = (supple.block(2).translated((d, -d, d)) for d in (0.0, 1e6))
    stresses = []
    for mesh in (near, distant):
        moved = mesh.points + 0.1 * np.sin(3 * near.points[:, [1, 2, 0]])
        stresses.append(supple.evaluate(body_of("corotated", mesh), moved, precision=precision).von_mises)
    np.testing.assert_allclose(*stresses, rtol=1e-6 if precision == "float64" else 1e-3)


def test_inverted_and_flat_elements():
    """J and the last stretch are negative; without volume there is no Cauchy stress, and no warning."""
    model = supple.scene.build_model(body_of("corotated"))
    inside_out = supple.evaluate(model, model.rest * [1, 1, -0.5])
    np.testing.assert_allclose(inside_out.volume_ratio, -0.5)
    np.testing.assert_allclose(inside_out.principal_stretches, [[1, 1, -0.5]], atol=1e-12)
    corner = supple.TetMesh(np.vstack([np.zeros(3), np.eye(3)]), [[0, 1, 2, 3]])
    flat = supple.evaluate(body_of("corotated", corner), corner.points * [1, 1, 0])
    assert np.isfinite(flat.piola).all()
    assert not np.isfinite(flat.von_mises).any()
    assert not np.isfinite(flat.principal_stresses).any()
    for name in BARRIERS:
        evaluation = supple.evaluate(body_of(name), model.rest * [1, 1, -0.5])
        assert not np.isfinite(evaluation.energy)


def test_means_at_vertices():
    model = supple.scene.build_model(body_of("corotated", supple.block(2)))
    evaluation = supple.evaluate(model, model.rest)
    np.testing.assert_allclose(evaluation.at_vertices(np.ones(40)), 1.0)
    tensors = evaluation.at_vertices(evaluation.deformation_gradient)
    np.testing.assert_allclose(tensors, np.broadcast_to(np.eye(3), (27, 3, 3)))
    one = evaluation.at_vertices(np.arange(40) == 7)
    assert np.count_nonzero(one) == 4
