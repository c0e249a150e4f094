"""Forces per volume."""

import numpy as np
import pytest
from problems import material

import supple
from supple.scene import SceneError, load_scene

MESH = supple.block((2, 1, 1), size=(2, 1, 1))


def scene_with(mesh=MESH, **options):
    scene = supple.Scene(gravity=(0, 0, 0))
    return scene, scene.add_solid(mesh, material("stvk"), density=3.0, **options)


def centers(mesh):
    return mesh.points[mesh.tets].mean(axis=1)


def test_force_density_of_gravity_equals_gravity():
    scene, body = scene_with()
    scene.add_body_force(body, (0, -3.0 * 9.8, 0))
    np.testing.assert_allclose(scene.loads[0].force, body.masses[:, None] * (0, -9.8, 0), atol=1e-12)


def test_field_function_and_rows_are_equal():
    rows = np.column_stack([centers(MESH)[:, 0], np.ones((MESH.n_tets, 2))])
    mesh = MESH.with_data(cell_data={"pull": rows})
    forces = []
    for given in ("pull", rows, lambda X: np.column_stack([X[:, 0], np.ones((len(X), 2))])):
        scene, body = scene_with(mesh)
        scene.add_body_force(body, given)
        forces.append(scene.loads[0].force)
    np.testing.assert_allclose(forces[1:], [forces[0]] * 2)
    np.testing.assert_allclose(forces[0].sum(axis=0), MESH.measures @ rows)


def test_force_on_a_region_and_on_cloth():
    regions = [supple.scene.Region("end", lambda C: C[:, 0] > 1, material("corotated"))]
    scene, body = scene_with(regions=regions)
    scene.add_body_force(body.region("end"), (0, 0, 2.0), supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    np.testing.assert_allclose(scene.loads[0].force.sum(axis=0), (0, 0, 2.0))
    assert not scene.loads[0].force[body.points[:, 0] < 1].any()
    cloth = scene.add_cloth(supple.sheet(2, size=(2, 1)), material("stvk"))
    scene.add_body_force(cloth, (1.0, 0, 0))
    np.testing.assert_allclose(scene.loads[1].force.sum(axis=0), (2.0, 0, 0))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.ones((3, 3)), r"one vector \(3,\), or one for each of its 10 cells"),
        ((0, np.nan, 0), "force per volume"),
        ("pul", "pul"),
    ],
)
def test_mistakes_are_reported(given, sentence):
    scene, body = scene_with()
    with pytest.raises(ValueError, match=sentence):
        scene.add_body_force(body, given)
    for part in (body.where(lambda X: X[:, 0] > 1), "solid0"):
        with pytest.raises(SceneError, match="needs a body, or a region of one"):
            scene.add_body_force(part, (0, 0, 1.0))


FILE = """
[[solid]]
name = "bar"
mesh = { block = { cells = [2, 1, 1], size = [2, 1, 1] } }
material = { stvk = { young = 1e5, poisson = 0.3 } }
[[pin]]
where = { side = "x-" }
[[body_force]]
force = [0, 5, 0]
"""


def test_body_forces_in_a_scene_file(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE, encoding="utf-8")
    (load,) = load_scene(path).scene.loads
    np.testing.assert_allclose(load.force.sum(axis=0), (0, 10, 0))
    path.write_text(FILE.replace("force = [0, 5, 0]", ""), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match="either a force or a field"):
        load_scene(path)
    path.write_text(FILE.replace("force = [0, 5, 0]", 'field = "weight"'), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match="weight"):
        load_scene(path)
    assert issubclass(SceneError, ValueError)
