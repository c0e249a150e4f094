"""Rest shapes of elements: swelling, growth and residual strains."""

import pickle

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, face, material

import supple
from supple.problem import Problem
from supple.scene import build_model, load_scene

MATERIAL_NAMES = ["gent", "muscle"]


def cube(kind, *fixed_axes, cells=1):
    """A unit cube on three planes of symmetry, optionally constrained at the opposite faces."""
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.5, frames=3)
    body = scene.add_solid(supple.block(cells), kind, density=1.0)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    for axis in fixed_axes:
        scene.pin(body.where(face(axis, 1)), axes="xyz"[axis], name=f"end{axis}")
    return scene, body


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["stvk", "gent"])
def test_free_swelling_has_no_stress(name, precision):
    scene, body = cube(supple.materials.prestrained(material(name), swelling=0.2))
    result = supple.equilibrium(scene, solver="pbng", tolerance=1e-6, precision=precision)
    np.testing.assert_allclose(
        result.positions, 1.2 * body.points, atol=1e-6 if precision == "float64" else 2e-4
    )
    assert np.abs(result.evaluate().cauchy).max() < 2e-4 * 1e3


@pytest.mark.parametrize("solver", ["pbng", "newton", "gpbd", "fpxpbd", "pbd"])
def test_every_solver_finds_the_rest_shape(solver):
    shape = np.array([[1.1, 0.1, 0], [0, 0.9, 0], [0, 0, 1.0]])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(
        supple.block(1), supple.materials.prestrained(material("stvk"), rest_deformation=shape), density=1.0
    )
    corner, along, up = (body.where([i]) for i in (0, *_neighbors(body)))
    scene.pin(corner)
    scene.pin(along, axes="yz")
    scene.pin(up, axes="z")
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-6, max_iterations=5000)
    rest_positions = result.positions - result.positions[0]
    expected = body.points @ shape.T
    np.testing.assert_allclose(rest_positions @ rest_positions.T, expected @ expected.T, atol=1e-2)


def _neighbors(body):
    """Vertices at (1, 0, 0) and (0, 1, 0) of the unit cube."""
    return [int(np.flatnonzero((body.points == x).all(axis=1))[0]) for x in ((1, 0, 0), (0, 1, 0))]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_swelling_clamped_bar_is_compressed(precision):
    """ν = 0: P = θ² P₀(1/θ) with P₀(λ) = E λ (λ² - 1)/2."""
    swelling, young = 0.1, 1e3
    scene, _ = cube(supple.materials.prestrained(supple.StVK(young=young, poisson=0.0), swelling=swelling), 0)
    evaluation = supple.equilibrium(scene, solver="pbng", tolerance=1e-6, precision=precision).evaluate()
    theta = 1 + swelling
    expected = theta**2 * young * 0.5 / theta * (theta**-2 - 1)
    assert evaluation.reactions["end0"].force[0] == pytest.approx(
        expected, rel=1e-6 if precision == "float64" else 1e-3
    )
    assert expected < 0


def test_small_swelling_is_thermal_stress():
    """-E α ΔT/(1 - 2ν) for full confinement."""
    scene, _ = cube(
        supple.materials.prestrained(supple.StVK(young=1e3, poisson=0.3), swelling=1e-5), 0, 1, 2, cells=2
    )
    evaluation = supple.equilibrium(scene, solver="newton", tolerance=1e-6).evaluate()
    np.testing.assert_allclose(evaluation.pressure, 1e3 * 1e-5 / (1 - 0.6), rtol=1e-3)


def test_swelling_may_vary_in_time_and_by_element():
    body = supple.block(1)
    kind = supple.materials.prestrained(material("stvk"), swelling=np.full(body.n_tets, 0.2))
    scene, body = cube(kind)
    scene.vary(body, "swelling", supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    sizes = [frame.positions.max() for frame in supple.simulate(scene, solver="pbng", tolerance=1e-6)]
    np.testing.assert_allclose(sizes, [1.1, 1.2, 1.2], atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MATERIAL_NAMES)
def test_forces_are_derivatives_of_the_energy(name, precision):
    random = np.random.default_rng(0)
    shape = np.eye(3) + 0.1 * random.uniform(-1, 1, (3, 3))
    model = build_model(cantilever(supple.materials.prestrained(material(name), 0.1, shape), cells=1))
    x = model.rest + 0.05 * random.uniform(-1, 1, model.rest.shape)
    problem = Problem(model, precision)
    problem.positions = x
    problem.balance()
    net = problem.states.vectors(problem.states.net)[0].astype(float)
    exact, way = Problem(model, "float64"), random.standard_normal(x.shape) * model.free[:, None]
    h, energies = 1e-5, []
    for sign in (1, -1):
        exact.positions = problem.positions + sign * h * way
        energies.append(exact.energy())
    slope = (energies[0] - energies[1]) / (2 * h)
    assert slope == pytest.approx(-(net * way).sum(), rel=1e-6 if precision == "float64" else 1e-3)


def test_materials_with_rest_shapes_can_be_pickled():
    kind = supple.materials.prestrained(material("gent"), 0.1, np.diag([1, 2, 3.0]))
    again = pickle.loads(pickle.dumps(kind))
    assert again == kind
    assert type(again) is type(kind)
    assert kind.shear_modulus == material("gent").shear_modulus
    np.testing.assert_allclose(kind.given()["rest_deformation"], np.diag([1, 2, 3.0]))


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: supple.materials.prestrained("stvk"), TypeError, "needs a material"),
        (
            lambda: supple.materials.prestrained(material("stvk"), -1.0),
            ValueError,
            "swelling must be greater than -1",
        ),
        (lambda: supple.materials.prestrained(material("stvk"), np.nan), ValueError, "swelling"),
        (
            lambda: supple.materials.prestrained(material("stvk"), 0.0, -np.eye(3)),
            ValueError,
            "positive determinant",
        ),
        (lambda: supple.materials.prestrained(material("stvk"), 0.0, np.eye(2)), ValueError, "shape"),
        (
            lambda: supple.materials.prestrained(supple.materials.prestrained(material("stvk"), 0.1)),
            ValueError,
            "already",
        ),
    ],
)
def test_bad_input_is_refused(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_scene_files_with_swelling(tmp_path):
    path = tmp_path / "gel.toml"
    text = """
        gravity = [0, 0, 0]
        [[solid]]
        mesh = { block = { cells = [1, 1, 1] } }
        material = { stvk = { young = 1e3, poisson = 0.3 } }
        swelling = 0.3
        rest_deformation = [[1, 0, 0], [0, 2, 0], [0, 0, 1]]
        [[pin]]
        where = { side = "x-" }
        [[vary]]
        parameter = "swelling"
        ramp = { times = [0, 1], fractions = [0, 1] }
        """
    path.write_text(text)
    (body,) = load_scene(path).scene.bodies
    assert body.material.swelling == 0.3
    np.testing.assert_allclose(body.material.rest_deformation, np.diag([1, 2, 1.0]).ravel())
    path.write_text(text.replace("[0, 2, 0]", "[0, -2, 0]"))
    with pytest.raises(ValueError, match="positive determinant"):
        load_scene(path)
