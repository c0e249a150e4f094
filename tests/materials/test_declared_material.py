"""A material from outside the package with a direction and an activation per element, in every interface."""

import json
import tomllib

import numpy as np
import pytest
from fibers import Fibers
from problems import cantilever, face, flat, matrix
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.kernels import compilation
from supple.linear.assembly.hessian import Assembly
from supple.materials import MATERIALS, hessian_bound, psi, stress, stress_differential
from supple.problem import Problem
from supple.scene import load_scene, scene_schema
from supple.solve.batch_solve import StopCriteria, solve

MESH = supple.block((3, 2, 2), size=(1.5, 1, 1))


@pytest.fixture(autouse=True)
def registered():
    supple.materials.register_material("fibers", Fibers)
    yield
    del MATERIALS["fibers"]


def random_directions(seed=0, count=MESH.n_tets):
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def varied(seed=0):
    """Parameters of all types, uniform and by element."""
    activation = np.random.default_rng(seed).uniform(0, 0.5, MESH.n_tets)
    return Fibers(shear=1e3, stiffness=2e3, fiber=random_directions(seed), activation=activation)


def scene_of(material, mesh=MESH):
    scene = supple.Scene(gravity=(0, -5, 0))
    body = scene.add_solid(mesh, material, density=2)
    scene.pin(body.where(face(0, mesh.points[:, 0].min())))
    return scene


F = np.eye(3) + 0.3 * np.random.default_rng(1).normal(size=(3, 3))


def test_derivatives_of_the_declared_material():
    kind = Fibers(shear=1e3, stiffness=2e3, fiber=(1, 2, -1), activation=0.3)
    D, eps = np.random.default_rng(2).normal(size=(3, 3)), 1e-6

    def at(function, G, *more):
        return np.array(function(kind, flat(G), *more))

    slope = (at(psi, F + eps * D) - at(psi, F - eps * D)) / (2 * eps)
    assert np.sum(matrix(at(stress, F)) * D) == pytest.approx(slope, rel=1e-6)
    slope = (at(stress, F + eps * D) - at(stress, F - eps * D)) / (2 * eps)
    np.testing.assert_allclose(at(stress_differential, F, flat(D)), slope, rtol=1e-6, atol=1e-3)
    g = np.array([0.3, -0.7, 0.2])
    exact = np.array([matrix(at(stress_differential, F, flat(np.outer(e, g)))) @ g for e in np.eye(3)])
    bound = matrix(at(hessian_bound, F, tuple(g), tuple(g)))
    assert np.linalg.eigvalsh(bound - 0.5 * (exact + exact.T)).min() > -1e-9 * 2e3


@pytest.mark.parametrize("kind", ["uniform", "by element"])
def test_newton_and_pbng_find_the_same_equilibrium(kind):
    material = varied() if kind == "by element" else Fibers.example(activation=0.3, fiber=(1, 1, 0))
    newton = supple.equilibrium(scene_of(material), solver=supple.Newton(), tolerance=1e-9)
    pbng = supple.equilibrium(scene_of(material), tolerance=1e-8)
    assert newton.report.ok
    assert pbng.report.ok
    np.testing.assert_allclose(pbng.positions, newton.positions, atol=1e-5)
    assert np.abs(newton.positions - MESH.points).max() > 0.05


def test_forces_use_parameters_by_element():
    """Net forces equal sums over elements, each with a uniform material."""
    material = varied()
    scene = scene_of(material)
    problem = Problem(supple.scene.build_model(scene), "float64")
    x = MESH.points @ F.T
    problem.positions = x
    problem.balance()
    forces = problem.states.net[:-1, :3].copy()
    term = problem.model.terms[0]
    expected = problem.model.force.copy()
    for e, tet in enumerate(MESH.tets):
        single = Fibers(
            shear=1e3, stiffness=2e3, fiber=material.fiber[e], activation=float(material.activation[e])
        )
        P = matrix(stress(single, flat(F)))
        np.add.at(expected, tet, -term.volume[e] * term.gradients[e] @ P.T)
    free = problem.model.free
    np.testing.assert_allclose(forces[free], expected[free], rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_result_rotates_with_body_and_fibers():
    mesh = MESH.with_data(cell_data={"fiber": random_directions(), "a": varied().activation})
    axis, angle = (1, 2, 3), 0.7
    turned = mesh.rotated(axis, angle)
    R = Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis)).as_matrix()
    given = {"shear": 1e3, "stiffness": 2e3, "fiber": "fiber", "activation": "a"}
    x = []
    for m in (mesh, turned):
        scene = supple.Scene(gravity=(0, 0, 0))
        body = scene.add_solid(m, Fibers.on(m, **given))
        scene.pin(body.where(MESH.points[:, 0] == 0))
        x.append(supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-10).positions)
    assert np.abs(x[0] - MESH.points).max() > 0.05
    np.testing.assert_allclose(x[1], x[0] @ R.T, atol=1e-7)


SCENE = """
title = "Fibers"
gravity = [0, -5, 0]
[[solid]]
mesh = { file = "muscle.vtu" }
density = 2
[solid.material.fibers]
shear = 1e3
stiffness = 2e3
fiber = { field = "fiber" }
activation = { field = "a" }
[[pin]]
where = { side = "x-" }
[stop]
tolerance = 1e-6
"""


@pytest.fixture
def file(tmp_path):
    mesh = MESH.with_data(cell_data={"fiber": 3 * random_directions(), "a": varied().activation})
    supple.meshes.save_mesh(mesh, tmp_path / "muscle.vtu")
    path = tmp_path / "muscle.toml"
    path.write_text(SCENE, encoding="utf-8")
    return path


def test_scene_file_with_the_declared_material(file):
    import jsonschema

    loaded = load_scene(file)
    (body,) = loaded.scene.bodies
    np.testing.assert_allclose(body.material.fiber, random_directions(), atol=1e-15)
    assert body.material == Fibers.on(body.mesh, shear=1e3, stiffness=2e3, fiber="fiber", activation="a")
    result = supple.equilibrium(loaded, tolerance=1e-8)
    expected = supple.equilibrium(scene_of(varied()), tolerance=1e-8)
    np.testing.assert_allclose(result.positions, expected.positions, atol=1e-5)
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(SCENE))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '{ field = "a" }',
            "1.0",
            r"fibers.activation: got 1.0; it should be less than 1. relative shortening",
        ),
        ('{ field = "a" }', '{ field = "b" }', r"material: the mesh has no data named 'b'; it has a, fiber"),
        ('{ field = "a" }', "{ feld = 1 }", r"activation.feld: unknown key"),
        ('{ field = "fiber" }', "[0, 0, 0]", r"material: fiber is a direction and must not be zero"),
        ('{ field = "fiber" }', "[0, 1]", r"fibers.fiber: got \[0, 1\]; it should have 3 items"),
        ('{ field = "fiber" }', '{ field = "a" }', r"fiber must have shape \(3,\) .* or \(m, 3\)"),
        ("stiffness = 2e3", "", r"fibers: must have shear and stiffness and fiber; it has"),
        ("shear = 1e3", "young = 1e3", r"fibers.young: unknown key"),
    ],
)
def test_mistakes_in_a_scene_file_are_reported(file, old, new, sentence):
    file.write_text(SCENE.replace(old, new), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match=sentence):
        load_scene(file)


def test_inspect_and_list(file):
    runner = CliRunner()
    outcome = json.loads(runner.invoke(app, ["inspect", str(file), "--json"]).stdout)["bodies"][0]
    assert outcome["material"] == "fibers"
    assert outcome["fields"] == ["a", "fiber"]
    assert outcome["parameters"]["shear"] == {"label": "μ_m [Pa]", "values": [1e3, 1e3]}
    low, high = outcome["parameters"]["activation"]["values"]
    assert 0 <= low < high < 0.5
    assert outcome["parameters"]["fiber"]["values"] is None
    text = runner.invoke(app, ["inspect", str(file)]).stdout
    assert "by element" in text
    entries = json.loads(runner.invoke(app, ["list", "materials", "--json"]).stdout)["materials"]
    parameters = {p["name"]: p for p in next(m for m in entries if m["name"] == "fibers")["parameters"]}
    assert list(parameters) == [p.name for p in Fibers.parameters]
    assert parameters["fiber"]["type"] == "direction"
    assert parameters["bulk"]["default"] == 4e3
    assert "direction of the fibers" in runner.invoke(app, ["list", "materials"]).stdout


def test_variations():
    """Equilibria of variations equal those of separate scenes."""
    scene = scene_of(varied())
    (body,) = scene.bodies
    others = [varied(seed) for seed in (3, 4)]
    variations = [supple.Variation(materials={body: m}) for m in others] + [supple.Variation()]
    for solver in ("pbng", "newton"):
        results = list(supple.equilibria(scene, variations, solver=solver, tolerance=1e-8))
        for result, material in zip(results, [*others, varied()], strict=True):
            expected = supple.equilibrium(scene_of(material), solver=supple.Newton(), tolerance=1e-9)
            np.testing.assert_allclose(result.positions, expected.positions, atol=1e-5)
    wrong = supple.Variation(materials={body: Fibers.example(fiber=random_directions(count=7))})
    with pytest.raises(supple.SceneError, match="has shape"):
        list(supple.equilibria(scene, [wrong]))


@pytest.mark.parametrize("uniform", [True, False])
def test_varying_activation_needs_no_new_kernel(uniform):
    """Parameters change between solves without new arrays or compilation."""

    def material(activation):
        values = activation if uniform else np.full(MESH.n_tets, activation)
        return Fibers.example(fiber=random_directions(), activation=values)

    problem = Problem(supple.scene.build_model(scene_of(material(0.0))), "float64")
    problem.begin_step(np.inf)
    arrays = [rows.material.fiber for rows in problem.layout.terms]
    expected = {
        activation: supple.equilibrium(
            scene_of(material(activation)), solver=supple.Newton(), tolerance=1e-10
        )
        for activation in (0.2, 0.4)
    }

    def check(solver, activation):
        problem.positions = problem.model.rest
        assert solve(problem, solver, StopCriteria(tolerance=1e-9)).ok
        np.testing.assert_allclose(problem.positions, expected[activation].positions, atol=1e-6)

    problem.set_parameters(0, material(0.4))
    for solver in (supple.PBNG(), supple.Newton()):
        check(solver, 0.4)
    with compilation() as compiled:
        for activation in (0.2, 0.4):
            problem.set_parameters(0, material(activation))
            for solver in (supple.PBNG(), supple.Newton()):
                check(solver, activation)
            assert all(rows.material.fiber is a for rows, a in zip(problem.layout.terms, arrays, strict=True))
    assert compiled.seconds == 0
    with pytest.raises(ValueError, match="uniform in the same parameters"):
        problem.set_parameters(0, Fibers.example())


@pytest.mark.parametrize("solver", ["xpbd", "bpxpbd", "fpxpbd", "gpbd", "block_xpbd"])
def test_unsupported_methods_refuse_the_material(solver):
    with pytest.raises(ValueError, match=rf"^{solver} .* Fibers.* pbng"):
        supple.equilibrium(scene_of(varied()), solver=solver, max_iterations=1)


def test_membrane_with_transverse_fibers_is_refused():
    from supple.terms import TriangleElasticity

    with pytest.raises(ValueError, match="fiber of Fibers must lie in the sheet"):
        TriangleElasticity.from_mesh(MESH.points, MESH.surface, Fibers.example(), 0.01)


def test_hessian_is_the_derivative_of_the_forces():
    problem = Problem(supple.scene.build_model(scene_of(varied())), "float64")
    x = MESH.points @ F.T
    step, eps = np.random.default_rng(0).normal(size=x.shape) * problem.model.free[:, None], 1e-6
    nets = []
    for sign in (1, -1):
        problem.positions = x + sign * eps * step
        problem.balance()
        nets.append(problem.states.net[:-1, :3].copy())
    problem.positions = x
    assembly = Assembly(problem)
    H, free = assembly.hessian("exact"), assembly.free
    slope = (nets[1] - nets[0]) / (2 * eps)
    np.testing.assert_allclose((H @ step[free].ravel()).reshape(-1, 3), slope[free], rtol=1e-5, atol=1e-2)


def test_results_and_frames_have_the_deformed_fibers(file, tmp_path):
    """Directions in files of a run and in exports are F a, of unit length."""
    import pyvista

    runner = CliRunner()
    out = tmp_path / "results"
    done = runner.invoke(app, ["run", str(file), "--output", str(out), "--no-picture"])
    assert done.exit_code == 0, done.output
    supple.export(out, "vtu", tmp_path)
    for path in (out / "frame_0001.vtu", tmp_path / "vtu" / "frame_0001.vtu"):
        grid = pyvista.read(path)
        x = np.asarray(grid.points)
        rest = x - grid.point_data["displacement"]
        for e in (0, 7, MESH.n_tets - 1):
            tet = MESH.tets[e]
            gradient = np.linalg.solve(rest[tet[1:]] - rest[tet[0]], x[tet[1:]] - x[tet[0]]).T
            expected = gradient @ random_directions()[e]
            expected *= 3 / np.linalg.norm(expected)
            np.testing.assert_allclose(grid.cell_data["fiber"][e], expected, atol=1e-6)
        np.testing.assert_allclose(grid.cell_data["a"], varied().activation)


def test_material_names_are_unique():
    with pytest.raises(ValueError, match="the name 'corotated' belongs to the material Corotated"):
        supple.materials.register_material("corotated", Fibers)
    with pytest.raises(TypeError, match=r"subclass of supple\.materials\.Material"):
        supple.materials.register_material("mine", tuple)
    with pytest.raises(ValueError, match="a plain word"):
        supple.materials.register_material("a b", Fibers)


def test_bodies_keep_separate_parameters():
    one, other = Fibers.example(activation=0.3), Fibers.example(fiber=(0, 1, 0))
    scene = cantilever(one)
    body = scene.add_solid(supple.block(3, origin=(3, 0, 0)), other, density=2)
    scene.pin(body.where(face(0, 3)))
    model = supple.scene.build_model(scene)
    merged = model.terms[0].material
    assert merged.shear == 1e3
    assert merged.fiber.shape == (len(model.tets), 3)
    positions = supple.equilibrium(scene, tolerance=1e-8).positions
    single = cantilever(other)
    expected = supple.equilibrium(single, tolerance=1e-8).positions
    np.testing.assert_allclose(positions[body.vertices] - [3, 0, 0], expected, atol=1e-6)
