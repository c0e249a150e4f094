"""Derivatives of equilibria by all inputs against central differences of solves."""

import os
import pickle

import numpy as np
import pytest
from differences import Loss, check, exact, scalars_of
from problems import HAND_WRITTEN, cantilever, face, material, twisted

import supple
from supple.gradients import NoGradientError
from supple.materials import MATERIALS


def pulled_bar(kind, cells=(2, 1, 1)):
    scene = supple.Scene(gravity=(0, -3, 1))
    body = scene.add_solid(supple.block(cells, size=(1, 0.5, 0.4)), kind, density=20)
    scene.pin(body.where(face(0, 0)), name="wall")
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.2, 0.2), angle=0.3)
    scene.pin(body.where(face(0, 1)), motion=turn + supple.Translate((0.05, 0, 0)), name="hand")
    return scene, body


SELECTED = [*HAND_WRITTEN, "ogden", "holzapfel_gasser_ogden", "muscle", "plastic_stvk"]
TESTED_MATERIALS = list(MATERIALS) if "SUPPLE_EVERY_MATERIAL" in os.environ else SELECTED
"""Materials with ψ only share their kernels' structure, whose compilation takes minutes for all of them."""


@pytest.mark.parametrize("name", TESTED_MATERIALS)
def test_parameters_of_materials(name):
    kind = material(name)
    scene, _ = pulled_bar(kind)
    check(scene, scalars_of(kind))


def test_loads_pins_density_and_rest_shape_of_a_solid():
    scene, body = pulled_bar(material("stable_neo_hookean"))
    n = len(body.points)
    right = body.where(face(0, 1))
    rng = np.random.default_rng(3)
    scene.add_force(body.where(face(1, 0.5)), (0, 1, 2))
    for given in (
        {"gravity": (1.0, -3.0, 2.0)},
        {"forces": rng.normal(size=(n, 3))},
        {"pins": {"hand": right.points + np.array([0.1, 0.02, 0.03]), "wall": body.where(face(0, 0)).points}},
        {"density": 30.0},
        {"rest": body.points + 0.01 * rng.normal(size=(n, 3))},
    ):
        check(scene, given)


def test_forces_per_volume_depend_on_the_rest_shape():
    """The references are scenes with other meshes, and the derivatives of PyTorch and JAX."""
    rng = np.random.default_rng(6)
    mesh = supple.block((2, 1, 1), size=(1, 0.5, 0.4))
    tip = mesh.points[mesh.tets].mean(axis=1)[:, 0] > 0.5

    def scene_of(points):
        scene = supple.Scene(gravity=(0, 0, 0))
        kind = material("neo_hookean")
        regions = [supple.scene.Region("tip", np.flatnonzero(tip), material("neo_hookean", young=2e3))]
        body = scene.add_solid(supple.TetMesh(points, mesh.tets), kind, density=20, regions=regions)
        scene.pin(body.where(np.flatnonzero(mesh.points[:, 0] <= 0)))
        scene.add_body_force(body, (0, -40, 10))
        half = supple.loads.Ramp((0, 1), (0, 0.5))
        scene.add_body_force(body.region("tip"), (30, 0, 20), half)
        return scene

    scene = scene_of(mesh.points)
    loss, d = Loss(len(mesh.points)), rng.normal(size=mesh.points.shape)
    result = supple.gradient(supple.equilibrium(scene), loss.gradient)
    slope = float((result.rest * d).sum())
    h = 1e-4
    values = [loss(exact(scene_of(mesh.points + t * h * d))) for t in (-2, -1, 1, 2)]
    expected = (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * h)
    assert slope == pytest.approx(expected, rel=1e-6)
    check(scene, {"rest": mesh.points})


def test_parameters_by_element():
    scene, body = pulled_bar(material("neo_hookean"))
    rng = np.random.default_rng(4)
    m = body.mesh.n_cells
    check(scene, {"young": rng.uniform(800, 1200, m), "poisson": rng.uniform(0.1, 0.4, m)})
    check(scene, {"mu": 300.0, "lam": rng.uniform(400, 800, m)})


def test_body_gradient_is_the_sum_over_elements():
    scene, body = pulled_bar(material("corotated"))
    result = supple.equilibrium(scene)
    own = supple.gradient(result, Loss(len(body.points)).gradient).body(body)
    assert own.young == pytest.approx(own.per_element("young").sum(), rel=1e-12)
    assert own.per_element("young").shape == (body.mesh.n_cells,)
    E, nu = 1e3, 0.3  # the chain rule of Lamé's parameters
    by_young = own.mu / (2 * (1 + nu)) + own.lam * nu / ((1 + nu) * (1 - 2 * nu))
    assert own.young == pytest.approx(by_young, rel=1e-9)
    by_poisson = -own.mu * E / (2 * (1 + nu) ** 2)
    by_poisson += own.lam * E * (1 + 2 * nu**2) / ((1 + nu) * (1 - 2 * nu)) ** 2
    assert own.poisson == pytest.approx(by_poisson, rel=1e-9)


def test_activation_and_fibers_of_muscles():
    kind = material("muscle", activation=0.3)
    scene, body = pulled_bar(kind)
    rng = np.random.default_rng(5)
    check(scene, {"activation": rng.uniform(0.1, 0.9, body.mesh.n_cells)})
    check(scene, {"fiber": np.array([1.0, 0.2, 0.1])})
    scene, body = pulled_bar(material("muscle", activation=0.0))
    result = supple.equilibrium(scene)
    loss = Loss(len(body.points)).gradient
    at_zero = supple.gradient(result, loss).body(body).activation  # an end of its range
    scene, near = pulled_bar(material("muscle", activation=1e-5))
    nearby = supple.gradient(supple.equilibrium(scene), loss).body(near).activation
    assert at_zero == pytest.approx(nearby, rel=1e-3)


class Soft(supple.materials.Material):
    """A material that defines only ψ."""

    mu: supple.materials.Pa
    kappa: supple.materials.Pa
    power: float = 2.5

    def psi(self, I1, J):
        return 0.5 * self.mu * (I1 * J ** (-2 / 3) - 3) + self.kappa * (J - 1) ** 2 * self.power


def test_materials_with_psi_only():
    scene, body = pulled_bar(Soft(mu=400.0, kappa=600.0))
    check(scene, {"mu": 400.0, "kappa": np.linspace(500, 700, body.mesh.n_cells), "power": 2.5})


def test_rollers_and_rails():
    scene = supple.Scene(gravity=(0, -3, 1))
    body = scene.add_solid(supple.block((2, 1, 1)), material("neo_hookean"), density=20)
    scene.pin(body.where(face(0, 0)), axes="x", name="plane")
    scene.pin(body.where([0]), axes="y", name="point")
    scene.pin(body.where(face(2, 0)), normal=(0.1, 0, 1), name="oblique")
    scene.pin(body.where([11]), along=(0, 1, 0.3), motion=supple.Translate((0.1, 0, 0)), name="rail")
    plane, rail = (body.where(chosen).points for chosen in (face(0, 0), [11]))
    check(scene, {"gravity": scene.gravity, "young": 1e3, "rest": body.points})
    check(
        scene, {"pins": {"plane": plane + np.array([0.01, 0.5, 0.3]), "rail": rail + np.array([0.1, 0.2, 0])}}
    )


def test_several_bodies_with_all_ties():
    scene = supple.Scene(gravity=(0, -2, 0))
    top = scene.add_solid(supple.block(1, origin=(0, 1, 0)), material("corotated"), density=10, name="top")
    below = scene.add_solid(supple.block(1), material("corotated", young=2e3), density=5, name="below")
    scene.pin(top.where(face(1, 2)), name="ceiling")
    scene.attach(below.where(face(1, 1)), top.where(face(1, 1)), stiffness=1e3)
    scene.add_springs(below.where(face(1, 0)), (0.5, -0.5, 0.5), stiffness=30, rest_length=0.75**0.5)
    young = {"top": 1e3, below: 2e3}
    check(scene, {"young": young, "density": {"below": 5.0}, "gravity": (0.0, -2.0, 1.0)})
    check(scene, {"rest": np.concatenate([top.points, below.points])})


def test_regions_of_a_body():
    mesh = supple.block((2, 1, 1), size=(1, 0.5, 0.4))
    centers = mesh.points[mesh.tets].mean(axis=1)

    def scene_of(stiff=2e3, soft=1e3, density=20.0, heavy=30.0):
        scene = supple.Scene(gravity=(0, -3, 1))
        tip = supple.scene.Region(
            "tip", centers[:, 0] > 0.5, material("corotated", young=stiff), density=heavy
        )
        body = scene.add_solid(mesh, material("corotated", young=soft), density=density, regions=[tip])
        scene.pin(body.where(face(0, 0)))
        return scene

    scene, loss = scene_of(), Loss(12)
    result = supple.gradient(supple.equilibrium(scene), loss.gradient)
    own = result.body(scene.bodies[0])
    for by, name, value in (
        (own.young, "soft", 1e3),
        (own.region("tip").young, "stiff", 2e3),
        (own.density, "density", 20.0),
        (own.region("tip").density, "heavy", 30.0),
    ):
        h = 1e-3 * value
        ends = [loss(exact(scene_of(**{name: value + s * h}), result.positions)) for s in (1, -1)]
        assert by == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5), name


def test_cloth_under_pressure():
    scene = supple.Scene(gravity=(0, -1, 0))
    mesh = supple.sheet(3, size=(1, 1), plane="xz")
    cloth = scene.add_cloth(
        mesh,
        supple.materials.PlaneStressStVK(young=1e4, poisson=0.3),
        supple.HingeBending(rigidity=1e-2),
        density=0.2,
        thickness=1e-3,
    )
    X = mesh.points
    edge = np.flatnonzero(
        (np.abs(X[:, [0, 2]]) < 1e-9).any(axis=1) | (np.abs(X[:, [0, 2]] - 1) < 1e-9).any(axis=1)
    )
    scene.pin(cloth.where(edge), name="frame")
    scene.add_pressure(cloth.where(np.arange(len(X))), 5.0)
    where = X[edge] * (1.02, 1, 1.01)
    check(
        scene, {"pressures": (5.0,), "young": 1e4, "poisson": 0.3, "density": 0.2, "pins": {"frame": where}}
    )
    result = supple.gradient(supple.equilibrium(scene, solver="newton"), np.ones_like(X))
    with pytest.raises(ValueError, match="rest shape of cloth"):
        result.rest  # noqa: B018


@pytest.mark.parametrize("friction", [0.0, 5.0])
def test_contact_with_a_plane_acts_as_constraint(friction):
    scene = supple.Scene(gravity=(0, -3, 0))
    body = scene.add_solid(supple.block((2, 2, 1)), material("corotated"), density=20)
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0.02, -0.1, 0.01)), name="hand")
    scene.add_obstacle(supple.Plane(normal=(0, 1, 0)), friction=friction)
    hand = body.where(face(1, 1)).points + np.array([0.02, -0.1, 0.01])
    given = {"young": 1e3, "poisson": 0.3, "gravity": scene.gravity}
    if not friction:
        given["pins"] = {"hand": hand}
    result = supple.equilibrium(scene, tolerance=1e-5)
    gradient = supple.gradient(result, Loss(18).gradient)
    assert gradient.report.contacts == 6
    assert np.abs(gradient.forces[body.where(face(1, 0)).indices, 1]).max() < 1e-12
    if not friction:
        check(scene, given, solver="pbng", relative=1e-5)


@pytest.mark.parametrize("friction", [0.05, 0.3])
def test_friction_of_sliding_vertices_is_refused(friction):
    scene = supple.Scene(gravity=(0, -3, 0))
    body = scene.add_solid(supple.block((2, 2, 1)), material("corotated"), density=20)
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0.05, -0.1, 0.01)), name="hand")
    scene.add_obstacle(supple.Plane(normal=(0, 1, 0)), friction=friction)
    result = supple.equilibrium(scene, tolerance=1e-5)
    with pytest.raises(supple.gradients.NoGradientError, match="vertices slid along 'obstacle0'"):
        supple.gradient(result, Loss(18).gradient)


@pytest.mark.parametrize("kind", ["body", "keep_offset", "own places", "springs"])
def test_ties_computed_from_the_rest_shape_refuse_its_gradient(kind):
    scene = supple.Scene(gravity=(0, -2, 0))
    top = scene.add_solid(supple.block(1, origin=(0, 1, 0)), material("corotated"), density=10, name="top")
    below = scene.add_solid(supple.block(1), material("corotated", young=2e3), density=5, name="below")
    scene.pin(top.where(face(1, 2)), name="ceiling")
    ends = below.where(face(1, 1)), top.where(face(1, 1))
    scene.attach(
        ends[0], top if kind == "body" else ends[1], stiffness=1e3, keep_offset=kind == "keep_offset"
    )
    if kind == "own places":
        scene.attach(below.where(face(1, 0)), stiffness=30)
    if kind == "springs":
        scene.add_springs(below.where(face(1, 0)), (0.5, -0.5, 0.5), stiffness=30)
    result = supple.gradient(supple.equilibrium(scene), np.ones((16, 3)))
    assert np.isfinite(result.gravity).all()
    with pytest.raises(supple.gradients.NoGradientError, match="computed from the rest shape"):
        result.rest  # noqa: B018


def test_parameters_of_motions():
    scene, _ = pulled_bar(material("corotated"))
    loss = Loss(12)

    def turn(values):
        return supple.Rotate(axis=(1, 0, 0), center=(1, 0.2, 0.2), angle=values[0]) + supple.Translate(
            values[1:]
        )

    result = supple.gradient(supple.equilibrium(scene), loss.gradient)
    slopes = result.motion("hand", turn, (0.3, 0.05, 0.0, 0.0))

    def at(angle):
        moved, body = pulled_bar(material("corotated"))
        moved.pins.pop()
        moved.pin(body.where(face(0, 1)), motion=turn((angle, 0.05, 0, 0)), name="hand")
        return loss(exact(moved))

    assert slopes[0] == pytest.approx((at(0.301) - at(0.299)) / 0.002, rel=1e-5)
    np.testing.assert_allclose(slopes[1:], result.pins["hand"].sum(axis=0), rtol=1e-9)
    with pytest.raises(ValueError, match="no pin 'hnad'"):
        result.motion("hnad", turn, (0, 0, 0, 0))


def test_unconverged_result_is_polished():
    scene = twisted(material("neo_hookean"), cells=3, stretch=0.3)
    loss = Loss(64)
    unconverged = supple.equilibrium(
        scene, solver=supple.PBNG(), max_iterations=3, tolerance=1e-9, position_tolerance=None
    )
    assert unconverged.report.relative_residual > 1e-3
    fine = supple.equilibrium(scene, solver="newton", tolerance=1e-10)
    a, b = supple.gradient(unconverged, loss.gradient), supple.gradient(fine, loss.gradient)
    assert a.report.initial_relative_residual == pytest.approx(unconverged.report.relative_residual)
    assert a.report.relative_residual < 1e-9
    assert a.report.moved > 1e-3
    np.testing.assert_allclose(a.pins["pin1"], b.pins["pin1"], atol=1e-7 * np.abs(b.pins["pin1"]).max())
    text = str(a.report)
    assert "Newton step" in text
    assert "multilevel CG" in text


def test_float32_is_accurate_enough_as_start():
    scene = cantilever(material("corotated"), cells=2)
    loss = Loss(27)
    single = supple.gradient(supple.equilibrium(scene, precision="float32"), loss.gradient)
    double = supple.gradient(supple.equilibrium(scene), loss.gradient)
    np.testing.assert_allclose(single.gravity, double.gravity, rtol=1e-7)


def test_unsupported_body_is_refused():
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(2), material("corotated"))
    result = supple.equilibrium(scene)
    with pytest.raises(NoGradientError, match="costs no energy"):
        supple.gradient(result, np.ones((27, 3)))
    with pytest.raises(supple.gradients.NoGradientError, match="Pin the body"):
        supple.gradient(result, Loss(27).gradient)


def column(load):
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(
        supple.block((12, 1, 1), size=(1, 0.05, 0.05)), material("stvk", young=1e5, poisson=0.0)
    )
    scene.pin(body.where(face(0, 0)))
    scene.pin(body.where(face(0, 1)), motion=supple.Translate((-load, 0, 0)))
    return scene


def test_unstable_state_is_reported():
    scene = column(0.1)
    straight = column(0.0).bodies[0].points * (0.9, 1, 1)
    start = supple.equilibrium(
        scene, solver="newton", initial=straight, tolerance=1e-8, position_tolerance=None
    )
    if np.abs(start.positions - straight).max() > 0.01:
        pytest.skip("the solve has left the straight state")
    gradient = supple.gradient(start, np.ones_like(straight))
    assert not gradient.report.stable
    assert gradient.report.curvature < 0
    assert "the equilibrium is unstable" in str(gradient.report)
    assert supple.gradient(supple.equilibrium(column(0.001)), np.ones_like(straight)).report.stable


def test_time_step_gradient():
    scene = cantilever(material("neo_hookean"), cells=2)
    scene.quasistatic = False
    rng = np.random.default_rng(0)
    X = scene.bodies[0].points
    x0, v0 = X + 0.01 * rng.normal(size=X.shape), rng.normal(size=X.shape)
    x0[scene.pins[0].on.indices], v0[scene.pins[0].on.indices] = X[scene.pins[0].on.indices], 0
    loss, dt = Loss(27), 0.02

    def step(x, v, density=2.0):
        one = cantilever(material("neo_hookean"), cells=2, density=density)
        one.quasistatic = False
        options = {"dt": dt, "frames": 1, "initial": x, "velocities": v, "tolerance": 1e-12}
        return next(iter(supple.simulate(one, solver="newton", **options)))

    gradient = supple.gradient(step(x0, v0), loss.gradient)
    dx, dv = rng.normal(size=(2, *X.shape))
    dx[scene.pins[0].on.indices] = dv[scene.pins[0].on.indices] = 0

    def slope(x, v, density, h):
        ends = [loss(step(x0 + s * h * x, v0 + s * h * v, 2 + s * h * density).positions) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * h)

    assert (gradient.initial_positions * dx).sum() == pytest.approx(slope(dx, 0 * dv, 0, 1e-5), rel=1e-6)
    assert (gradient.initial_velocities * dv).sum() == pytest.approx(slope(0 * dx, dv, 0, 1e-4), rel=1e-6)
    assert gradient.body(scene.bodies[0]).density == pytest.approx(slope(0 * dx, 0 * dv, 1, 1e-3), rel=1e-6)


def test_variations_have_separate_gravity_and_materials():
    scene = cantilever(material("corotated"), cells=2)
    body = scene.bodies[0]
    varied = supple.Variation(gravity=(0, 5, 0), materials={body: material("corotated", young=2e3)})
    (result,) = supple.equilibria(scene, [varied])
    twin = cantilever(material("corotated", young=2e3), cells=2, gravity=-5.0)
    loss = Loss(27).gradient
    a, b = supple.gradient(result, loss), supple.gradient(supple.equilibrium(twin), loss)
    np.testing.assert_allclose(a.rest, b.rest, rtol=1e-6, atol=1e-9)
    assert a.body(body).young == pytest.approx(b.body(twin.bodies[0]).young, rel=1e-7)
    assert a.body(body).density == pytest.approx(b.body(twin.bodies[0]).density, rel=1e-7)


def test_wrong_calls_are_refused():
    scene = cantilever(material("corotated"), cells=1)
    body, result = scene.bodies[0], supple.equilibrium(scene)
    with pytest.raises(TypeError, match=r"gradient\(\) needs a result"):
        supple.gradient(scene, np.zeros((8, 3)))
    with pytest.raises(ValueError, match="∂L/∂x"):
        supple.gradient(result, np.zeros((7, 3)))
    with pytest.raises(ValueError, match="∂L/∂x"):
        supple.gradient(result, np.full((8, 3), np.nan))
    gradient = supple.gradient(result, np.ones((8, 3)))
    with pytest.raises(AttributeError, match="no parameter 'yung'"):
        gradient.body(body).yung  # noqa: B018
    with pytest.raises(ValueError, match=r"body\(\) needs a body of the scene"):
        gradient.body("solid0")
    with pytest.raises(ValueError, match="need a frame of a motion"):
        gradient.initial_velocities  # noqa: B018
    assert "relative residual" in repr(gradient)


@pytest.mark.parametrize("integrator", ["bdf2", "trapezoidal"])
def test_start_of_a_second_order_step_is_refused(integrator):
    scene = cantilever(material("corotated"), cells=1)
    (frame,) = supple.simulate(
        scene, quasistatic=False, frames=1, dt=0.01, integrator=integrator, tolerance=1e-8
    )
    gradient = supple.gradient(frame, np.ones((8, 3)))
    assert np.isfinite(gradient.gravity).all()
    with pytest.raises(ValueError, match="start of a step need integrator='backward_euler'"):
        gradient.initial_velocities  # noqa: B018


def test_reports_are_plain_data():
    scene = cantilever(material("corotated"), cells=1)
    result = supple.gradient(supple.equilibrium(scene), np.ones((8, 3)))
    assert result.report.to_dict()["stable"] is True
    assert pickle.loads(pickle.dumps(result.report)) == result.report


@pytest.mark.parametrize("steps", [1, 3])
def test_plastic_flow_of_earlier_load_steps_is_refused(steps):
    """For one step the Hessian is the algorithmic tangent; flow of earlier steps depends on the path."""
    scale = np.random.default_rng(1).normal(size=supple.block(2).points.shape)

    def solved(yield_stress):
        scene = supple.Scene(gravity=(0, 0, 0))
        metal = supple.materials.PlasticHencky(
            young=1e6, poisson=0.3, yield_stress=yield_stress, hardening=1e5
        )
        body = scene.add_solid(supple.block(2), metal, name="bar")
        scene.pin(body.where(lambda X: X[:, 0] <= 0))
        scene.pin(body.where(lambda X: X[:, 0] >= 1), motion=supple.Translate((0.05, 0, 0)))
        return supple.equilibrium(scene, tolerance=1e-10, position_tolerance=None, load_steps=steps), body

    if steps > 1:
        with pytest.raises(supple.gradients.NoGradientError, match="'bar' yielded in earlier load steps"):
            supple.gradient(solved(1e4)[0], scale)
        return
    result, body = solved(1e4)
    gradient = np.sum(supple.gradient(result, scale).body(body).yield_stress)
    more, less = (np.sum(scale * solved(y)[0].positions) for y in (1.001e4, 0.999e4))
    assert gradient == pytest.approx((more - less) / 20, rel=1e-5)
