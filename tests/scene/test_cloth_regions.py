"""Regions of cloth: triangles with other membranes."""

import numpy as np
import pytest
from fabrics import invented_fabric

import supple
from supple.terms.hylc.fabric import fabric_of

SOFT = supple.materials.PlaneStressStVK(young=1e4, poisson=0.0)
STIFF = supple.materials.PlaneStressStVK(young=4e4, poisson=0.0)
LENGTH, FORCE, THICKNESS = 1.0, 1.0, 1e-3


def strip(material, regions=(), rest=None, cells=(8, 1), **options):
    """A strip pulled along x by a force, with fixed transverse positions of its sides."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.sheet(cells, (LENGTH, 0.25), plane="xz")
    cloth = scene.add_cloth(mesh, material, thickness=THICKNESS, rest=rest, regions=regions, **options)
    scene.pin(cloth.where(lambda X: X[:, 0] <= 0))
    scene.pin(cloth, axes="yz")
    scene.add_force(cloth.where(lambda X: X[:, 0] >= LENGTH), (FORCE, 0, 0))
    return scene, cloth


def half(X):
    return X[:, 0] > LENGTH / 2


def stretch(material, part):
    """Stretch of a strip with ν = 0: E (λ² - 1)/2 λ times the section balances the force."""
    tension = FORCE / (0.25 * THICKNESS * material.given()["young"])
    return part * next(
        x.real for x in np.roots([0.5, 0, -0.5, -tension]) if abs(x.imag) < 1e-12 and x.real > 0
    )


@pytest.mark.parametrize("solver", ["newton", "pbng"])
@pytest.mark.parametrize("rest", [None, "plane"])
def test_strip_of_two_materials_stretches_as_both(solver, rest):
    flat = None if rest is None else supple.sheet((8, 1), (LENGTH, 0.25), plane="xz")
    scene, cloth = strip(SOFT, [supple.scene.Region("stiff", half, STIFF)], flat)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-9, max_iterations=20_000)
    end = result.positions[cloth.points[:, 0] >= LENGTH, 0].mean()
    assert end == pytest.approx(stretch(SOFT, 0.5) + stretch(STIFF, 0.5), rel=1e-6)
    middle = result.positions[np.isclose(cloth.points[:, 0], LENGTH / 2), 0].mean()
    assert middle == pytest.approx(stretch(SOFT, 0.5), rel=1e-6)


def test_region_of_all_triangles_equals_the_body_and_parameters_vary_by_triangle():
    full_body, _ = strip(STIFF)
    scene, cloth = strip(SOFT, [supple.scene.Region("all", np.ones(16, bool), STIFF)])
    same = supple.equilibrium(scene, solver="newton", tolerance=1e-10).positions
    np.testing.assert_allclose(
        same, supple.equilibrium(full_body, solver="newton", tolerance=1e-10).positions, atol=1e-9
    )
    assert [part.name for part in cloth.parts] == ["cloth0/all"]
    by_cell = supple.materials.PlaneStressStVK(
        young=np.where(half(cloth.mesh.points[cloth.mesh.cells].mean(axis=1)), 4e4, 1e4), poisson=0.0
    )
    two, _ = strip(SOFT, [supple.scene.Region("stiff", half, STIFF)])
    each, _ = strip(by_cell)
    result = [supple.equilibrium(s, solver="newton", tolerance=1e-10).positions for s in (two, each)]
    np.testing.assert_allclose(*result, atol=1e-9)


def test_masses_forces_and_evaluations_respect_regions():
    scene, cloth = strip(SOFT, [supple.scene.Region("stiff", half, STIFF, density=0.6)])
    assert cloth.masses.sum() == pytest.approx(0.25 * (0.5 * 0.2 + 0.5 * 0.6))
    scene.vary(cloth.region("stiff"), "young", supple.loads.Ramp([0, 1], [1, 0.5]))
    scene.add_body_force(cloth.region("stiff"), (0, 0, 0.1))
    result = supple.equilibrium(scene, tolerance=1e-9)
    softer = supple.materials.PlaneStressStVK(young=2e4, poisson=0.0)
    end = result.positions[cloth.points[:, 0] >= LENGTH, 0].mean()
    assert end == pytest.approx(stretch(SOFT, 0.5) + stretch(softer, 0.5), rel=1e-6)
    stresses = result.evaluate().von_mises
    assert stresses.shape == (16,)
    assert np.isfinite(stresses).all()
    assert supple.inspect(scene)


def test_regions_move_and_are_drawn(tmp_path):
    scene, _ = strip(SOFT, [supple.scene.Region("stiff", half, STIFF)])
    *_, frame = supple.simulate(scene, solver="pbng", quasistatic=False, frames=3, dt=0.01)
    assert frame.report.ok
    supple.io.save_frames(scene, [frame], "obj", tmp_path / "out")


@pytest.mark.parametrize(
    ("regions", "sentence"),
    [
        ({"seam": STIFF}, "Regions must be a list of supple.scene.Region"),
        (
            [supple.scene.Region("a", [0, 1], STIFF), supple.scene.Region("b", [1], STIFF)],
            "share 1 triangles, for example 1",
        ),
        ([supple.scene.Region("a", [16], STIFF)], "Triangles are numbered from 0 to 15"),
        ([supple.scene.Region("a", lambda X: X[:, 0] > 9, STIFF)], "Region 'a' has no triangles"),
        ([supple.scene.Region("a", [0], "stiff")], "needs a material"),
        ([supple.scene.Region("a", [0], STIFF, density=-1)], r"Density \[kg/m²\] of region 'a'"),
        (
            [
                supple.scene.Region(
                    "a", [0, 1], supple.materials.PlaneStressStVK(young=[1e4] * 3, poisson=0.0)
                )
            ],
            "of its 2 triangles",
        ),
    ],
)
def test_invalid_regions_of_cloth_are_refused(regions, sentence):
    with pytest.raises(supple.SceneError, match=sentence):
        strip(SOFT, regions)


def test_fabrics_refuse_regions():
    with pytest.raises(supple.SceneError, match="A fabric has one material"):
        strip(fabric_of(invented_fabric(), "twill"), [supple.scene.Region("a", [0], STIFF)], "uv")


FILE = """
gravity = [0, 0, 0]
stop = {{ tolerance = 1e-9 }}

[[cloth]]
name = "strip"
mesh = {{ sheet = {{ cells = [8, 1], size = [1.0, 0.25], plane = "xz" }} }}
membrane = {{ plane_stress_stvk = {{ young = 1e4, poisson = 0.0 }} }}

[[cloth.region]]
name = "stiff"
where = {where}
membrane = {membrane}
density = 0.6

[[pin]]
where = {{ side = "x-" }}

[[pin]]
axes = ["y", "z"]

[[force]]
where = {{ side = "x+" }}
force = [1.0, 0, 0]
{more}
"""
BOX = "{ box = { min = [0.5, -inf, -inf], max = [inf, inf, inf] } }"
MEMBRANE = "{ plane_stress_stvk = { young = 4e4, poisson = 0.0 } }"


def scene_file(folder, where=BOX, membrane=MEMBRANE, more=""):
    path = folder / "strip.toml"
    path.write_text(FILE.format(where=where, membrane=membrane, more=more))
    return path


@pytest.mark.parametrize("where", [BOX, f"{{ triangles = {[*range(8, 16)]} }}"])
def test_scene_files_have_regions_of_cloth(tmp_path, where):
    scene = supple.load_scene(scene_file(tmp_path, where))
    (cloth,) = scene.scene.bodies
    assert cloth.masses.sum() == pytest.approx(0.25 * (0.5 * 0.2 + 0.5 * 0.6))
    _, same = strip(SOFT, [supple.scene.Region("stiff", half, STIFF)])
    assert np.array_equal(cloth.region("stiff").numbers, same.region("stiff").numbers)
    result = supple.equilibrium(scene)
    end = result.positions[cloth.points[:, 0] >= LENGTH, 0].mean()
    assert end == pytest.approx(stretch(SOFT, 0.5) + stretch(STIFF, 0.5), rel=1e-6)


def test_regions_of_cloth_vary_in_scene_files(tmp_path):
    ramp = "ramp = { times = [0, 1], fractions = [1, 0.5] }"
    more = f'[[vary]]\ncloth = "strip"\nregion = "stiff"\nparameter = "young"\n{ramp}'
    scene = supple.load_scene(scene_file(tmp_path, more=more))
    softer = supple.materials.PlaneStressStVK(young=2e4, poisson=0.0)
    end = supple.equilibrium(scene).positions[:, 0].max()
    assert end == pytest.approx(stretch(SOFT, 0.5) + stretch(softer, 0.5), rel=1e-5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"where": "{ triangles = [16] }"}, r"cloth\[0\].region.* Triangles are numbered from 0 to 15"),
        ({"where": "{ tets = [1] }"}, "tets.*triangles"),
        ({"membrane": "{ plastic_hencky = { young = 1, poisson = 0 } }"}, "plastic_hencky: unknown"),
        ({"where": "{ data = { field = 'part', values = [1] } }"}, "part"),
    ],
)
def test_mistakes_in_regions_of_cloth_are_reported(tmp_path, given, sentence):
    with pytest.raises(supple.SceneError, match=f"(?is){sentence}"):
        supple.load_scene(scene_file(tmp_path, **given))
