"""Several materials in one mesh."""

import numpy as np
import pytest
from problems import face, material

import supple
from supple.scene import SceneError, load_scene

SOFT, STIFF = material("stvk", young=1e3, poisson=0.0), material("corotated", young=4e3, poisson=0.0)


def upper(C):
    return C[:, 1] > 0.5


def column(regions, cells=2, **options):
    """A unit column on rollers with a load on top."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), SOFT, density=10, regions=regions, **options)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    scene.add_traction(body.where(face(1, 1)), (0, 50.0, 0))
    return scene, body


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["pbng", "newton"])
def test_column_of_two_materials_stretches_as_springs_in_series(solver, precision):
    """With ν = 0 each half has a separate uniaxial stretch: P(λ) = λ E (λ² - 1)/2 below, E (λ - 1) above."""
    if solver == "newton" and precision == "float32":
        pytest.skip("newton computes in float64")
    scene, body = column([supple.scene.Region("top", upper, STIFF, density=30)])
    limits = {"tolerance": 1e-6 if precision == "float64" else 1e-4, "max_iterations": 4000}
    result = supple.equilibrium(scene, solver=solver, precision=precision, **limits)
    low = next(z.real for z in np.roots([500, 0, -500, -50]) if abs(z.imag) < 1e-9 and z.real > 1)
    high = 1 + 50 / 4e3
    y, Y = result.positions[:, 1], body.points[:, 1]
    expected = np.where(Y <= 0.5, low * Y, 0.5 * low + high * (Y - 0.5))
    np.testing.assert_allclose(y, expected, atol=2e-6 if precision == "float64" else 2e-3)
    assert body.masses.sum() == pytest.approx(20)


def test_cells_have_the_stress_of_their_material():
    scene, body = column([supple.scene.Region("top", upper, STIFF)])
    evaluation = supple.equilibrium(scene, solver="newton", tolerance=1e-8).evaluate()
    assert np.isfinite(evaluation.piola).all()
    np.testing.assert_allclose(evaluation.piola[:, 1, 1], 50, rtol=1e-5)
    centers = body.points[body.mesh.tets].mean(axis=1)
    energy = evaluation.energy_density
    assert np.ptp(energy[upper(centers)]) < 1e-4 * energy.max()
    assert energy[upper(centers)].max() < 0.5 * energy[~upper(centers)].min()


def test_regions_of_one_material_equal_parameter_arrays():
    mesh = supple.block(2)
    top = upper(mesh.points[mesh.tets].mean(axis=1))
    young = np.where(top, 4e3, 1e3)
    full_body, _ = column([], cells=2)
    full_body.bodies[0] = supple.Scene().add_solid(mesh, supple.StVK(young=young, poisson=0.0), density=10)
    one = supple.scene.build_model(full_body)
    scene, _ = column([supple.scene.Region("top", upper, supple.StVK(young=4e3, poisson=0.0))])
    two = supple.scene.build_model(scene)
    assert len(one.terms) == len(two.terms) == 1
    a, b = (model.terms[0].material.young for model in (one, two))
    np.testing.assert_allclose(np.sort(a), np.sort(b))


def test_region_is_selected_by_field_mask_or_indices():
    mesh = supple.block(2)
    numbers = np.arange(mesh.n_tets) % 3
    marked = mesh.with_data(cell_data={"region": numbers})
    for where in ({"region": 2}, {"region": [2]}, numbers == 2, np.flatnonzero(numbers == 2)):
        body = supple.Scene().add_solid(marked, SOFT, regions=[supple.scene.Region("a", where, STIFF)])
        np.testing.assert_array_equal(body.region("a").numbers, np.flatnonzero(numbers == 2))


def test_parameter_of_a_region_may_vary():
    scene, body = column([supple.scene.Region("top", upper, STIFF)])
    scene.vary(body.region("top"), "young", supple.loads.Ramp(times=(0, 1), fractions=(0.25, 1)))
    early, late = (supple.scene.build_model(scene).materials_at(t)[1].young for t in (0, 1))
    np.testing.assert_allclose([early, late], [1e3, 4e3])
    variation = supple.Variation(materials={body.region("top"): supple.Corotated(young=8e3, poisson=0.0)})
    plain, stiffer = supple.equilibria(
        scene, [supple.Variation(), variation], solver="newton", tolerance=1e-6
    )
    assert stiffer.positions[:, 1].max() < plain.positions[:, 1].max()


def test_variations_of_regions_take_parameters_by_element():
    """One entry per tetrahedron of the body or of the region."""
    scene, body = column([supple.scene.Region("top", upper, STIFF)])
    top = body.region("top").numbers
    young = np.where(np.isin(np.arange(body.n_cells), top), 8e3, 2e3)

    def other(low, high):
        return supple.Variation(
            materials={
                body: supple.StVK(young=low, poisson=0.0),
                body.region("top"): supple.Corotated(young=high, poisson=0.0),
            }
        )

    each = [other(2e3, 8e3), other(young, young), other(young, young[top])]
    one, *others = supple.equilibria(scene, each, solver="newton", tolerance=1e-8)
    for result in others:
        np.testing.assert_allclose(result.positions, one.positions, atol=1e-7)
    with pytest.raises(SceneError, match=r"one for each of its 20 tetrahedra or of the 40"):
        list(supple.equilibria(scene, [other(2e3, np.full(7, 8e3))], solver="newton"))


BAD = {
    "has no region 'tip'": lambda s, b: b.region("tip"),
    "share 20 tetrahedra": lambda s, b: column(
        [supple.scene.Region("a", upper, STIFF), supple.scene.Region("b", upper, SOFT)]
    ),
    "already a region named": lambda s, b: column(
        [supple.scene.Region("a", upper, STIFF), supple.scene.Region("a", lambda C: ~upper(C), SOFT)]
    ),
    "has no tetrahedra": lambda s, b: column([supple.scene.Region("a", lambda C: C[:, 0] > 9, STIFF)]),
    "no data named 'region'": lambda s, b: column([supple.scene.Region("a", {"region": 1}, STIFF)]),
    "numbered from 0 to 39": lambda s, b: column([supple.scene.Region("a", [40], STIFF)]),
    "needs a material": lambda s, b: column([supple.scene.Region("a", upper, "steel")]),
    "density": lambda s, b: column([supple.scene.Region("a", upper, STIFF, density=-1)]),
    "list of supple.scene.Region": lambda s, b: column("top"),
    "belongs to another scene": lambda s, b: s.vary(
        column([supple.scene.Region("top", upper, STIFF)])[1].region("top"),
        "young",
        supple.loads.Ramp((0, 1), (0, 1)),
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_regions_are_refused(sentence):
    scene, body = column([supple.scene.Region("top", upper, STIFF)])
    with pytest.raises(ValueError, match=sentence):
        BAD[sentence](scene, body)


def test_unused_region_value_is_reported():
    mesh = supple.block(2)
    mesh = mesh.with_data(cell_data={"region": np.arange(mesh.n_tets) % 2})
    with pytest.raises(SceneError, match="no region 7 in the field 'region' of the mesh, which has 0, 1"):
        supple.Scene().add_solid(mesh, SOFT, regions=[supple.scene.Region("bone", {"region": 7}, STIFF)])


FILE = """
gravity = [0, -1, 0]

[[solid]]
name = "leg"
mesh = { block = { cells = [2, 2, 2] } }
material = { stvk = { young = 1e3, poisson = 0.3 } }

[[solid.region]]
name = "bone"
where = { box = { min = [-inf, 0.5, -inf], max = [inf, inf, inf] } }
material = { corotated = { young = 1e5, poisson = 0.3 } }
density = 1900

[[pin]]
where = { side = "y-" }

[[vary]]
region = "bone"
parameter = "young"
ramp = { times = [0, 1], fractions = [0.5, 1] }
"""


def test_regions_of_scene_files(tmp_path):
    path = tmp_path / "leg.toml"
    path.write_text(FILE)
    scene = load_scene(path).scene
    (body,) = scene.bodies
    assert body.region("bone").n_cells == 20
    assert body.masses.sum() == pytest.approx(1450)
    assert scene.varying_parameters[0].body.name == "leg/bone"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('region = "bone"\nparameter', 'region = "bohne"\nparameter', "no region 'bohne'"),
        ("where = { box = { min = [-inf, 0.5, -inf], max = [inf, inf, inf] } }",
         'where = { data = { field = "part", values = [1] } }', "no data named 'part'"),
        ("density = 1900", "density = 0", "density"),
        ("corotated", "corotatd", "corotatd"),
    ],
)  # fmt: skip
def test_mistakes_in_scene_files_are_reported(tmp_path, old, new, sentence):
    path = tmp_path / "leg.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=sentence):
        load_scene(path)
