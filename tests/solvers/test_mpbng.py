"""MPBNG: same equilibrium as Newton, with less stretch than PBNG on the way, for any cloth."""

import numpy as np
import pytest
from fabrics import invented_fabric
from problems import PRECISIONS, cantilever, material

import supple
from supple import MPBNG, PBNG
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers.vertexwise.cloth_hierarchy import build_layers
from supple.terms.hylc.fabric import fabric_of

MEMBRANE = supple.materials.PlaneStressStVK(young=1e3, poisson=0.3)


def hanging(cells=24, rest=None, size=1.0, quasistatic=True, plane="xz"):
    """A square pinned at two corners that swings from its horizontal start, as in PBNG 11.5."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=quasistatic, dt=0.005, frames=8)
    mesh = supple.sheet(cells, (size, size), plane=plane)
    scene.add_cloth(mesh, MEMBRANE, density=10.0, thickness=1.0, rest=None if rest is None else rest(mesh))
    fixed = mesh.points[:, 2] <= 0 if plane == "xz" else mesh.points[:, 1] >= size
    scene.pin(scene.bodies[0].where(fixed & ((mesh.points[:, 0] <= 0) | (mesh.points[:, 0] >= size))))
    return scene


def shorter(mesh):
    return mesh.points * [1, 1, 0.9]


@pytest.fixture(scope="module")
def model():
    return build_model(hanging())


def test_layers_have_a_quarter_of_the_vertices_each(model):
    layers = build_layers(model, None, 1)
    fine, *coarse = layers.counts
    assert fine == model.vertices
    for many, few in zip(layers.counts[:-1], layers.counts[1:], strict=True):
        assert 3 < many / few < 6
    assert min(coarse) >= 40
    assert len(build_layers(model, 1, 1).counts) == 2


def test_layers_have_the_mass_and_weight_of_the_cloth(model):
    layers = build_layers(model, None, 1)
    mass, force = layers.restrict(model.mass), layers.restrict(model.force)
    for first, last in zip(layers.first[:-1], layers.first[1:], strict=True):
        assert mass[first:last].sum() == pytest.approx(model.mass.sum())
        np.testing.assert_allclose(force[first:last].sum(axis=0), model.force.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize("rest", [None, shorter], ids=["rest", "pattern"])
def test_layers_have_the_energy_of_the_cloth(rest):
    """Under uniform stretch for any triangles; zero at rest."""
    scene = hanging(16, rest)
    model = build_model(scene)
    layers = build_layers(model, None, 1)
    layered_model = layers.model
    energies = {}
    for stretch in (1.0, 1.2):
        problem = Problem(layered_model, "float64")
        problem.positions = layered_model.rest * [stretch, 1, 1]
        energies[stretch] = [float(e) for e in problem.diagnostics.stored_energies()[0]]
    for stretch in (1.0, 1.2):
        energy = energies[stretch]
        fine, coarse = energy[0], energy[1 : 1 + len(layers.layers)]
        np.testing.assert_allclose(coarse, fine, rtol=1e-6, atol=1e-9)
    assert energies[1.2][0] > 1


def test_pins_hold_the_layers(model):
    layered_model = build_layers(model, None, 1).model
    assert len(layered_model.pinned) > len(model.pinned) == 2
    near = (
        np.abs(layered_model.rest[layered_model.pinned][:, None] - model.rest[model.pinned])
        .max(axis=2)
        .min(axis=1)
    )
    assert near.max() == 0


def stretch(scene, positions):
    """Mean elongation of edges."""
    mesh = scene.bodies[0].mesh
    ends = np.unique(np.sort(mesh.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    now, rest = (np.linalg.norm(np.diff(x[ends], axis=1)[:, 0], axis=1) for x in (positions, mesh.points))
    return float((now / rest).mean() - 1)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_mpbng_converges_to_the_equilibrium(precision):
    scene = upright()
    result = supple.equilibrium(scene, solver=MPBNG(), tolerance=1e-4, precision=precision)
    reference = supple.equilibrium(scene, tolerance=1e-6)
    assert result.report.ok, result.report
    assert result.report.error_estimate is not None
    assert result.report.energy == pytest.approx(reference.report.energy, rel=1e-3)
    assert any("layers of 169" in note for note in result.report.notes)


def test_mpbng_is_closer_than_pbng_after_equal_work():
    """One iteration costs three sweeps of the cloth, plus 7 at the end."""
    scene = hanging(24, size=0.3, quasistatic=False)
    exact = list(supple.simulate(scene, tolerance=1e-6))[-1].positions
    errors = {}
    for name, solver, count in (("mpbng", MPBNG(), 4), ("pbng", PBNG(acceleration=None), 19)):
        last = list(supple.simulate(scene, solver=solver, max_iterations=count))[-1].positions
        errors[name] = abs(stretch(scene, last) - stretch(scene, exact))
    assert 5 * errors["mpbng"] < errors["pbng"]


def upright():
    """A square that hangs in its plane by its upper edge."""
    scene = supple.Scene()
    cloth = scene.add_cloth(supple.sheet(12), MEMBRANE, density=10.0, thickness=1.0)
    scene.pin(cloth.where(lambda X: X[:, 1] >= 1))
    return scene


def test_couplings_differ_in_their_convergence_rate():
    """The coupling of the paper converges too, under weight only."""
    scene = upright()
    exact = stretch(scene, supple.equilibrium(scene, tolerance=1e-6).positions)

    def left(solver, count):
        return abs(
            stretch(scene, supple.equilibrium(scene, solver=solver, max_iterations=count).positions) - exact
        )

    assert left(MPBNG(coupling="bound"), 150) < 0.05 * exact
    assert left(MPBNG(coupling="divided"), 150) < 0.05 * exact
    assert left(MPBNG(), 15) < 0.3 * left(PBNG(acceleration=None), 45)


def test_layers_keep_an_equilibrium():
    """The interpolated vertices do not move at all."""
    scene = upright()
    exact = supple.equilibrium(scene, tolerance=1e-9)
    problem = Problem(exact.model, "float64")
    problem.begin_step(np.inf)
    problem.positions = exact.positions
    run = MPBNG(cycle=3, final_sweeps=0).begin(problem)
    run.advance(2)
    assert np.abs(problem.positions - exact.positions).max() < 1e-6


@pytest.mark.parametrize("kind", ["woven", "fabric", "corotated", "bending"])
def test_any_cloth_has_layers(kind):
    bending = supple.HingeBending(1e-3) if kind == "bending" else None
    membrane = {
        "woven": supple.materials.WovenStVK(
            young_weft=2e3, young_warp=1e3, shear_modulus=3e2, poisson_weft=0.2, poisson_warp=0.1
        ),
        "fabric": fabric_of(invented_fabric(), "invented"),
        "corotated": supple.Corotated(young=1e3, poisson=0.3),
        "bending": MEMBRANE,
    }[kind]
    scene = supple.Scene(quasistatic=False, dt=0.01, frames=2)
    cloth = scene.add_cloth(supple.sheet(12, (0.3, 0.3)), membrane, bending)
    scene.pin(cloth.where(lambda X: X[:, 1] >= 0.3))
    frames = list(supple.simulate(scene, solver=MPBNG(), tolerance=1e-3))
    exact = list(supple.simulate(scene, tolerance=1e-6))
    np.testing.assert_allclose(frames[-1].positions, exact[-1].positions, atol=1e-4)
    assert any("iterations with layers" in note for note in frames[-1].report.notes)


def test_rollers_hold_the_layers():
    """A sheet that slides along its border stays in its plane."""
    scene = supple.Scene(quasistatic=False, dt=0.01, frames=3, gravity=(1, -9.8, 1))
    cloth = scene.add_cloth(supple.sheet(12, (0.3, 0.3)), MEMBRANE, density=1.0)
    scene.pin(cloth.where(lambda X: X[:, 1] >= 0.3), axes="yz")
    last = list(supple.simulate(scene, solver=MPBNG(), max_iterations=10))[-1].positions
    top = cloth.mesh.points[:, 1] >= 0.3
    np.testing.assert_allclose(last[top, 1:], cloth.mesh.points[top, 1:], atol=1e-12)
    assert (last[top, 0] - cloth.mesh.points[top, 0]).mean() == pytest.approx(6 * 0.01**2, rel=0.1)


def test_mpbng_without_cloth_equals_pbng_with_a_note():
    scene = cantilever(material("corotated"))
    result = supple.equilibrium(scene, solver=MPBNG(), tolerance=1e-4)
    plain = supple.equilibrium(scene, solver=PBNG(), tolerance=1e-4)
    np.testing.assert_array_equal(result.positions, plain.positions)
    assert any("no cloth of the scene is fine enough" in note for note in result.report.notes)


def test_observed_motions_are_unchanged():
    scene = hanging(12, quasistatic=False)
    scene.frames = 3
    unobserved = list(supple.simulate(scene, solver=MPBNG(), max_iterations=6, substeps=2))
    watched = list(
        supple.simulate(scene, solver=MPBNG(), max_iterations=6, substeps=2, callback=lambda *_: None)
    )
    for a, b in zip(unobserved, watched, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)


@pytest.mark.parametrize("option", ["layers", "cycle", "coarse_sweeps", "binding_factor", "pad", "coupling"])
def test_wrong_options_are_refused(option):
    with pytest.raises((ValueError, TypeError), match=option):
        MPBNG(**{option: -1})
