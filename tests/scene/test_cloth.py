"""Cloth in scenes: closed forms, rest shapes, loads, seams, and all features of bodies."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq

import supple
from supple.scene.loads.forces import Wind

MEMBRANE = supple.materials.PlaneStressStVK(young=1e5, poisson=0.0)
SOFT = supple.materials.PlaneStressStVK(
    young=1e5, poisson=0.3
)  # of one kind, as kernels are compiled for each


def strip(cells=(2, 8), size=(0.2, 1.0), gravity=(0, -9.81, 0), quasistatic=True, **options):
    """A strip that hangs from its upper end, y = size[1]."""
    scene = supple.Scene(gravity=gravity, quasistatic=quasistatic)
    cloth = scene.add_cloth(supple.sheet(cells, size), options.pop("membrane", MEMBRANE), **options)
    scene.pin(cloth.where(lambda X: X[:, 1] >= size[1]), name="top")
    return scene, cloth


def test_hanging_strip_is_stretched_by_half_its_weight():
    """ρ_A g L²/(2 E t)."""
    scene, cloth = strip(
        membrane=supple.materials.PlaneStressStVK(young=1e6, poisson=0.0), density=0.2, thickness=1e-3
    )
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-8)
    drop = -result.positions_of(cloth)[:, 1].min()
    assert drop == pytest.approx(0.2 * 9.81 / (2 * 1e6 * 1e-3), rel=5e-3)
    evaluation = result.evaluate()
    np.testing.assert_allclose(evaluation.reactions["top"].force, (0, 0.2 * 0.2 * 9.81, 0), atol=1e-6)
    assert evaluation.volume_ratio.shape == (32,)
    assert evaluation.volume_ratio.min() > 1


def test_heavy_strip_hangs_as_a_catenary():
    """Its rest shape is longer than the span; the sag is within 1 %."""
    span, length = 1.0, 1.2
    mesh = supple.sheet((40, 1), (span, 0.02), plane="xz", pattern="parallel")
    scene = supple.Scene()
    cloth = scene.add_cloth(
        mesh,
        supple.materials.PlaneStressStVK(young=1e7, poisson=0.0),
        rest=mesh.points * [length / span, 1, 1],
        density=0.2,
    )
    scene.pin(cloth.where(lambda X: (X[:, 0] <= 0) | (X[:, 0] >= span)))
    result = supple.equilibrium(scene, tolerance=1e-5)
    a = brentq(lambda a: 2 * a * np.sinh(span / (2 * a)) - length, 0.1, 10)
    sag = a * (np.cosh(span / (2 * a)) - 1)
    assert -result.positions[:, 1].min() == pytest.approx(sag, rel=0.01)
    x, y, _ = result.positions.T
    np.testing.assert_allclose(y, a * np.cosh((x - span / 2) / a) - a - sag, atol=0.01 * sag)


@pytest.mark.parametrize("bending", [None, supple.HingeBending(rigidity=1e-3)], ids=["membrane", "hinges"])
def test_rest_shape_is_independent_of_the_start(bending):
    """Energies and forces equal those of cloth that starts at the pattern, also for a rotated pattern."""
    mesh = supple.sheet(3, pattern="equilateral")
    moved = mesh.points * [1.3, 0.8, 1] + 0.05 * np.sin(3 * mesh.points[:, [1, 2, 0]])
    turned = mesh.rotated((1, 2, 3), 1.0)
    scenes = [supple.Scene(gravity=(0, 0, 0)) for _ in range(3)]
    scenes[0].add_cloth(mesh, SOFT, bending)
    start = supple.TriMesh(moved, mesh.triangles, mesh.uv)
    scenes[1].add_cloth(start, SOFT, bending, rest=turned)
    scenes[2].add_cloth(start, SOFT, bending, rest="uv")
    x = moved + np.random.default_rng(0).normal(0, 0.02, moved.shape)
    plain, *others = (supple.evaluate(scene, x) for scene in scenes)
    for results in others:
        assert results.stored_energy == pytest.approx(plain.stored_energy, rel=1e-9)
        np.testing.assert_allclose(
            results.net_force, plain.net_force, atol=1e-9 * np.abs(plain.net_force).max()
        )
        np.testing.assert_allclose(results.volume_ratio, plain.volume_ratio, rtol=1e-9)
    np.testing.assert_allclose(scenes[1].bodies[0].masses, scenes[0].bodies[0].masses)


def test_stretched_cloth_returns_to_its_rest_shape():
    mesh = supple.sheet(3)
    scene = supple.Scene(gravity=(0, 0, 0))
    cloth = scene.add_cloth(mesh, SOFT, rest=0.7 * mesh.uv)
    scene.pin(cloth, axes="z")
    scene.pin(cloth.where([0]))
    scene.pin(cloth.where([1]), axes="x")
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-9)
    np.testing.assert_allclose(result.positions, 0.7 * mesh.points, atol=1e-6)


def test_rolled_pattern_is_flat_at_rest():
    """By default the tube is at rest; with rest="uv" its hinges have the bending energy of a rolled plate."""
    tube = supple.meshes.tube(0.2, 0.363, 24)  # equilateral
    energies = []
    for options in ({}, {"rest": "uv"}, {"bending": supple.HingeBending(1e-3)}):
        scene = supple.Scene(gravity=(0, 0, 0))
        scene.add_cloth(tube, SOFT, **options)
        energies.append(supple.evaluate(scene, tube.points).stored_energy)
    np.testing.assert_allclose((energies[0], energies[2]), 0, atol=1e-20)
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_cloth(tube, SOFT, supple.HingeBending(1e-3), rest="uv")
    plate = 0.5 * 1e-3 / 0.2**2 * tube.area
    bent = supple.evaluate(scene, tube.points).stored_energy - energies[1]
    assert bent == pytest.approx(plate, rel=0.03)


def balloon(pressure, resolution=4, radius=0.5, thickness=1e-3, ramp=None):
    scene = supple.Scene(gravity=(0, 0, 0))
    material = supple.materials.PlaneStressStVK(young=1e6, poisson=0.3)
    cloth = scene.add_cloth(supple.meshes.sphere(radius, resolution), material, thickness=thickness)
    scene.add_pressure(cloth, pressure, ramp)
    ends = [int(np.argmax(cloth.points @ d)) for d in np.eye(3)]
    for end, axes in zip(ends, ("yz", "xz", "xy"), strict=True):
        scene.pin(cloth.where([end]), axes=axes)
    return scene, cloth


def test_inflated_sphere_matches_the_balloon_formula():
    """p = h ψ'(λ)/(R λ²) with the energy ψ of equal stretches λ."""
    R, h, p = 0.5, 1e-3, 500.0
    scene, cloth = balloon(p)
    result = supple.equilibrium(scene, tolerance=1e-6)
    assert result.report.ok
    material = cloth.material

    def psi(stretch):
        return float(supple.materials.psi(material, (stretch, 0.0, 0.0, 0.0, stretch, 0.0, 0.0, 0.0, 1.0)))

    def excess(stretch):
        slope = (psi(stretch + 1e-6) - psi(stretch - 1e-6)) / 2e-6
        return h * slope / (R * stretch**2) - p

    expected = brentq(excess, 1.001, 1.5)
    ratio = (
        supple.TriMesh(result.positions, cloth.mesh.triangles).enclosed_volume / cloth.mesh.enclosed_volume
    )
    assert ratio ** (1 / 3) - 1 == pytest.approx(expected - 1, rel=0.05)
    assert result.evaluate().load_energy < 0 < result.evaluate().body_energies["cloth0"]


def test_pressure_is_the_derivative_of_its_energy():
    scene, _ = balloon(300.0)
    model = supple.scene.build_model(scene)
    rng = np.random.default_rng(1)
    x, d = model.rest + rng.normal(0, 0.02, model.rest.shape), rng.normal(size=model.rest.shape)
    ahead, behind = (supple.evaluate(model, x + s * d).energy for s in (1e-5, -1e-5))
    slope = (supple.evaluate(model, x).net_force * d).sum()
    assert (ahead - behind) / 2e-5 == pytest.approx(-slope, rel=1e-6)
    term = model.terms[-1]
    u = np.column_stack([x - model.rest, np.zeros(len(x))])
    blocks = term.hessian_blocks(None, u, "exact", 1)
    np.testing.assert_array_equal(blocks, blocks.transpose(0, 2, 1, 4, 3))
    force = [supple.evaluate(model, x + s * d).terms[-1] for s in (1e-6, -1e-6)]
    assert len(force[0].element_energy) == len(term.vertices)


def test_open_surfaces_refuse_pressure():
    scene, cloth = strip()
    scene.add_pressure(cloth, 10.0)
    with pytest.raises(supple.SceneError, match="needs a closed surface, or one whose edges are pinned"):
        supple.scene.build_model(scene)


def test_pressure_may_be_ramped():
    scene, _ = balloon(300.0, resolution=2, ramp=supple.loads.Ramp((0, 1), (0, 1)))
    half, uninterrupted = supple.simulate(scene, solver="newton", dt=0.5, frames=2, tolerance=1e-8)
    inflated, _ = balloon(150.0, resolution=2)
    expected = supple.equilibrium(inflated, solver="newton", tolerance=1e-8)
    np.testing.assert_allclose(half.positions, expected.positions, atol=1e-6)
    assert np.ptp(uninterrupted.positions) > np.ptp(half.positions)


def test_wind_force_on_a_plate_is_drag_and_lift():
    scene, cloth = strip(quasistatic=False)
    scene.add_wind((0, 0, 3.0), drag=1.5, lift=0.5)
    (wind,) = scene.winds
    still = np.zeros_like(cloth.points)
    total = wind.forces(cloth.points, still, 0.0).sum(axis=0)
    np.testing.assert_allclose(total, (0, 0, 0.5 * 1.2 * 0.2 * 1.5 * 9), rtol=1e-12, atol=1e-15)
    along = wind.forces(cloth.points, still + np.array([0, 0, 3.0]), 0.0)
    np.testing.assert_allclose(along, 0, atol=1e-15)
    slanted = Wind((cloth,), (1.0, 0, 1.0), 0.8, 0.8, 1.2).forces(cloth.points, still, 0.0).sum(axis=0)
    np.testing.assert_allclose(slanted, (0, 0, 0.5 * 1.2 * 0.2 * 0.8 * 2), atol=1e-12)


def test_falling_sheet_reaches_its_terminal_velocity():
    scene = supple.Scene(quasistatic=False, dt=1 / 30)
    one = supple.TriMesh([[0, 0, 0], [1, 0, 0], [0, 0, 1]], [[0, 1, 2]])  # a sheet would fold as it falls
    cloth = scene.add_cloth(one, MEMBRANE, density=0.2)
    scene.add_wind((0, 0, 0), drag=1.0, lift=0.0)
    *_, frame = supple.simulate(scene, solver="pbng", frames=40, tolerance=1e-8)
    expected = np.sqrt(2 * 0.2 * 9.81 / 1.2)
    np.testing.assert_allclose(frame.velocities[:, 1], -expected, rtol=1e-2)
    assert cloth.masses.sum() == pytest.approx(0.1)


def test_wind_is_refused_in_equilibria():
    scene, _ = strip()
    scene.add_wind((1, 0, 0))
    with pytest.raises(supple.SceneError, match="Wind on 'cloth0' is not supported in equilibria"):
        supple.equilibrium(scene)


def test_pieces_are_sewn_by_distance():
    scene, upper = strip(cells=(2, 4), size=(0.2, 0.5))
    lower = scene.add_cloth(supple.sheet((2, 4), (0.2, 0.5), origin=(0, -0.505, 0)), MEMBRANE)
    scene.attach(lower, upper.all, stiffness=1e4, within=0.01)
    (seam,) = scene.attachments
    assert seam.vertices.shape == (3, 2)
    assert set(seam.vertices[:, 1]) == set(upper.where(lambda X: X[:, 1] <= 0).vertices)
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-8)
    np.testing.assert_allclose(result.evaluate().reactions["top"].force, (0, 0.2 * 0.2 * 9.81, 0), atol=1e-6)
    with pytest.raises(supple.SceneError, match=r"None of the 15 vertices of 'cloth1' is within 0\.001 m"):
        scene.attach(lower, upper, stiffness=1e4, within=1e-3)


def test_cloth_hangs_from_a_solid():
    """Cells of both types in one scene are counted, evaluated and drawn together."""
    scene = supple.Scene()
    block = scene.add_solid(
        supple.block(2, (0.2, 0.2, 0.2), (0, 0.5, -0.1)), supple.Corotated(young=1e5, poisson=0.3)
    )
    cloth = scene.add_cloth(supple.sheet((2, 4), (0.2, 0.5)), MEMBRANE, name="curtain")
    scene.attach(cloth.where(lambda X: X[:, 1] >= 0.5), block, stiffness=1e3)
    scene.pin(block.where(lambda X: X[:, 1] >= 0.7), name="ceiling")
    result = supple.equilibrium(scene, solver="newton", tolerance=1e-8)
    evaluation = result.evaluate()
    weight = 9.81 * (1000 * 0.008 + 0.2 * 0.1)
    np.testing.assert_allclose(evaluation.reactions["ceiling"].force, (0, weight, 0), atol=1e-5)
    assert evaluation.vertices.shape == (40 + 16, 4)
    assert (evaluation.vertices[40:, 3] == -1).all()
    assert evaluation.cauchy.shape == (56, 3, 3)
    assert np.isfinite(evaluation.at_vertices(evaluation.von_mises)).all()
    assert set(evaluation.body_energies) == {"solid0", "curtain"}
    facts = supple.inspect(scene)
    assert (facts["tets"], facts["triangles"]) == (40, 16)
    assert [body["kind"] for body in facts["bodies"]] == ["solid", "cloth"]
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.positions_of(cloth), result.positions_of(cloth))
    for field in ("volume_ratio", "bending_angle", "weft_strain", "body"):
        image = supple.render(result, field=field, size=(320, 240))
        assert np.ptp(image) > 50


def test_both_sides_of_cloth_are_lit():
    """A sheet seen from behind is as bright as a flipped one."""
    scene, _ = strip(cells=(2, 2), size=(1.0, 1.0))
    other = supple.Scene()
    mesh = scene.bodies[0].mesh
    over = supple.TriMesh(mesh.points, mesh.triangles[:, ::-1], mesh.uv[:, ::-1])
    other.add_cloth(over, MEMBRANE)
    images = [supple.render(s, camera="back", size=(320, 240)) for s in (scene, other)]
    middle = [image[100:140, 120:160].astype(int) for image in images]
    np.testing.assert_allclose(*middle, atol=3)


def test_equilibria_of_cloth_vary():
    scene, cloth = strip(cells=(1, 3))
    softer = supple.materials.PlaneStressStVK(young=5e4, poisson=0.0)
    variations = [supple.Variation(), supple.Variation(materials={cloth: softer})]
    stiff, soft = supple.equilibria(scene, variations, solver="newton", tolerance=1e-8)
    drops = [-result.positions[:, 1].min() for result in (stiff, soft)]
    assert drops[1] == pytest.approx(2 * drops[0], rel=0.1)


@pytest.mark.parametrize("solver", ["pbng", "xpbd", "gpbd", "pbd", "fpxpbd"])
def test_rest_patterns_in_element_wise_methods(solver):
    """A rest shape equal to the start gives the same result as no rest shape."""
    scene, cloth = strip(cells=(1, 3), quasistatic=False)
    mesh = cloth.mesh
    other = supple.Scene(quasistatic=False)
    copy = other.add_cloth(mesh, MEMBRANE, rest=mesh.rotated((1, 1, 0), 0.5).points)
    other.pin(copy.where(lambda X: X[:, 1] >= 1))
    frames = [
        list(supple.simulate(s, solver=solver, dt=0.02, frames=3, max_iterations=5))[-1]
        for s in (scene, other)
    ]
    np.testing.assert_allclose(frames[1].positions, frames[0].positions, atol=1e-9)


def test_sealed_gas_keeps_p_times_v():
    scene, cloth = balloon(500.0, resolution=3)
    scene.inflations.clear()
    scene.add_cavity(cloth, 500.0, sealed=True, ambient=1000.0)
    result = supple.equilibrium(scene, tolerance=1e-6)
    volume = supple.TriMesh(result.positions, cloth.mesh.triangles).enclosed_volume
    (pressure,) = {round(float(p), 3) for p in result.model.terms[-1].pressure}
    assert pressure < 499
    assert (pressure + 1000) * volume == pytest.approx(1500 * cloth.mesh.enclosed_volume, rel=1e-5)


def test_folds_threads_and_areas_are_quantities():
    """A sheet stretched along its weft and folded along a line; solids have none of them."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.sheet((4, 2))
    scene.add_cloth(mesh, MEMBRANE)
    scene.add_solid(supple.block(1, origin=(3, 0, 0)), supple.Corotated(young=1e5, poisson=0.3))
    x, y, _ = mesh.points.T
    bent = np.stack([1.2 * np.minimum(x, 0.5), y, 1.2 * np.maximum(x - 0.5, 0)], axis=1)
    evaluation = supple.evaluate(scene, np.concatenate([bent, scene.bodies[1].points]))
    np.testing.assert_allclose(evaluation.weft_strain[:16], 0.2)
    np.testing.assert_allclose(evaluation.warp_strain[:16], 0, atol=1e-12)
    np.testing.assert_allclose(evaluation.area_ratio[:16], 1.2)
    assert sorted(np.round(evaluation.bending_angle[:16], 9)) == [0] * 12 + [90] * 4
    for name in ("bending_angle", "weft_strain", "warp_strain", "area_ratio"):
        assert np.isnan(getattr(evaluation, name)[16:]).all()
        assert evaluation.fields([name]).cells[name].shape == (21,)
